/** Rows of `entities` and their names. An owner of null means every owner, which only management may ask for. */
import type { Database } from "bun:sqlite";
import { fold } from "../text/fold.ts";
import type { Entity, JsonObject } from "../memory/types.ts";
import { iso } from "./time.ts";

type Row = {
  id: number;
  owner: string;
  name: string;
  type: string;
  notes: string | null;
  metadata: string;
  created_at: number;
  updated_at: number;
};

const SELECT = `SELECT e.id, o.name AS owner, e.name, e.type, e.notes, e.metadata, e.created_at, e.updated_at
  FROM entities e JOIN owners o ON o.id = e.owner_id`;

function entity(row: Row): Entity {
  return {
    id: row.id,
    apiKeyId: row.owner,
    name: row.name,
    type: row.type,
    notes: row.notes,
    metadata: JSON.parse(row.metadata) as JsonObject,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}

export function getEntity(db: Database, owner: number | null, id: number): Entity | null {
  const row = db
    .query<Row, [number, number | null]>(`${SELECT} WHERE e.id = ?1 AND (?2 IS NULL OR e.owner_id = ?2)`)
    .get(id, owner);
  return row === null ? null : entity(row);
}

/** These entities of this owner, by id. */
export function entitiesByIds(db: Database, owner: number, ids: readonly number[]): Map<number, Entity> {
  const rows = db
    .query<Row, [number, string]>(
      `${SELECT} WHERE +e.owner_id = ? AND e.id IN (SELECT value FROM json_each(?))`,
    )
    .all(owner, JSON.stringify(ids));
  return new Map(rows.map((row) => [row.id, entity(row)]));
}

/** The entity of exactly this name and type. */
export function entityByName(db: Database, owner: number, name: string, type: string): number | null {
  return (
    db
      .query<{ id: number }, [number, string, string]>(
        "SELECT id FROM entities WHERE owner_id = ? AND name = ? AND type = ?",
      )
      .get(owner, name, type)?.id ?? null
  );
}

/** The oldest entity of this type that goes by this folded name or alias. */
export function entityByFolded(db: Database, owner: number, folded: string, type: string): number | null {
  return (
    db
      .query<{ id: number | null }, [number, string, string]>(
        "SELECT min(entity_id) AS id FROM entity_names WHERE owner_id = ? AND type = ? AND folded = ?",
      )
      .get(owner, type, folded)?.id ?? null
  );
}

export function insertEntity(
  db: Database,
  row: { owner: number; name: string; type: string; notes: string | null; metadata: JsonObject },
  now: number,
): number {
  return db
    .query<{ id: number }, [number, string, string, string | null, string, number]>(
      `INSERT INTO entities (owner_id, name, type, notes, metadata, created_at, updated_at)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) RETURNING id`,
    )
    .get(row.owner, row.name, row.type, row.notes, JSON.stringify(row.metadata), now)!.id;
}

/** Replaces name, notes and metadata. */
export function updateEntity(
  db: Database,
  id: number,
  row: { name: string; notes: string | null; metadata: JsonObject },
  now: number,
): void {
  db.query("UPDATE entities SET name = ?2, notes = ?3, metadata = ?4, updated_at = ?5 WHERE id = ?1").run(
    id,
    row.name,
    row.notes,
    JSON.stringify(row.metadata),
    now,
  );
}

/** Gives the entity another name; false when one of its type has it already. */
export function renameEntity(db: Database, owner: number, id: number, name: string, folded: string): boolean {
  const type = db.query<{ type: string }, [number]>("SELECT type FROM entities WHERE id = ?").get(id)?.type;
  if (type === undefined || entityByName(db, owner, name, type) !== null) return false;
  db.query("UPDATE entities SET name = ?2 WHERE id = ?1").run(id, name);
  db.query("INSERT OR IGNORE INTO entity_names (owner_id, type, folded, entity_id) VALUES (?, ?, ?, ?)").run(
    owner,
    type,
    folded,
    id,
  );
  return true;
}

/** Makes `folded` the names by which the entity is found. */
export function setEntityNames(
  db: Database,
  owner: number,
  type: string,
  id: number,
  folded: readonly string[],
): void {
  db.query("DELETE FROM entity_names WHERE entity_id = ?").run(id);
  const insert = db.query(
    "INSERT OR IGNORE INTO entity_names (owner_id, type, folded, entity_id) VALUES (?, ?, ?, ?)",
  );
  for (const name of folded) insert.run(owner, type, name, id);
}

/** Newest first, of one type when `type` is given. */
export function listEntities(
  db: Database,
  owner: number | null,
  // `named` is a part of the name, compared case-folded; the connection needs `registerFold`.
  {
    type,
    named,
    limit,
    offset,
  }: { type?: string | undefined; named?: string | undefined; limit: number; offset: number },
): { data: Entity[]; total: number } {
  const where = [
    owner === null ? null : "e.owner_id = $owner",
    type === undefined ? null : "e.type = $type",
    named === undefined ? null : "instr(case_fold(e.name), $named) > 0",
  ]
    .filter((part) => part !== null)
    .join(" AND ");
  const clause = where === "" ? "" : `WHERE ${where}`;
  const values = {
    ...(owner === null ? {} : { owner }),
    ...(type === undefined ? {} : { type }),
    ...(named === undefined ? {} : { named: fold(named) }),
  };
  const rows = db
    .query<Row, [Record<string, string | number>]>(
      `${SELECT} ${clause} ORDER BY e.id DESC LIMIT $limit OFFSET $offset`,
    )
    .all({ ...values, limit, offset });
  const total =
    db
      .query<{ n: number }, [Record<string, string | number>]>(
        `SELECT count(*) AS n FROM entities e ${clause}`,
      )
      .get(values)?.n ?? 0;
  return { data: rows.map(entity), total };
}

/** Deletes the rows; their relationships and names go with them. */
export function deleteEntityRows(db: Database, ids: readonly number[]): void {
  db.query("DELETE FROM entities WHERE id IN (SELECT value FROM json_each(?))").run(JSON.stringify(ids));
}

/** True for a row of `alias` that came from exchanges alone, one of them in the JSON list `gone`, and none there any more. */
export function sourceless(alias: string, gone: string): string {
  const sources = `json_each(${alias}.metadata, '$.episodeIds') source`;
  return `json_extract(${alias}.metadata, '$.learned') = 1
    AND EXISTS (SELECT 1 FROM ${sources} WHERE source.value IN (SELECT value FROM json_each(${gone})))
    AND NOT EXISTS (SELECT 1 FROM ${sources} JOIN episodes p ON p.id = source.value)`;
}

/** Entities that came from exchanges alone, some of them `gone` and none there any more, and that nothing is linked to. */
export function learnedWithoutSource(db: Database, owner: number, gone: readonly number[]): number[] {
  return db
    .query<{ id: number }, [number, string]>(
      `SELECT e.id FROM entities e WHERE e.owner_id = ?1 AND ${sourceless("e", "?2")} AND ${unlinked("e")}`,
    )
    .all(owner, JSON.stringify(gone))
    .map((row) => row.id);
}

/** Whether the entity came from exchanges and nothing is linked to it any more. */
export function isLeftOver(db: Database, id: number): boolean {
  return (
    db
      .query(
        `SELECT 1 FROM entities e WHERE e.id = ? AND json_extract(e.metadata, '$.learned') = 1 AND ${unlinked("e")}`,
      )
      .get(id) !== null
  );
}

function unlinked(alias: string): string {
  return `NOT EXISTS (SELECT 1 FROM relationships r WHERE r.from_id = ${alias}.id OR r.to_id = ${alias}.id)`;
}
