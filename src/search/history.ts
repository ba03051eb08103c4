/** What an owner's memories said at an earlier time, from their rows and versions. */
import type { Database } from "bun:sqlite";
import type { Predicate } from "./types.ts";

/** A memory as it was then. */
export interface PastMemory {
  readonly seq: number;
  readonly key: string | null;
  readonly content: string;
  readonly createdAt: number;
}

/** Rows that are looked through at most, newest first. */
const MAX_ROWS = 20_000;

/**
 * Memories that held at `at`: made by then, not yet put away, not yet expired, with the words they had. What was deleted for
 * good is gone from the past as well. A row held since its last version was left, or since it was made.
 */
export function memoriesAt(db: Database, predicate: Predicate, at: number): PastMemory[] {
  const { owner, session, type } = predicate;
  const rows = db
    .query<
      {
        seq: number;
        key: string | null;
        content: string;
        status: string;
        createdAt: number;
        expires: number | null;
        session: string | null;
        type: string;
      },
      [number, number, number]
    >(
      `SELECT m.seq AS seq, m.created_at AS createdAt,
         iif(v.version IS NULL, m.key, v.key) AS key, iif(v.version IS NULL, m.content, v.content) AS content,
         iif(v.version IS NULL, m.status, v.status) AS status, iif(v.version IS NULL, m.expires_at, v.expires_at) AS expires,
         iif(v.version IS NULL, m.session_id, v.session_id) AS session, iif(v.version IS NULL, m.type, v.type) AS type
       FROM memories m LEFT JOIN memory_versions v ON v.memory_seq = m.seq AND v.version = (
         SELECT min(w.version) FROM memory_versions w WHERE w.memory_seq = m.seq AND w.at > ?1)
       WHERE m.owner_id = ?2 AND m.created_at <= ?1 ORDER BY m.created_at DESC LIMIT ?3`,
    )
    .all(at, owner, MAX_ROWS);
  return rows.filter(
    (row) =>
      row.status === "active" &&
      (row.expires === null || row.expires > at) &&
      (session === null || row.session === null || row.session === session) &&
      (type === undefined || row.type === type),
  );
}
