/** Memories, what retrieval gives, and what may be changed, as REST, MCP and the Studio's forms take and show them. */
import { z } from "zod";
import { limits, memoryOrigins, memoryStatuses, memoryTypes, strategies } from "../memory/types.ts";
import { count, jsonObject, ownerName, text, time } from "./common.ts";

export const memoryType = z.enum(memoryTypes);
export const memoryStatus = z.enum(memoryStatuses);
export const memoryOrigin = z.enum(memoryOrigins);
export const strategy = z.enum(strategies);
export const memoryId = z.uuid();
export const sessionName = text({ max: limits.sessionId }).meta({
  description: "The client's own id of a session.",
});
export const content = text({ max: limits.content });
export const key = text({ max: limits.key }).meta({
  description: "Stable upsert key, for example `preference:editor`.",
});
export const metadata = jsonObject(limits.metadataBytes);
export const maxTokens = z.int().min(1).max(16_000);

export const memory = z
  .strictObject({
    id: memoryId,
    apiKeyId: ownerName,
    sessionId: z.string().nullable(),
    type: memoryType,
    key: z.string().nullable(),
    content: z.string(),
    metadata: z.record(z.string(), z.unknown()),
    origin: memoryOrigin,
    status: memoryStatus,
    supersededBy: z.string().nullable(),
    pinned: z.boolean(),
    episodeId: z.int().nullable(),
    createdAt: time,
    updatedAt: time,
    confirmedAt: time,
    expiresAt: time.nullable(),
    accessCount: count,
    lastAccessedAt: time.nullable(),
    version: z.int().min(1),
  })
  .meta({ id: "Memory" });

export const newMemory = z.strictObject({
  content,
  key: key.nullable().optional(),
  type: memoryType.default("factual"),
  sessionId: sessionName.nullable().optional(),
  apiKeyId: ownerName.optional(),
  metadata: metadata.optional(),
  expiresAt: time.nullable().optional(),
  pinned: z.boolean().optional(),
});

export const memoryChanges = z.strictObject({
  type: memoryType.optional(),
  key: key.nullable().optional(),
  content: content.optional(),
  metadata: metadata.optional(),
  expiresAt: time.nullable().optional(),
  pinned: z.boolean().optional(),
  status: z.enum(["active", "archived"]).optional(),
});

const ranks = {
  score: z.number().nullable(),
  tier: z.enum([
    "fts5",
    "vector",
    "hybrid-scored",
    "hybrid-rrf",
    "qdrant",
    "recent",
    "standing",
    "rerank",
    "backend",
  ]),
  tokens: count,
  ftsRank: z.int().nullable(),
  ftsScore: z.number().nullable(),
  vecRank: z.int().nullable(),
  vecScore: z.number().nullable(),
};

export const foundMemory = z
  .strictObject({
    id: memoryId,
    type: memoryType,
    key: z.string().nullable(),
    content: z.string(),
    owner: ownerName,
    ...ranks,
  })
  .meta({ id: "FoundMemory" });

export const foundEpisode = z
  .strictObject({
    id: z.int(),
    sessionId: z.int(),
    externalId: z.string(),
    userMessage: z.string(),
    aiResponse: z.string(),
    createdAt: time,
    owner: ownerName,
    ...ranks,
  })
  .meta({ id: "FoundEpisode" });

export const resolution = z
  .strictObject({
    embeddingSource: z.string().nullable(),
    embeddingModel: z.string().nullable(),
    vectorStore: z.string(),
    strategyUsed: z.string(),
    rerankApplied: z.boolean(),
    fallbackReason: z.string().nullable().meta({ description: "Null, or one sentence." }),
  })
  .meta({ id: "Resolution" });
