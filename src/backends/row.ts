/** Reads a memory out of what a foreign system gives, whose fields may be missing, edited by hand or of another form. */
import { memoryOrigins, memoryStatuses, memoryTypes } from "../memory/types.ts";
import type { JsonObject, Memory } from "../memory/types.ts";

const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const oneOf = <T extends string>(words: readonly T[], value: unknown, otherwise: T): T =>
  words.find((word) => word === value) ?? otherwise;
const count = (value: unknown, otherwise: number): number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : otherwise;

/** A time as ISO 8601 UTC, from ISO text or a number of milliseconds; null when it is neither. */
export function isoTime(value: unknown): string | null {
  if (typeof value !== "string" && typeof value !== "number") return null;
  if (value === "") return null;
  const time = new Date(value);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

/** The memory in a row, or null when it lacks an id, a content or an owner: such a row is refused, never guessed. */
export function readRow(value: unknown): Memory | null {
  if (typeof value !== "object" || value === null) return null;
  const row = value as Record<string, unknown>;
  const id = text(typeof row["id"] === "number" ? String(row["id"]) : row["id"]);
  const apiKeyId = text(row["apiKeyId"]);
  const content = typeof row["content"] === "string" ? row["content"] : null;
  if (id === null || apiKeyId === null || content === null) return null;
  const createdAt = isoTime(row["createdAt"]) ?? new Date(0).toISOString();
  const updatedAt = isoTime(row["updatedAt"]) ?? createdAt;
  const metadata = row["metadata"];
  return {
    id,
    apiKeyId,
    sessionId: text(row["sessionId"]),
    type: oneOf(memoryTypes, row["type"], "factual"),
    key: text(row["key"]),
    content,
    metadata:
      typeof metadata === "object" && metadata !== null && !Array.isArray(metadata)
        ? (metadata as JsonObject)
        : {},
    origin: oneOf(memoryOrigins, row["origin"], "import"),
    status: oneOf(memoryStatuses, row["status"], "active"),
    supersededBy: text(row["supersededBy"]),
    pinned: row["pinned"] === true,
    episodeId: typeof row["episodeId"] === "number" ? row["episodeId"] : null,
    createdAt,
    updatedAt,
    confirmedAt: isoTime(row["confirmedAt"]) ?? updatedAt,
    expiresAt: isoTime(row["expiresAt"]),
    accessCount: count(row["accessCount"], 0),
    lastAccessedAt: isoTime(row["lastAccessedAt"]),
    version: count(row["version"], 1),
  };
}

/** A search result: a row with its own score, if it has one. */
export function readFound(value: unknown): { memory: Memory; score: number | null } | null {
  const memory = readRow(value);
  if (!memory) return null;
  const { score } = value as { score?: unknown };
  return { memory, score: typeof score === "number" && Number.isFinite(score) ? score : null };
}
