/** Backends by their configuration. */
import type { Config } from "../config.ts";
import type { Embedder } from "../embed/types.ts";
import { connectQdrant } from "../search/qdrant/client.ts";
import type { Qdrant } from "../search/qdrant/client.ts";
import { createUrlCheck } from "./allowed.ts";
import type { UrlCheck } from "./allowed.ts";
import { readBackendConfig } from "./config-schema.ts";
import type { BackendConfig } from "./config-schema.ts";
import { GenericMemoryBackend } from "./http.ts";
import { NotionBackend } from "./notion.ts";
import { ObsidianBackend } from "./obsidian.ts";
import { QdrantBackend } from "./qdrant.ts";
import type { MemoryBackend } from "./types.ts";

export type KnownDeps = {
  embedder: () => Promise<Embedder | null>;
  boxId: string;
  retentionDays: () => number;
  efConstruct: Config["QDRANT_HNSW_EF_CONSTRUCT"];
  allowed?: UrlCheck;
};

const titles = { http: "HTTP", obsidian: "Obsidian", notion: "Notion", qdrant: "Qdrant" } as const;

/** The backend of a stored configuration; null when that is not valid (a newer version's, perhaps). */
export function openBackend(
  id: string,
  config: Record<string, unknown>,
  deps: KnownDeps,
): MemoryBackend | null {
  const read = readBackendConfig(id, config);
  return read && createBackend(id, read, deps);
}

function createBackend(id: string, config: BackendConfig, deps: KnownDeps): MemoryBackend {
  const allowed = deps.allowed ?? createUrlCheck();
  const displayName = config.displayName ?? (config.type === "http" ? id : titles[config.type]);
  switch (config.type) {
    case "http":
      return new GenericMemoryBackend(id, displayName, config, allowed);
    case "obsidian":
      return new ObsidianBackend(id, displayName, config, allowed);
    case "notion":
      return new NotionBackend(id, displayName, config, allowed);
    case "qdrant": {
      let client: Promise<Qdrant> | null = null;
      const backend = new QdrantBackend(id, displayName, {
        connect: async () => {
          await allowed(new URL(config.baseUrl));
          client ??= connectQdrant({ url: config.baseUrl, apiKey: config.apiKey ?? null });
          return client;
        },
        embedder: deps.embedder,
        collection: config.collection ?? "recollect",
        quantization: config.quantization ?? "none",
        efConstruct: deps.efConstruct,
        boxId: deps.boxId,
        retentionDays: deps.retentionDays,
      });
      return Object.assign(backend, { shutdown: async () => (await client)?.close() });
    }
  }
}

/** The two that need no more than their key (and Notion its database): Obsidian on this machine, Notion's own API. */
export function createKnownBackend(
  id: "obsidian" | "notion",
  config: { apiKey: string; databaseId?: string; baseUrl?: string },
): MemoryBackend {
  const { apiKey, databaseId = "", baseUrl } = config;
  return id === "obsidian"
    ? new ObsidianBackend(id, titles[id], { apiKey, baseUrl })
    : new NotionBackend(id, titles[id], { apiKey, databaseId, baseUrl });
}
