/**
 * Sentence transformers by @huggingface/transformers on ONNX Runtime: mean pooling, unit length. Both are loaded on
 * first use. ONNX Runtime computes on the thread that asks, so work is cut in slices of some 50 ms, and a single text
 * (somebody waits for it) goes before the slices of a batch.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { loadOnnx, trimHeap } from "../native.ts";
import { TRANSFORMERS_FILES, TRANSFORMERS_WEIGHTS } from "./model-files.ts";
import { EmbeddingError, type Embedder } from "./types.ts";
import { cutWindows } from "./windows.ts";
import { createTokenizer } from "./wordpiece.ts";

/** Tokens of a slice, padding counted. */
const SLICE_TOKENS = 512;
/** Tokens of a window: small sentence models are trained on less than half of what they accept. Long texts get larger ones. */
const WINDOW_TOKENS = 256;
/** `[CLS]` and `[SEP]`. */
const SPECIAL_TOKENS = 2;
/** A window's tokens are counted piece by piece, which may be a few off. */
const SLACK = 8;

export interface TransformersOptions {
  /** Folder that holds `{model}/config.json` and so on. */
  readonly modelsDir: string;
  /** Repository name, such as `Xenova/all-MiniLM-L6-v2`. */
  readonly model: string;
  /** Where the native library may be written. */
  readonly dataDir: string;
}

/** Opens the model. Throws EmbeddingError with what is missing or damaged. */
export async function openTransformers({
  modelsDir,
  model,
  dataDir,
}: TransformersOptions): Promise<Embedder> {
  const folder = join(modelsDir, model);
  for (const file of TRANSFORMERS_FILES) {
    if (!existsSync(join(folder, file))) throw down(`${file} of the transformers model is not there.`);
  }
  const weights = TRANSFORMERS_WEIGHTS.find(([file]) => existsSync(join(folder, file)));
  if (weights === undefined) throw down("onnx/model_quantized.onnx of the transformers model is not there.");
  const missing = loadOnnx(dataDir);
  if (missing !== null) throw down(missing.reason);

  const longest = (await inputTokens(folder)) - SPECIAL_TOKENS;
  const extract = await openPipeline(modelsDir, model, weights);
  const count = await tokenCounter(folder);
  const queue = createQueue();

  const run = async (texts: string[]): Promise<Float32Array[]> => {
    const output = await extract(texts, { pooling: "mean", normalize: true });
    const [, size = 0] = output.dims;
    const data = output.data as Float32Array;
    if (!data.every(Number.isFinite)) throw down("the transformers model gave a number that is none.");
    return texts.map((_, index) => data.slice(index * size, (index + 1) * size));
  };
  let closed = false;
  const [probe] = await run(["dimension"]);
  const dimensions = probe?.length ?? 0;
  await trimHeap();

  return {
    source: "transformers",
    model,
    dimensions,
    signature: `transformers:${model}:${dimensions}`,
    async embed(texts, signal) {
      const vectors: Float32Array[] = texts.map(() => new Float32Array(dimensions));
      for (const slice of slices(texts, count, longest)) {
        const answer = await queue(slice.length === 1 && texts.length === 1, () => {
          signal?.throwIfAborted();
          if (closed) throw down("the transformers model was closed.");
          return run(slice.map((index) => texts[index]!));
        });
        slice.forEach((index, at) => (vectors[index] = answer[at]!));
      }
      return vectors;
    },
    windows: (text) => cutWindows(text, Math.min(WINDOW_TOKENS, longest) - SLACK, count, longest - SLACK),
    async close() {
      if (closed) return;
      closed = true;
      await queue(false, () => extract.dispose());
    },
  };
}

async function openPipeline(
  modelsDir: string,
  model: string,
  [file, dtype]: (typeof TRANSFORMERS_WEIGHTS)[number],
) {
  const { env, pipeline } = await import("@huggingface/transformers");
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.localModelPath = modelsDir.endsWith("/") ? modelsDir : `${modelsDir}/`;
  env.useFSCache = false;
  env.useBrowserCache = false;
  try {
    return await pipeline("feature-extraction", model, {
      dtype,
      device: "cpu",
      local_files_only: true,
      // A pool that spins between calls takes the core from the thread that serves requests.
      session_options: { extra: { session: { intra_op: { allow_spinning: "0" } } } },
    });
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0]!.replace(/\.$/, "") : String(error);
    throw down(`${file} of the transformers model could not be opened: ${why}.`, error);
  }
}

/** The longest input the model was made for, special tokens included. */
async function inputTokens(folder: string): Promise<number> {
  const limits = [512];
  for (const [file, field] of [
    ["tokenizer_config.json", "model_max_length"],
    ["config.json", "max_position_embeddings"],
  ] as const) {
    const value = (await json(folder, file))[field];
    if (typeof value === "number" && value >= 16) limits.push(value);
  }
  return Math.min(...limits);
}

/** Counts tokens; the tokenizer is read when the first text comes that may be too long. */
async function tokenCounter(folder: string): Promise<(text: string) => number> {
  const source = await json(folder, "tokenizer.json");
  const tokenizer = createTokenizer(source);
  const ids: number[] = [];
  return (text) => {
    ids.length = 0;
    tokenizer.encode(text, ids);
    return ids.length;
  };
}

async function json(folder: string, file: string): Promise<Record<string, unknown>> {
  try {
    return JSON.parse(await readFile(join(folder, file), "utf8")) as Record<string, unknown>;
  } catch (error) {
    throw down(`${file} of the transformers model is damaged.`, error);
  }
}

/** Indexes of texts of like length together, each slice within SLICE_TOKENS once padded. Empty texts are left out. */
function slices(texts: readonly string[], count: (text: string) => number, most: number): number[][] {
  const sized = texts
    .map((text, index) => ({ index, tokens: Math.min(count(text), most) + SPECIAL_TOKENS }))
    .filter(({ index }) => texts[index]!.trim() !== "")
    .sort((a, b) => a.tokens - b.tokens);
  const result: number[][] = [];
  let slice: number[] = [];
  for (const { index, tokens } of sized) {
    if (slice.length > 0 && (slice.length + 1) * tokens > SLICE_TOKENS) {
      result.push(slice);
      slice = [];
    }
    slice.push(index);
  }
  if (slice.length > 0) result.push(slice);
  return result;
}

/** Runs one task at a time; urgent ones go before all others. */
function createQueue(): <T>(urgent: boolean, task: () => Promise<T>) => Promise<T> {
  const waiting: { urgent: boolean; start: () => void }[] = [];
  let busy = false;
  const next = (): void => {
    const at = waiting.findIndex((one) => one.urgent);
    const [first] = waiting.splice(at < 0 ? 0 : at, 1);
    busy = first !== undefined;
    first?.start();
  };
  return async (urgent, task) => {
    if (busy) await new Promise<void>((start) => waiting.push({ urgent, start }));
    busy = true;
    try {
      return await task();
    } finally {
      // Messages that came in meanwhile are read before the next slice begins.
      setImmediate(next);
    }
  };
}

function down(message: string, cause?: unknown): EmbeddingError {
  return new EmbeddingError(message, { partDown: true, cause });
}
