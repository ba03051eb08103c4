/** Memories, what retrieval gives, and what may be changed, as REST, MCP and the Studio's forms take and show them. */
import { z } from "zod";
import { kinds, limits, memoryOrigins, memoryStatuses, memoryTypes, strategies } from "../memory/types.ts";
import type { Retrieved, RetrieveResult } from "../memory/types.ts";
import { count, jsonObject, ownerName, text, time } from "./common.ts";

export const memoryType = z.enum(memoryTypes);
export const memoryStatus = z.enum(memoryStatuses);
export const memoryOrigin = z.enum(memoryOrigins);
export const strategy = z.enum(strategies);
/** Ids are stored in small letters. */
export const memoryId = z.uuid().toLowerCase();
export const sessionName = text({ max: limits.sessionId }).meta({
  description: "The client's own id of a session.",
});
/** How many rows a retrieval gives. */
export const rankedLimit = z
  .int()
  .min(1)
  .max(100)
  .default(20)
  .meta({ description: "Rows that are ranked. Standing memories come besides." });
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
  key: key.nullable().exactOptional(),
  type: memoryType.exactOptional().meta({ description: "`factual` for a new memory." }),
  sessionId: sessionName.nullable().exactOptional(),
  metadata: metadata.exactOptional(),
  expiresAt: time.nullable().exactOptional(),
  pinned: z.boolean().exactOptional(),
});

export const memoryChanges = z.strictObject({
  type: memoryType.exactOptional(),
  key: key.nullable().exactOptional(),
  content: content.exactOptional(),
  metadata: metadata.exactOptional(),
  expiresAt: time.nullable().exactOptional(),
  pinned: z.boolean().exactOptional(),
  status: z.enum(["active", "archived"]).exactOptional(),
});

export const ranks = {
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

/** What retrieval found, as previews and MCP give it. */
export const found = {
  memories: z.array(foundMemory),
  episodes: z.array(foundEpisode),
  dropped: z.array(z.strictObject({ kind: z.enum(kinds), id: z.string(), reason: z.string() })),
  resolution,
  totalTokensUsed: count,
  budgetMaxTokens: count,
  text: z.string().meta({ description: "The exact block that would be injected." }),
};

export const memoryVersion = z
  .strictObject({
    version: z.int(),
    cause: z.string(),
    at: time,
    type: memoryType,
    key: z.string().nullable(),
    content: z.string(),
    metadata: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "MemoryVersion" });

/** Which memories: by id, or by a filter that says something. */
export const selection = {
  ids: z.array(memoryId).min(1).max(10_000).exactOptional(),
  type: memoryType.exactOptional(),
  status: memoryStatus.exactOptional(),
  origin: memoryOrigin.exactOptional(),
  sessionId: sessionName.exactOptional(),
  q: text({ max: 1000 }).exactOptional(),
  olderThan: time.exactOptional(),
};

/** A retrieval as REST and MCP show it: memories and exchanges apart, without the rows' other fields. */
export function showFound(result: RetrieveResult) {
  const { results, dropped, resolution, totalTokensUsed, budgetMaxTokens, text } = result;
  return {
    memories: results.flatMap((row) => (row.kind === "memory" ? [showMemory(row)] : [])),
    episodes: results.flatMap((row) => (row.kind === "episode" ? [showEpisode(row)] : [])),
    dropped: dropped.map(({ kind, id, reason }) => ({ kind, id, reason })),
    resolution,
    totalTokensUsed,
    budgetMaxTokens,
    text,
  };
}

function showMemory(row: Retrieved & { kind: "memory" }) {
  const { id, type, key, content } = row.item;
  return { id, type, key, content, owner: row.owner, ...ranksOf(row) };
}

function showEpisode(row: Retrieved & { kind: "episode" }) {
  const { id, sessionId, externalId, userMessage, aiResponse, createdAt } = row.item;
  return { id, sessionId, externalId, userMessage, aiResponse, createdAt, owner: row.owner, ...ranksOf(row) };
}

function ranksOf({ score, tier, tokens, ftsRank, ftsScore, vecRank, vecScore }: Retrieved) {
  return { score, tier, tokens, ftsRank, ftsScore, vecRank, vecScore };
}
