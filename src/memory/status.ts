/** Which parts of the engine work, in words and numbers. `available` means that a real call worked. */
import type { Database } from "bun:sqlite";
import type { QdrantStatus } from "../backends/mirror/operations.ts";
import type { BackendStatus } from "../backends/part.ts";
import type { JobCounts } from "../db/jobs.ts";
import { ownerId } from "../db/owners.ts";
import { readQuality } from "../db/quality.ts";
import type { Quality } from "../db/quality.ts";
import type { EmbeddingCacheStats } from "../embed/cache.ts";
import { coverage } from "../search/indexing.ts";
import type { LexicalStatus } from "../search/lexical-tables.ts";
import { activeSpace } from "../search/vector-tables.ts";
import type { Embedding } from "./embedding.ts";
import type { RerankStatus } from "./rerank.ts";
import type { MemorySettings } from "./settings.ts";

type Reason = string | null;

export type EngineStatus = {
  keyword: { available: boolean; backend: "FTS5" | "scan"; reason: Reason };
  embedding: {
    source: string | null;
    model: string | null;
    dimensions: number | null;
    available: boolean;
    reason: Reason;
    /** The whole box's; null to a key. */
    cacheStats: EmbeddingCacheStats | null;
  };
  vectorStore: {
    backend: "sqlite-vec" | "scan" | "qdrant" | "none";
    available: boolean;
    rowCount: number;
    /** Rows that wait for a vector, those set aside included. */
    needsReindex: number;
    /** Rows with a current vector / rows; 1 where there are none. */
    coverage: number;
    signature: string | null;
    /** The index that is built beside the one in use. */
    migration: { signature: string; done: number; total: number } | null;
    reason: Reason;
  };
  qdrant: QdrantStatus;
  rerank: { enabled: boolean; provider: string | null; model: string | null } & RerankStatus;
  jobs: JobCounts;
  backend: BackendStatus;
  /** The whole box's; null to a key. */
  quality: (Quality & { last7Days: Quality }) | null;
};

export type StatusDeps = {
  db: Database;
  now: () => number;
  settings: () => MemorySettings;
  lexical: LexicalStatus;
  vec0: boolean;
  embedding: Pick<Embedding, "get" | "status">;
  rerank: () => RerankStatus;
  qdrant: () => Promise<QdrantStatus>;
  jobs: (input: { owner: string | null }) => Promise<JobCounts>;
  backends: () => BackendStatus;
};

/** A model that is not open yet gets this long to prove itself. */
const OPEN_MS = 3000;
const NOBODY = -1;

export function createStatus(deps: StatusDeps) {
  const { db, now } = deps;

  /** FTS5 is asked, not assumed: a damaged index answers here as it would in a search. */
  function keyword(): EngineStatus["keyword"] {
    if (!deps.lexical.fts5) return { available: true, backend: "scan", reason: deps.lexical.reason };
    try {
      db.query("SELECT rowid FROM memories_fts WHERE memories_fts MATCH 'o0xprobe' LIMIT 1").get();
      return { available: true, backend: "FTS5", reason: null };
    } catch {
      return {
        available: false,
        backend: "FTS5",
        reason: "The keyword index does not answer; run recollect doctor.",
      };
    }
  }

  async function embedding(): Promise<EngineStatus["embedding"]> {
    const first = await deps.embedding.status();
    if (first.source === null || first.available)
      return { ...first, reason: first.available ? null : first.reason };
    await Promise.race([deps.embedding.get().catch(() => {}), Bun.sleep(OPEN_MS)]);
    const status = await deps.embedding.status();
    return { ...status, reason: status.available ? null : status.reason };
  }

  function vectorStore(
    owner: number | null,
    embeds: boolean,
    qdrantUp: boolean,
  ): EngineStatus["vectorStore"] {
    const { rows, current, pending, setAside, building } = coverage(db, owner);
    const signature = activeSpace(db)?.signature ?? null;
    const local = deps.vec0 ? "sqlite-vec" : "scan";
    const backend = qdrantUp ? "qdrant" : signature === null && !embeds ? "none" : local;
    return {
      backend,
      available: backend !== "none",
      rowCount: rows,
      needsReindex: pending + setAside.count,
      coverage: rows === 0 ? 1 : current / rows,
      signature,
      migration: owner === null ? building : null,
      reason:
        backend === "none" ? "There is no embedding model, so words alone are searched." : setAside.reason,
    };
  }

  /** `owner` null is the whole box; a name gives its rows' numbers, without hosts, error texts or counts of others. */
  async function engine(input: { owner: string | null; brief: boolean }): Promise<EngineStatus> {
    const owner = input.owner === null ? null : (ownerId(db, input.owner) ?? NOBODY);
    const { rerankEnabled, rerankProviderModel, vectorStore: chosen } = deps.settings();
    const qdrant = await deps.qdrant();
    const made = await embedding();
    const model = rerankProviderModel ?? "";
    const slash = model.indexOf("/");
    const status: EngineStatus = {
      keyword: keyword(),
      embedding: made,
      vectorStore: vectorStore(owner, made.available, chosen === "qdrant" && qdrant.healthy),
      qdrant,
      rerank: {
        enabled: rerankEnabled,
        provider: slash > 0 ? model.slice(0, slash) : null,
        model: slash > 0 ? model.slice(slash + 1) : null,
        ...(rerankEnabled ? deps.rerank() : { available: false, reason: null }),
      },
      jobs: await deps.jobs({ owner: input.owner }),
      backend: deps.backends(),
      quality: readQuality(db, now()),
    };
    return input.brief ? brief(status) : status;
  }

  return { engine };
}

function brief({
  keyword,
  embedding,
  vectorStore,
  qdrant,
  rerank,
  backend,
  ...rest
}: EngineStatus): EngineStatus {
  return {
    ...rest,
    keyword: { ...keyword, reason: null },
    embedding: { ...embedding, reason: null, cacheStats: null },
    vectorStore: { ...vectorStore, reason: null },
    qdrant: { ...qdrant, error: null, pending: 0 },
    rerank: { ...rerank, reason: null },
    backend: {
      ...backend,
      health: backend.health.map(({ id, displayName, ok, latencyMs, checkedAt }) => ({
        id,
        displayName,
        ok,
        latencyMs,
        checkedAt,
      })),
    },
    quality: null,
  };
}
