import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openTransformers } from "../../src/embed/transformers.ts";
import { EmbeddingError, type Embedder } from "../../src/embed/types.ts";
import { embedItem } from "../../src/embed/windows.ts";
import { TRANSFORMERS_REPO as model, testModels } from "../support/models.ts";
import { cosine } from "../support/tables.ts";

// A model is opened and run; machines differ.
setDefaultTimeout(60_000);
const models = testModels();

describe.skipIf(models === null)("MiniLM on ONNX Runtime", () => {
  let dir: string;
  let embedder: Embedder;
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "transformers-"));
    embedder = await openTransformers({ modelsDir: models!, model, dataDir: dir });
  });
  afterAll(async () => {
    await embedder.close();
    rmSync(dir, { recursive: true, force: true });
  });

  test("gives the vectors its makers state, alone or in a batch", async () => {
    expect(embedder.signature).toBe(`transformers:${model}:384`);
    const texts = ["I live in Paris", "My home is in France's capital", "The cat sat on the mat"];
    const [paris, france, cat] = await embedder.embed(texts);
    expect(cosine(paris, france)).toBeCloseTo(0.576, 2);
    expect(cosine(paris, cat)).toBeCloseTo(-0.035, 2);
    for (const [at, text] of texts.entries()) {
      const [alone] = await embedder.embed([text]);
      expect(cosine(alone, [paris, france, cat][at])).toBeGreaterThan(0.99);
      expect(cosine(alone, alone)).toBeCloseTo(1, 4);
    }
  });

  test("keeps the order of texts of mixed length, empty ones included", async () => {
    const texts = Array.from({ length: 30 }, (_, at) =>
      at % 7 === 3 ? "" : "word ".repeat((at * 13) % 90) + at,
    );
    const vectors = await embedder.embed(texts);
    for (const [at, vector] of vectors.entries()) {
      if (texts[at] === "") expect(vector.every((value) => value === 0)).toBe(true);
      else if (at % 5 === 0)
        expect(cosine(vector, (await embedder.embed([texts[at]!]))[0])).toBeGreaterThan(0.98);
    }
  });

  test("a single text is served before the rest of a batch", async () => {
    const order: string[] = [];
    const batch = embedder
      .embed(Array<string>(12).fill("one of many longer texts ".repeat(30)))
      .then(() => order.push("batch"));
    const query = embedder.embed(["who waits?"]).then(() => order.push("query"));
    await Promise.all([batch, query]);
    expect(order).toEqual(["query", "batch"]);
  });

  test("an aborted call ends and the next one works", async () => {
    const abort = new AbortController();
    const running = embedder.embed(Array<string>(40).fill("a text of some length ".repeat(20)), abort.signal);
    abort.abort(new Error("gone"));
    expect(running).rejects.toThrow("gone");
    expect(await embedder.embed(["still there"])).toHaveLength(1);
  });

  test("long texts become windows, and the end is found", async () => {
    const text = "the weather report spoke of rain in the hills and wind at the coast ".repeat(50);
    const windows = embedder.windows(`${text} I keep my violin in the attic`);
    expect(windows.length).toBeGreaterThan(2);
    expect(windows.length).toBeLessThanOrEqual(8);
    const item = await embedItem(embedder, `${text} I keep my violin in the attic`);
    const [query] = await embedder.embed(["where is the violin kept"]);
    const scores = item.map((vector) => cosine(vector, query));
    expect(scores.indexOf(Math.max(...scores))).toBe(item.length - 1);
    expect(await embedItem(embedder, "x".repeat(1_000_000))).toHaveLength(1);
    expect(embedder.windows("乌龙茶".repeat(330_000))).toHaveLength(8);
  });

  const damage: [what: string, file: string, harm: (path: string) => void, sentence: string][] = [
    ["a missing file", "tokenizer_config.json", (path) => rmSync(path), "tokenizer_config.json of the transformers model is not there."],
    ["no weights", "onnx/model_quantized.onnx", (path) => rmSync(path), "onnx/model_quantized.onnx of the transformers model is not there."],
    ["half the weights", "onnx/model_quantized.onnx", (path) => truncateSync(path, 9_000_000), "onnx/model_quantized.onnx of the transformers model could not be opened"],
    ["weights of noise", "onnx/model_quantized.onnx", (path) => writeFileSync(path, crypto.getRandomValues(new Uint8Array(5000))), "could not be opened"],
    ["half a tokenizer", "tokenizer.json", (path) => truncateSync(path, 1000), "the transformers model"],
    ["half a config", "config.json", (path) => truncateSync(path, 10), "the transformers model"],
  ]; // prettier-ignore
  for (const [what, file, harm, sentence] of damage) {
    test(`${what} is a reason, not a crash`, async () => {
      const modelsDir = join(dir, what.replaceAll(" ", "-"));
      cpSync(join(models!, model), join(modelsDir, model), { recursive: true });
      harm(join(modelsDir, model, file));
      const error = await openTransformers({ modelsDir, model, dataDir: dir }).catch(
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(EmbeddingError);
      expect((error as EmbeddingError).message).toContain(sentence);
      expect((error as EmbeddingError).partDown).toBe(true);
    });
  }
});
