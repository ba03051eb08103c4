/** Ranking the rows of one kind: candidates of each channel, their scores on one scale, fused into one order. */
import type { Database } from "bun:sqlite";
import { expectedScore, type LexicalScore } from "./bm25.ts";
import { neighbourShare, type Cohesion } from "./cohesion.ts";
import { dateFit, dateSpan, type NamedDate } from "./dates.ts";
import { fuse, type Fusion, type Row } from "./fuse.ts";
import {
  bestHeld,
  lexicalCandidates,
  lexicalScores,
  weigh,
  type LexicalQuery,
  type LexicalSource,
} from "./lexical.ts";
import { createPlaces, type Place } from "./neighbours.ts";
import { live } from "./predicate.ts";
import { createSight, type Sight } from "./sight.ts";
import type { QueryTerm } from "./tokens.ts";
import type { Candidate, Kind, Predicate, Tier } from "./types.ts";
import type { Part } from "./vector-tables.ts";
import type { VectorHits, VectorIndex } from "./vectors.ts";
import {
  episodeWeights,
  modelClass,
  plainWeights,
  spreadFor,
  type ModelClass,
  type Weights,
} from "./weights.ts";

/** Candidates that the lexical channel brings, or as many as are asked for: with 100 nothing more was found among the first ten. */
const LEXICAL = 60;
/** Best rows whose neighbours become candidates too. */
const WIDENED = 40;
/** Rows of a named day that become candidates although no word of theirs matches. */
const DATED = 40;

export interface RankDeps extends LexicalSource {
  readonly vectors: VectorIndex | null;
  /** MEMORY_VEC_TOP_K and MEMORY_RRF_K. */
  readonly topK: number;
  readonly rrfK: number;
  readonly cohesion: (owner: number, rows: number) => Cohesion;
}

/** A question made ready for every kind. */
export interface Question {
  readonly terms: readonly QueryTerm[];
  /** Its unit vector in the searched space, or null. */
  readonly vector: Float32Array | null;
  readonly date: NamedDate | null;
}

export interface RankOptions {
  readonly kind: Kind;
  readonly predicate: Predicate;
  readonly limit: number;
  readonly fusion: Fusion;
  /** Channels asked for: `semantic` takes the vector alone when there is one. */
  readonly strategy: "hybrid" | "semantic" | "lexical";
  /** Hits of another vector store in place of the own index's, best first. */
  readonly hits?: readonly { id: number; cosine: number }[];
}

export interface Ranked {
  readonly candidates: Candidate[];
  readonly signals: Signals;
  /** Sentences about channels that were left out or cut short. */
  readonly notes: string[];
  readonly lexical: boolean;
  readonly vector: boolean;
  readonly model: ModelClass;
}

/** What the relevance floor looks at, of one kind. */
export interface Signals {
  /** Largest share of the query's idf that one row matches, 0–1. */
  readonly mass: number;
  /** Best cosine, in deviations above a random row's. */
  readonly cosine: number;
  /** Best cosine as it is. */
  readonly rawCosine: number;
  /** Share of the query's words that this owner never used. */
  readonly unknown: number;
  /** Most words of the query in one row, and how many the query has. */
  readonly words: number;
  readonly asked: number;
  readonly rows: number;
}

/** Ranks one kind. Null `vectors`, a question without vector, or one without words leave that channel out. */
export function rankKind(deps: RankDeps, question: Question, options: RankOptions): Ranked {
  const { db, vectors } = deps;
  const { kind, predicate, limit, strategy } = options;
  const { owner } = predicate;
  const notes: string[] = [];
  const found: Found = { ids: new Set(), vec: null, said: null };

  const part: Part = kind;
  const many = Math.max(LEXICAL, limit);
  const query = weigh(deps, kind, owner, question.terms);
  const sight = createSight(db, kind, predicate, query?.held?.words);
  if (query !== null) sight.soon(bestHeld(query, sight, many));
  if (question.vector !== null && vectors !== null && strategy !== "lexical") {
    found.vec = vectors.search(part, sight, question.vector, Math.max(limit, deps.topK));
    if (found.vec === null)
      notes.push("The vectors of this owner are still being read, so words alone were searched.");
  }
  if (options.hits !== undefined && found.vec !== null) {
    // Another store's rows pass our own predicate again: it may be behind.
    const visible = sight.of(options.hits.map((hit) => hit.id));
    found.vec = { ...found.vec, hits: options.hits.filter((hit) => visible.has(hit.id)) };
  }
  const useVector = found.vec !== null && found.vec.hits.length > 0;
  const wordsWanted = strategy !== "semantic" || !useVector;
  if (query?.note && wordsWanted) notes.push(query.note);
  for (const hit of found.vec?.hits ?? []) found.ids.add(hit.id);
  const shape = query?.shape;
  const model = useVector ? modelClass(vectors!.space()?.signature ?? null) : "none";
  if (found.vec !== null) found.vec = { ...found.vec, ...spreadFor(model, found.vec.rows, found.vec) };
  const weights =
    kind === "episode" && shape !== undefined
      ? episodeWeights(shape, model, neighbourShare(deps.cohesion(owner, shape.rows)))
      : plainWeights(model);
  let lexical = false;
  if (query !== null && wordsWanted) {
    const words = lexicalCandidates(deps, query, sight, many);
    lexical = words.length > 0;
    if (weights.said > 0) words.push(...lexicalCandidates(deps, query, sight, many, "said"));
    for (const id of words) found.ids.add(id);
  }
  if (weights.vectorSaid > 0 && useVector) {
    // Only whom to look at: the score takes each one's cosine again.
    found.said = vectors!.search("episode_user", sight, question.vector!, Math.max(limit, deps.topK), true);
    for (const hit of found.said?.hits ?? []) found.ids.add(hit.id);
  }
  if (question.date !== null && kind === "episode" && wordsWanted)
    for (const id of datedRows(db, kind, predicate, question.date)) found.ids.add(id);

  const scorer = createScorer(deps, question, kind, owner, query, found, weights, wordsWanted);
  scorer.score([...found.ids]);
  let pool = [...found.ids];
  if (kind === "episode" && strategy !== "semantic") pool = scorer.widen(pool, sight);
  const rows = scorer.rows(pool);
  const tier: Tier =
    lexical && useVector
      ? options.fusion === "rrf"
        ? "hybrid-rrf"
        : "hybrid-scored"
      : useVector
        ? options.hits === undefined
          ? "vector"
          : "qdrant"
        : "fts5";
  const candidates = fuse(kind, rows, {
    fusion: options.fusion,
    rrfK: deps.rrfK,
    channels: Number(wordsWanted && query !== null) + Number(useVector),
    best: scorer.best(),
    tier,
  });
  return { candidates, signals: scorer.signals(), notes, lexical, vector: useVector, model };
}

interface Found {
  ids: Set<number>;
  vec: VectorHits | null;
  said: VectorHits | null;
}

function createScorer(
  deps: RankDeps,
  question: Question,
  kind: Kind,
  owner: number,
  query: LexicalQuery | null,
  found: Found,
  weights: Weights,
  useWords: boolean,
) {
  const { db, vectors } = deps;
  const useVector = found.vec !== null && found.vec.hits.length > 0;
  const lexical = new Map<number, LexicalScore>();
  const cosines = new Map<number, number>();
  const saidCosines = new Map<number, number>();
  const whereabouts = createPlaces(db, query?.held?.words ?? null);
  const places = new Map<number, Place>();
  /** By session and place in it. */
  const turns = new Map<number, Map<number, number>>();
  const base = new Map<number, number>();
  const known = new Set<number>();
  const expected = query === null ? null : expectedScore(query.terms, query.shape.rows, "whole");
  const expectedSaid =
    query === null || weights.said === 0 ? null : expectedScore(query.terms, query.shape.saidRows, "said");
  const sessionBest = new Map<number, number>();

  /** Scores rows that were not looked at yet. */
  function score(ids: readonly number[]): void {
    const fresh = ids.filter((id) => !known.has(id));
    if (fresh.length === 0) return;
    for (const id of fresh) known.add(id);
    if (query !== null && useWords) {
      for (const [id, one] of lexicalScores(db, query, fresh)) lexical.set(id, one);
    }
    if (useVector && question.vector !== null) {
      for (const [id, cosine] of vectors!.cosines(kind, owner, fresh, question.vector))
        cosines.set(id, cosine);
      if (weights.vectorSaid > 0)
        for (const [id, cosine] of vectors!.cosines("episode_user", owner, fresh, question.vector))
          saidCosines.set(id, cosine);
    }
    const unplaced = fresh.filter((id) => !places.has(id));
    if (kind === "episode") for (const one of whereabouts.of(unplaced)) place(one);
    else if (question.date !== null) timed(unplaced);
    for (const id of fresh) base.set(id, baseOf(id));
  }

  function baseOf(id: number): number {
    let sum = 0;
    const words = lexical.get(id);
    if (expected !== null && useWords) sum += weights.whole * standard(words?.whole ?? 0, expected);
    if (expectedSaid !== null && useWords) sum += weights.said * standard(words?.said ?? 0, expectedSaid);
    if (useVector) {
      const vec = found.vec!;
      sum += weights.vector * standard(cosines.get(id) ?? vec.mean - vec.deviation, vec);
      if (weights.vectorSaid > 0) {
        // Without a vector of its own the user's message is the whole text, or there is none.
        const own = saidCosines.get(id) ?? (isReplyOnly(id) ? undefined : cosines.get(id));
        sum += weights.vectorSaid * standard(own ?? vec.mean - vec.deviation, vec);
      }
    }
    return sum;
  }

  function isReplyOnly(id: number): boolean {
    const words = query?.held?.words;
    const slot = words?.slotOf.get(id);
    if (words !== undefined && slot !== undefined) return words.saidLength[slot] === 0;
    return (
      db.query<{ n: number }, [number]>("SELECT said_n AS n FROM episodes_terms WHERE id = ?").get(id)?.n ===
      0
    );
  }

  /** Times of rows that stand in no session; only a date in the question and ties ask for them. */
  function timed(ids: readonly number[]): void {
    for (const [id, createdAt] of createdTimes(db, kind, ids))
      places.set(id, { id, session: 0, pos: 0, createdAt });
  }

  function place(one: Place): void {
    places.set(one.id, one);
    let session = turns.get(one.session);
    if (session === undefined) turns.set(one.session, (session = new Map()));
    session.set(one.pos, one.id);
  }

  /** Adds the neighbours of the best rows, and learns what each session's best is. */
  function widen(pool: readonly number[], sight: Sight): number[] {
    const all = new Set(pool);
    if (weights.near > 0) {
      const best = [...pool].sort((a, b) => base.get(b)! - base.get(a)!).slice(0, WIDENED);
      const found = whereabouts.around(best.map((id) => places.get(id)).filter((one) => one !== undefined));
      const added = found.filter((one) => !all.has(one.id));
      const visible = sight.of(added.map((one) => one.id));
      for (const one of added) {
        if (!visible.has(one.id)) continue;
        place(one);
        all.add(one.id);
      }
      score([...all]);
    }
    for (const id of all) {
      const session = places.get(id)?.session ?? 0;
      sessionBest.set(session, Math.max(sessionBest.get(session) ?? 0, base.get(id)!));
    }
    return [...all];
  }

  function final(id: number): number {
    let sum = base.get(id)!;
    const here = places.get(id);
    if (here === undefined) return sum;
    if (kind === "episode") {
      const session = turns.get(here.session);
      const at = (offset: number) => base.get(session?.get(here.pos + offset) ?? -1) ?? 0;
      if (weights.near > 0) sum += weights.near * (at(-1) + at(1)) + weights.far * (at(-2) + at(2));
      sum += weights.session * (sessionBest.get(here.session) ?? 0);
    }
    if (question.date !== null) sum += weights.date * dateFit(question.date, here.createdAt);
    return sum;
  }

  function rows(pool: readonly number[]): Row[] {
    const byWords = rankOf(pool, (id) => lexical.get(id)?.whole);
    const byVector = new Map(found.vec?.hits.map((hit, at) => [hit.id, at + 1]));
    if (kind !== "episode" && question.date === null) {
      const seen = new Map<number, number>();
      for (const id of pool) seen.set(base.get(id)!, (seen.get(base.get(id)!) ?? 0) + 1);
      timed(pool.filter((id) => seen.get(base.get(id)!)! > 1));
    }
    return pool.map((id) => ({
      id,
      ftsRank: byWords.get(id) ?? null,
      ftsScore: lexical.get(id)?.whole ?? null,
      vecRank: byVector.get(id) ?? null,
      vecScore: cosines.get(id) ?? null,
      scored: final(id),
      createdAt: places.get(id)?.createdAt ?? 0,
    }));
  }

  /** The score of a row that matches every word well and means the same. */
  function best(): number {
    let sum = 0;
    if (expected !== null && useWords) sum += weights.whole * standard(expected.best, expected);
    if (expectedSaid !== null && useWords) sum += weights.said * standard(expectedSaid.best, expectedSaid);
    if (useVector) {
      const top = standard(1, found.vec!);
      sum += (weights.vector + weights.vectorSaid) * Math.min(top, TOP_COSINE);
    }
    if (kind === "episode") sum *= 1 + weights.session + weights.near;
    return sum;
  }

  function signals(): Signals {
    let mass = 0;
    let words = 0;
    // Where vectors alone rank, the words of what they found still tell whether anything fits.
    const held =
      useWords || query === null
        ? lexical
        : lexicalScores(db, query, found.vec?.hits.map((hit) => hit.id) ?? []);
    for (const one of held.values()) {
      mass = Math.max(mass, one.mass);
      words = Math.max(words, one.words);
    }
    const total = query?.terms.length ?? 0;
    const unknown = total === 0 ? 1 : query!.terms.filter((term) => term.rows === 0).length / total;
    const top = found.vec?.hits[0];
    return {
      mass,
      cosine: top === undefined ? 0 : standard(top.cosine, found.vec!),
      rawCosine: top?.cosine ?? 0,
      unknown,
      words,
      asked: total,
      rows: query?.shape.rows ?? 0,
    };
  }

  return { score, widen, rows, best, signals };
}

/** A cosine this many deviations above a random row's is as good as they get. */
const TOP_COSINE = 6;

function standard(value: number, { mean, deviation }: { mean: number; deviation: number }): number {
  return (value - mean) / deviation;
}

function rankOf(ids: readonly number[], score: (id: number) => number | undefined): Map<number, number> {
  const ranked = ids.filter((id) => (score(id) ?? 0) > 0).sort((a, b) => score(b)! - score(a)! || b - a);
  return new Map(ranked.map((id, at) => [id, at + 1]));
}

function createdTimes(db: Database, kind: Kind, ids: readonly number[]): [number, number][] {
  const [table, id] = (
    {
      memory: ["memories", "seq"],
      episode: ["episodes", "id"],
      entity: ["entities", "id"],
      summary: ["summaries", "id"],
    } as const
  )[kind];
  return db
    .query<[number, number], [string]>(
      `SELECT ${id}, created_at FROM ${table} WHERE ${id} IN (SELECT value FROM json_each(?))`,
    )
    .values(JSON.stringify(ids)) as [number, number][];
}

/** Rows of a named day or month that may be seen, the first of it. */
function datedRows(db: Database, kind: Kind, predicate: Predicate, date: NamedDate): number[] {
  const span = dateSpan(date);
  if (span === null || date.month === null) return [];
  const { join, where, values } = live(kind, "d.id", predicate);
  return (
    db
      .query<[number], (string | number)[]>(
        `SELECT d.id FROM (SELECT id FROM episodes WHERE owner_id = ? AND created_at >= ? AND created_at < ?
           ORDER BY created_at LIMIT ?) d CROSS ${join} WHERE ${where}`,
      )
      .values(predicate.owner, span.from, span.until, DATED, ...values) as [number][]
  ).map(([id]) => id);
}
