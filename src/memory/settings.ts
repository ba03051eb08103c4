/**
 * The memory settings: one table for the API, the database and the Studio. Plain data, since both threads read settings
 * at every start and schemas cost milliseconds; settings-schema.ts makes the schema of it for the faces.
 */

/** What a field takes. `problem`: what is said of a text that does not have the pattern. */
type Pattern = { pattern: RegExp; problem: string };
type Kind =
  | { type: "flag"; default: boolean }
  | { type: "whole"; min: number; max: number; nullable?: true; default: number | null }
  | { type: "choice"; of: readonly string[]; default: string }
  | ({ type: "text"; min?: number; max?: number; nullable?: true; default: string | null } & Partial<Pattern>)
  | ({ type: "list"; most: number; default: readonly string[] } & Pattern)
  | ({ type: "objects"; default: Readonly<Record<string, Record<string, unknown>>> } & Pattern);

const slug = {
  pattern: /^[a-z0-9][a-z0-9._-]{0,63}$/,
  problem: "must be a slug of a-z, 0-9, dot, dash, underscore",
};
const providerModel = {
  type: "text",
  max: 300,
  pattern: /^[a-z0-9][a-z0-9._-]{0,63}\/.+$/,
  problem: "must be provider/model",
  nullable: true,
  default: null,
} as const;

/** Every field with its type, range and default (the defaults are those of a box on which nothing was set). */
export const settingFields = {
  enabled: { type: "flag", default: false },
  maxTokens: { type: "whole", min: 0, max: 16_000, default: 2000 },
  retentionDays: { type: "whole", min: 0, max: 365, default: 30 },
  deleteAfterDays: { type: "whole", min: 1, max: 36_500, nullable: true, default: null },
  strategy: { type: "choice", of: ["recent", "exact", "semantic", "hybrid"], default: "hybrid" },
  fusion: { type: "choice", of: ["scored", "rrf"], default: "scored" },
  scope: { type: "choice", of: ["session", "apiKey", "global"], default: "apiKey" },
  skillsEnabled: { type: "flag", default: false },
  embeddingSource: { type: "choice", of: ["remote", "static", "transformers", "auto"], default: "auto" },
  embeddingProviderModel: providerModel,
  customBaseUrl: { type: "text", max: 2000, nullable: true, default: null },
  customModelId: { type: "text", min: 1, max: 300, nullable: true, default: null },
  customApiKey: { type: "text", max: 1000, nullable: true, default: null },
  transformersEnabled: { type: "flag", default: false },
  staticEnabled: { type: "flag", default: false },
  rerankEnabled: { type: "flag", default: false },
  rerankProviderModel: providerModel,
  vectorStore: { type: "choice", of: ["sqlite-vec", "qdrant", "auto"], default: "auto" },
  retrievalTimeoutMs: { type: "whole", min: 50, max: 5000, nullable: true, default: null },
  injectionPlacement: { type: "choice", of: ["auto", "system-first"], default: "auto" },
  injectEpisodes: { type: "flag", default: true },
  extractFrom: { type: "choice", of: ["user", "both", "off"], default: "both" },
  extractEntities: { type: "flag", default: false },
  extractionModel: providerModel,
  extractEveryTurns: { type: "whole", min: 1, max: 50, default: 1 },
  extractionDailyTokens: { type: "whole", min: 0, max: 1_000_000_000, default: 200_000 },
  autoApprove: { type: "flag", default: true },
  autoSummarize: { type: "flag", default: false },
  recordEpisodes: { type: "flag", default: true },
  primaryBackend: { type: "text", ...slug, default: "sqlite" },
  fallbackBackends: { type: "list", ...slug, most: 10, default: [] },
  backendConfigs: { type: "objects", ...slug, default: {} },
} as const satisfies Record<string, Kind>;

type ValueOf<Field extends Kind> =
  | (Field extends { type: "flag" } ? boolean : never)
  | (Field extends { type: "whole" } ? number : never)
  | (Field extends { type: "choice" } ? Field["of"][number] : never)
  | (Field extends { type: "text" } ? string : never)
  | (Field extends { type: "list" } ? string[] : never)
  | (Field extends { type: "objects" } ? Record<string, Record<string, unknown>> : never)
  | (Field extends { nullable: true } ? null : never);

export type SettingField = Kind;
export type MemorySettings = {
  -readonly [Name in keyof typeof settingFields]: ValueOf<(typeof settingFields)[Name]>;
};

/** What a PUT takes: any subset. Its schema is in settings-schema.ts, which only the faces load. */
export type MemorySettingsPatch = { [Name in keyof MemorySettings]?: MemorySettings[Name] | undefined };

export const defaultSettings = Object.fromEntries(
  Object.entries(settingFields).map(([name, field]) => [name, structuredClone(field.default)]),
) as MemorySettings;

/** Whether a stored value is one that this version knows. */
export function isSetting(field: SettingField, value: unknown): boolean {
  if (value === null) return "nullable" in field && field.nullable === true;
  switch (field.type) {
    case "flag":
      return typeof value === "boolean";
    case "whole":
      return Number.isSafeInteger(value) && (value as number) >= field.min && (value as number) <= field.max;
    case "choice":
      return field.of.some((one) => one === value);
    case "text":
      return (
        typeof value === "string" &&
        value.length >= (field.min ?? 0) &&
        value.length <= (field.max ?? Infinity) &&
        field.pattern?.test(value) !== false
      );
    case "list":
      return (
        Array.isArray(value) &&
        value.length <= field.most &&
        value.every((one) => typeof one === "string" && field.pattern.test(one))
      );
    case "objects":
      return (
        isObject(value) &&
        Object.entries(value).every(([name, one]) => field.pattern.test(name) && isObject(one))
      );
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
