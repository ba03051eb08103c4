/**
 * OmniRoute: a JSON export of memories, or its SQLite file with the table `memories` (or the older `memory`). Each
 * memory names the API key that owned it.
 */
import { Database } from "bun:sqlite";
import { memoryTypes } from "../memory/types.ts";
import type { MemoryType } from "../memory/types.ts";
import type { MemorySettingsPatch } from "../memory/settings.ts";
import type { Line, Piece } from "./types.ts";
import { given, isLoose, objectOf, textOf, timeOf, uuidOf } from "./values.ts";
import type { Loose } from "./values.ts";

/** One memory and its owner, or why it is none. Fields in snake case, as in the tables, or camel case, as in the API. */
export function readOmniroute(value: unknown): { lines: Line[]; owner: string | undefined } | string {
  if (!isLoose(value)) return "is no memory";
  const content = textOf(value, "content");
  if (content === undefined) return "has no content";
  const type = memoryTypes.find((one) => one === value["type"]);
  const expiresAt = timeOf(value["expires_at"] ?? value["expiresAt"]);
  return {
    owner: textOf(value, "api_key_id", "apiKeyId"),
    lines: [
      {
        kind: "memory",
        content,
        ...given({
          id: uuidOf(value["id"]),
          key: textOf(value, "key"),
          type: type as MemoryType | undefined,
          sessionId: textOf(value, "session_id", "sessionId"),
          metadata: objectOf(value["metadata"]),
          createdAt: timeOf(value["created_at"] ?? value["createdAt"]),
          expiresAt,
        }),
      },
    ],
  };
}

/** The rows of the SQLite file, one at a time; it is opened for reading only. */
export function* omnirouteRows(file: string): Generator<Piece> {
  const db = new Database(file, { readonly: true });
  try {
    const table = ["memories", "memory"].find((name) => hasTable(db, name));
    if (table === undefined) throw new TypeError(`${file} has no table memories or memory.`);
    let item = 0;
    for (const row of db.query<Loose, []>(`SELECT * FROM ${table}`).iterate()) {
      item++;
      const read = readOmniroute(row);
      if (typeof read === "string") yield { item, refused: read };
      else
        for (const line of read.lines)
          yield { item, line, ...(read.owner === undefined ? {} : { owner: read.owner }) };
    }
  } finally {
    db.close();
  }
}

/** Setting by its key in OmniRoute's table `key_value` (namespace `settings`). */
const settingNames: Record<string, keyof MemorySettingsPatch> = {
  memoryEnabled: "enabled",
  memoryMaxTokens: "maxTokens",
  memoryRetentionDays: "retentionDays",
  memoryStrategy: "strategy",
  memoryEmbeddingSource: "embeddingSource",
  memoryEmbeddingProviderModel: "embeddingProviderModel",
  memoryTransformersEnabled: "transformersEnabled",
  memoryStaticEnabled: "staticEnabled",
  memoryRerankEnabled: "rerankEnabled",
  memoryRerankProviderModel: "rerankProviderModel",
  memoryVectorStore: "vectorStore",
  skillsEnabled: "skillsEnabled",
};

/** The memory settings of the file, unchecked; the caller validates them. */
export function omnirouteSettings(file: string): Loose {
  const db = new Database(file, { readonly: true });
  try {
    if (!hasTable(db, "key_value")) return {};
    const rows = db
      .query<{ key: string; value: string }, []>(
        "SELECT key, value FROM key_value WHERE namespace = 'settings'",
      )
      .all();
    const found: Loose = {};
    for (const { key, value } of rows) {
      const name = settingNames[key];
      if (name !== undefined) found[name] = parsed(value);
    }
    return found;
  } finally {
    db.close();
  }
}

function parsed(value: string): unknown {
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

function hasTable(db: Database, name: string): boolean {
  return db.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== null;
}
