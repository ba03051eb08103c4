/**
 * Lexical search. The words held in memory bring the candidates, or FTS5 where an owner's are not held; their score is
 * BM25 counted here with the owner's own statistics, because FTS5's counts rows and lengths over all owners (one owner's
 * ranking would follow what others store) and fixes k1 and b.
 */
import type { Database } from "bun:sqlite";
import { scoreRow, weighedTerm, type LexicalScore, type OwnerShape, type WeighedTerm } from "./bm25.ts";
import type { HeldWords } from "./held-words.ts";
import { count, countByIndex, countByScan, countsOf, nthNewest } from "./lexical-counts.ts";
import { bestRows, type BestRows } from "./best-rows.ts";
import { holders, postingsOf, timesIn, type Postings, type WordPostings } from "./postings.ts";
import { live, tables } from "./predicate.ts";
import type { Sight } from "./sight.ts";
import type { QueryTerm } from "./tokens.ts";
import type { Kind, Predicate } from "./types.ts";
import { saturationFor } from "./weights.ts";

/** Words a query may search with. */
const MAX_TERMS = 32;
/** A word is common when it is in more than this share of the owner's rows and in more than this many. */
const COMMON_SHARE = 0.05;
const COMMON_ROWS = 2000;
/** Rows that FTS5 may rank for one query, about 1 µs each; rarer words come first, commoner ones then only score. */
const MAX_RANKED = 20_000;

/** A query against one kind of one owner's rows. */
export interface LexicalQuery {
  readonly kind: Kind;
  readonly terms: readonly WeighedTerm[];
  readonly shape: OwnerShape;
  /** One sentence when only part of the rows was searched, else null. */
  readonly note: string | null;
  /** The words that find candidates, and the oldest row they look at. */
  readonly search: readonly WeighedTerm[];
  readonly from: number;
  /** The owner's words in memory; null: the tables are asked. */
  readonly held: {
    readonly words: Postings;
    /** Of every form of the query. */
    readonly postings: ReadonlyMap<string, WordPostings>;
    /** What was found last. */
    best: BestRows | null;
  } | null;
}

/** Where words are looked up: FTS5 or a scan without it, and in front of both what is held in memory. */
export interface LexicalSource {
  readonly db: Database;
  readonly fts5: boolean;
  readonly words: HeldWords | null;
}

/** Looks the query's words up among the owner's rows. Null when there is no word or no row. */
export function weigh(
  source: LexicalSource,
  kind: Kind,
  owner: number,
  terms: readonly QueryTerm[],
): LexicalQuery | null {
  const { db, fts5 } = source;
  const { shape, counts } = countsOf(db, kind, owner);
  if (terms.length === 0 || shape.rows === 0) return null;
  const words = source.words?.of(kind, owner, counts) ?? null;
  if (words !== null) return weighHeld(words, kind, terms, shape);
  const weighed = (fts5 ? countByIndex : countByScan)(db, kind, owner, terms, shape);
  const found = weighed.filter((term) => term.rows > 0).sort((a, b) => a.rows - b.rows);
  const common = (term: WeighedTerm) => term.rows > COMMON_ROWS && term.rows > COMMON_SHARE * shape.rows;
  let search: WeighedTerm[] = [];
  let from = 0;
  let note: string | null = null;
  if (found.length > 0 && found.every(common)) {
    search = found.slice(0, 2);
    from = nthNewest(db, kind, owner, MAX_RANKED);
    if (from > 0)
      note = `Every word of the query is common, so only the newest ${MAX_RANKED} rows were searched for the rarest two.`;
  } else {
    let ranked = 0;
    for (const term of found.slice(0, MAX_TERMS)) {
      if (common(term) || (search.length > 0 && ranked + term.rows > MAX_RANKED)) break;
      search.push(term);
      ranked += term.rows;
    }
  }
  // Words nobody here ever used count as well: they say how much of the question this owner can answer.
  return { kind, terms: weighed.slice(0, MAX_TERMS), shape, note, search, from, held: null };
}

/** The same in memory, where a common word costs little and every word searches. */
function weighHeld(
  words: Postings,
  kind: Kind,
  asked: readonly QueryTerm[],
  shape: OwnerShape,
): LexicalQuery {
  const postings = new Map<string, WordPostings>();
  const terms = asked.map((term) => {
    let rows = 0;
    let said = 0;
    for (const form of term.forms) {
      const found = postingsOf(words, form);
      const held = holders(words, found);
      postings.set(form, found);
      rows += held.rows;
      said += held.said;
    }
    return weighedTerm(term, rows, said, shape);
  });
  const search = terms
    .filter((term) => term.rows > 0)
    .sort((a, b) => a.rows - b.rows)
    .slice(0, MAX_TERMS);
  return {
    kind,
    terms: terms.slice(0, MAX_TERMS),
    shape,
    note: null,
    search,
    from: 0,
    held: { words, postings, best: null },
  };
}

/** The best rows by all columns or the first, at most `k`, every one of which may be seen: by BM25, or by FTS5's own rank of it. */
export function lexicalCandidates(
  { db, fts5 }: LexicalSource,
  query: LexicalQuery,
  sight: Sight,
  k: number,
  side: "whole" | "said" = "whole",
): number[] {
  if (query.search.length === 0) return [];
  const { index, columns } = tables[query.kind];
  if (query.held !== null) {
    // Further ones for each that may not be seen.
    for (let want = k; ; want *= 4) {
      const ids = bestHeld(query, sight, want, side);
      const visible = sight.of(ids);
      if (visible.size >= k || ids.length < want) return ids.filter((id) => visible.has(id)).slice(0, k);
    }
  }
  if (!fts5) return scanCandidates(db, query, sight.predicate, k, side);
  const forms = query.search.flatMap((term) => term.forms.map((form) => `"${form.replaceAll('"', '""')}"`));
  const match = `${side === "said" ? `${columns[0]} : ` : ""}(${forms.join(" OR ")})`;
  const { join, where, values } = live(query.kind, "f.rowid", sight.predicate);
  // CROSS JOIN: the index is the outer loop, so its order by rank stands and rows are looked at until k may be seen.
  const rows = db
    .query<{ id: number }, (string | number)[]>(
      `SELECT f.rowid AS id FROM ${index}_fts f CROSS ${join}
       WHERE ${index}_fts MATCH ? AND f.rowid >= ? AND ${where} ORDER BY f.rank LIMIT ?`,
    )
    .all(match, query.from, ...values, k);
  return rows.map((row) => row.id);
}

/** The best rows of the words held in memory, of which some may not be seen; none where they are not held. */
export function bestHeld(
  { kind, held, search, shape }: LexicalQuery,
  sight: Sight,
  k: number,
  side: "whole" | "said" = "whole",
): readonly number[] {
  if (held === null || search.length === 0) return [];
  if (held.best?.k !== k) {
    const words = search.map((term) => ({
      idf: term.idf,
      saidIdf: term.saidIdf,
      forms: term.forms.map((form) => held.postings.get(form)!),
    }));
    const { length, saidLength } = shape;
    const sides = {
      whole: { ...saturationFor(length), length },
      said: tables[kind].columns.length > 1 ? { ...saturationFor(saidLength), length: saidLength } : null,
    };
    held.best = bestRows(held.words, words, sides, k, sight.held?.seesSlot ?? null);
  }
  return held.best[side];
}

/** BM25 of the given rows, each side by its own lengths. Rows without any word of the query are left out. */
export function lexicalScores(
  db: Database,
  query: LexicalQuery,
  ids: readonly number[],
): Map<number, LexicalScore> {
  const scores = new Map<number, LexicalScore>();
  if (ids.length === 0) return scores;
  const sides = { whole: saturationFor(query.shape.length), said: saturationFor(query.shape.saidLength) };
  const mass = query.terms.reduce((sum, term) => sum + term.floorIdf, 0) || 1;
  if (query.held !== null) {
    const { words, postings } = query.held;
    for (const id of ids) {
      const slot = words.slotOf.get(id);
      if (slot === undefined) continue;
      const times = (form: string) => timesIn(postings.get(form)!, slot);
      const score = scoreRow(query, sides, words.saidLength[slot]!, words.replyLength[slot]!, times, mass);
      if (score !== null) scores.set(id, score);
    }
    return scores;
  }
  const { index, columns } = tables[query.kind];
  const select = columns.map((column) => `${column}_n, ${column}`).join(", ");
  const rows = db
    .query<[number, number, string, number?, string?], [string]>(
      `SELECT id, ${select} FROM ${index}_terms WHERE id IN (SELECT value FROM json_each(?))`,
    )
    .values(JSON.stringify(ids)) as [number, number, string, number?, string?][];
  for (const [id, saidLength, said, replyLength = 0, reply = ""] of rows) {
    const times = (form: string) => (count(said, form) << 8) | (reply === "" ? 0 : count(reply, form));
    const score = scoreRow(query, sides, saidLength, replyLength, times, mass);
    if (score !== null) scores.set(id, score);
  }
  return scores;
}

/** Without FTS5 every row of the owner is read. Slower, the same answers. */
function scanCandidates(
  db: Database,
  query: LexicalQuery,
  predicate: Predicate,
  k: number,
  side: "whole" | "said",
): number[] {
  const { index } = tables[query.kind];
  const { join, where, values } = live(query.kind, "t.id", predicate);
  const ids = db
    .query<{ id: number }, (string | number)[]>(
      `SELECT t.id AS id FROM ${index}_terms t ${join} WHERE t.owner_id = ? AND t.id >= ? AND ${where}`,
    )
    .all(predicate.owner, query.from, ...values)
    .map((row) => row.id);
  return [...lexicalScores(db, query, ids)]
    .filter(([, score]) => score[side] > 0)
    .sort((a, b) => b[1][side] - a[1][side] || b[0] - a[0])
    .slice(0, k)
    .map(([id]) => id);
}
