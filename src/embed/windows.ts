/** Long texts as several vectors: an item is as near as its best window. */
import type { Embedder } from "./types.ts";

/** The vectors of one text, one a window (1–8). Its cosine to a query is the best of them. */
export async function embedItem(
  embedder: Embedder,
  text: string,
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  return await embedder.embed(embedder.windows(text), signal);
}

/** The same for many texts in one call of the model; answer `i` holds the windows of `texts[i]`. */
export async function embedItems(
  embedder: Embedder,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<Float32Array[][]> {
  const pieces: string[] = [];
  const counts: number[] = [];
  for (const text of texts) {
    const windows = embedder.windows(text);
    counts.push(windows.length);
    pieces.push(...windows);
  }
  const vectors = await embedder.embed(pieces, signal);
  let at = 0;
  return counts.map((count) => vectors.slice(at, (at += count)));
}
