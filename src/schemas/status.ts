/** What engine-status shows: `available` means that a real call worked. */
import { z } from "zod";
import { count, time } from "./common.ts";

const reason = z.string().nullable().meta({ description: "Null, or one sentence." });
const cacheStats = z.strictObject({ hits: count, misses: count, size: count, max: count });
const quality = {
  extracted: count,
  duplicates: count,
  rejected: count,
  deletedByUser: count,
  loops: count,
};

const health = z.strictObject({
  id: z.string(),
  displayName: z.string(),
  ok: z.boolean(),
  latencyMs: z.number().min(0),
  error: z.string().exactOptional(),
  checkedAt: time,
});

export const engineStatus = z
  .strictObject({
    keyword: z.strictObject({ available: z.boolean(), backend: z.enum(["FTS5", "scan"]), reason }),
    embedding: z.strictObject({
      source: z.string().nullable(),
      model: z.string().nullable(),
      dimensions: z.int().nullable(),
      available: z.boolean(),
      reason,
      cacheStats: cacheStats.nullable(),
    }),
    vectorStore: z.strictObject({
      backend: z.enum(["sqlite-vec", "scan", "qdrant", "none"]),
      available: z.boolean(),
      rowCount: count,
      needsReindex: count,
      coverage: z.number().min(0).max(1),
      signature: z.string().nullable(),
      migration: z.strictObject({ signature: z.string(), done: count, total: count }).nullable(),
      reason,
    }),
    qdrant: z.strictObject({
      enabled: z.boolean(),
      healthy: z.boolean(),
      latencyMs: z.number().nullable(),
      error: z.string().nullable(),
      pending: count,
    }),
    rerank: z.strictObject({
      enabled: z.boolean(),
      provider: z.string().nullable(),
      model: z.string().nullable(),
      available: z.boolean(),
      reason,
    }),
    jobs: z.strictObject({
      queued: count,
      running: count,
      failed: count,
      oldestSeconds: z.number().nullable(),
    }),
    backend: z.strictObject({ primary: z.string(), fallbacks: z.array(z.string()), health: z.array(health) }),
    quality: z
      .strictObject({ ...quality, last7Days: z.strictObject(quality) })
      .nullable()
      .meta({ description: "Null to an API key." }),
  })
  .meta({ id: "EngineStatus" });
