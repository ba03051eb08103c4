/** Ranks rows by their words where a backend can only tell which rows hold a word, not which fits best. */
import type { Memory } from "../memory/types.ts";
import { memoryText } from "../search/embedded.ts";
import { fold, lower } from "../text/fold.ts";
import { terms } from "../text/terms.ts";
import type { Found } from "./types.ts";

const K1 = 1.2;
const B = 0.75;

/** BM25 over the given rows; rows without a word of the query are left out. */
export function rankByWords(query: string, rows: readonly Memory[], limit: number): Found[] {
  const wanted = [...new Set(terms(query))];
  const documents = rows.map((memory) => ({ memory, words: terms(searchText(memory)) }));
  const average = documents.reduce((sum, d) => sum + d.words.length, 0) / Math.max(1, documents.length);
  const scores = documents.map(() => 0);
  for (const word of wanted) {
    const counts = documents.map((d) => d.words.reduce((n, w) => (w === word ? n + 1 : n), 0));
    const holding = counts.filter((n) => n > 0).length;
    const idf = Math.log(1 + (documents.length - holding + 0.5) / (holding + 0.5));
    counts.forEach((n, i) => {
      if (n === 0) return;
      const length = (documents[i]?.words.length ?? 0) / Math.max(1, average);
      scores[i] = (scores[i] ?? 0) + (idf * n * (K1 + 1)) / (n + K1 * (1 - B + B * length));
    });
  }
  return documents
    .map(({ memory }, i) => ({ memory, score: scores[i] ?? 0 }))
    .filter((found) => found.score > 0)
    .toSorted((a, b) => b.score - a.score || (a.memory.createdAt < b.memory.createdAt ? 1 : -1))
    .slice(0, limit);
}

/** What every tier searches of a memory. */
export function searchText(memory: Pick<Memory, "key" | "content">): string {
  return memoryText(memory.key, memory.content);
}

/** Beginnings of the query's content words as they are written, for systems that look for substrings. At most `max`. */
export function wordBeginnings(query: string, max: number): string[] {
  const stems = terms(query);
  const raw = lower(query).match(/[\p{L}\p{N}]+/gu) ?? [];
  const found = new Set<string>();
  for (const stem of stems) {
    const written = raw.find((word) => fold(word).startsWith(stem) || fold(word).includes(stem));
    if (written === undefined) {
      found.add(stem);
      continue;
    }
    const at = Math.max(0, fold(written).indexOf(stem));
    // Folding may change lengths; then the whole written word is the safe choice.
    found.add(fold(written).length === written.length ? written.slice(at, at + stem.length) : written);
  }
  return [...found].slice(0, max);
}

/** Whether a row passes the parts of a filter that are not about pages. */
export function passes(
  memory: Memory,
  filter: { apiKeyId: string | null; type?: string; sessionId?: string; status?: string; q?: string },
): boolean {
  const { apiKeyId, type, sessionId, status, q } = filter;
  const holds = (value: string | null): boolean =>
    q !== undefined && value !== null && lower(value).includes(lower(q));
  return (
    (apiKeyId === null || memory.apiKeyId === apiKeyId) &&
    (type === undefined || memory.type === type) &&
    (sessionId === undefined || memory.sessionId === sessionId) &&
    (status === undefined || memory.status === status) &&
    (q === undefined || holds(memory.content) || holds(memory.key))
  );
}
