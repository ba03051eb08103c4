/**
 * Deleting many rows from a lexical index. FTS5's `secure-delete` rewrites a page for every word of every row (measured:
 * 1.7 ms an exchange in an index of 100,000); without it a deletion is a mark, and the words stay in the file until the
 * segments are merged (measured: 0.3 s for the whole index of 100,000). So many rows are deleted by marks, and then the
 * index is merged in short steps.
 */
import type { Database } from "bun:sqlite";

export type LexicalIndex = "memories" | "episodes";

/** From so many rows on marks and a merge are cheaper. */
export const MANY_ROWS = 200;
/** Pages (about 4 kB each) that one step of a merge writes. */
const STEP_PAGES = 64;

function hasFts(db: Database, index: LexicalIndex): boolean {
  return db.query("SELECT 1 FROM sqlite_schema WHERE name = ?").get(`${index}_fts`) !== null;
}

function command(db: Database, index: LexicalIndex, name: string, value: number): void {
  db.query(`INSERT INTO ${index}_fts (${index}_fts, rank) VALUES (?, ?)`).run(name, value);
}

/** Runs deletions inside the caller's transaction that leave marks; call {@link purgeStep} until it is false afterwards. */
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

/** Starts merging a whole index into one segment, which leaves out what was deleted. */
export function startPurge(db: Database, index: LexicalIndex): void {
  if (hasFts(db, index)) command(db, index, "merge", -STEP_PAGES);
}

/** Does a few milliseconds of merging. False when nothing is left to do. */
export function purgeStep(db: Database, index: LexicalIndex): boolean {
  if (!hasFts(db, index)) return false;
  const changes = db.query<{ n: number }, []>("SELECT total_changes() AS n");
  const before = changes.get()!.n;
  command(db, index, "merge", STEP_PAGES);
  // A merge that has nothing to do changes at most one row.
  return changes.get()!.n - before >= 2;
}
