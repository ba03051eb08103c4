/** The words of the engine, in plain types. Times are ISO 8601 UTC strings at every face and in these types. */

export const memoryTypes = ["factual", "episodic", "procedural", "semantic"] as const;
export type MemoryType = (typeof memoryTypes)[number];

export const memoryStatuses = ["active", "pending", "superseded", "archived"] as const;
export type MemoryStatus = (typeof memoryStatuses)[number];

export const memoryOrigins = ["user", "assistant", "api", "mcp", "import", "summary"] as const;
export type MemoryOrigin = (typeof memoryOrigins)[number];

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/** One durable statement, as the API shows it. `apiKeyId` is the owner. */
export type Memory = {
  id: string;
  apiKeyId: string;
  sessionId: string | null;
  type: MemoryType;
  key: string | null;
  content: string;
  metadata: JsonObject;
  origin: MemoryOrigin;
  status: MemoryStatus;
  supersededBy: string | null;
  pinned: boolean;
  episodeId: number | null;
  createdAt: string;
  updatedAt: string;
  confirmedAt: string;
  expiresAt: string | null;
  accessCount: number;
  lastAccessedAt: string | null;
  version: number;
};

/** An earlier or the current version of a memory. */
export type MemoryVersion = {
  version: number;
  /** Why this version was left (`current` for the last one). */
  cause: string;
  at: string;
  type: MemoryType;
  key: string | null;
  content: string;
  metadata: JsonObject;
};

/** Limits of a memory's fields, the same at every face. */
export const limits = {
  content: 32_768,
  key: 200,
  metadataBytes: 16_384,
  sessionId: 128,
} as const;

export const kinds = ["memory", "episode", "entity", "summary"] as const;
export type Kind = (typeof kinds)[number];

export const strategies = ["exact", "recent", "semantic", "hybrid"] as const;
export type Strategy = (typeof strategies)[number];

export const scopes = ["session", "apiKey", "global"] as const;
export type Scope = (typeof scopes)[number];

export type Tier =
  | "fts5"
  | "vector"
  | "hybrid-scored"
  | "hybrid-rrf"
  | "qdrant"
  | "recent"
  | "standing"
  | "rerank"
  | "backend";

export type RetrieveInput = {
  /** The caller's owner name. Required by every read. */
  owner: string;
  /** The text to find something for; empty or null where there is none. */
  query: string | null;
  sessionId?: string | null;
  /** Defaults: the settings. `sharedPool` lets scope `global` read the shared pool too; left out, the owner's key says. */
  scope?: Scope;
  sharedPool?: boolean;
  strategy?: Strategy;
  maxTokens?: number;
  limit?: number;
  kinds?: readonly Kind[];
  type?: MemoryType;
  /** Answer from what was valid then (ISO time). */
  asOf?: string;
  /** Milliseconds from now after which a channel is left out; null waits up to 10 s. */
  deadlineMs?: number | null;
  /** `proxy`: no query left means standing memories alone; `interactive`: the newest. */
  mode: "proxy" | "interactive";
  /** Ids of memories already given in this conversation (their blocks are put back), not to be repeated. */
  exclude?: readonly string[];
  /** Whether access counters are updated afterwards (false for previews). */
  count?: boolean;
};

export type Ranks = {
  score: number | null;
  tier: Tier;
  ftsRank: number | null;
  ftsScore: number | null;
  vecRank: number | null;
  vecScore: number | null;
  tokens: number;
};

/** What was found. `text` is the line it is injected as; `date` the day it was learned. */
export type Retrieved = Ranks & {
  kind: Kind;
  /** uuid of a memory, row id of the others. */
  id: string;
  owner: string;
  /** The line as it stands in the block. */
  text: string;
} & (
    | { kind: "memory"; item: Memory }
    | { kind: "episode"; item: Episode }
    | { kind: "entity"; item: LinkedEntity }
    | { kind: "summary"; item: Summary }
  );

export type Dropped = Partial<Ranks> & { kind: Kind; id: string; reason: string };

export type Resolution = {
  embeddingSource: string | null;
  embeddingModel: string | null;
  vectorStore: string;
  strategyUsed: string;
  rerankApplied: boolean;
  /** Null, or one sentence. */
  fallbackReason: string | null;
};

export type RetrieveResult = {
  results: Retrieved[];
  dropped: Dropped[];
  resolution: Resolution;
  totalTokensUsed: number;
  budgetMaxTokens: number;
  /** The exact block that would be injected; empty when there is nothing. */
  text: string;
};

export type Session = {
  id: number;
  externalId: string;
  apiKeyId: string;
  metadata: JsonObject;
  pinned: boolean;
  createdAt: string;
  updatedAt: string;
};

export type Episode = {
  id: number;
  sessionId: number;
  externalId: string;
  apiKeyId: string;
  userMessage: string;
  aiResponse: string;
  tokenCount: number;
  metadata: JsonObject;
  complete: boolean;
  recall: boolean;
  createdAt: string;
};

export type Entity = {
  id: number;
  apiKeyId: string;
  name: string;
  type: string;
  notes: string | null;
  metadata: JsonObject;
  createdAt: string;
  updatedAt: string;
};

export type Relationship = {
  fromId: number;
  toId: number;
  label: string;
  metadata: JsonObject;
  createdAt: string;
};

/** A relationship with the names of its ends. */
export type NamedRelationship = Relationship & { from: string; to: string };

export type LinkedEntity = Entity & { relationships: NamedRelationship[] };

export type Summary = {
  id: number;
  sessionId: number;
  text: string;
  firstEpisodeId: number;
  lastEpisodeId: number;
  tokenCount: number;
  stale: boolean;
  createdAt: string;
};
