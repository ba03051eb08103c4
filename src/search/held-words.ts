/**
 * Keeps the words of the owners that are asked for in memory, and in step with the tables. What changed is noted by
 * triggers of this connection alone and read again before the next question; where the owner's counts then disagree
 * (somebody else wrote), the rows are read anew. FTS5 answers while that lasts, and for owners too large to hold.
 */
import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import { breathe } from "../memory/breathe.ts";
import {
  bytesFor,
  createPostings,
  dropRow,
  isFull,
  postingsBytes,
  putRow,
  rowsIn,
  seal,
  type HeldRow,
  type Postings,
} from "./postings.ts";
import { tables } from "./predicate.ts";
import type { Kind } from "./types.ts";

/** All that is kept in memory, and the most of it for one owner's rows of a kind, in bytes. */
const CACHE_BYTES = 96 * 2 ** 20;
const MOST_BYTES = 64 * 2 ** 20;
/** Rows that are read at once, without giving way to other calls. */
const AT_ONCE = 300;
/** Rows read between two looks at the clock, and how long until other calls get their turn, in milliseconds. */
const SLICE = 64;
const TURN_MS = 6;
/** Slots of rows that are gone before the index is made anew. */
const crowded = (held: Postings) => held.dead > 500 + held.slots * 0.2;

/** Rows and words of an owner as the tables count them. */
export interface Counts {
  readonly n: number;
  /** Words in the first and the second column. */
  readonly first: number;
  readonly second: number;
}

export interface HeldWords {
  /**
   * The owner's words as the tables have them now. Null while they are being read, which begins with the first question
   * and gives way to other calls, and for owners whose words would take more than 64 MB.
   */
  of(kind: Kind, owner: number, counts: Counts): Postings | null;
}

interface Kept {
  readonly held: Postings;
  /** Rows that changed since they were read. */
  changed: Set<number>;
}

export function createHeldWords(db: Database): HeldWords {
  const kept = new LRUCache<string, Kept>({
    maxSize: CACHE_BYTES,
    sizeCalculation: (one) => 1024 + postingsBytes(one.held),
  });
  /** Being read: what changes meanwhile. */
  const reading = new Map<string, Kept>();
  let watched = false;

  const rowsAfter = (kind: Kind) =>
    db.query<HeldRow, [number, number, number]>(
      `SELECT id, ${sides(kind)} FROM ${tables[kind].index}_terms WHERE owner_id = ? AND id > ? ORDER BY id LIMIT ?`,
    );
  const rowsById = (kind: Kind) =>
    db.query<HeldRow, [string, number]>(
      `SELECT id, ${sides(kind)} FROM ${tables[kind].index}_terms
       WHERE id IN (SELECT value FROM json_each(?)) AND owner_id = ? ORDER BY id`,
    );

  /** Reads again what changed; a row that is in no table any more goes. */
  function catchUp(kind: Kind, owner: number, { held, changed }: Kept): void {
    const ids = [...changed];
    changed.clear();
    for (const id of ids) dropRow(held, id);
    for (const row of rowsById(kind).all(JSON.stringify(ids), owner)) putRow(held, row);
    if (isFull(held, false)) seal(held);
  }

  function of(kind: Kind, owner: number, counts: Counts): Postings | null {
    if (!watched) {
      watch(db, (key, id) => {
        kept.peek(key)?.changed.add(id);
        reading.get(key)?.changed.add(id);
      });
      watched = true;
    }
    const key = keyOf(kind, owner);
    let have = kept.get(key);
    if (have === undefined && counts.n <= AT_ONCE) {
      have = { held: createPostings(kind === "episode"), changed: new Set() };
      for (const row of rowsAfter(kind).all(owner, -1, AT_ONCE)) putRow(have.held, row);
      kept.set(key, have);
    }
    if (have !== undefined && have.changed.size <= AT_ONCE) {
      if (have.changed.size > 0) {
        catchUp(kind, owner, have);
        kept.set(key, have);
      }
      if (agrees(have.held, counts) && !crowded(have.held)) return have.held;
    }
    kept.delete(key);
    if (bytesFor(counts.n, counts.first + counts.second) <= MOST_BYTES) begin(kind, owner);
    return null;
  }

  function begin(kind: Kind, owner: number): void {
    const key = keyOf(kind, owner);
    if (reading.has(key)) return;
    const into: Kept = { held: createPostings(kind === "episode"), changed: new Set() };
    reading.set(key, into);
    read(kind, owner, into)
      // A database that was closed or cannot be read: whoever asks the tables is told.
      .catch(() => {})
      .finally(() => reading.delete(key));
  }

  async function read(kind: Kind, owner: number, into: Kept): Promise<void> {
    const { held } = into;
    let last = -1;
    let turn = performance.now();
    const rest = async () => {
      if (performance.now() - turn < TURN_MS) return;
      await breathe();
      turn = performance.now();
    };
    for (;;) {
      const rows = rowsAfter(kind).all(owner, last, SLICE);
      for (const row of rows) putRow(held, row);
      last = rows.at(-1)?.id ?? last;
      await rest();
      if (isFull(held, true)) seal(held);
      if (rows.length < SLICE) break;
    }
    // What changed meanwhile; the last of it is read before the first answer.
    while (into.changed.size > AT_ONCE) {
      const some = [...into.changed].slice(0, AT_ONCE);
      for (const id of some) into.changed.delete(id);
      catchUp(kind, owner, { held, changed: new Set(some) });
      await rest();
    }
    kept.set(keyOf(kind, owner), into);
  }

  return { of };
}

/** Whether as many rows with as many words are held as the tables have. */
function agrees(held: Postings, { n, first, second }: Counts): boolean {
  return rowsIn(held) === n && held.said === first && held.reply === second;
}

function keyOf(kind: Kind, owner: number): string {
  return `${tables[kind].index}:${owner}`;
}

function sides(kind: Kind): string {
  const [first, second] = tables[kind].columns as readonly string[];
  const place =
    kind === "episode"
      ? `, session_id AS session, pos, created_at AS createdAt,
         (SELECT stored_at FROM episodes e WHERE e.id = episodes_terms.id) AS storedAt`
      : "";
  return `${first} AS said, ${second ?? "''"} AS reply${place}`;
}

/** Calls `changed` with each row of tokens that this connection writes or deletes. Whether it stays is for the reader to see. */
function watch(db: Database, changed: (key: string, id: number) => void): void {
  db.function("words_changed", (index: string, owner: number, id: number) => {
    changed(`${index}:${owner}`, id);
    return null;
  });
  for (const { index } of Object.values(tables)) {
    for (const [event, rows] of [
      ["INSERT", ["new"]],
      ["UPDATE", ["old", "new"]],
      ["DELETE", ["old"]],
    ] as const) {
      const calls = rows.map((row) => `SELECT words_changed('${index}', ${row}.owner_id, ${row}.id);`);
      db.run(`DROP TRIGGER IF EXISTS temp.${index}_words_${event.toLowerCase()}`);
      db.run(
        `CREATE TEMP TRIGGER ${index}_words_${event.toLowerCase()} AFTER ${event} ON main.${index}_terms BEGIN ${calls.join(" ")} END`,
      );
    }
  }
}
