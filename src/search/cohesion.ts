/**
 * How much neighbouring turns of an owner's conversations speak of the same things. Where they do, what was said beside a
 * turn tells what it is about; where people jump from one thing to another, it only misleads.
 */
import type { Database } from "bun:sqlite";

/** Share of their words that turns one and two apart have in common, over what any two turns have. */
export interface Cohesion {
  readonly next: number;
  readonly second: number;
}

/** Newest turns that are looked at, and words of each. */
const TURNS = 300;
const WORDS = 120;
/** Below so many pairs nothing is known, and half of the full weight is given. */
const PAIRS = 40;
/** What well-connected talk shows; more is not needed for the full weight of neighbours. */
const FULL: Cohesion = { next: 0.1, second: 0.07 };
const UNKNOWN: Cohesion = { next: FULL.next / 2, second: FULL.second / 2 };
/** Owners that are remembered. */
const REMEMBERED = 1000;

/** Measures an owner's cohesion once, and again when the owner has half as many turns more. About 3 ms. */
export function createCohesion(db: Database): (owner: number, rows: number) => Cohesion {
  const known = new Map<number, { rows: number; value: Cohesion }>();
  return (owner, rows) => {
    const have = known.get(owner);
    if (have !== undefined && rows <= have.rows * 1.5 + 20 && rows >= have.rows / 2) return have.value;
    const value = measure(db, owner);
    known.delete(owner);
    if (known.size >= REMEMBERED) known.delete(known.keys().next().value!);
    known.set(owner, { rows, value });
    return value;
  };
}

/** 0–1: the share of the full weight that neighbours one and two apart get. */
export function neighbourShare(cohesion: Cohesion): { near: number; far: number } {
  const share = (x: number, full: number) => Math.max(0, Math.min(1, x / full));
  return { near: share(cohesion.next, FULL.next), far: share(cohesion.second, FULL.second) };
}

function measure(db: Database, owner: number): Cohesion {
  const rows = db
    .query<{ session: number; pos: number; said: string; reply: string }, [number, number]>(
      `SELECT session_id AS session, pos, substr(said, 1, 4000) AS said, substr(reply, 1, 4000) AS reply
       FROM episodes_terms WHERE owner_id = ? ORDER BY id DESC LIMIT ?`,
    )
    .all(owner, TURNS)
    .reverse();
  const words = rows.map(
    ({ said, reply }) => new Set(`${said} ${reply}`.split(" ", WORDS).filter((word) => word !== "")),
  );
  const holders = new Map<string, number>();
  for (const set of words) for (const word of set) holders.set(word, (holders.get(word) ?? 0) + 1);
  const weight = (word: string) => {
    const n = holders.get(word)!;
    return Math.log(1 + (rows.length - n + 0.5) / (n + 0.5));
  };
  const masses = words.map((set) => [...set].reduce((sum, word) => sum + weight(word), 0));
  const overlap = (a: number, b: number) => {
    let sum = 0;
    for (const word of words[a]!) if (words[b]!.has(word)) sum += weight(word);
    return sum / Math.max(1e-9, Math.min(masses[a]!, masses[b]!));
  };
  const apart = (distance: number) => {
    let sum = 0;
    let n = 0;
    for (let at = 0; at + distance < rows.length; at++) {
      const [a, b] = [rows[at]!, rows[at + distance]!];
      if (a.session !== b.session || b.pos - a.pos !== distance) continue;
      sum += overlap(at, at + distance);
      n++;
    }
    return n < PAIRS ? null : sum / n;
  };
  const next = apart(1);
  const second = apart(2);
  if (next === null || second === null) return UNKNOWN;
  let any = 0;
  let pairs = 0;
  // Turns far apart stand for any two.
  for (let at = 0; at < rows.length; at++) {
    const other = (at + Math.floor(rows.length / 2)) % rows.length;
    any += overlap(at, other);
    pairs++;
  }
  return { next: next - any / pairs, second: second - any / pairs };
}
