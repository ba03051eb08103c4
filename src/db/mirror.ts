/** What keeps an outside index in step: rows by id and in pages, and the outbox, whose rows are jobs. */
import type { Database } from "bun:sqlite";
import { memoryColumns } from "./memories.ts";
import type { MemoryRow } from "./memories.ts";

const from = "FROM memories m JOIN owners o ON o.id = m.owner_id";

/** Active memories of any owner by id. For indexes alone, never for a face. */
export function activeMemories(db: Database, ids: readonly string[]): MemoryRow[] {
  return db
    .query<MemoryRow, [string]>(
      `SELECT ${memoryColumns} ${from} WHERE m.status = 'active' AND m.id IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(ids));
}

/** Active memories of any owner after a seq, oldest first. */
export function activeMemoriesAfter(db: Database, seq: number, limit: number): MemoryRow[] {
  return db
    .query<MemoryRow, [number, number]>(
      `SELECT ${memoryColumns} ${from} WHERE m.seq > ? AND m.status = 'active' ORDER BY m.seq LIMIT ?`,
    )
    .all(seq, limit);
}

export function countActiveMemories(db: Database): number {
  return db
    .query<{ n: number }, []>("SELECT coalesce(sum(n), 0) AS n FROM memory_counts WHERE status = 'active'")
    .get()!.n;
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
