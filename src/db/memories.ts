/** Queries on memories and their versions. No policy: who may do what, and when, is decided in memory/. */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import type {
  JsonObject,
  Memory,
  MemoryOrigin,
  MemoryStatus,
  MemoryType,
  MemoryVersion,
} from "../memory/types.ts";
import { iso, isoOrNull } from "./time.ts";

export type MemoryRow = {
  seq: number;
  id: string;
  owner_id: number;
  owner: string;
  session_id: string | null;
  type: MemoryType;
  key: string | null;
  content: string;
  metadata: string;
  origin: MemoryOrigin;
  status: MemoryStatus;
  superseded_by: string | null;
  pinned: number;
  standing: number;
  by_hand: number;
  episode_id: number | null;
  version: number;
  tokens: number;
  created_at: number;
  updated_at: number;
  confirmed_at: number;
  expires_at: number | null;
  access_count: number;
  last_accessed_at: number | null;
};

export const memoryColumns =
  "m.seq, m.id, m.owner_id, o.name AS owner, m.session_id, m.type, m.key, m.content, m.metadata, m.origin, m.status," +
  " m.superseded_by, m.pinned, m.standing, m.by_hand, m.episode_id, m.version, m.tokens, m.created_at, m.updated_at," +
  " m.confirmed_at, m.expires_at, m.access_count, m.last_accessed_at";
const from = "FROM memories m JOIN owners o ON o.id = m.owner_id";

/** A row as every face shows it. */
export function toMemory(row: MemoryRow): Memory {
  return {
    id: row.id,
    apiKeyId: row.owner,
    sessionId: row.session_id,
    type: row.type,
    key: row.key,
    content: row.content,
    metadata: JSON.parse(row.metadata) as JsonObject,
    origin: row.origin,
    status: row.status,
    supersededBy: row.superseded_by,
    pinned: row.pinned === 1,
    episodeId: row.episode_id,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
    confirmedAt: iso(row.confirmed_at),
    expiresAt: isoOrNull(row.expires_at),
    accessCount: row.access_count,
    lastAccessedAt: isoOrNull(row.last_accessed_at),
    version: row.version,
  };
}

/** A row of this owner (null: of any, for management). */
export function memoryById(db: Database, owner: number | null, id: string): MemoryRow | null {
  return owner === null
    ? db.query<MemoryRow, [string]>(`SELECT ${memoryColumns} ${from} WHERE m.id = ?`).get(id)
    : db
        .query<MemoryRow, [string, number]>(
          `SELECT ${memoryColumns} ${from} WHERE m.id = ? AND m.owner_id = ?`,
        )
        .get(id, owner);
}

export function memoryBySeq(db: Database, owner: number, seq: number): MemoryRow | null {
  return db
    .query<MemoryRow, [number, number]>(`SELECT ${memoryColumns} ${from} WHERE m.seq = ? AND m.owner_id = ?`)
    .get(seq, owner);
}

/** These memories of this owner, by seq. The `+` keeps SQLite from walking all of the owner's rows instead. */
export function memoriesBySeqs(db: Database, owner: number, seqs: readonly number[]): Map<number, MemoryRow> {
  const rows = db
    .query<MemoryRow, [string, number]>(
      `SELECT ${memoryColumns} ${from} WHERE m.seq IN (SELECT value FROM json_each(?)) AND +m.owner_id = ?`,
    )
    .all(JSON.stringify(seqs), owner);
  return new Map(rows.map((row) => [row.seq, row]));
}

/** Since when (ms) memories have the content they have, by seq or uuid; those whose content was never replaced are not there. */
export function contentTimes<Ref extends number | string>(
  db: Database,
  by: Ref extends number ? "seq" : "id",
  refs: readonly Ref[],
): Map<Ref, number> {
  if (refs.length === 0) return new Map();
  const rows = db
    .query<{ ref: Ref; at: number }, [string]>(
      `SELECT m.${by} AS ref, max(v.at) AS at FROM memories m JOIN memory_versions v ON v.memory_seq = m.seq
       WHERE m.${by} IN (SELECT value FROM json_each(?)) AND v.content <> m.content GROUP BY m.seq`,
    )
    .all(JSON.stringify(refs));
  return new Map(rows.map(({ ref, at }) => [ref, at]));
}

/** Ids of the exchanges whose statement somebody took back or replaced by what one of these memories says now. */
export function replacedExchanges(db: Database, seqs: readonly number[]): Set<number> {
  if (seqs.length === 0) return new Set();
  const rows = db
    .query<{ id: number }, [string]>(
      `SELECT v.episode_id AS id FROM memories m JOIN memory_versions v ON v.memory_seq = m.seq
       WHERE m.seq IN (SELECT value FROM json_each(?1)) AND v.content <> m.content AND v.cause IN ('restated', 'correction')
         AND v.episode_id IS NOT NULL
       UNION
       SELECT old.episode_id FROM memories m JOIN memories old ON old.superseded_by = m.id
       WHERE m.seq IN (SELECT value FROM json_each(?1)) AND old.status = 'superseded' AND old.episode_id IS NOT NULL`,
    )
    .all(JSON.stringify(seqs));
  return new Set(rows.map(({ id }) => id));
}

/** The uuids of these rows, by seq. */
export function memoryIds(db: Database, seqs: readonly number[]): Map<number, string> {
  if (seqs.length === 0) return new Map();
  const rows = db
    .query<{ seq: number; id: string }, [string]>(
      "SELECT seq, id FROM memories WHERE seq IN (SELECT value FROM json_each(?))",
    )
    .all(JSON.stringify(seqs));
  return new Map(rows.map(({ seq, id }) => [seq, id]));
}

/** The active memory that holds a key. */
export function activeByKey(db: Database, owner: number, key: string): MemoryRow | null {
  return db
    .query<MemoryRow, [number, string]>(
      `SELECT ${memoryColumns} ${from} WHERE m.owner_id = ? AND m.key = ? AND m.status = 'active'`,
    )
    .get(owner, key);
}

/** What was learned from an episode, whatever its status. */
export function memoriesOfEpisode(db: Database, owner: number, episodeId: number): MemoryRow[] {
  return db
    .query<MemoryRow, [number, number]>(
      `SELECT ${memoryColumns} ${from} WHERE m.owner_id = ? AND m.episode_id = ?`,
    )
    .all(owner, episodeId);
}

/** The oldest row of this status that says exactly this. */
export function sameContent(
  db: Database,
  owner: number,
  like: { key: string | null; content: string; type: MemoryType; status: MemoryStatus },
): MemoryRow | null {
  return db
    .query<MemoryRow, [number, string, string, string, string | null]>(
      `SELECT ${memoryColumns} ${from}
       WHERE m.owner_id = ?1 AND substr(m.content, 1, 48) = substr(?4, 1, 48) AND m.status = ?2 AND m.type = ?3
         AND m.content = ?4 AND m.key IS ?5 ORDER BY m.seq LIMIT 1`,
    )
    .get(owner, like.status, like.type, like.content, like.key);
}

export type NewMemory = {
  id: string;
  ownerId: number;
  sessionId: string | null;
  type: MemoryType;
  key: string | null;
  content: string;
  metadata: JsonObject;
  origin: MemoryOrigin;
  status: MemoryStatus;
  pinned: boolean;
  standing: boolean;
  byHand: boolean;
  episodeId: number | null;
  tokens: number;
  createdAt: number;
  updatedAt: number;
  confirmedAt: number;
  expiresAt: number | null;
};

/** Inserts one row and returns its seq. */
export function insertMemory(db: Database, row: NewMemory): number {
  const result = db
    .query(
      `INSERT INTO memories (id, owner_id, session_id, type, key, content, metadata, origin, status, pinned, standing,
         by_hand, episode_id, tokens, created_at, updated_at, confirmed_at, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      row.id,
      row.ownerId,
      row.sessionId,
      row.type,
      row.key,
      row.content,
      JSON.stringify(row.metadata),
      row.origin,
      row.status,
      Number(row.pinned),
      Number(row.standing),
      Number(row.byHand),
      row.episodeId,
      row.tokens,
      row.createdAt,
      row.updatedAt,
      row.confirmedAt,
      row.expiresAt,
    );
  return Number(result.lastInsertRowid);
}

const settable = [
  "owner_id",
  "session_id",
  "type",
  "key",
  "content",
  "metadata",
  "status",
  "superseded_by",
  "pinned",
  "standing",
  "by_hand",
  "episode_id",
  "version",
  "tokens",
  "origin",
  "updated_at",
  "confirmed_at",
  "expires_at",
] as const;
export type MemoryChange = Partial<Pick<MemoryRow, (typeof settable)[number]>>;

/** Sets only the columns given, so that index triggers fire for real changes alone. */
export function changeMemory(db: Database, seq: number, change: MemoryChange): void {
  const names = settable.filter((name) => change[name] !== undefined);
  if (names.length === 0) return;
  const values: SQLQueryBindings[] = names.map((name) => change[name] as SQLQueryBindings);
  db.query(`UPDATE memories SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE seq = ?`).run(
    ...values,
    seq,
  );
}

/** Keeps the row as it is now as an earlier version; the caller then raises `version`. */
export function keepVersion(db: Database, seq: number, cause: string, at: number): void {
  db.query(
    `INSERT INTO memory_versions (memory_seq, version, cause, at, since, type, key, content, metadata, session_id, expires_at, status, episode_id)
     SELECT seq, version, ?, ?, updated_at, type, key, content, metadata, session_id, expires_at, status, episode_id FROM memories WHERE seq = ?`,
  ).run(cause, at, seq);
}

export type VersionRow = {
  version: number;
  cause: string;
  at: number;
  since: number;
  type: MemoryType;
  key: string | null;
  content: string;
  metadata: string;
  session_id: string | null;
  expires_at: number | null;
  status: MemoryStatus;
  /** Null too where the version is older than this column. */
  episode_id: number | null;
};

/** Earlier versions, oldest first. */
export function versionsOf(db: Database, seq: number): VersionRow[] {
  return db
    .query<VersionRow, [number]>("SELECT * FROM memory_versions WHERE memory_seq = ? ORDER BY version")
    .all(seq);
}

/** Adds an earlier version; false when that number is taken. */
export function putVersion(db: Database, seq: number, version: VersionRow): boolean {
  return (
    db
      .query(
        `INSERT INTO memory_versions (memory_seq, version, cause, at, since, type, key, content, metadata, session_id, expires_at, status, episode_id)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      )
      .run(
        seq,
        version.version,
        version.cause,
        version.at,
        version.since,
        version.type,
        version.key,
        version.content,
        version.metadata,
        version.session_id,
        version.expires_at,
        version.status,
        version.episode_id,
      ).changes > 0
  );
}

export function toVersion(row: VersionRow): MemoryVersion {
  return {
    version: row.version,
    cause: row.cause,
    at: iso(row.at),
    type: row.type,
    key: row.key,
    content: row.content,
    metadata: JSON.parse(row.metadata) as JsonObject,
  };
}

/** Rows of an owner that say `from` took their place say `to`. */
export function renameSuccessor(db: Database, owner: number, from: string, to: string): void {
  db.query("UPDATE memories SET superseded_by = ?3 WHERE superseded_by = ?2 AND +owner_id = ?1").run(
    owner,
    from,
    to,
  );
}

/** Removes the row; versions go with it. Index rows go by trigger. */
export function removeMemory(db: Database, seq: number): void {
  db.query("DELETE FROM memories WHERE seq = ?").run(seq);
}

/** Counts one more use of each, now. Touches no indexed column. */
export function countAccess(db: Database, seqs: readonly number[], at: number): void {
  const update = db.query(
    "UPDATE memories SET access_count = access_count + 1, last_accessed_at = ? WHERE seq = ?",
  );
  for (const seq of seqs) update.run(at, seq);
}
