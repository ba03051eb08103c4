/** The Qdrant settings as they are stored: the key sealed, `enabled` the engine's selector. */
import type { Database } from "bun:sqlite";
import { readMemorySettings, readSettingGroup } from "../../db/settings.ts";
import { maskSecret } from "../../seal.ts";
import type { Seal } from "../../seal.ts";
import type { Values } from "../../config.ts";
import { addressOf } from "../address.ts";
import type { QdrantSettings } from "../../schemas/qdrant.ts";

/** As the engine uses them: `url` is null while no host is set. */
export type QdrantConnection = Omit<QdrantSettings, "hasApiKey" | "apiKeyMasked"> & {
  url: string | null;
  apiKey: string | null;
  efConstruct: number | null;
};

/** The group of settings they are stored in. */
export const GROUP = "qdrant";

/** First values, from the environment. */
export type FirstValues = Pick<
  Values,
  | "QDRANT_URL"
  | "QDRANT_HOST"
  | "QDRANT_PORT"
  | "QDRANT_API_KEY"
  | "QDRANT_COLLECTION"
  | "QDRANT_EMBEDDING_MODEL"
  | "QDRANT_HNSW_EF_CONSTRUCT"
>;

/** What is stored, else the first value that the environment gives, else the default. */
export function readQdrant(db: Database, first: FirstValues, seal: Seal): QdrantConnection {
  const stored = readSettingGroup(db, GROUP);
  const value = <T>(name: string, given: T | null, otherwise: T): T =>
    name in stored ? (stored[name] as T) : (given ?? otherwise);
  const hostName = value("host", first.QDRANT_URL ?? first.QDRANT_HOST, "");
  const port = value("port", first.QDRANT_PORT, 6333);
  const sealed = stored["apiKey"];
  return {
    enabled: readMemorySettings(db).vectorStore === "qdrant",
    host: hostName,
    port,
    collection: value("collection", first.QDRANT_COLLECTION, "omniroute_memory"),
    embeddingModel: value("embeddingModel", first.QDRANT_EMBEDDING_MODEL, null),
    quantization: value("quantization", null, "none" as QdrantSettings["quantization"]),
    url: hostName === "" ? null : addressOf(hostName, port),
    apiKey:
      typeof sealed === "string"
        ? sealed === ""
          ? null
          : seal.open(Buffer.from(sealed, "base64"))
        : first.QDRANT_API_KEY,
    efConstruct: first.QDRANT_HNSW_EF_CONSTRUCT,
  };
}

/** Without the key. */
export function showQdrant(settings: QdrantConnection): QdrantSettings {
  const { apiKey, url: _, efConstruct: __, ...shown } = settings;
  return { ...shown, hasApiKey: apiKey !== null, apiKeyMasked: apiKey === null ? null : maskSecret(apiKey) };
}
