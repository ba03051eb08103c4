/** The memory settings: one schema for the API, the database and the Studio. */
import { z } from "zod";
import { backendProblems } from "../backends/config.ts";

const providerModel = z
  .string()
  .max(300)
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}\/.+$/, "must be provider/model")
  .nullable();

const slug = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, "must be a slug of a-z, 0-9, dot, dash, underscore");

const httpUrl = z.string().max(2000).nullable();

/** Every field with its type, range and default (the defaults are those of a box on which nothing was set). */
export const memorySettings = z.strictObject({
  enabled: z.boolean().default(false),
  maxTokens: z.int().min(0).max(16_000).default(2000),
  retentionDays: z.int().min(0).max(365).default(30),
  deleteAfterDays: z.int().min(1).max(36_500).nullable().default(null),
  strategy: z.enum(["recent", "exact", "semantic", "hybrid"]).default("hybrid"),
  fusion: z.enum(["scored", "rrf"]).default("scored"),
  scope: z.enum(["session", "apiKey", "global"]).default("apiKey"),
  skillsEnabled: z.boolean().default(false),
  embeddingSource: z.enum(["remote", "static", "transformers", "auto"]).default("auto"),
  embeddingProviderModel: providerModel.default(null),
  customBaseUrl: httpUrl.default(null),
  customModelId: z.string().min(1).max(300).nullable().default(null),
  customApiKey: z.string().max(1000).nullable().default(null),
  transformersEnabled: z.boolean().default(false),
  staticEnabled: z.boolean().default(false),
  rerankEnabled: z.boolean().default(false),
  rerankProviderModel: providerModel.default(null),
  vectorStore: z.enum(["sqlite-vec", "qdrant", "auto"]).default("auto"),
  retrievalTimeoutMs: z.int().min(50).max(5000).nullable().default(null),
  injectionPlacement: z.enum(["auto", "system-first"]).default("auto"),
  injectEpisodes: z.boolean().default(true),
  extractFrom: z.enum(["user", "both", "off"]).default("both"),
  extractEntities: z.boolean().default(false),
  extractionModel: providerModel.default(null),
  extractEveryTurns: z.int().min(1).max(50).default(1),
  extractionDailyTokens: z.int().min(0).max(1_000_000_000).default(200_000),
  autoApprove: z.boolean().default(true),
  autoSummarize: z.boolean().default(false),
  recordEpisodes: z.boolean().default(true),
  primaryBackend: slug.default("sqlite"),
  fallbackBackends: z.array(slug).max(10).default([]),
  backendConfigs: z.record(slug, z.record(z.string(), z.unknown())).default({}),
});

export type MemorySettings = z.infer<typeof memorySettings>;

/** What a PUT takes: any subset. The schema is in settings-patch.ts, which only the faces load. */
export type MemorySettingsPatch = { [Name in keyof MemorySettings]?: MemorySettings[Name] | undefined };

export const defaultSettings: MemorySettings = memorySettings.parse({});

/** Rules between fields; each problem names its field. */
export function settingsProblems(settings: MemorySettings): { field: string; message: string }[] {
  const problems: { field: string; message: string }[] = [];
  const { deleteAfterDays, retentionDays, customBaseUrl, customModelId } = settings;
  if (deleteAfterDays !== null && (retentionDays === 0 || deleteAfterDays < retentionDays)) {
    problems.push({
      field: "deleteAfterDays",
      message:
        retentionDays === 0
          ? "must be null while retentionDays is 0, which keeps memories for ever"
          : `must be at least retentionDays (${retentionDays})`,
    });
  }
  if ((customBaseUrl === null) !== (customModelId === null)) {
    problems.push({
      field: customBaseUrl === null ? "customBaseUrl" : "customModelId",
      message: "customBaseUrl and customModelId are set together or not at all",
    });
  }
  if (settings.rerankEnabled && settings.rerankProviderModel === null) {
    problems.push({ field: "rerankProviderModel", message: "is needed while rerankEnabled is true" });
  }
  problems.push(...backendProblems(settings.backendConfigs));
  const backends = new Set(["sqlite", "qdrant", ...Object.keys(settings.backendConfigs)]);
  for (const [field, ids] of [
    ["primaryBackend", [settings.primaryBackend]],
    ["fallbackBackends", settings.fallbackBackends],
  ] as const) {
    for (const id of ids) {
      if (!backends.has(id))
        problems.push({ field, message: `there is no backend ${id}; known: ${[...backends].join(", ")}` });
    }
  }
  return problems;
}
