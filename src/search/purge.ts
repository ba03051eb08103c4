/**
 * Deleting many rows from a lexical index. FTS5's `secure-delete` rewrites a page for every word of every row (measured:
 * 1.7 ms an exchange in an index of 100,000); without it a deletion is a mark, and the words stay in the file until the
 * segments are merged (measured: 0.3 s for the whole index of 100,000). So many rows are deleted by marks, and then the
 * index is merged in short steps.
 */
import type { Database } from "bun:sqlite";
import { transact } from "../db/open.ts";

export type LexicalIndex = "memories" | "episodes";

/** From so many rows on marks and a merge are cheaper. */
export const MANY_ROWS = 200;
/** Pages (about 4 kB each) that one step of a merge writes. */
const STEP_PAGES = 64;
/** How long steps go into one transaction: a step takes the pages that the one before it emptied, which then are written once. */
const SLICE_MS = 12;

function hasFts(db: Database, index: LexicalIndex): boolean {
  return db.query("SELECT 1 FROM sqlite_schema WHERE name = ?").get(`${index}_fts`) !== null;
}

function command(db: Database, index: LexicalIndex, name: string, value: number): void {
  db.query(`INSERT INTO ${index}_fts (${index}_fts, rank) VALUES (?, ?)`).run(name, value);
}

/** Runs deletions inside the caller's transaction that leave marks; {@link purge} afterwards takes their words out of the file. */
export function withMarks(db: Database, index: LexicalIndex, deletions: () => void): void {
  if (!hasFts(db, index)) return deletions();
  // Each change of the option writes out what waits in memory, under the value that held until then.
  command(db, index, "secure-delete", 0);
  try {
    deletions();
  } finally {
    command(db, index, "secure-delete", 1);
  }
}

/**
 * Merges a whole index into one segment that leaves out what was deleted; the generator gives way between transactions of
 * some milliseconds.
 *
 * FTS5 drops the marks (which hold the deleted words) only when it merges into its oldest level. Its optimise step gathers
 * segments of different levels above all of them, but merges segments of one and the same level into the next, where
 * marks stay when there were older levels once. So an index with one level first gets a segment of another one: a row
 * that no search can find. FTS5 puts segments of a page or less on the level of a new one; an index that has one level
 * even then holds a few pages, and is made anew.
 */
export function* purge(db: Database, index: LexicalIndex): Generator<void> {
  if (!hasFts(db, index)) return;
  const placed: number[] = [];
  for (let tries = 0; tries < 2; tries++) {
    if (levelsInUse(db, index) < 2) {
      // Another number each time: one that a crash left behind would be counted twice.
      const row = -1 - Math.floor(Math.random() * 2 ** 40);
      transact(db, () => placeholder(db, index, row, false));
      placed.push(row);
    }
    const gathered = levelsInUse(db, index) >= 2;
    let more = transact(db, () => {
      command(db, index, "merge", -STEP_PAGES);
      return steps(db, index);
    });
    for (; more; more = transact(db, () => steps(db, index))) yield;
    if (gathered) {
      transact(db, () => placed.forEach((one) => placeholder(db, index, one, true)));
      return;
    }
  }
  transact(db, () => db.run(`INSERT INTO ${index}_fts (${index}_fts) VALUES ('rebuild')`));
}

/** Merges for some milliseconds. False when nothing is left to do. */
function steps(db: Database, index: LexicalIndex): boolean {
  const until = performance.now() + SLICE_MS;
  while (step(db, index)) if (performance.now() > until) return true;
  return false;
}

function step(db: Database, index: LexicalIndex): boolean {
  const changes = db.query<{ n: number }, []>("SELECT total_changes() AS n");
  const before = changes.get()!.n;
  command(db, index, "merge", STEP_PAGES);
  // A merge that has nothing to do changes at most one row.
  return changes.get()!.n - before >= 2;
}

/** Puts a row without content into the index, or takes it out. Its word has no owner, so no query holds it. */
function placeholder(db: Database, index: LexicalIndex, row: number, remove: boolean): void {
  const column = index === "memories" ? "text" : "said";
  db.query(
    remove
      ? `INSERT INTO ${index}_fts (${index}_fts, rowid, ${column}) VALUES ('delete', ?, 'purge')`
      : `INSERT INTO ${index}_fts (rowid, ${column}) VALUES (?, 'purge')`,
  ).run(row);
}

const STRUCTURE_ROW = 10;

/** How many levels of the index hold segments, from FTS5's structure record (fts5_index.c, fts5StructureDecode). */
function levelsInUse(db: Database, index: LexicalIndex): number {
  const row = db
    .query<{ block: Uint8Array }, [number]>(`SELECT block FROM ${index}_fts_data WHERE id = ?`)
    .get(STRUCTURE_ROW);
  if (row === null) return 0;
  const { block } = row;
  const second = block[4] === 0xff && block[5] === 0 && block[6] === 0 && block[7] === 1;
  let at = second ? 8 : 4;
  const varint = (): number => {
    let value = 0;
    for (let length = 1; length <= 9; length++) {
      const byte = block[at++] ?? 0;
      if (length === 9) return value * 256 + byte;
      value = value * 128 + (byte & 0x7f);
      if (byte < 0x80) break;
    }
    return value;
  };
  const levels = varint();
  // Segments in all, and the write counter.
  varint();
  varint();
  let used = 0;
  for (let level = 0; level < levels; level++) {
    // How many segments are being merged, and how many there are.
    varint();
    const segments = varint();
    if (segments > 0) used++;
    for (let field = 0; field < segments * (second ? 8 : 3); field++) varint();
  }
  return used;
}
