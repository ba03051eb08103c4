import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStatic } from "../../src/embed/static.ts";
import { EmbeddingError } from "../../src/embed/types.ts";
import { embedItem, embedItems } from "../../src/embed/windows.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { cosine, safetensors, wordTokenizer } from "../support/tables.ts";

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "static-"));
});
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

let made = 0;
/** A model folder with the given table over the words a, b, c (ids 1, 2, 3). */
function model(table: Uint8Array, tokenizer: unknown = wordTokenizer(["a", "b", "c"])): string {
  const folder = join(dir, String(made++));
  mkdirSync(folder);
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(tokenizer));
  writeFileSync(join(folder, "model.safetensors"), table);
  return folder;
}

const rows = [9, 9, 1, 0, 0, 1, 3, 4]; // unknown, a, b, c in two dimensions
const values = async (folder: string, text: string) =>
  Array.from((await (await openStatic(folder, "m")).embed([text]))[0] ?? [], (value) =>
    Number(value.toFixed(4)),
  );

describe("a table", () => {
  test("gives the mean of its rows at unit length and leaves unknown words out", async () => {
    const folder = model(safetensors({ embeddings: { shape: [4, 2], data: Float32Array.from(rows) } }));
    expect(await values(folder, "a")).toEqual([1, 0]);
    expect(await values(folder, "a b nothing")).toEqual([0.7071, 0.7071]);
    expect(await values(folder, "C!")).toEqual([0.6, 0.8]);
    expect(await values(folder, "")).toEqual([0, 0]);
    expect(await values(folder, "nothing known")).toEqual([0, 0]);
  });

  test("may be F16 or I8, and may lie at an odd place in the file", async () => {
    for (const data of [Float32Array.from(rows), Float16Array.from(rows), Int8Array.from(rows)]) {
      for (const padding of [8, 1, 7, 13]) {
        const folder = model(safetensors({ embeddings: { shape: [4, 2], data } }, padding));
        expect(await values(folder, "a b c")).toEqual([0.6247, 0.7809]);
      }
    }
  });

  test("may be quantised by vocabulary: mapping and weights", async () => {
    const table = Float32Array.from([0, 0, 1, 0, 0, 1]);
    for (const mapping of [Int32Array.from([0, 1, 2, 1]), BigInt64Array.from([0n, 1n, 2n, 1n])]) {
      for (const weights of [Float32Array.from([1, 1, 3, 2]), Float64Array.from([1, 1, 3, 2])]) {
        const folder = model(
          safetensors({
            embeddings: { shape: [3, 2], data: table },
            mapping: { shape: [4], data: mapping },
            weights: { shape: [4], data: weights },
          }),
        );
        expect(await values(folder, "a b")).toEqual([0.3162, 0.9487]);
        expect(await values(folder, "b c c")).toEqual([0.8, 0.6]);
      }
    }
  });

  const good = safetensors({ embeddings: { shape: [4, 2], data: Float32Array.from(rows) } });
  const withHeader = (header: string) => {
    const file = new Uint8Array(8 + header.length + 32);
    new DataView(file.buffer).setBigUint64(0, BigInt(header.length), true);
    file.set(new TextEncoder().encode(header), 8);
    return file;
  };
  const bad: [why: string, table: Uint8Array, sentence: string][] = [
    ["empty", new Uint8Array(0), "cut off"],
    ["half a length", good.slice(0, 5), "cut off"],
    ["half a header", good.slice(0, 40), "cut off"],
    ["half a table", good.slice(0, -9), "cut off"],
    ["text", new TextEncoder().encode("version https://git-lfs…"), "no safetensors file"],
    ["a header of noise", withHeader("{{{{"), "header of the file is damaged"],
    ["a header that is no object", withHeader("[]"), "header of the file is damaged"],
    ["no embeddings", safetensors({ other: { shape: [1], data: Float32Array.of(1) } }), "no tensor named embeddings"],
    ["shape and size disagree", withHeader('{"embeddings":{"dtype":"F32","shape":[4,2],"data_offsets":[0,16]}}'), "16 bytes where its shape needs 32"],
    ["negative offsets", withHeader('{"embeddings":{"dtype":"F32","shape":[4,2],"data_offsets":[-32,0]}}'), "damaged"],
    ["another type", withHeader('{"embeddings":{"dtype":"BF16","shape":[8,2],"data_offsets":[0,32]}}'), "type BF16"],
    ["one dimension", safetensors({ embeddings: { shape: [8], data: Float32Array.from(rows) } }), "shape [8]"],
    ["fewer rows than words", safetensors({ embeddings: { shape: [2, 2], data: Float32Array.of(1, 1, 1, 1) } }), "knows 2 tokens"],
    ["NaN", safetensors({ embeddings: { shape: [4, 2], data: new Float32Array(8).fill(Number.NaN) } }), "NaN"],
    ["a mapping outside", safetensors({ embeddings: { shape: [4, 2], data: Float32Array.from(rows) }, mapping: { shape: [4], data: Int32Array.of(0, 1, 2, 4) } }), "points outside"],
    ["too few weights", safetensors({ embeddings: { shape: [4, 2], data: Float32Array.from(rows) }, weights: { shape: [2], data: Float32Array.of(1, 1) } }), "knows 2 tokens"],
  ]; // prettier-ignore
  for (const [why, table, sentence] of bad) {
    test(`that is damaged (${why}) is refused with the reason`, async () => {
      const error = await openStatic(model(table), "m").catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(EmbeddingError);
      expect((error as EmbeddingError).message).toStartWith(
        "model.safetensors of the static model is not usable: ",
      );
      expect((error as EmbeddingError).message).toContain(sentence);
      expect((error as EmbeddingError).partDown).toBe(true);
    });
  }

  test("without its files says which one is missing", async () => {
    const folder = model(good);
    rmSync(join(folder, "model.safetensors"));
    expect(openStatic(folder, "m")).rejects.toThrow("model.safetensors of the static model is not there.");
    writeFileSync(join(folder, "tokenizer.json"), "{");
    expect(openStatic(folder, "m")).rejects.toThrow("tokenizer.json of the static model is not usable: ");
  });
});

const models = testModels();
describe.skipIf(models === null)("real weights", () => {
  const folder = join(models ?? "", STATIC_REPO);

  test("near meanings are near", async () => {
    const embedder = await openStatic(folder, "minishlab/potion-base-8M");
    expect(embedder.signature).toBe("static:minishlab/potion-base-8M:256");
    const [paris, france, cat] = await embedder.embed([
      "I live in Paris",
      "My home is in France's capital",
      "The cat sat",
    ]);
    expect(cosine(paris, paris)).toBeCloseTo(1, 5);
    expect(cosine(paris, france)).toBeGreaterThan(cosine(paris, cat) + 0.3);
  });

  test("an aborted call ends", async () => {
    const embedder = await openStatic(folder, "m");
    const abort = new AbortController();
    const running = embedder.embed(Array<string>(100_000).fill("a text"), abort.signal);
    abort.abort(new Error("gone"));
    expect(running).rejects.toThrow("gone");
  });

  test("a long text has up to eight windows, and its end counts", async () => {
    const embedder = await openStatic(folder, "m");
    const filler = "the weather report spoke of rain in the hills and wind at the coast ";
    for (const repeats of [1, 60, 400, 4000]) {
      const text = filler.repeat(repeats) + "I keep my violin in the attic";
      const windows = embedder.windows(text);
      expect(windows.length).toBeLessThanOrEqual(8);
      expect(windows.length > 1).toBe(repeats > 1);
      expect(windows.at(-1)).toEndWith("in the attic");
      expect(text).toStartWith(windows[0]!);
    }
    const [item] = await embedItems(embedder, [filler.repeat(60) + "I keep my violin in the attic"]);
    const [query] = await embedder.embed(["violin in the attic"]);
    const best = Math.max(...(item ?? []).map((vector) => cosine(vector, query)));
    const [whole] = await embedder.embed([filler.repeat(60) + "I keep my violin in the attic"]);
    expect(best).toBeGreaterThan(cosine(whole, query));
    expect(await embedItem(embedder, "short")).toHaveLength(1);
  });

  test("windows overlap by an eighth", async () => {
    const embedder = await openStatic(folder, "m");
    const { model } = JSON.parse(readFileSync(join(folder, "tokenizer.json"), "utf8")) as {
      model: { vocab: object };
    };
    const words = Object.keys(model.vocab).filter((word) => /^[a-z]{4,9}$/.test(word)).slice(0, 900); // prettier-ignore
    const windows = embedder.windows(words.join(" ")).map((window) => window.split(" "));
    expect(windows.map((window) => window.length)).toEqual([512, 452]);
    expect(windows[1]!.slice(0, 64)).toEqual(windows[0]!.slice(-64));
  });

  test("a megabyte without a space, and of Chinese, is embedded", async () => {
    const embedder = await openStatic(folder, "m");
    for (const text of ["x".repeat(1_000_000), "乌龙茶".repeat(330_000)]) {
      const vectors = await embedItem(embedder, text);
      expect(vectors.length).toBeLessThanOrEqual(8);
      for (const vector of vectors) expect(vector.every(Number.isFinite)).toBe(true);
    }
  });
});
