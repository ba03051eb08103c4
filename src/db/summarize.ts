/** Rows that compacting may touch: active, and neither pinned nor standing. */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { memoryColumns, type MemoryRow } from "./memories.ts";

const PLAIN = "m.status = 'active' AND m.pinned = 0 AND m.standing = 0";
const FROM = "FROM memories m JOIN owners o ON o.id = m.owner_id";

export type Compactable = {
  owner: number;
  /** External id; only rows of this session. */
  sessionId?: string | undefined;
};

function where({ owner, sessionId }: Compactable): { sql: string; values: SQLQueryBindings[] } {
  return sessionId === undefined
    ? { sql: `m.owner_id = ? AND ${PLAIN}`, values: [owner] }
    : { sql: `m.owner_id = ? AND ${PLAIN} AND m.session_id = ?`, values: [owner, sessionId] };
}

/** Newest first, at most `limit` from `offset` on. */
export function compactable(db: Database, of: Compactable, limit: number, offset: number): MemoryRow[] {
  const { sql, values } = where(of);
  return db
    .query<MemoryRow, SQLQueryBindings[]>(
      `SELECT ${memoryColumns} ${FROM} WHERE ${sql} ORDER BY m.created_at DESC, m.seq DESC LIMIT ? OFFSET ?`,
    )
    .all(...values, limit, offset);
}

const OLD = "m.origin <> 'summary' AND m.confirmed_at < ? AND coalesce(m.last_accessed_at, 0) < ?";

/** Confirmed and used before `before` only, oldest first; summaries are not summed up again. */
export function compactableBefore(db: Database, of: Compactable, before: number, limit: number): MemoryRow[] {
  const { sql, values } = where(of);
  return db
    .query<MemoryRow, SQLQueryBindings[]>(
      `SELECT ${memoryColumns} ${FROM} WHERE ${sql} AND ${OLD} ORDER BY m.created_at, m.seq LIMIT ?`,
    )
    .all(...values, before, before, limit);
}

export function countCompactableBefore(
  db: Database,
  of: Compactable,
  before: number,
): { count: number; tokens: number } {
  const { sql, values } = where(of);
  return db
    .query<{ count: number; tokens: number }, SQLQueryBindings[]>(
      `SELECT count(*) AS count, coalesce(sum(m.tokens), 0) AS tokens FROM memories m WHERE ${sql} AND ${OLD}`,
    )
    .get(...values, before, before)!;
}

/** Rows that were archived into this summary. */
export function originalsOf(db: Database, owner: number, summaryId: string): MemoryRow[] {
  return db
    .query<MemoryRow, [number, string]>(
      `SELECT ${memoryColumns} ${FROM}
       WHERE m.owner_id = ? AND m.superseded_by = ? AND m.status = 'archived' ORDER BY m.seq`,
    )
    .all(owner, summaryId);
}

/** Owners that have any active memory. */
export function ownersWithMemories(db: Database): number[] {
  return db
    .query<{ owner_id: number }, []>(
      "SELECT DISTINCT owner_id FROM memory_counts WHERE status = 'active' AND n > 0 ORDER BY owner_id",
    )
    .all()
    .map((row) => row.owner_id);
}
