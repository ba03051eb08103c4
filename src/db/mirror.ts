/** What keeps an outside index in step: rows by id and in pages, and the outbox, whose rows are jobs. */
import type { Database } from "bun:sqlite";
import { memoryColumns } from "./memories.ts";
import type { MemoryRow } from "./memories.ts";

// `+m.status` below keeps the index of states out of it, by which all active rows would be read for each page.
const from = "FROM memories m JOIN owners o ON o.id = m.owner_id";

/** Active memories of any owner by id. For indexes alone, never for a face. */
export function activeMemories(db: Database, ids: readonly string[]): MemoryRow[] {
  return db
    .query<MemoryRow, [string]>(
      `SELECT ${memoryColumns} ${from} WHERE +m.status = 'active' AND m.id IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(ids));
}

/** Active memories of any owner after a seq, oldest first. */
export function activeMemoriesAfter(db: Database, seq: number, limit: number): MemoryRow[] {
  return db
    .query<MemoryRow, [number, number]>(
      `SELECT ${memoryColumns} ${from} WHERE m.seq > ? AND +m.status = 'active' ORDER BY m.seq LIMIT ?`,
    )
    .all(seq, limit);
}

export function countActiveMemories(db: Database): number {
  return db
    .query<{ n: number }, []>("SELECT coalesce(sum(n), 0) AS n FROM memory_counts WHERE status = 'active'")
    .get()!.n;
}

/** A conversation row as an outside index needs it. `a`, `b`, `c` are the columns that its texts are made of. */
export type RecordRow = {
  id: number;
  owner: string;
  session: string | null;
  a: string;
  b: string;
  c: string | null;
  created_at: number;
};

const records = {
  episode: {
    table: "episodes",
    select: `SELECT r.id, o.name AS owner, s.external_id AS session, r.user_message AS a, r.ai_response AS b, NULL AS c, r.created_at
             FROM episodes r JOIN owners o ON o.id = r.owner_id JOIN sessions s ON s.id = r.session_id`,
    when: "r.recall = 1",
  },
  entity: {
    table: "entities",
    select: `SELECT r.id, o.name AS owner, NULL AS session, r.name AS a, r.type AS b, r.notes AS c, r.created_at
             FROM entities r JOIN owners o ON o.id = r.owner_id`,
    when: "1",
  },
  summary: {
    table: "summaries",
    select: `SELECT r.id, o.name AS owner, s.external_id AS session, r.text AS a, '' AS b, NULL AS c, r.created_at
             FROM summaries r JOIN owners o ON o.id = r.owner_id JOIN sessions s ON s.id = r.session_id`,
    when: "r.stale = 0",
  },
} as const;
export type RecordKind = keyof typeof records;

/** Rows of any owner that are searched, by id. For indexes alone, never for a face. */
export function recordsById(db: Database, kind: RecordKind, ids: readonly number[]): RecordRow[] {
  const { select, when } = records[kind];
  return db
    .query<RecordRow, [string]>(`${select} WHERE ${when} AND r.id IN (SELECT value FROM json_each(?))`)
    .all(JSON.stringify(ids));
}

/** The same after an id, oldest first. */
export function recordsAfter(db: Database, kind: RecordKind, id: number, limit: number): RecordRow[] {
  const { select, when } = records[kind];
  return db
    .query<RecordRow, [number, number]>(`${select} WHERE r.id > ? AND ${when} ORDER BY r.id LIMIT ?`)
    .all(id, limit);
}

export function countRecords(db: Database, kind: RecordKind): number {
  return db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${records[kind].table}`).get()!.n;
}

/** Ids of an owner's rows of a kind. */
export function recordIds(db: Database, kind: RecordKind, owner: number): number[] {
  return (
    db.query(`SELECT id FROM ${records[kind].table} WHERE owner_id = ?`).values(owner) as [number][]
  ).map(([id]) => id);
}

/** Whether an owner has any row of a kind. */
export function hasRows(db: Database, kind: RecordKind | "memory", owner: number): boolean {
  const table = kind === "memory" ? "memories" : records[kind].table;
  return db.query(`SELECT 1 FROM ${table} WHERE owner_id = ? LIMIT 1`).get(owner) !== null;
}

export type OutboxJob = { id: number; payload: string; attempts: number };

/** Takes more waiting jobs of a type that are due, so that one call to the index carries many. */
export function takeAlong(
  db: Database,
  type: string,
  lease: { by: string; until: number },
  now: number,
  limit: number,
): OutboxJob[] {
  return db
    .query<OutboxJob, [string, number, string, number, number]>(
      `UPDATE jobs SET state = 'running', lease_by = ?, lease_until = ?, attempts = attempts + 1
       WHERE id IN (SELECT id FROM jobs WHERE type = ? AND state = 'queued' AND run_at <= ? ORDER BY id LIMIT ?)
       RETURNING id, payload, attempts`,
    )
    .all(lease.by, lease.until, type, now, limit);
}

/** Makes the waiting jobs of these types due now, after what they waited for came back. */
export function dueNow(db: Database, types: readonly string[], now: number): void {
  db.query(
    "UPDATE jobs SET run_at = ?1 WHERE state = 'queued' AND run_at > ?1 AND type IN (SELECT value FROM json_each(?2))",
  ).run(now, JSON.stringify(types));
}

/** Waiting and running jobs of a type; with `dedupe` those about one row. */
export function countOutbox(db: Database, type: string, dedupe: string | null = null): number {
  return db
    .query<{ n: number }, [string, string | null]>(
      "SELECT count(*) AS n FROM jobs WHERE type = ?1 AND (?2 IS NULL OR dedupe = ?2)",
    )
    .get(type, dedupe)!.n;
}

/** What Qdrant was told of these rows may be of another time: every collection is compared and filled once more. */
export function refillMirrors(db: Database): void {
  db.run(
    `UPDATE meta SET value = json_set(value, '$.complete', json('false'), '$.cursor', 0, '$.done', 0)
     WHERE name GLOB 'qdrant:*' AND json_valid(value)`,
  );
}
