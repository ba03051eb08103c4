/** Sessions, episodes, entities, relationships and summaries, as the routes take and show them. */
import { z } from "zod";
import { limits } from "../memory/types.ts";
import { memory, ranks, resolution } from "./memory.ts";
import { count, hasFourDigitYear, jsonObject, limit, offset, ownerName, text, time } from "./common.ts";

/** Characters of one side of an exchange. */
const MAX_MESSAGE = 2_000_000;

export const rowId = z.int().min(1);
/** A row id in a path. */
export const pathId = z
  .string()
  .regex(/^[1-9]\d{0,14}$/)
  .transform(Number);
export const externalId = text({ max: limits.sessionId }).meta({
  description: "The client's own id of a session.",
});
const metadata = jsonObject(limits.metadataBytes);
const anyObject = z.record(z.string(), z.unknown());
const message = text({ min: 0, max: MAX_MESSAGE, blank: true });
const tokenCount = count.max(1_000_000_000);
export const paging = z.strictObject({ limit, offset: offset.default(0) });

export const session = z
  .strictObject({
    id: rowId,
    externalId: z.string(),
    apiKeyId: ownerName,
    metadata: anyObject,
    pinned: z.boolean(),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: "Session" });

export const newSession = z.strictObject({
  externalId,
  metadata: metadata.optional(),
  apiKeyId: ownerName.optional(),
});

export const sessionPatch = z.strictObject({ metadata: metadata.optional(), pinned: z.boolean().optional() });

const episodeFields = {
  id: rowId,
  sessionId: rowId,
  externalId: z.string(),
  apiKeyId: ownerName,
  userMessage: z.string(),
  aiResponse: z.string(),
  tokenCount: count,
  metadata: anyObject,
  complete: z.boolean(),
  recall: z.boolean().meta({ description: "False: never ranked, injected or summarised again." }),
  createdAt: time,
};

export const episode = z.strictObject(episodeFields).meta({ id: "Episode" });

const { tokens: _, ...searchRanks } = ranks;
export const searchText = text({ max: 8000 });
export const searchLimit = z.int().min(1).max(200).default(20);
export const foundEpisode = z
  .strictObject({ ...episodeFields, ...searchRanks })
  .meta({ id: "SearchedEpisode" });

/** Not both sides may be empty. */
function someText(value: { userMessage: string; aiResponse: string }): boolean {
  return value.userMessage.trim() !== "" || value.aiResponse.trim() !== "";
}

export const newEpisode = z
  .strictObject({
    sessionId: rowId.optional(),
    externalId: externalId.optional(),
    userMessage: message,
    aiResponse: message,
    tokenCount: tokenCount.optional(),
    metadata: metadata.optional(),
    apiKeyId: ownerName.optional(),
  })
  .refine((value) => (value.sessionId === undefined) !== (value.externalId === undefined), {
    path: ["sessionId"],
    message: "name the session by sessionId or by externalId",
  })
  .refine(someText, { path: ["userMessage"], message: "userMessage and aiResponse must not both be empty" });

/** ISO 8601, a bare date, or milliseconds; given as milliseconds. */
const moment = z
  .union([
    z.iso.datetime({ offset: true, local: true }),
    z.iso.date(),
    z.int().min(0).max(253_402_300_799_999),
  ])
  .transform((value) => (typeof value === "number" ? value : Date.parse(zoned(value))))
  .refine(hasFourDigitYear, "must be a time as in 2026-01-31T12:00:00Z");

/** A time without a zone is taken as UTC. */
function zoned(value: string): string {
  return value.includes("T") && !/(?:Z|[+-]\d{2}:?\d{2})$/i.test(value) ? `${value}Z` : value;
}

/** One line of a bulk import. */
export const bulkLine = z
  .strictObject({
    id: text({ max: 200 }).optional(),
    externalId,
    userMessage: message.nullable().optional(),
    aiResponse: message.nullable().optional(),
    createdAt: moment.nullable().optional(),
    tokenCount: tokenCount.nullable().optional(),
    metadata: metadata.nullable().optional(),
  })
  .refine((line) => someText({ userMessage: line.userMessage ?? "", aiResponse: line.aiResponse ?? "" }), {
    path: ["userMessage"],
    message: "userMessage and aiResponse must not both be empty",
  });

export const bulkAnswer = z
  .strictObject({
    created: count,
    existing: count,
    sessions: count.meta({ description: "Sessions that were made." }),
    refused: z.array(z.strictObject({ line: z.int().min(1), message: z.string() })),
    refusedCount: count
      .exactOptional()
      .meta({ description: "All refused lines, where not every one is listed." }),
    redacted: count.exactOptional().meta({ description: "Secrets that were taken out." }),
  })
  .meta({ id: "BulkAnswer" });

/** Added to the answer of a write from which secrets were taken. */
export const redacted = {
  redacted: count.exactOptional().meta({ description: "Secrets that were taken out before it was stored." }),
};

const entityFields = {
  id: rowId,
  apiKeyId: ownerName,
  name: z.string(),
  type: z.string(),
  notes: z.string().nullable(),
  metadata: anyObject,
  createdAt: time,
  updatedAt: time,
};

export const entity = z.strictObject(entityFields).meta({ id: "Entity" });

export const foundEntity = z.strictObject({ ...entityFields, ...searchRanks }).meta({ id: "SearchedEntity" });

export const entityType = text({ max: 64 });
export const newEntity = z.strictObject({
  name: text({ max: 200 }),
  type: entityType,
  notes: text({ min: 0, max: limits.content, blank: true }).nullable().optional(),
  metadata: metadata.optional().meta({
    description: "`aliases`, a list of texts, are further names by which it is found again.",
  }),
  apiKeyId: ownerName.optional(),
});

export const relationship = z
  .strictObject({ fromId: rowId, toId: rowId, label: z.string(), metadata: anyObject, createdAt: time })
  .meta({ id: "Relationship" });

const link = { fromId: rowId, toId: rowId, label: text({ max: 200 }), apiKeyId: ownerName.optional() };
export const newRelationship = z.strictObject({ ...link, metadata: metadata.optional() });
export const relationshipName = z.strictObject(link);

export const summary = z
  .strictObject({
    id: rowId,
    sessionId: rowId,
    text: z.string(),
    firstEpisodeId: rowId,
    lastEpisodeId: rowId,
    tokenCount: count,
    stale: z.boolean().meta({
      description: "An episode that it covers is gone or not to be recalled; it is not ranked any more.",
    }),
    createdAt: time,
  })
  .meta({ id: "Summary" });

export const newSummary = z.strictObject({
  maxTokens: z.int().min(20).max(16_000).optional(),
  through: rowId.optional().meta({ description: "The last episode to sum up; the newest unless given." }),
});

/** The row, and how many secrets were taken out of it where there were any. */
export function withRedacted<Row extends object>(row: Row, count: number): Row & { redacted?: number } {
  return count > 0 ? { ...row, redacted: count } : row;
}

/** What a search answers. */
export function foundOf<S extends z.ZodType>(row: S) {
  return z.strictObject({ data: z.array(row), total: count, resolution });
}

const contextRow = { score: ranks.score, tier: ranks.tier, tokens: count, text: z.string() };

export const contextPackage = z
  .strictObject({
    data: z.array(
      z.discriminatedUnion("kind", [
        z.strictObject({ kind: z.literal("memory"), id: z.uuid(), ...contextRow, item: memory }),
        z.strictObject({ kind: z.literal("episode"), id: rowId, ...contextRow, item: episode }),
        z.strictObject({
          kind: z.literal("entity"),
          id: rowId,
          ...contextRow,
          item: z.strictObject({
            ...entityFields,
            relationships: z.array(
              z.strictObject({
                fromId: rowId,
                toId: rowId,
                label: z.string(),
                metadata: anyObject,
                createdAt: time,
                from: z.string(),
                to: z.string(),
              }),
            ),
          }),
        }),
        z.strictObject({ kind: z.literal("summary"), id: rowId, ...contextRow, item: summary }),
      ]),
    ),
    text: z.string().meta({ description: "The block as it would be injected." }),
    totalTokensUsed: count,
    budgetMaxTokens: count,
    resolution,
  })
  .meta({ id: "ContextPackage" });
