/** Ranking memories as they were at an earlier time. Indexes hold the present, so the words of the past are read row by row. */
import type { Database } from "bun:sqlite";
import { expectedScore, FEW_ROWS, idf as inverse, MIN_ROWS, type WeighedTerm } from "./bm25.ts";
import { memoriesAt } from "./history.ts";
import type { Question, Ranked } from "./rank.ts";
import { indexTokens, keyWords } from "./tokens.ts";
import type { Candidate, Predicate } from "./types.ts";
import { saturationFor } from "./weights.ts";

/** What memories said then, by seq. */
export type PastTexts = ReadonlyMap<number, { key: string | null; content: string }>;

/** Memories that held at `at`, by their words of that time. */
export function rankPast(
  db: Database,
  question: Question,
  predicate: Predicate,
  at: number,
): Ranked & { texts: PastTexts } {
  const rows = memoriesAt(db, predicate, at).map((row) => ({
    row,
    tokens: indexTokens(
      predicate.owner,
      row.key === null ? row.content : `${keyWords(row.key)}\n${row.content}`,
    ).split(" "),
  }));
  const length = rows.reduce((sum, { tokens }) => sum + tokens.length, 0) / Math.max(1, rows.length);
  const terms: WeighedTerm[] = question.terms.map(({ forms }) => {
    const n = rows.filter(({ tokens }) => forms.some((form) => tokens.includes(form))).length;
    const idf = inverse(Math.max(FEW_ROWS, rows.length), n);
    return {
      forms,
      rows: n,
      idf,
      floorIdf: inverse(Math.max(MIN_ROWS, rows.length), n),
      saidRows: n,
      saidIdf: idf,
    };
  });
  const { k1, b } = saturationFor(length);
  const expected = expectedScore(terms, rows.length, "whole");
  const best = (expected.best - expected.mean) / expected.deviation;
  let mass = 0;
  let words = 0;
  const total = terms.reduce((sum, term) => sum + term.floorIdf, 0) || 1;
  const scored = rows.flatMap(({ row, tokens }) => {
    let sum = 0;
    let matched = 0;
    let held = 0;
    for (const term of terms) {
      const count = tokens.filter((token) => term.forms.includes(token)).length;
      if (count === 0) continue;
      held++;
      matched += term.floorIdf;
      sum += (term.idf * count * (k1 + 1)) / (count + k1 * (1 - b + (b * tokens.length) / (length || 1)));
    }
    mass = Math.max(mass, matched / total);
    words = Math.max(words, held);
    return matched === 0 ? [] : [{ row, sum }];
  });
  scored.sort((a, b) => b.sum - a.sum || b.row.createdAt - a.row.createdAt);
  const candidates = scored.map(({ row, sum }, index): Candidate => ({
    kind: "memory",
    id: row.seq,
    score: Math.max(0, Math.min(1, (sum - expected.mean) / expected.deviation / (best || 1))),
    tier: "fts5",
    ftsRank: index + 1,
    ftsScore: sum,
    vecRank: null,
    vecScore: null,
  }));
  const unknown = terms.filter((term) => term.rows === 0).length / Math.max(1, terms.length);
  return {
    candidates,
    signals: {
      mass,
      cosine: 0,
      rawCosine: 0,
      unknown,
      words,
      asked: terms.length,
      rows: rows.length,
    },
    notes: ["The past is searched by its words alone."],
    texts: new Map(scored.map(({ row: { seq, key, content } }) => [seq, { key, content }])),
    lexical: candidates.length > 0,
    vector: false,
    model: "none",
  };
}
