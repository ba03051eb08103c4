/** The job that gives rows their vectors: short turns, so that extraction never waits behind a long backfill. */
import type { Database } from "bun:sqlite";
import { ownerId } from "../db/owners.ts";
import { EmbeddingError } from "../embed/types.ts";
import { coverage, embedBatch, retryVectors, type BuildCursor } from "../search/indexing.ts";
import { spaces, type Quantization } from "../search/vector-tables.ts";
import type { Embedding } from "./embedding.ts";
import { PartDown, type Jobs } from "./jobs.ts";

const JOB = "embed";
/** A job works about this long and then queues itself behind what else is due. */
const TURN_MS = 100;
/** Texts at a time: a table look-up is quick, a transformer is not. */
const BATCH = { static: 64, transformers: 8, remote: 32 } as const;
/** How often a change of the settings, made here or by another process, is looked for. */
const WATCH_MS = 1000;
/** A chosen model that is not there is looked for again after this. */
const MODEL_MS = 5000;
/** How long after the last batch of an import rows wait for their vectors. */
const HOLD_MS = 250;

/** A person whose owner has no row yet has nothing. */
const NOBODY = -1;

export type IndexerDeps = {
  db: Database;
  jobs: Pick<Jobs, "handle" | "queue">;
  embedding: Pick<Embedding, "get" | "failed" | "resolve">;
  quantization: Quantization;
  vec0: boolean;
  now: () => number;
};

export type ReindexProgress = ReturnType<typeof coverage>;

export function createIndexer(deps: IndexerDeps) {
  const { db, jobs, embedding, now } = deps;
  const cursor: BuildCursor = { space: 0, part: 0, owner: 0, item: 0 };
  let watching: ReturnType<typeof setInterval> | null = null;
  let seen = "";
  let heldUntil = 0;

  function queue(runAt = now()): void {
    jobs.queue({ type: JOB, ownerId: null, payload: {}, dedupe: JOB, runAt });
  }

  jobs.handle(
    JOB,
    async (_, run) => {
      const { embedder, resolution } = await embedding.get();
      if (embedder === null) {
        // A model that is chosen may be on its way, or back in a moment; `auto` chooses none while it is not there.
        if (resolution.source === null) seen = "";
        else if (lacking()) queue(now() + MODEL_MS);
        return;
      }
      const started = performance.now();
      for (;;) {
        if (performance.now() < heldUntil) return queue(now() + HOLD_MS);
        let result;
        try {
          result = await embedBatch(
            {
              db,
              embedder,
              quantization: deps.quantization,
              vec0: deps.vec0,
              now: now(),
              signal: run.signal,
              cursor,
            },
            BATCH[embedder.source],
          );
        } catch (error) {
          if (run.signal.aborted) return queue();
          embedding.failed(embedder, error);
          const wait = error instanceof EmbeddingError ? error.retryAfterMs : null;
          throw new PartDown(error instanceof Error ? error.message : String(error), wait ?? 15_000);
        }
        if (result.waitMs === null) return;
        if (!result.more) return queue(now() + result.waitMs);
        if (run.signal.aborted || performance.now() - started > TURN_MS) return queue();
        await run.slice();
      }
    },
    { tries: Number.POSITIVE_INFINITY },
  );

  const ownerOf = (name: string | null | undefined) => (name == null ? null : (ownerId(db, name) ?? NOBODY));

  /** Whether any row waits, or the searched vectors are of another model. */
  function lacking(): boolean {
    const waiting = db.query("SELECT 1 FROM vec_pending WHERE next_at IS NOT NULL LIMIT 1").get() !== null;
    return waiting || spaces(db).length > 1;
  }

  function watch(): void {
    const { source, model } = embedding.resolve();
    const now = `${source} ${model}`;
    if (now === seen) return;
    seen = now;
    if (source !== null) queue();
  }

  return {
    /** Queues the job in the caller's transaction, after a row changed. */
    wake(): void {
      if (embedding.resolve().source !== null) queue();
    },
    /** An import is storing rows as fast as it can: vectors follow when it has paused. */
    hold(): void {
      heldUntil = performance.now() + HOLD_MS;
    },
    /** A retrieval found that rows may lack vectors; nobody waits for them. */
    fill(): void {
      if (lacking()) queue();
    },
    start(): void {
      watch();
      watching = setInterval(watch, WATCH_MS);
    },
    stop(): void {
      if (watching !== null) clearInterval(watching);
    },
    coverage: (owner: number | null = null) => coverage(db, owner),
    calls: {
      /**
       * Tries again what was set aside of an owner (null: of all); with `force` everything is embedded anew. Answers at
       * once, `progress` shows how far it is.
       */
      async start(input: { force: boolean; owner?: string | null }): Promise<ReindexProgress> {
        const owner = ownerOf(input.owner);
        retryVectors(db, input.force, now(), owner);
        queue();
        return coverage(db, owner);
      },
      progress: async (input?: { owner: string | null }): Promise<ReindexProgress> =>
        coverage(db, ownerOf(input?.owner)),
    },
  };
}
