/** Puts memories into blocks: new ones behind the last, those that changed in place, and blocks that lost their texts anew. */
import type { Database } from "bun:sqlite";
import { transact } from "../../db/open.ts";
import type { MemoryOrigin, MemoryStatus, MemoryType } from "../../memory/types.ts";
import { blockText, facetBits, hasRoom, openColumns, pack, unpack, type TextRow } from "./block.ts";
import { looseRows, sealedUntil, sealUntil, type BlockPlace } from "./tables.ts";

/** So many rows may wait for a block: they are looked through one by one. */
export const WAITING_ROWS = 1024;
/** So many blocks may be without texts; about 150 rows each are looked through one by one. */
const STALE_BLOCKS = 4;
/** So many rows may have changed. */
const LOOSE_ROWS = 256;
/** Rows, owners and blocks of one transaction, some milliseconds long. */
const STEP_ROWS = 512;
const STEP_OWNERS = 64;
const STEP_BLOCKS = 8;

interface Source {
  seq: number;
  owner_id: number;
  type: MemoryType;
  key: string | null;
  content: string;
  origin: MemoryOrigin;
  status: MemoryStatus;
  pinned: number;
  tokens: number;
  created_at: number;
  updated_at: number;
}

const SOURCE =
  "SELECT seq, owner_id, type, key, content, origin, status, pinned, tokens, created_at, updated_at FROM memories";

/** What there is to fill: so much that it is worth it now, some changes that can wait, or nothing. */
export function wantsFilling(db: Database): "now" | "later" | null {
  const n = (sql: string, ...values: number[]) =>
    db.query<{ n: number | null }, number[]>(`SELECT ${sql} AS n`).get(...values)!.n ?? 0;
  const waiting = n("(SELECT max(seq) FROM memories)") - sealedUntil(db);
  if (waiting >= WAITING_ROWS) return "now";
  const stale = n(
    "(SELECT count(*) FROM (SELECT 1 FROM memory_texts WHERE stamp = 0 LIMIT ?))",
    STALE_BLOCKS,
  );
  const loose = looseRows(db, LOOSE_ROWS).length;
  if (stale === STALE_BLOCKS || loose === LOOSE_ROWS) return "now";
  return stale + loose > 0 ? "later" : null;
}

/** Fills all there is to fill (`changes`: not the new rows), a transaction of some milliseconds between two values. */
export function* fillTexts(db: Database, what: "all" | "changes" = "all"): Generator<void> {
  while (what === "all" && transact(db, () => seal(db))) yield;
  while (transact(db, () => refill(db) || place(db))) yield;
}

/** The next rows after the mark, behind those that their owners have. False when there are none. */
function seal(db: Database): boolean {
  const found = db
    .query<Source, [number]>(`${SOURCE} WHERE seq > ? ORDER BY seq LIMIT ${STEP_ROWS}`)
    .all(sealedUntil(db));
  const byOwner = new Map<number, TextRow[]>();
  let last = 0;
  for (const row of found) {
    let rows = byOwner.get(row.owner_id);
    if (rows === undefined) {
      if (byOwner.size === STEP_OWNERS) break;
      byOwner.set(row.owner_id, (rows = []));
    }
    rows.push(textRow(row));
    last = row.seq;
  }
  if (last === 0) return false;
  for (const [owner, rows] of byOwner) {
    const block = blockBefore(db, owner, last);
    if (block === null || !hasRoom(block.size)) write(db, owner, null, rows);
    else write(db, owner, block, [...rowsOf(db, block), ...rows]);
  }
  db.query("DELETE FROM memory_texts_loose WHERE seq > ? AND seq <= ?").run(sealedUntil(db), last);
  sealUntil(db, last);
  return true;
}

/** Gives some blocks their texts again. False when all have theirs. */
function refill(db: Database): boolean {
  const blocks = db
    .query<BlockPlace, []>(
      `SELECT id, owner_id, first, last, stamp, size FROM memory_texts WHERE stamp = 0 ORDER BY id LIMIT ${STEP_BLOCKS}`,
    )
    .all();
  for (const block of blocks) write(db, block.owner_id, block, rowsOf(db, block));
  return blocks.length > 0;
}

/** Puts some rows that changed where they belong. False when there are none. */
function place(db: Database): boolean {
  const seqs = looseRows(db, STEP_ROWS);
  if (seqs.length === 0) return false;
  const changed = new Set(seqs);
  const places = new Map<string, { owner: number; block: BlockPlace | null; rows: TextRow[] }>();
  for (const row of rowsBySeq(db, seqs)) {
    const owner = row.owner_id;
    const block = blockBefore(db, owner, row.seq) ?? firstBlock(db, owner);
    const name = `${owner} ${block?.id}`;
    let found = places.get(name);
    if (found === undefined) {
      if (places.size === STEP_OWNERS) {
        changed.delete(row.seq);
        continue;
      }
      places.set(name, (found = { owner, block, rows: [] }));
    }
    found.rows.push(textRow(row));
  }
  for (const { owner, block, rows } of places.values()) {
    const others = block === null ? [] : rowsOf(db, block).filter(({ seq }) => !changed.has(seq));
    write(
      db,
      owner,
      block,
      [...others, ...rows].toSorted((a, b) => a.seq - b.seq),
    );
  }
  db.query("DELETE FROM memory_texts_loose WHERE seq IN (SELECT value FROM json_each(?))").run(
    JSON.stringify([...changed]),
  );
  return true;
}

/** The block of the owner that begins last at or before `seq`. */
function blockBefore(db: Database, owner: number, seq: number): BlockPlace | null {
  return db
    .query<BlockPlace, [number, number]>(
      `SELECT id, owner_id, first, last, stamp, size FROM memory_texts WHERE owner_id = ? AND first <= ?
       ORDER BY first DESC LIMIT 1`,
    )
    .get(owner, seq);
}

function firstBlock(db: Database, owner: number): BlockPlace | null {
  return db
    .query<BlockPlace, [number]>(
      "SELECT id, owner_id, first, last, stamp, size FROM memory_texts WHERE owner_id = ? ORDER BY first LIMIT 1",
    )
    .get(owner);
}

/** The rows of a block: from its own texts, or from the memories themselves where it has lost them. */
function rowsOf(db: Database, block: BlockPlace): TextRow[] {
  const { columns, text } = db
    .query<{ columns: Uint8Array; text: Uint8Array | null }, [number]>(
      "SELECT columns, text FROM memory_texts WHERE id = ?",
    )
    .get(block.id)!;
  const held = openColumns(columns);
  if (text !== null) return unpack(held, text);
  return rowsBySeq(
    db,
    Array.from(held.seqs, (seq) => held.base + seq),
  )
    .filter((row) => row.owner_id === block.owner_id)
    .map(textRow);
}

function rowsBySeq(db: Database, seqs: readonly number[]): Source[] {
  return db
    .query<Source, [string]>(`${SOURCE} WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq`)
    .all(JSON.stringify(seqs));
}

/** Writes these rows in the place of `block` (null: behind the owner's blocks). */
function write(db: Database, owner: number, block: BlockPlace | null, rows: readonly TextRow[]): void {
  if (block !== null) db.query("DELETE FROM memory_texts WHERE id = ?").run(block.id);
  const insert = db.query(
    "INSERT INTO memory_texts (owner_id, first, last, stamp, size, grams, columns, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  );
  for (const { first, last, columns, grams, text } of pack(rows)) {
    const stamp = 1 + Math.floor(Math.random() * 2 ** 52);
    insert.run(owner, first, last, stamp, text.length, grams, columns, text);
  }
}

function textRow(row: Source): TextRow {
  return {
    seq: row.seq,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    tokens: row.tokens,
    flags: facetBits({ ...row, pinned: row.pinned === 1 }).bits,
    text: blockText(row.content, row.key),
  };
}
