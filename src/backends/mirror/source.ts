/** The rows that have points in Qdrant: one source a collection. */
import type { Database } from "bun:sqlite";
import {
  activeMemories,
  activeMemoriesAfter,
  countActiveMemories,
  countRecords,
  recordsAfter,
  recordsById,
} from "../../db/mirror.ts";
import type { RecordKind, RecordRow } from "../../db/mirror.ts";
import { toMemory } from "../../db/memories.ts";
import type { MemoryRow } from "../../db/memories.ts";
import { iso } from "../../db/time.ts";
import type { Kind } from "../../memory/types.ts";
import { entityText, episodeText, memoryText } from "../../search/embedded.ts";
import type { Shape } from "../../search/qdrant/collections.ts";
import { MEMORY_KIND, memoryIndexes, memoryPayload, recordIndexes } from "../../search/qdrant/points.ts";

export type MirrorRow = {
  /** Id of the point. */
  pointId: string;
  /** Place in the pages, growing. */
  cursor: number;
  /** Text of each vector by its name; "" is the unnamed one. */
  texts: Record<string, string>;
  payload: Record<string, unknown>;
};

/** A point, and the row number behind it where its id does not say it. */
export type PointRef = { pointId: string; row: number | null };

export type MirrorSource = {
  kind: Kind;
  /** `kind` of the payload. */
  payloadKind: string;
  collection(configured: string): string;
  shape(size: number): Shape;
  /** The vector that a search compares with; undefined: the unnamed one. */
  using?: string;
  pointId(row: number): string | null;
  /** Rows that should have a point, of the given ones. */
  load(refs: readonly PointRef[]): MirrorRow[];
  page(after: number, limit: number): MirrorRow[];
  count(): number;
  /** Row numbers of found points; points of rows that are gone are left out. */
  numbers(refs: readonly PointRef[]): Map<string, number>;
};

export function memorySource(db: Database, boxId: string): MirrorSource {
  const toRow = (row: MemoryRow): MirrorRow => ({
    pointId: row.id,
    cursor: row.seq,
    texts: { "": memoryText(row.key, row.content) },
    payload: memoryPayload(toMemory(row), boxId),
  });
  const load = (refs: readonly PointRef[]): MemoryRow[] =>
    activeMemories(
      db,
      refs.map((ref) => ref.pointId),
    );
  return {
    kind: "memory",
    payloadKind: MEMORY_KIND,
    collection: (configured) => configured,
    shape: (size) => ({ vectors: { "": size }, indexes: memoryIndexes }),
    pointId: () => null,
    load: (refs) => load(refs).map(toRow),
    page: (after, limit) => activeMemoriesAfter(db, after, limit).map(toRow),
    count: () => countActiveMemories(db),
    numbers: (refs) => new Map(load(refs).map((row) => [row.id, row.seq])),
  };
}

const collections = { episode: "episodes", entity: "entities", summary: "summaries" } as const;
const DEFAULT_COLLECTION = "omniroute_memory";

const texts: Record<RecordKind, (row: RecordRow) => Record<string, string>> = {
  episode: (row) => ({
    text: episodeText(row.a, row.b),
    // One side alone is its own whole text.
    ...(row.a !== "" && row.b !== "" ? { user: `User: ${row.a}` } : {}),
  }),
  entity: (row) => ({ text: entityText(row.a, row.b, row.c) }),
  summary: (row) => ({ text: row.a }),
};

/** Exchanges, entities or summaries. Their numbers are this box's own, so their points are named by box, table and number. */
export function recordSource(db: Database, boxId: string, kind: RecordKind): MirrorSource {
  const pointId = (row: number): string => Bun.randomUUIDv5(`${collections[kind]}:${row}`, boxId);
  const toRow = (row: RecordRow): MirrorRow => ({
    pointId: pointId(row.id),
    cursor: row.id,
    texts: texts[kind](row),
    payload: {
      kind,
      rowId: row.id,
      apiKeyId: row.owner,
      sessionId: row.session,
      createdAt: iso(row.created_at),
      createdAtUnix: Math.floor(row.created_at / 1000),
      boxId,
    },
  });
  const numbered = (refs: readonly PointRef[]): number[] =>
    refs.flatMap(({ pointId: point, row }) => (row !== null && pointId(row) === point ? [row] : []));
  return {
    kind,
    payloadKind: kind,
    // Beside a collection of another name the others carry that name, so that two sets can share a server.
    collection: (configured) =>
      configured === DEFAULT_COLLECTION ? collections[kind] : `${configured}_${collections[kind]}`,
    shape: (size) => ({
      vectors: kind === "episode" ? { text: size, user: size } : { text: size },
      indexes: recordIndexes,
    }),
    using: "text",
    pointId,
    load: (refs) => recordsById(db, kind, numbered(refs)).map(toRow),
    page: (after, limit) => recordsAfter(db, kind, after, limit).map(toRow),
    count: () => countRecords(db, kind),
    numbers: (refs) => new Map(numbered(refs).map((row) => [pointId(row), row])),
  };
}
