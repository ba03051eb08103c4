/** Rows of `sessions`. An owner of null means every owner, which only management may ask for. */
import type { Database } from "bun:sqlite";
import type { JsonObject, Session } from "../memory/types.ts";
import { iso } from "./time.ts";

type Row = {
  id: number;
  external_id: string;
  owner: string;
  metadata: string;
  pinned: number;
  created_at: number;
  updated_at: number;
};

const SELECT = `SELECT s.id, s.external_id, o.name AS owner, s.metadata, s.pinned, s.created_at, s.updated_at
  FROM sessions s JOIN owners o ON o.id = s.owner_id`;

function session(row: Row): Session {
  return {
    id: row.id,
    externalId: row.external_id,
    apiKeyId: row.owner,
    metadata: JSON.parse(row.metadata) as JsonObject,
    pinned: row.pinned === 1,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}

export function getSession(db: Database, owner: number | null, id: number): Session | null {
  const row = db
    .query<Row, [number, number | null]>(`${SELECT} WHERE s.id = ?1 AND (?2 IS NULL OR s.owner_id = ?2)`)
    .get(id, owner);
  return row === null ? null : session(row);
}

/** Sessions of this external id; several only where `owner` is null. */
export function sessionsByExternal(db: Database, owner: number | null, externalId: string): Session[] {
  if (owner === null) {
    return db
      .query<Row, [string]>(`${SELECT} WHERE s.external_id = ? ORDER BY s.id DESC LIMIT 2`)
      .all(externalId)
      .map(session);
  }
  const id = sessionIdOf(db, owner, externalId);
  const found = id === null ? null : getSession(db, owner, id);
  return found === null ? [] : [found];
}

/** Ids of an owner's pinned sessions. */
export function pinnedSessions(db: Database, owner: number): Set<number> {
  const rows = db
    .query<[number], [number]>("SELECT id FROM sessions WHERE owner_id = ? AND pinned = 1")
    .values(owner) as [number][];
  return new Set(rows.map(([id]) => id));
}

export function sessionIdOf(db: Database, owner: number, externalId: string): number | null {
  return (
    db
      .query<{ id: number }, [number, string]>(
        "SELECT id FROM sessions WHERE owner_id = ? AND external_id = ?",
      )
      .get(owner, externalId)?.id ?? null
  );
}

/** The session of this external id, made with this metadata when it is unknown. */
export function ensureSession(
  db: Database,
  owner: number,
  externalId: string,
  metadata: JsonObject,
  now: number,
): { id: number; created: boolean } {
  const known = sessionIdOf(db, owner, externalId);
  if (known !== null) return { id: known, created: false };
  const { id } = db
    .query<{ id: number }, [number, string, string, number]>(
      `INSERT INTO sessions (owner_id, external_id, metadata, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?4)
       RETURNING id`,
    )
    .get(owner, externalId, JSON.stringify(metadata), now)!;
  return { id, created: true };
}

/** Replaces what is given. */
export function patchSession(
  db: Database,
  id: number,
  patch: { metadata?: JsonObject | undefined; pinned?: boolean | undefined },
  now: number,
): void {
  db.query(
    `UPDATE sessions SET metadata = COALESCE(?2, metadata), pinned = COALESCE(?3, pinned), updated_at = ?4 WHERE id = ?1`,
  ).run(
    id,
    patch.metadata === undefined ? null : JSON.stringify(patch.metadata),
    patch.pinned === undefined ? null : Number(patch.pinned),
    now,
  );
}

/** Something was said in it. */
export function touchSession(db: Database, id: number, now: number): void {
  db.query("UPDATE sessions SET updated_at = ?2 WHERE id = ?1 AND updated_at < ?2").run(id, now);
}

/** Newest first. */
export function listSessions(
  db: Database,
  owner: number | null,
  { limit, offset }: { limit: number; offset: number },
): { data: Session[]; total: number } {
  if (owner === null) {
    const rows = db
      .query<Row, [number, number]>(`${SELECT} ORDER BY s.created_at DESC, s.id DESC LIMIT ? OFFSET ?`)
      .all(limit, offset);
    const total = db.query<{ n: number }, []>("SELECT count(*) AS n FROM sessions").get()?.n ?? 0;
    return { data: rows.map(session), total };
  }
  const rows = db
    .query<Row, [number, number, number]>(
      `${SELECT} WHERE s.owner_id = ? ORDER BY s.created_at DESC, s.id DESC LIMIT ? OFFSET ?`,
    )
    .all(owner, limit, offset);
  const total =
    db.query<{ n: number }, [number]>("SELECT count(*) AS n FROM sessions WHERE owner_id = ?").get(owner)
      ?.n ?? 0;
  return { data: rows.map(session), total };
}

/** Deletes the row; what is left of its episodes and summaries goes with it. */
export function deleteSessionRow(db: Database, id: number): boolean {
  return db.query("DELETE FROM sessions WHERE id = ?").run(id).changes > 0;
}
