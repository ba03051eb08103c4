/** Long texts as several vectors: an item is as near as its best window. */
import type { Embedder } from "./types.ts";

const MOST_WINDOWS = 8;
const OVERLAP = 1 / 8;

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

/**
 * Cuts a text at word boundaries into windows of at most `size` units as `count` counts them, an eighth of a window
 * shared with the one before. Where eight do not reach the end they become larger, up to `most`; what is still left is
 * left out.
 */
export function cutWindows(
  text: string,
  size: number,
  count: (piece: string) => number,
  most = size,
): string[] {
  if (text.length * 3 <= size || count(text) <= size) return [text];
  const pieces = text.match(/\s*\S{1,32}|\s+$/gu) ?? [];
  const sizes = pieces.map(count);
  const window = Math.max(size, Math.min(most, windowThatReaches(sizes)));
  const windows: string[] = [];
  let from = 0;
  while (from < pieces.length && windows.length < MOST_WINDOWS) {
    let to = from;
    let filled = 0;
    while (to < pieces.length && (to === from || filled + sizes[to]! <= window)) filled += sizes[to++]!;
    windows.push(pieces.slice(from, to).join("").trim());
    if (to >= pieces.length) break;
    let shared = 0;
    let next = to;
    while (next > from + 1 && shared + sizes[next - 1]! <= window * OVERLAP) shared += sizes[--next]!;
    from = next;
  }
  return windows;
}

/** Eight windows of this size reach the end: each is short by at most one piece, and so is what it shares. */
function windowThatReaches(sizes: readonly number[]): number {
  let total = 0;
  let largest = 0;
  for (const size of sizes) {
    total += size;
    if (size > largest) largest = size;
  }
  const reach = 1 + (MOST_WINDOWS - 1) * (1 - OVERLAP);
  return Math.ceil((total + MOST_WINDOWS * largest) / reach);
}
