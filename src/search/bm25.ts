/**
 * BM25 with an owner's own statistics: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond"
 * (2009), with the idf that is never negative.
 */
import type { QueryTerm } from "./tokens.ts";

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

/** ln(1 + (N − n + 0.5) / (n + 0.5)). */
export function idf(rows: number, n: number): number {
  return Math.log(1 + (Math.max(rows, n) - n + 0.5) / (n + 0.5));
}

/** A word of a query with its weights, from how many of the owner's rows hold it. */
export function weighedTerm(term: QueryTerm, rows: number, saidRows: number, shape: OwnerShape): WeighedTerm {
  return {
    forms: term.forms,
    rows,
    idf: idf(Math.max(FEW_ROWS, shape.rows), rows),
    floorIdf: idf(Math.max(MIN_ROWS, shape.rows), rows),
    saidRows,
    saidIdf: idf(Math.max(FEW_ROWS, shape.saidRows), saidRows),
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

/** BM25 of one row, null when it has none of the words. `times` tells how often a form stands in it: `said << 8 | reply`. */
export function scoreRow(
  query: { readonly terms: readonly WeighedTerm[]; readonly shape: OwnerShape },
  sides: { readonly whole: Saturation; readonly said: Saturation },
  saidLength: number,
  replyLength: number,
  times: (form: string) => number,
  mass: number,
): LexicalScore | null {
  const { shape } = query;
  const wholeNorm = normOf(sides.whole, saidLength + replyLength, shape.length);
  const saidNorm = normOf(sides.said, saidLength, shape.saidLength);
  let whole = 0;
  let saidScore = 0;
  let matched = 0;
  let words = 0;
  for (const term of query.terms) {
    if (term.rows === 0) continue;
    let inSaid = 0;
    let inReply = 0;
    for (const form of term.forms) {
      const both = times(form);
      inSaid += both >> 8;
      inReply += both & 255;
    }
    const both = inSaid + inReply;
    if (both === 0) continue;
    words++;
    matched += term.floorIdf;
    whole += (term.idf * both * (sides.whole.k1 + 1)) / (both + wholeNorm);
    if (inSaid > 0) saidScore += (term.saidIdf * inSaid * (sides.said.k1 + 1)) / (inSaid + saidNorm);
  }
  return matched === 0 ? null : { whole, said: saidScore, mass: matched / mass, words };
}

function normOf({ k1, b }: Saturation, length: number, mean: number): number {
  return k1 * (1 - b + (b * length) / (mean || 1));
}
