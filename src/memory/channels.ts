/**
 * The channels that a question goes through for one kind of rows: its vector, Qdrant in place of the own vectors where that
 * is set, and the ranking of the own index. What is missing or late is noted and left out.
 */
import type { Database } from "bun:sqlite";
import type { Metrics } from "../metrics.ts";
import { createCohesion } from "../search/cohesion.ts";
import { createHeldWords } from "../search/held-words.ts";
import { rankKind, type Question, type RankDeps, type Ranked, type RankOptions } from "../search/rank.ts";
import type { Predicate } from "../search/types.ts";
import type { VectorIndex } from "../search/vectors.ts";
import { within } from "../within.ts";
import type { ForeignVectors, Owner } from "./elsewhere.ts";
import type { Embedding } from "./embedding.ts";
import { queryVector, type Left } from "./query-vector.ts";
import type { Kind } from "./types.ts";

export type ChannelDeps = {
  db: Database;
  fts5: boolean;
  vectors: VectorIndex;
  topK: number;
  rrfK: number;
  embedding: Pick<Embedding, "get" | "local" | "failed" | "resolve">;
  /** Asks for vectors of rows that lack one, in the background. */
  fill: (owner: number) => void;
  qdrant: ForeignVectors | null;
  /** What each channel took, and which was left out. */
  metrics: Pick<Metrics, "count" | "observe">;
};

type Ask = Omit<RankOptions, "hits"> & {
  /** Qdrant's vectors are asked instead of the own. */
  qdrant: boolean;
  left: Left;
  notes: string[];
};

export function createChannels(deps: ChannelDeps) {
  const { db, vectors } = deps;
  const rankDeps: RankDeps = {
    db,
    fts5: deps.fts5,
    words: createHeldWords(db),
    vectors,
    topK: deps.topK,
    rrfK: deps.rrfK,
    cohesion: createCohesion(db),
  };
  // One snapshot for all of a ranking, and one lock instead of one a statement.
  const reading = db.transaction((run: () => unknown) => run()) as <T>(run: () => T) => T;

  function observe(channel: string, since: number): void {
    deps.metrics.observe("recollect_retrieval_seconds", (performance.now() - since) / 1000, { channel });
  }

  function leftOut(channel: string, left: number): void {
    const reason = left <= 0 ? "deadline" : "unavailable";
    deps.metrics.count("recollect_retrieval_dropped_total", { channel, reason });
  }

  /** The question's vector. `said`: that there is no model at all is noted, too. */
  async function vectorOf(
    text: string,
    owners: readonly number[],
    { left, notes, said }: { left: Left; notes: string[]; said: boolean },
  ): Promise<Float32Array | null> {
    const asked = performance.now();
    const { vector, embedder, reason } = await queryVector(deps.embedding, vectors.space(), text, left);
    if (vector !== null) observe("vector", asked);
    else if (embedder !== null) leftOut("vector", left());
    if (embedder !== null) for (const owner of owners) deps.fill(owner);
    // With no model at all, words alone are the plain way of the proxy and no fallback from anything.
    const chosen = embedder !== null || deps.embedding.resolve().source !== null;
    if (reason !== null && (chosen || said)) notes.push(reason);
    return vector;
  }

  /** Rows of one kind and owner, ranked. */
  async function rank(
    owner: Owner,
    text: string,
    question: Question,
    { qdrant, left, notes, ...ask }: Ask,
  ): Promise<Ranked & { fromQdrant: boolean }> {
    const { kind, predicate } = ask;
    const limit = Math.max(ask.limit, deps.topK);
    const hits = qdrant
      ? await foreignHits(
          { kind, owner: owner.name, text, vector: question.vector, limit },
          predicate,
          left,
          notes,
        )
      : null;
    // The first question of a large owner waits while its vectors are read, as long as the deadline allows.
    if (question.vector !== null && !vectors.ready(kind, owner.id))
      await within(vectors.warm(kind, owner.id), left());
    const asked = performance.now();
    const ranked = reading(() => rankKind(rankDeps, question, hits === null ? ask : { ...ask, hits }));
    observe("index", asked);
    return { ...ranked, fromQdrant: hits !== null };
  }

  /** What Qdrant finds; null, with the reason noted, where the own index is searched instead. */
  async function foreignHits(
    ask: { kind: Kind; owner: string; text: string; vector: Float32Array | null; limit: number },
    { session, retentionDays, now }: Predicate,
    left: Left,
    notes: string[],
  ): Promise<{ id: number; cosine: number }[] | null> {
    const signature = vectors.space()?.signature;
    const { vector } = ask;
    if (deps.qdrant === null || vector === null || signature === undefined) return null;
    const asked = performance.now();
    const deadlineMs = Math.max(1, left());
    const answer = await deps.qdrant({ ...ask, vector, session, retentionDays, now, signature, deadlineMs });
    if ("hits" in answer) {
      observe("qdrant", asked);
      return answer.hits;
    }
    leftOut("qdrant", left());
    notes.push(`${answer.reason} The embedded vectors were searched instead.`);
    return null;
  }

  return { vectorOf, rank };
}
