/** The rows that have points in Qdrant: one source a collection. */
import type { Database } from "bun:sqlite";
import { activeMemories, activeMemoriesAfter, countActiveMemories } from "../../db/mirror.ts";
import { toMemory } from "../../db/memories.ts";
import type { MemoryRow } from "../../db/memories.ts";
import type { Shape } from "../../search/qdrant/collections.ts";
import { MEMORY_KIND, memoryIndexes, memoryPayload } from "../../search/qdrant/points.ts";
import type { Kind } from "../../memory/types.ts";
import { memoryText } from "../../search/embedded.ts";

export type MirrorRow = {
  /** Id of the point. */
  pointId: string;
  /** Place in the pages, growing. */
  cursor: number;
  /** Text of each vector by its name; "" is the unnamed one. */
  texts: Record<string, string>;
  payload: Record<string, unknown>;
};

export type MirrorSource = {
  kind: Kind;
  /** `kind` of the payload. */
  payloadKind: string;
  collection(configured: string): string;
  shape(size: number): Shape;
  /** Rows that should have a point, of the given ids (point ids). */
  load(pointIds: readonly string[]): MirrorRow[];
  page(after: number, limit: number): MirrorRow[];
  count(): number;
  /** Row numbers of point ids; points of rows that are gone are left out. */
  numbers(pointIds: readonly string[]): Map<string, number>;
};

export function memorySource(db: Database, boxId: string): MirrorSource {
  const toRow = (row: MemoryRow): MirrorRow => ({
    pointId: row.id,
    cursor: row.seq,
    texts: { "": memoryText(row.key, row.content) },
    payload: memoryPayload(toMemory(row), boxId),
  });
  return {
    kind: "memory",
    payloadKind: MEMORY_KIND,
    collection: (configured) => configured,
    shape: (size) => ({ vectors: { "": size }, indexes: memoryIndexes }),
    load: (ids) => activeMemories(db, ids).map(toRow),
    page: (after, limit) => activeMemoriesAfter(db, after, limit).map(toRow),
    count: () => countActiveMemories(db),
    numbers: (ids) => new Map(activeMemories(db, ids).map((row) => [row.id, row.seq])),
  };
}
