/** A memory as a point that holds all of it, with a BM25 sparse vector beside the dense one. */
import type { Memory } from "../memory/types.ts";
import type { Shape } from "../search/qdrant/collections.ts";
import { memoryIndexes, memoryPayload } from "../search/qdrant/points.ts";
import { terms } from "../text/terms.ts";
import { searchText } from "./rank.ts";
import { readRow } from "./row.ts";
import type { MemoryPatch } from "./types.ts";

export const DENSE = "text";
export const SPARSE = "bm25";

export const indexes: Shape["indexes"] = {
  ...memoryIndexes,
  type: "keyword",
  status: "keyword",
  key: "keyword",
  createdAtMs: "integer",
  updatedAtMs: "integer",
};

/** Okapi BM25's usual constants; the server adds the inverse document frequency (modifier `idf`). */
const K1 = 1.2;
const B = 0.75;
/** A statement's usual number of terms. A constant, so that a vector never has to be written again. */
const AVERAGE = 16;

export type Sparse = { indices: number[]; values: number[] };

/** Term weights of a text; a term's index is the hash of its bytes. */
export function sparseOf(text: string): Sparse {
  const words = terms(text);
  const counts = new Map<number, number>();
  for (const word of words) {
    const index = Number(Bun.hash.xxHash32(word));
    counts.set(index, (counts.get(index) ?? 0) + 1);
  }
  const length = 1 - B + (B * words.length) / AVERAGE;
  return {
    indices: [...counts.keys()],
    values: [...counts.values()].map((n) => (n * (K1 + 1)) / (n + K1 * length)),
  };
}

/** Each term of a query once, with the same weight. */
export function sparseQuery(text: string): Sparse {
  const { indices } = sparseOf(text);
  return { indices, values: indices.map(() => 1) };
}

export const sparseOfMemory = (memory: Memory): Sparse => sparseOf(searchText(memory));

const ms = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso));

/** The payload of tier 2 and, exactly, what that leaves out. */
export function fullPayload(memory: Memory, boxId: string): Record<string, unknown> {
  return {
    ...memoryPayload(memory, boxId),
    origin: memory.origin,
    status: memory.status,
    supersededBy: memory.supersededBy,
    episodeId: memory.episodeId,
    createdAtMs: ms(memory.createdAt),
    updatedAtMs: ms(memory.updatedAt),
    confirmedAtMs: ms(memory.confirmedAt),
    expiresAtMs: ms(memory.expiresAt),
    accessCount: memory.accessCount,
    lastAccessedAtMs: ms(memory.lastAccessedAt),
    version: memory.version,
  };
}

/** Only the fields that a patch changes, so that two appliances do not undo each other's changes of others. */
export function patchedPayload(before: Memory, patch: MemoryPatch, boxId: string): Record<string, unknown> {
  const old = fullPayload(before, boxId);
  const next = fullPayload({ ...before, ...patch }, boxId);
  return Object.fromEntries(
    Object.entries(next).filter(([name, value]) => !Bun.deepEquals(old[name], value)),
  );
}

/** The memory of a payload, or null when it lacks an id, an owner or a content. */
export function readPayload(payload: Record<string, unknown> | null | undefined): Memory | null {
  if (!payload) return null;
  const time = (name: string): unknown => {
    const unix = payload[`${name}Unix`];
    return payload[`${name}Ms`] ?? (typeof unix === "number" ? unix * 1000 : null);
  };
  return readRow({
    ...payload,
    id: payload["memoryId"],
    createdAt: time("createdAt"),
    updatedAt: time("updatedAt"),
    confirmedAt: time("confirmedAt"),
    expiresAt: time("expiresAt"),
    lastAccessedAt: time("lastAccessedAt"),
  });
}
