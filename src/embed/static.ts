/**
 * Static embeddings (Model2Vec): the mean of the table's rows for the tokens of a text, at unit length. Unknown tokens
 * are left out; `mapping` (token → row) and `weights` (a factor a token) exist where a vocabulary was quantised.
 * https://github.com/MinishLab/model2vec
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseSafetensors, toFloat32, toIntegers, type Tensor } from "./safetensors.ts";
import { EmbeddingError, type Embedder } from "./types.ts";
import { unit } from "./unit.ts";
import { cutWindows } from "./windows.ts";
import { createTokenizer, type Tokenizer } from "./wordpiece.ts";

/** Tokens of a window; a mean over more than this says little. Model2Vec's own default. */
const WINDOW_TOKENS = 512;
/** Texts between two looks at the event loop, some 2 ms of work. */
const SLICE = 64;

interface Table {
  readonly rows: Float32Array | Int8Array;
  readonly dimensions: number;
  readonly rowOf: Int8Array | Int32Array | null;
  readonly weights: Float32Array | null;
}

/** Opens the model in `folder`. Throws EmbeddingError with what is wrong with which file. */
export async function openStatic(folder: string, model: string): Promise<Embedder> {
  const tokenizer = await part(folder, "tokenizer.json", (bytes) =>
    createTokenizer(JSON.parse(new TextDecoder().decode(bytes))),
  );
  const table = await part(folder, "model.safetensors", (bytes) => readTable(bytes, tokenizer.size));
  const { dimensions } = table;
  const ids: number[] = [];
  const count = (text: string): number => {
    ids.length = 0;
    tokenizer.encode(text, ids);
    return ids.length;
  };
  return {
    source: "static",
    model,
    dimensions,
    signature: `static:${model}:${dimensions}`,
    async embed(texts, signal) {
      const vectors: Float32Array[] = [];
      for (let at = 0; at < texts.length; at++) {
        if (at % SLICE === SLICE - 1) await new Promise<void>((resolve) => setImmediate(resolve));
        signal?.throwIfAborted();
        count(texts[at]!);
        vectors.push(mean(ids, table, tokenizer));
      }
      return vectors;
    },
    windows: (text) => cutWindows(text, WINDOW_TOKENS, count, Infinity),
    close: () => Promise.resolve(),
  };
}

function mean(ids: readonly number[], table: Table, tokenizer: Tokenizer): Float32Array {
  const { rows, dimensions, rowOf, weights } = table;
  const sum = new Float32Array(dimensions);
  for (const id of ids) {
    if (id === tokenizer.unknownId) continue;
    const from = (rowOf === null ? id : rowOf[id]!) * dimensions;
    if (weights === null) for (let at = 0; at < dimensions; at++) sum[at] = sum[at]! + rows[from + at]!;
    else for (let at = 0; at < dimensions; at++) sum[at] = sum[at]! + rows[from + at]! * weights[id]!;
  }
  return unit(sum);
}

function readTable(bytes: Uint8Array, vocabulary: number): Table {
  const tensors = parseSafetensors(bytes, ["embeddings", "mapping", "weights"]);
  const embeddings = tensors.get("embeddings");
  if (embeddings === undefined) throw new Error("it has no tensor named embeddings");
  const [count = 0, dimensions = 0] = embeddings.shape;
  if (embeddings.shape.length !== 2 || count === 0 || dimensions === 0 || dimensions > 16_384) {
    throw new Error(`its table has the shape [${embeddings.shape.join(", ")}]`);
  }
  if (!["F32", "F16", "I8"].includes(embeddings.type))
    throw new Error(`its table has type ${embeddings.type}`);
  const mapping = tensors.get("mapping");
  const rowOf = mapping === undefined ? null : toIntegers(mapping);
  if (rowOf?.some((row) => row < 0 || row >= count))
    throw new Error("its mapping points outside of the table");
  const weights = tensors.get("weights");
  const known = Math.min(rowOf?.length ?? count, weights === undefined ? Infinity : elements(weights));
  if (known < vocabulary) throw new Error(`it knows ${known} tokens where tokenizer.json has ${vocabulary}`);
  const rows = embeddings.type === "I8" ? (toIntegers(embeddings) as Int8Array) : toFloat32(embeddings);
  if (rows instanceof Float32Array && !rows.every(Number.isFinite)) throw new Error("its table holds NaN");
  return { rows, dimensions, rowOf, weights: weights === undefined ? null : toFloat32(weights) };
}

function elements(tensor: Tensor): number {
  return tensor.shape.reduce((product, size) => product * size, 1);
}

async function part<T>(folder: string, file: string, read: (bytes: Uint8Array) => T): Promise<T> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(join(folder, file));
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    const what = missing ? "is not there" : `cannot be read (${(error as NodeJS.ErrnoException).code})`;
    throw new EmbeddingError(`${file} of the static model ${what}.`, { partDown: true, cause: error });
  }
  try {
    return read(bytes);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new EmbeddingError(`${file} of the static model is not usable: ${why}.`, {
      partDown: true,
      cause: error,
    });
  }
}
