/** Embeddings that were made already, shared by every caller; one text embeds once even when asked for concurrently. */
import { LRUCache } from "lru-cache";
import type { Embedder } from "./types.ts";

export interface EmbeddingCacheStats {
  /** Texts answered without the model, those that joined a running call included. */
  hits: number;
  misses: number;
  size: number;
  max: number;
}

export interface EmbeddingCache {
  /** The same embedder through this cache. Vectors are shared: nobody may change them. */
  wrap(embedder: Embedder): Embedder;
  stats(): EmbeddingCacheStats;
  clear(): void;
}

interface Call {
  readonly vectors: Promise<Map<string, Float32Array>>;
  readonly abort: AbortController;
  waiting: number;
  ended: boolean;
}

/** `max` entries of at most `ttlMs` age; either at 0 turns keeping off, not the joining of concurrent calls. */
export function createEmbeddingCache({ max, ttlMs }: { max: number; ttlMs: number }): EmbeddingCache {
  const kept = max > 0 && ttlMs > 0 ? new LRUCache<string, Float32Array>({ max, ttl: ttlMs }) : null;
  const running = new Map<string, Call>();
  let hits = 0;
  let misses = 0;

  const start = (embedder: Embedder, missing: Map<string, string>): Call => {
    const abort = new AbortController();
    const keys = [...missing.keys()];
    const vectors = embedder.embed([...missing.values()], abort.signal).then((made) => {
      const found = new Map<string, Float32Array>();
      keys.forEach((key, at) => {
        found.set(key, made[at]!);
        kept?.set(key, made[at]!);
      });
      return found;
    });
    const call: Call = { vectors, abort, waiting: 0, ended: false };
    for (const key of keys) running.set(key, call);
    const forget = (): void => {
      call.ended = true;
      for (const key of keys) if (running.get(key) === call) running.delete(key);
    };
    vectors.then(forget, forget);
    return call;
  };

  const embed = async (embedder: Embedder, texts: readonly string[], signal?: AbortSignal) => {
    signal?.throwIfAborted();
    const keys = texts.map((text) => keyOf(embedder, text));
    const found = new Map<string, Float32Array>();
    const missing = new Map<string, string>();
    const joined = new Set<Call>();
    keys.forEach((key, at) => {
      const vector = found.get(key) ?? kept?.get(key);
      const call = running.get(key);
      if (vector !== undefined) found.set(key, vector);
      else if (call !== undefined && !call.abort.signal.aborted) joined.add(call);
      else if (!missing.has(key)) {
        missing.set(key, texts[at]!);
        misses++;
        return;
      }
      hits++;
    });
    if (missing.size > 0) joined.add(start(embedder, missing));
    for (const vectors of await Promise.all([...joined].map((call) => wait(call, signal)))) {
      for (const [key, vector] of vectors) found.set(key, vector);
    }
    return keys.map((key) => found.get(key)!);
  };

  return {
    wrap: (embedder) => ({
      source: embedder.source,
      model: embedder.model,
      dimensions: embedder.dimensions,
      signature: embedder.signature,
      embed: (texts, signal) => embed(embedder, texts, signal),
      windows: (text) => embedder.windows(text),
      close: () => embedder.close(),
    }),
    stats: () => ({ hits, misses, size: kept?.size ?? 0, max }),
    clear: () => kept?.clear(),
  };
}

/** A caller that leaves does not end a call others wait for; the last one to leave does. */
async function wait(call: Call, signal?: AbortSignal): Promise<Map<string, Float32Array>> {
  call.waiting++;
  let leave: (() => void) | undefined;
  try {
    if (signal === undefined) return await call.vectors;
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(signal.reason as Error);
      signal.addEventListener("abort", leave, { once: true });
    });
    return await Promise.race([call.vectors, left]);
  } finally {
    if (leave !== undefined) signal?.removeEventListener("abort", leave);
    call.waiting--;
    if (call.waiting === 0 && !call.ended) call.abort.abort();
  }
}

/** `source:model:dim:sha256(text)` */
function keyOf(embedder: Embedder, text: string): string {
  return `${embedder.signature}:${Bun.SHA256.hash(text, "base64")}`;
}
