/** Rows of `relationships`: labelled, directed links between two entities of one owner. */
import type { Database } from "bun:sqlite";
import type { JsonObject, NamedRelationship, Relationship } from "../memory/types.ts";
import { sourceless } from "./entities.ts";
import { iso } from "./time.ts";

type Row = { from_id: number; to_id: number; label: string; metadata: string; created_at: number };

export type Link = { fromId: number; toId: number; label: string };

const COLUMNS = "from_id, to_id, label, metadata, created_at";

function relationship(row: Row): Relationship {
  return {
    fromId: row.from_id,
    toId: row.to_id,
    label: row.label,
    metadata: JSON.parse(row.metadata) as JsonObject,
    createdAt: iso(row.created_at),
  };
}

export function getRelationship(db: Database, link: Link): Relationship | null {
  const row = db
    .query<Row, [number, number, string]>(
      `SELECT ${COLUMNS} FROM relationships WHERE from_id = ? AND to_id = ? AND label = ?`,
    )
    .get(link.fromId, link.toId, link.label);
  return row === null ? null : relationship(row);
}

/** Inserts the link, or replaces the metadata of a known one. */
export function putRelationship(db: Database, link: Link, metadata: JsonObject, now: number): void {
  db.query(
    `INSERT INTO relationships (${COLUMNS}) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET metadata = excluded.metadata`,
  ).run(link.fromId, link.toId, link.label, JSON.stringify(metadata), now);
}

export function deleteRelationship(db: Database, link: Link): boolean {
  return (
    db
      .query("DELETE FROM relationships WHERE from_id = ? AND to_id = ? AND label = ?")
      .run(link.fromId, link.toId, link.label).changes > 0
  );
}

/** Deletes the links of the same end and label to others that were learned, not made by hand. */
export function replaceLearned(db: Database, link: Link): void {
  db.query(
    `DELETE FROM relationships
     WHERE from_id = ? AND label = ? AND to_id <> ? AND json_extract(metadata, '$.learned') = 1`,
  ).run(link.fromId, link.label, link.toId);
}

/** Whether an exchange said after this one taught a link of the same end and label to another entity. */
export function taughtLater(db: Database, link: Link, episodeId: number): boolean {
  return (
    db
      .query(
        `SELECT 1 FROM relationships r, json_each(r.metadata, '$.episodeIds') source JOIN episodes later ON later.id = source.value
         JOIN episodes said ON said.id = ? WHERE r.from_id = ? AND r.label = ? AND r.to_id <> ?
         AND json_extract(r.metadata, '$.learned') = 1 AND later.created_at > said.created_at LIMIT 1`,
      )
      .get(episodeId, link.fromId, link.label, link.toId) !== null
  );
}

/** Links from this entity that came from exchanges, with the name of the other end. */
export function learnedLinksFrom(
  db: Database,
  fromId: number,
): (Link & { name: string; episodeIds: unknown })[] {
  return db
    .query<Row & { name: string }, [number]>(
      `SELECT r.from_id, r.to_id, r.label, r.metadata, r.created_at, e.name FROM relationships r JOIN entities e ON e.id = r.to_id
       WHERE r.from_id = ? AND json_extract(r.metadata, '$.learned') = 1`,
    )
    .all(fromId)
    .map((row) => ({
      fromId: row.from_id,
      toId: row.to_id,
      label: row.label,
      name: row.name,
      episodeIds: (JSON.parse(row.metadata) as JsonObject)["episodeIds"],
    }));
}

/** Deletes links of this owner that came from exchanges alone, some of them `gone` and none there any more. */
export function deleteLearnedLinks(db: Database, owner: number, gone: readonly number[]): void {
  db.query(
    `DELETE FROM relationships AS r WHERE ${sourceless("r", "?2")}
     AND r.from_id IN (SELECT id FROM entities WHERE owner_id = ?1)`,
  ).run(owner, JSON.stringify(gone));
}

export type Direction = "out" | "in" | "both";

const ENDS: Record<Direction, string> = {
  out: "from_id = ?1",
  in: "to_id = ?1",
  both: "(from_id = ?1 OR to_id = ?1)",
};

/** Links that leave the entity, reach it, or both, oldest first; a link to itself is listed once. */
export function listRelationships(
  db: Database,
  entityId: number,
  { direction, limit, offset }: { direction: Direction; limit: number; offset: number },
): { data: Relationship[]; total: number } {
  const ends = ENDS[direction];
  const rows = db
    .query<Row, [number, number, number]>(
      `SELECT ${COLUMNS} FROM relationships WHERE ${ends} ORDER BY created_at, from_id, to_id, label LIMIT ?2 OFFSET ?3`,
    )
    .all(entityId, limit, offset);
  const total =
    db.query<{ n: number }, [number]>(`SELECT count(*) AS n FROM relationships WHERE ${ends}`).get(entityId)
      ?.n ?? 0;
  return { data: rows.map(relationship), total };
}

/** Relationships of each of these entities in both directions, with the names of both ends, oldest first. */
export function linksOf(
  db: Database,
  entityIds: readonly number[],
  limitEach: number,
): Map<number, NamedRelationship[]> {
  const rows = db
    .query<Row & { from_name: string; to_name: string }, [string]>(
      `SELECT r.from_id, r.to_id, r.label, r.metadata, r.created_at, f.name AS from_name, t.name AS to_name
       FROM relationships r JOIN entities f ON f.id = r.from_id JOIN entities t ON t.id = r.to_id
       WHERE r.from_id IN (SELECT value FROM json_each(?1)) OR r.to_id IN (SELECT value FROM json_each(?1))
       ORDER BY r.created_at, r.from_id, r.to_id, r.label LIMIT 1000`,
    )
    .all(JSON.stringify(entityIds));
  const links = new Map<number, NamedRelationship[]>(entityIds.map((id) => [id, []]));
  for (const row of rows) {
    const link = { ...relationship(row), from: row.from_name, to: row.to_name };
    for (const end of new Set([row.from_id, row.to_id])) {
      const list = links.get(end);
      if (list !== undefined && list.length < limitEach) list.push(link);
    }
  }
  return links;
}

/** A relationship as a short statement about one of its ends. */
export function linkText(link: NamedRelationship, entityId: number): string {
  return link.fromId === entityId ? `${link.label} ${link.to}` : `${link.from} ${link.label} ${link.to}`;
}
