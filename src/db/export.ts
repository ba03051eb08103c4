/** Pages of everything that is exported, by row number, so that a page costs the same wherever it stands. */
import type { Database } from "bun:sqlite";
import { memoryColumns, type MemoryRow, type VersionRow } from "./memories.ts";

export type ExportedSession = {
  id: number;
  owner: string;
  external_id: string;
  metadata: string;
  pinned: number;
  created_at: number;
  updated_at: number;
};
export type ExportedEpisode = {
  id: number;
  owner: string;
  external_id: string;
  user_message: string;
  ai_response: string;
  token_count: number;
  metadata: string;
  complete: number;
  recall: number;
  import_id: string | null;
  created_at: number;
};
export type ExportedEntity = {
  id: number;
  owner: string;
  name: string;
  type: string;
  notes: string | null;
  metadata: string;
  created_at: number;
  updated_at: number;
};
export type ExportedRelationship = {
  from_id: number;
  to_id: number;
  label: string;
  metadata: string;
  created_at: number;
};
export type ExportedSummary = {
  id: number;
  owner: string;
  external_id: string;
  text: string;
  first_episode_id: number;
  last_episode_id: number;
  stale: number;
  automatic: number;
  created_at: number;
};

/** Rows after `after` in the order of their numbers; an owner of null is every owner. */
export type Span = { owner: number | null; after: number; limit: number };

function page<Row>(
  db: Database,
  columns: string,
  from: string,
  alias: string,
  number: string,
  span: Span,
): Row[] {
  return db
    .query<Row, [number, number, number | null]>(
      `SELECT ${columns} FROM ${from} WHERE ${alias}.${number} > ?1 AND (?3 IS NULL OR ${alias}.owner_id = ?3)
       ORDER BY ${alias}.${number} LIMIT ?2`,
    )
    .all(span.after, span.limit, span.owner);
}

export function sessionsAfter(db: Database, span: Span): ExportedSession[] {
  return page(
    db,
    "s.id, o.name AS owner, s.external_id, s.metadata, s.pinned, s.created_at, s.updated_at",
    "sessions s JOIN owners o ON o.id = s.owner_id",
    "s",
    "id",
    span,
  );
}

export function episodesAfter(db: Database, span: Span): ExportedEpisode[] {
  return page(
    db,
    `e.id, o.name AS owner, s.external_id, e.user_message, e.ai_response, e.token_count, e.metadata, e.complete,
     e.recall, e.import_id, e.created_at`,
    "episodes e JOIN sessions s ON s.id = e.session_id JOIN owners o ON o.id = e.owner_id",
    "e",
    "id",
    span,
  );
}

export function memoriesAfterSeq(db: Database, span: Span): MemoryRow[] {
  return page(db, memoryColumns, "memories m JOIN owners o ON o.id = m.owner_id", "m", "seq", span);
}

export function versionsOfAll(db: Database, seqs: readonly number[]): Map<number, VersionRow[]> {
  const rows = db
    .query<VersionRow & { memory_seq: number }, [string]>(
      `SELECT * FROM memory_versions WHERE memory_seq IN (SELECT value FROM json_each(?)) ORDER BY memory_seq, version`,
    )
    .all(JSON.stringify(seqs));
  return Map.groupBy(rows, (row) => row.memory_seq);
}

export function entitiesAfter(db: Database, span: Span): ExportedEntity[] {
  return page(
    db,
    "e.id, o.name AS owner, e.name, e.type, e.notes, e.metadata, e.created_at, e.updated_at",
    "entities e JOIN owners o ON o.id = e.owner_id",
    "e",
    "id",
    span,
  );
}

/** Links that leave these entities. */
export function linksFrom(db: Database, entityIds: readonly number[]): ExportedRelationship[] {
  return db
    .query<ExportedRelationship, [string]>(
      `SELECT from_id, to_id, label, metadata, created_at FROM relationships
       WHERE from_id IN (SELECT value FROM json_each(?)) ORDER BY from_id, to_id, label`,
    )
    .all(JSON.stringify(entityIds));
}

export function summariesAfter(db: Database, span: Span): ExportedSummary[] {
  return page(
    db,
    `m.id, o.name AS owner, s.external_id, m.text, m.first_episode_id, m.last_episode_id, m.stale, m.automatic,
     m.created_at`,
    "summaries m JOIN sessions s ON s.id = m.session_id JOIN owners o ON o.id = m.owner_id",
    "m",
    "id",
    span,
  );
}
