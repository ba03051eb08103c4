/**
 * Embeddings of a provider or a custom endpoint: OpenAI's `POST /embeddings`, in batches. What goes wrong is told as
 * status and one sentence; after a failure of the whole part nothing is sent for 30 s, or as long as a 429 asks.
 * https://platform.openai.com/docs/api-reference/embeddings/create
 */
import { withoutUserInfo } from "./resolve.ts";
import { EmbeddingError, type Embedder } from "./types.ts";
import { unit } from "./unit.ts";
import { cutWindows } from "./windows.ts";

export interface RemoteOptions {
  /** With `/embeddings` at its end or not; it is appended once. */
  readonly baseUrl: string;
  /** The model's name as the endpoint knows it. */
  readonly modelId: string;
  /** As in the signature: `provider/model`, or endpoint and model. */
  readonly model: string;
  readonly apiKey: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** The URL policy's own fetch, where there is one. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  readonly timeoutMs?: number;
  /** Milliseconds, for the pause. */
  readonly now?: () => number;
}

const BATCH_TEXTS = 64;
const BATCH_CHARS = 100_000;
const WINDOW_CHARS = 6000;
const SHORTEST_WINDOW = 500;
const PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 600_000;
const ANSWER_BYTES = 64 * 1024 * 1024;

/** Opens the endpoint with one real embedding, which tells the dimension. Throws EmbeddingError. */
export async function openRemote(options: RemoteOptions, signal?: AbortSignal): Promise<Embedder> {
  const { model, now = Date.now } = options;
  const call = createCall(options);
  let windowChars = WINDOW_CHARS;
  let paused: { until: number; why: string } | null = null;

  const guarded = async (texts: readonly string[], caller?: AbortSignal): Promise<Float32Array[]> => {
    if (paused !== null && paused.until > now()) {
      throw new EmbeddingError(`${paused.why} It is asked again later.`, {
        partDown: true,
        retryAfterMs: paused.until - now(),
      });
    }
    try {
      const vectors = await call(texts, caller);
      paused = null;
      return vectors;
    } catch (error) {
      if (error instanceof EmbeddingError && error.partDown) {
        const wait = Math.min(Math.max(PAUSE_MS, error.retryAfterMs ?? 0), LONGEST_PAUSE_MS);
        paused = { until: now() + wait, why: error.message };
      }
      throw error;
    }
  };

  /** One refused text must not cost the others of its batch; a text that is too long is tried shorter. */
  const patient = async (texts: readonly string[], caller?: AbortSignal): Promise<Float32Array[]> => {
    try {
      return await guarded(texts, caller);
    } catch (error) {
      if (!(error instanceof EmbeddingError) || error.partDown) throw error;
      const [first = ""] = texts;
      if (texts.length === 1 && first.length > SHORTEST_WINDOW) {
        windowChars = Math.max(SHORTEST_WINDOW, Math.min(windowChars, first.length >> 1));
        return await patient([first.slice(0, windowChars)], caller);
      }
      if (texts.length === 1) throw error;
      const half = texts.length >> 1;
      const left = await patient(texts.slice(0, half), caller);
      return [...left, ...(await patient(texts.slice(half), caller))];
    }
  };

  const [probe] = await guarded(["dimension"], signal);
  const dimensions = probe!.length;
  return {
    source: "remote",
    model,
    dimensions,
    signature: `remote:${model}:${dimensions}`,
    async embed(texts, caller) {
      const vectors: Float32Array[] = texts.map(() => new Float32Array(dimensions));
      for (const batch of batches(texts)) {
        const made = await patient(
          batch.map((index) => texts[index]!),
          caller,
        );
        made.forEach((vector, at) => {
          if (vector.length !== dimensions) {
            throw new EmbeddingError(
              `The embedding endpoint gave ${vector.length} dimensions where it gave ${dimensions} before.`,
              { partDown: true },
            );
          }
          vectors[batch[at]!] = vector;
        });
      }
      return vectors;
    },
    windows: (text) => cutWindows(text, windowChars, (piece) => piece.length),
    close: () => Promise.resolve(),
  };
}

/** One request. */
function createCall(options: RemoteOptions) {
  const base = options.baseUrl.replace(/\/+$/, "");
  const url = base.endsWith("/embeddings") ? base : `${base}/embeddings`;
  const send = options.fetch ?? fetch;
  const timeoutMs = options.timeoutMs ?? 10_000;
  const place = `The embedding endpoint ${URL.parse(withoutUserInfo(url))?.host ?? ""}`;
  const headers = {
    ...options.headers,
    "content-type": "application/json",
    ...(options.apiKey === null ? {} : { authorization: `Bearer ${options.apiKey}` }),
  };
  return async (input: readonly string[], caller?: AbortSignal): Promise<Float32Array[]> => {
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = caller === undefined ? timeout : AbortSignal.any([caller, timeout]);
    const body = JSON.stringify({ model: options.modelId, input, encoding_format: "float" });
    try {
      caller?.throwIfAborted();
      const response = await send(url, { method: "POST", headers, body, signal, redirect: "manual" });
      if (!response.ok) {
        await response.body?.cancel().catch(() => undefined);
        throw refusal(place, response);
      }
      return readVectors(await readJson(response, place), input.length, place);
    } catch (error) {
      if (caller?.aborted) throw caller.reason;
      if (error instanceof EmbeddingError) throw error;
      const late = timeout.aborted ? `did not answer within ${timeoutMs / 1000} s` : "could not be reached";
      throw new EmbeddingError(`${place} ${late}.`, { partDown: true, cause: error });
    }
  };
}

function refusal(place: string, response: Response): EmbeddingError {
  const { status } = response;
  const said: Record<number, string> = {
    401: "refuses the key",
    403: "refuses the key",
    404: "does not know this address or model",
    413: "finds the text too long",
    429: "asks to slow down",
  };
  const redirected =
    status >= 300 && status < 400 ? "answers with a redirect, which is not followed" : undefined;
  const sentence = said[status] ?? redirected ?? (status >= 500 ? "failed" : "refuses the request");
  return new EmbeddingError(`${place} ${sentence} (${status}).`, {
    partDown: ![400, 413, 422].includes(status),
    status,
    retryAfterMs: retryAfter(response.headers.get("retry-after")),
  });
}

function retryAfter(header: string | null): number | null {
  if (header === null) return null;
  const seconds = Number(header);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, wait) : null;
}

async function readJson(response: Response, place: string): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > ANSWER_BYTES) throw new EmbeddingError(`${place} sends more than 64 MB.`, { partDown: true });
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    throw new EmbeddingError(`${place} answers something other than JSON.`, { partDown: true });
  }
}

/** `data[].embedding` as numbers or as base64 of little-endian floats, in the order of `index`. */
function readVectors(body: unknown, count: number, place: string): Float32Array[] {
  const wrong = (what: string): EmbeddingError => new EmbeddingError(`${place} ${what}.`, { partDown: true });
  const data = isObject(body) && Array.isArray(body["data"]) ? (body["data"] as unknown[]) : null;
  if (data === null) throw wrong("answers without a list of embeddings");
  if (data.length !== count) throw wrong(`answers ${data.length} embeddings where ${count} were asked for`);
  const vectors: Float32Array[] = [];
  data.forEach((item, at) => {
    const entry = isObject(item) ? item : {};
    const index = Number.isInteger(entry["index"]) ? (entry["index"] as number) : at;
    const vector = toVector(entry["embedding"]);
    if (vector === null || vector.length === 0) throw wrong("answers an embedding that is none");
    if (!vector.every(Number.isFinite)) throw wrong("answers an embedding with a number that is none");
    if (index < 0 || index >= count || vectors[index] !== undefined)
      throw wrong("answers embeddings out of order");
    vectors[index] = unit(vector);
  });
  return vectors;
}

function toVector(embedding: unknown): Float32Array | null {
  if (Array.isArray(embedding)) {
    return embedding.every((value) => typeof value === "number") ? Float32Array.from(embedding) : null;
  }
  if (typeof embedding !== "string") return null;
  const bytes = Buffer.from(embedding, "base64");
  if (bytes.byteLength % 4 !== 0) return null;
  return new Float32Array(new Uint8Array(bytes).buffer);
}

/** Indexes, texts that are not empty only. */
function batches(texts: readonly string[]): number[][] {
  const result: number[][] = [];
  let batch: number[] = [];
  let chars = 0;
  texts.forEach((text, index) => {
    if (text.trim() === "") return;
    if (batch.length === BATCH_TEXTS || (batch.length > 0 && chars + text.length > BATCH_CHARS)) {
      result.push(batch);
      batch = [];
      chars = 0;
    }
    batch.push(index);
    chars += text.length;
  });
  if (batch.length > 0) result.push(batch);
  return result;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
