/**
 * Lexical search. FTS5 brings the candidates; their score is BM25 counted here with the owner's own statistics, because
 * FTS5's counts rows and lengths over all owners (one owner's ranking would follow what others store) and fixes k1 and b.
 */
import type { Database } from "bun:sqlite";
import { live, tables } from "./predicate.ts";
import type { QueryTerm } from "./tokens.ts";
import type { Kind, Predicate } from "./types.ts";

/** Words a query may search with. */
const MAX_TERMS = 32;
/** A word is common when it is in more than this share of the owner's rows and in more than this many. */
const COMMON_SHARE = 0.05;
const COMMON_ROWS = 2000;
/** Rows that FTS5 may rank for one query, about 1 µs each; rarer words come first, commoner ones then only score. */
const MAX_RANKED = 20_000;
/** Below this an owner is judged as one of so many rows: with three rows every word is in a third of them. */
export const MIN_ROWS = 1000;
/** For ranking the same with fewer: where every row is about one thing, that thing still tells the rows from others. */
export const FEW_ROWS = 200;

/** A word of the query with how many of the owner's rows hold it. */
export interface WeighedTerm extends QueryTerm {
  readonly rows: number;
  /** ln(1 + (N − n + 0.5) / (n + 0.5)), the weight of BM25. */
  readonly idf: number;
  /** The same as if there were at least {@link MIN_ROWS} rows: what the relevance floor weighs words by. */
  readonly floorIdf: number;
  /** Rows whose first column (what the user said) holds it. */
  readonly saidRows: number;
  readonly saidIdf: number;
}

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
}

/** What can be seen in an owner's rows of a kind; it chooses weights. */
export interface OwnerShape {
  readonly rows: number;
  /** Rows with words in the first and in the second column (an episode: user, assistant). */
  readonly saidRows: number;
  readonly replyRows: number;
  /** Mean words of a row, and of the first and the second column where there are any. */
  readonly length: number;
  readonly saidLength: number;
  readonly replyLength: number;
}

/** k1 and b of BM25. */
export interface Saturation {
  readonly k1: number;
  readonly b: number;
}

/** Words of a row against the query. `whole` is BM25 over all columns, `said` over the first. */
export interface LexicalScore {
  readonly whole: number;
  readonly said: number;
  /** Share of the query's idf that the row matches, 0–1. */
  readonly mass: number;
  /** Words of the query in the row. */
  readonly words: number;
}

/** Looks the query's words up among the owner's rows. Null when there is no word or no row. */
export function weigh(
  db: Database,
  kind: Kind,
  owner: number,
  terms: readonly QueryTerm[],
  fts5: boolean,
): LexicalQuery | null {
  const shape = ownerShape(db, kind, owner);
  if (terms.length === 0 || shape.rows === 0) return null;
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
  return { kind, terms: weighed.slice(0, MAX_TERMS), shape, note, search, from };
}

/** The best rows by FTS5's rank, at most `k`, every one of which may be seen. */
export function lexicalCandidates(
  db: Database,
  query: LexicalQuery,
  predicate: Predicate,
  k: number,
  fts5: boolean,
): number[] {
  if (query.search.length === 0) return [];
  const { index } = tables[query.kind];
  if (!fts5) return scanCandidates(db, query, predicate, k);
  const match = query.search
    .flatMap((term) => term.forms.map((form) => `"${form.replaceAll('"', '""')}"`))
    .join(" OR ");
  const { join, where, values } = live(query.kind, "f.rowid", predicate);
  // CROSS JOIN: the index is the outer loop, so its order by rank stands and rows are looked at until k may be seen.
  const rows = db
    .query<{ id: number }, (string | number)[]>(
      `SELECT f.rowid AS id FROM ${index}_fts f CROSS ${join}
       WHERE ${index}_fts MATCH ? AND f.rowid >= ? AND ${where} ORDER BY f.rank LIMIT ?`,
    )
    .all(match, query.from, ...values, k);
  return rows.map((row) => row.id);
}

/** BM25 of the given rows. Rows without any word of the query are left out. */
export function lexicalScores(
  db: Database,
  query: LexicalQuery,
  ids: readonly number[],
  saturation: Saturation,
): Map<number, LexicalScore> {
  const scores = new Map<number, LexicalScore>();
  if (ids.length === 0) return scores;
  const { index, columns } = tables[query.kind];
  const select = columns.map((column) => `${column}_n, ${column}`).join(", ");
  const rows = db
    .query<[number, number, string, number?, string?], [string]>(
      `SELECT id, ${select} FROM ${index}_terms WHERE id IN (SELECT value FROM json_each(?))`,
    )
    .values(JSON.stringify(ids)) as [number, number, string, number?, string?][];
  const mass = query.terms.reduce((sum, term) => sum + term.floorIdf, 0) || 1;
  for (const [id, saidLength, said, replyLength = 0, reply = ""] of rows) {
    const score = scoreRow(query, saturation, said, saidLength, reply, replyLength, mass);
    if (score !== null) scores.set(id, score);
  }
  return scores;
}

/** How an owner's rows of a kind look; all zero when there are none. */
export function ownerShape(db: Database, kind: Kind, owner: number): OwnerShape {
  const row = db
    .query<{ n: number; first: number; second: number; first_n: number; second_n: number }, [string, number]>(
      "SELECT n, first, second, first_n, second_n FROM term_counts WHERE kind = ? AND owner_id = ?",
    )
    .get(tables[kind].index, owner);
  if (row === null || row.n <= 0)
    return { rows: 0, saidRows: 0, replyRows: 0, length: 0, saidLength: 0, replyLength: 0 };
  return {
    rows: row.n,
    saidRows: row.first_n,
    replyRows: row.second_n,
    length: (row.first + row.second) / row.n,
    saidLength: row.first_n > 0 ? row.first / row.first_n : 0,
    replyLength: row.second_n > 0 ? row.second / row.second_n : 0,
  };
}

/** What BM25 of a random row would be, from how often each word occurs: the scale on which scores of channels meet. */
export function expectedScore(
  terms: readonly WeighedTerm[],
  rows: number,
  of: "whole" | "said",
): { mean: number; deviation: number; best: number } {
  let mean = 0;
  let variance = 0;
  let best = 0;
  for (const term of terms) {
    const n = of === "whole" ? term.rows : term.saidRows;
    const idf = of === "whole" ? term.idf : term.saidIdf;
    const share = Math.min(1, n / Math.max(FEW_ROWS, rows));
    mean += share * idf;
    variance += share * (1 - share) * idf * idf;
    if (n > 0) best += idf;
  }
  return { mean, deviation: Math.sqrt(variance) || 1, best };
}

function scoreRow(
  query: LexicalQuery,
  { k1, b }: Saturation,
  said: string,
  saidLength: number,
  reply: string,
  replyLength: number,
  mass: number,
): LexicalScore | null {
  const { shape } = query;
  const wholeNorm = k1 * (1 - b + (b * (saidLength + replyLength)) / (shape.length || 1));
  const saidNorm = k1 * (1 - b + (b * saidLength) / (shape.saidLength || 1));
  let whole = 0;
  let saidScore = 0;
  let matched = 0;
  let words = 0;
  for (const term of query.terms) {
    if (term.rows === 0) continue;
    let inSaid = 0;
    let inReply = 0;
    for (const form of term.forms) {
      inSaid += count(said, form);
      if (reply !== "") inReply += count(reply, form);
    }
    const both = inSaid + inReply;
    if (both === 0) continue;
    words++;
    matched += term.floorIdf;
    whole += (term.idf * both * (k1 + 1)) / (both + wholeNorm);
    if (inSaid > 0) saidScore += (term.saidIdf * inSaid * (k1 + 1)) / (inSaid + saidNorm);
  }
  return matched === 0 ? null : { whole, said: saidScore, mass: matched / mass, words };
}

/** How often a token stands in a text of tokens. */
function count(tokens: string, token: string): number {
  let n = 0;
  for (let at = tokens.indexOf(token); at >= 0; at = tokens.indexOf(token, at + token.length)) {
    const end = at + token.length;
    if ((at === 0 || tokens[at - 1] === " ") && (end === tokens.length || tokens[end] === " ")) n++;
  }
  return n;
}

/** ln(1 + (N − n + 0.5) / (n + 0.5)). */
export function idf(rows: number, n: number): number {
  return Math.log(1 + (Math.max(rows, n) - n + 0.5) / (n + 0.5));
}

function countByIndex(
  db: Database,
  kind: Kind,
  _owner: number,
  terms: readonly QueryTerm[],
  shape: OwnerShape,
): WeighedTerm[] {
  const { index, columns } = tables[kind];
  const whole = db.query<{ doc: number }, [string]>(`SELECT doc FROM ${index}_fts_words WHERE term = ?`);
  const first = db.query<{ doc: number }, [string]>(
    `SELECT doc FROM ${index}_fts_columns WHERE term = ? AND col = '${columns[0]}'`,
  );
  return terms.map((term) => {
    let rows = 0;
    let saidRows = 0;
    for (const form of term.forms) {
      const found = whole.get(form)?.doc ?? 0;
      rows += found;
      if (found > 0 && columns.length > 1) saidRows += first.get(form)?.doc ?? 0;
    }
    return weighedTerm(term, rows, columns.length > 1 ? saidRows : rows, shape);
  });
}

function weighedTerm(term: QueryTerm, rows: number, saidRows: number, shape: OwnerShape): WeighedTerm {
  return {
    forms: term.forms,
    rows,
    idf: idf(Math.max(FEW_ROWS, shape.rows), rows),
    floorIdf: idf(Math.max(MIN_ROWS, shape.rows), rows),
    saidRows,
    saidIdf: idf(Math.max(FEW_ROWS, shape.saidRows), saidRows),
  };
}

function nthNewest(db: Database, kind: Kind, owner: number, n: number): number {
  return (
    db
      .query<{ id: number }, [number, number]>(
        `SELECT id FROM ${tables[kind].index}_terms WHERE owner_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?`,
      )
      .get(owner, n)?.id ?? 0
  );
}

// Without FTS5: every row of the owner is read. Slower, the same answers.

function countByScan(
  db: Database,
  kind: Kind,
  owner: number,
  terms: readonly QueryTerm[],
  shape: OwnerShape,
): WeighedTerm[] {
  const { index, columns } = tables[kind];
  const rows = terms.map(() => 0);
  const said = terms.map(() => 0);
  const all = db.query<Record<string, string>, [number]>(
    `SELECT ${columns.join(", ")} FROM ${index}_terms WHERE owner_id = ?`,
  );
  for (const row of all.iterate(owner)) {
    terms.forEach((term, at) => {
      const hits = columns.map((column) => term.forms.some((form) => count(row[column] ?? "", form) > 0));
      if (hits.some(Boolean)) rows[at]! += 1;
      if (hits[0]) said[at]! += 1;
    });
  }
  return terms.map((term, at) => weighedTerm(term, rows[at]!, said[at]!, shape));
}

function scanCandidates(db: Database, query: LexicalQuery, predicate: Predicate, k: number): number[] {
  const { index } = tables[query.kind];
  const { join, where, values } = live(query.kind, "t.id", predicate);
  const ids = db
    .query<{ id: number }, (string | number)[]>(
      `SELECT t.id AS id FROM ${index}_terms t ${join} WHERE t.owner_id = ? AND t.id >= ? AND ${where}`,
    )
    .all(predicate.owner, query.from, ...values)
    .map((row) => row.id);
  return [...lexicalScores(db, query, ids, { k1: 1.2, b: 0.75 })]
    .sort((a, b) => b[1].whole - a[1].whole || b[0] - a[0])
    .slice(0, k)
    .map(([id]) => id);
}
