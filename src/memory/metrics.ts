/** What the engine's thread counts, and the levels it reads when somebody asks. */
import type { Database } from "bun:sqlite";
import { countJobs } from "../db/jobs.ts";
import { countByStatus } from "../db/memory-list.ts";
import type { Metrics, MetricsSnapshot } from "../metrics.ts";
import { memoryStatuses } from "./types.ts";

export type MetricsDeps = {
  db: Database;
  metrics: Metrics;
  now: () => number;
  /** Whether the last real call to Qdrant worked; null when it is off. */
  qdrantUp: () => Promise<boolean | null>;
  /** Embeddings answered from the cache since the start. */
  cacheHits: () => Promise<number>;
};

export function createEngineMetrics({ db, metrics, now, qdrantUp, cacheHits }: MetricsDeps) {
  let hits = 0;
  return {
    async snapshot(): Promise<MetricsSnapshot> {
      const counts = countByStatus(db);
      for (const status of memoryStatuses) {
        metrics.set("recollect_memories", counts[status] ?? 0, { status });
      }
      const { queued, running, failed } = countJobs(db, null, now());
      for (const [state, n] of Object.entries({ queued, running, failed })) {
        metrics.set("recollect_jobs", n, { state });
      }
      const up = await qdrantUp();
      if (up !== null) metrics.set("recollect_qdrant_up", Number(up));
      const before = hits;
      hits = await cacheHits();
      metrics.count("recollect_embedding_cache_hits_total", {}, hits - before);
      return metrics.snapshot();
    },
  };
}
