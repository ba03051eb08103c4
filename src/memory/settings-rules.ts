/** Rules between the fields of the memory settings. */
import { backendProblems } from "../backends/config-schema.ts";
import type { MemorySettings } from "./settings.ts";

/** Everything that is wrong with the whole; each problem names its field. */
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
