/** The Qdrant settings and what its routes answer. */
import { z } from "zod";
import { addressOf } from "../backends/address.ts";
import { count, headerSecret } from "./common.ts";

const host = z
  .string()
  .max(2000)
  .refine(
    (value) => value === "" || addressOf(value, 6333) !== null,
    "must be a host name or an http(s) URL",
  );
const port = z.int().min(1).max(65_535);
const collection = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,255}$/, "must be 1 to 255 of A-Z, a-z, 0-9, dash, underscore");
const embeddingModel = z
  .string()
  .max(300)
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}\/.+$/, "must be provider/model, local/static or local/transformers")
  .nullable();
const quantization = z.enum(["none", "int8", "binary"]);

export const qdrantSettings = z
  .strictObject({
    enabled: z.boolean(),
    host: z.string(),
    port,
    collection,
    embeddingModel,
    quantization,
    hasApiKey: z.boolean(),
    apiKeyMasked: z.string().nullable(),
  })
  .meta({ id: "QdrantSettings" });
export type QdrantSettings = z.infer<typeof qdrantSettings>;

/** Any subset, strictly. */
export const qdrantSettingsPatch = z.strictObject({
  enabled: z
    .boolean()
    .exactOptional()
    .meta({ description: "Moves the memory setting `vectorStore` with it." }),
  host: host
    .exactOptional()
    .meta({ description: "A name or an http(s) URL; a URL's own port wins over `port`." }),
  port: port.exactOptional(),
  collection: collection.exactOptional(),
  embeddingModel: embeddingModel
    .exactOptional()
    .meta({ description: "Null: the engine's own embedder, one vector for both stores." }),
  quantization: quantization.exactOptional(),
  apiKey: headerSecret(1000).exactOptional().meta({ description: "Write-only; an empty text removes it." }),
});
export type QdrantSettingsPatch = z.infer<typeof qdrantSettingsPatch>;

const latencyMs = z.number().min(0);

export const qdrantHealth = z.strictObject({
  ok: z.boolean(),
  latencyMs,
  error: z.string().exactOptional(),
  collection: z.string().exactOptional(),
  dimension: z.int().exactOptional(),
});

export const qdrantSearch = z.strictObject({
  query: z.string().min(1).max(32_768),
  topK: z.int().min(1).max(20).default(5),
});
export const qdrantSearchResult = z.strictObject({
  ok: z.boolean(),
  latencyMs,
  results: z.array(
    z.strictObject({ id: z.string(), score: z.number(), payload: z.record(z.string(), z.unknown()) }),
  ),
  error: z.string().exactOptional(),
});

export const qdrantCleanup = z.strictObject({ ok: z.boolean(), deletedCount: count, retentionDays: count });

export const qdrantReconcile = z.strictObject({ dryRun: z.boolean().default(false) });
export const qdrantReconciled = z.strictObject({
  missing: count,
  stale: count,
  orphaned: count,
  repaired: count,
});

export const qdrantModels = z.strictObject({
  models: z.array(z.strictObject({ value: z.string(), label: z.string() })),
});
