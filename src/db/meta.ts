/** Small facts about the database itself: box id, hash of the management token, versions of derived indexes. */
import type { Database } from "bun:sqlite";

export type MetaValue = string | number | null;

export function getMeta(db: Database, name: string): MetaValue {
  return (
    db.query<{ value: MetaValue }, [string]>("SELECT value FROM meta WHERE name = ?").get(name)?.value ?? null
  );
}

export function setMeta(db: Database, name: string, value: MetaValue): void {
  db.query(
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
  ).run(name, value);
}

/** The id of this box, made once: part of the ids of conversation points in a shared Qdrant. */
export function boxId(db: Database): string {
  const known = getMeta(db, "box_id");
  if (typeof known === "string") return known;
  db.query("INSERT INTO meta (name, value) VALUES ('box_id', ?) ON CONFLICT DO NOTHING").run(
    crypto.randomUUID(),
  );
  return getMeta(db, "box_id") as string;
}
