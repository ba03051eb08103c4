/**
 * The tables of the text filter's copy. It is derived and may lag: rows after the mark `texts_sealed` are in no block yet, a
 * row that changed is on a list, and a block one of whose rows was deleted loses its texts in the same transaction, so that
 * nothing of it is left. Triggers that need nothing of this program do both. What blocks do not tell is read from the
 * rows, so answers are right at every moment, whoever writes.
 */
import type { Database } from "bun:sqlite";
import { getMeta, setMeta } from "../../db/meta.ts";
import { transact } from "../../db/open.ts";

/** Bump when blocks get another form, or `fold` another result. */
const BLOCK_VERSION = 2;
const SEALED = "texts_sealed";

/** `stamp` 0: a row was deleted and the texts are gone. Else another number each time the block is written. */
export interface BlockPlace {
  id: number;
  owner_id: number;
  first: number;
  last: number;
  stamp: number;
  size: number;
}

/** Makes the tables where they are missing or of another version; they are filled in behind. */
export function ensureTexts(db: Database): void {
  // Folding follows the Unicode tables of the runtime.
  const wanted = `${BLOCK_VERSION} unicode ${process.versions["unicode"] ?? "?"}`;
  if (getMeta(db, "texts_version") === wanted) return;
  transact(db, () => {
    for (const trigger of ["update", "delete"]) db.run(`DROP TRIGGER IF EXISTS memory_texts_${trigger}`);
    for (const table of ["memory_texts", "memory_texts_loose"]) db.run(`DROP TABLE IF EXISTS ${table}`);
    create(db);
    setMeta(db, SEALED, 0);
    setMeta(db, "texts_version", wanted);
  });
}

/** Forgets all blocks, so that they are made anew. */
export function clearTexts(db: Database): void {
  transact(db, () => {
    db.run("DELETE FROM memory_texts");
    db.run("DELETE FROM memory_texts_loose");
    setMeta(db, SEALED, 0);
  });
}

/** The last memory that was put into a block; every later one is in none. */
export function sealedUntil(db: Database): number {
  return Number(getMeta(db, SEALED) ?? 0);
}

export function sealUntil(db: Database, seq: number): void {
  setMeta(db, SEALED, seq);
}

/** Blocks of an owner (null: of all) in the order of their rows, read from an index alone. */
export function blockPlaces(db: Database, owner: number | null): BlockPlace[] {
  const columns = "id, owner_id, first, last, stamp, size FROM memory_texts";
  return owner === null
    ? db.query<BlockPlace, []>(`SELECT ${columns} ORDER BY owner_id, first`).all()
    : db.query<BlockPlace, [number]>(`SELECT ${columns} WHERE owner_id = ? ORDER BY first`).all(owner);
}

/** Rows before the mark of which no block tells the truth, since they changed; at most `limit`. */
export function looseRows(db: Database, limit = -1): number[] {
  return db
    .query<{ seq: number }, [number, number]>(
      "SELECT seq FROM memory_texts_loose WHERE seq <= ? ORDER BY seq LIMIT ?",
    )
    .all(sealedUntil(db), limit)
    .map(({ seq }) => seq);
}

const watched = [
  "owner_id",
  "key",
  "content",
  "type",
  "status",
  "origin",
  "pinned",
  "tokens",
  "created_at",
  "updated_at",
] as const;

function create(db: Database): void {
  // A block holds the owner's memories from `first` to `last`, and the blocks of an owner never overlap.
  db.run(`CREATE TABLE memory_texts (
    id INTEGER PRIMARY KEY, owner_id INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    stamp INTEGER NOT NULL, size INTEGER NOT NULL, grams BLOB, columns BLOB NOT NULL, text BLOB) STRICT`);
  db.run("CREATE INDEX memory_texts_place ON memory_texts (owner_id, first, last, stamp, size)");
  db.run("CREATE INDEX memory_texts_stale ON memory_texts (id) WHERE stamp = 0");
  db.run("CREATE TABLE memory_texts_loose (seq INTEGER PRIMARY KEY) STRICT");
  const block = `SELECT id FROM memory_texts WHERE owner_id = old.owner_id AND first <= old.seq ORDER BY first DESC LIMIT 1`;
  const empty = (when: string) => `UPDATE memory_texts SET text = NULL, grams = NULL, stamp = 0
    WHERE stamp <> 0 AND last >= old.seq AND id = (${block}) AND ${when};`;
  db.run(`CREATE TRIGGER memory_texts_update AFTER UPDATE OF ${watched.join(", ")} ON memories
    WHEN ${watched.map((column) => `old.${column} IS NOT new.${column}`).join(" OR ")}
    BEGIN ${empty("old.owner_id <> new.owner_id")} INSERT OR IGNORE INTO memory_texts_loose VALUES (new.seq); END`);
  db.run(`CREATE TRIGGER memory_texts_delete AFTER DELETE ON memories
    BEGIN ${empty("1")} DELETE FROM memory_texts_loose WHERE seq = old.seq; END`);
}
