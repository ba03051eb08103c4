/** The Qdrant settings: validated here, stored in the database, the key sealed. `enabled` is the engine's selector. */
import type { Database } from "bun:sqlite";
import { z } from "zod";
import {
  readMemorySettings,
  readSettingGroup,
  writeMemorySettings,
  writeSetting,
} from "../../db/settings.ts";
import { transact } from "../../db/open.ts";
import { invalid } from "../../error.ts";
import { maskSecret } from "../../seal.ts";
import type { Seal } from "../../seal.ts";
import type { Values } from "../../config.ts";

const host = z
  .string()
  .max(2000)
  .refine(
    (value) => value === "" || addressOf(value, 6333) !== null,
    "must be a host name or an http(s) URL",
  );

/** What a PUT takes: any subset, strictly. `apiKey: ""` removes the key. */
export const qdrantSettingsPatch = z.strictObject({
  enabled: z.boolean().optional(),
  host: host.optional(),
  port: z.int().min(1).max(65_535).optional(),
  collection: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,255}$/, "must be 1 to 255 of A-Z, a-z, 0-9, dash, underscore")
    .optional(),
  embeddingModel: z
    .string()
    .max(300)
    .regex(/^[a-z0-9][a-z0-9._-]{0,63}\/.+$/, "must be provider/model, local/static or local/transformers")
    .nullable()
    .optional(),
  quantization: z.enum(["none", "int8", "binary"]).optional(),
  apiKey: z.string().max(1000).optional(),
});
export type QdrantSettingsPatch = z.infer<typeof qdrantSettingsPatch>;

/** As every face shows them. */
export type QdrantSettings = {
  enabled: boolean;
  host: string;
  port: number;
  collection: string;
  embeddingModel: string | null;
  quantization: "none" | "int8" | "binary";
  hasApiKey: boolean;
  apiKeyMasked: string | null;
};

/** As the engine uses them: `url` is null while no host is set. */
export type QdrantConnection = Omit<QdrantSettings, "hasApiKey" | "apiKeyMasked"> & {
  url: string | null;
  apiKey: string | null;
  efConstruct: number | null;
};

const GROUP = "qdrant";

type FirstValues = Pick<
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

/** Stores any subset; 400 names the field. `enabled` moves the memory setting `vectorStore` with it. */
export function writeQdrant(
  db: Database,
  first: FirstValues,
  seal: Seal,
  patch: QdrantSettingsPatch,
): QdrantConnection {
  return transact(db, () => {
    const { enabled, apiKey, ...plain } = patch;
    const before = readQdrant(db, first, seal);
    for (const [name, given] of Object.entries(plain))
      if (given !== undefined) writeSetting(db, `${GROUP}:${name}`, given);
    // What a form was shown comes back unchanged; it is not a new key.
    if (apiKey !== undefined && (before.apiKey === null || apiKey !== maskSecret(before.apiKey)))
      writeSetting(
        db,
        `${GROUP}:apiKey`,
        apiKey === "" ? "" : Buffer.from(seal.seal(apiKey)).toString("base64"),
      );
    const after = readQdrant(db, first, seal);
    const on = enabled ?? before.enabled;
    if (on && after.url === null) throw invalid("host", "is needed while Qdrant is enabled");
    if (enabled !== undefined && enabled !== before.enabled)
      writeMemorySettings(db, { vectorStore: enabled ? "qdrant" : "auto" });
    return readQdrant(db, first, seal);
  });
}

/** `http(s)://host:port[/prefix]` of a name or URL, or null when it is neither. A URL's own port wins. */
export function addressOf(hostName: string, port: number): string | null {
  const text = hostName.trim();
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`);
  if (
    !url ||
    !["http:", "https:"].includes(url.protocol) ||
    url.hostname === "" ||
    url.username !== "" ||
    url.search !== ""
  )
    return null;
  // `URL` drops a port that is its protocol's default, so the written text decides whether one was given.
  const given = /:(\d+)(?:\/|$)/.exec(text.replace(/^[a-z]+:\/\//i, ""))?.[1];
  return `${url.protocol}//${url.hostname}:${given ?? port}${url.pathname === "/" ? "" : url.pathname.replace(/\/+$/, "")}`;
}
