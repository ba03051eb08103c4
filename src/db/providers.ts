/** Rows of `providers`. Secrets are sealed before they come here and opened by the caller. */
import type { Database } from "bun:sqlite";

export type ProviderRow = {
  id: string;
  base_url: string;
  api_key: Uint8Array | null;
  headers: Uint8Array | null;
  wire: string;
  system_role: string;
  models: string | null;
  timeouts: string | null;
  fallbacks: string;
  prices: string | null;
  passthrough_auth: number;
  enabled: number;
  is_default: number;
  learned: string;
  created_at: number;
  updated_at: number;
};

/** Oldest first. */
export function listProviderRows(db: Database): ProviderRow[] {
  return db.query<ProviderRow, []>("SELECT * FROM providers ORDER BY created_at, id").all();
}

export function providerRow(db: Database, id: string): ProviderRow | null {
  return db.query<ProviderRow, [string]>("SELECT * FROM providers WHERE id = ?").get(id);
}

/** Writes a row whole. A new default takes the mark from the old one. */
export function putProviderRow(db: Database, row: ProviderRow): void {
  if (row.is_default) db.query("UPDATE providers SET is_default = 0 WHERE id <> ?").run(row.id);
  db.query(
    `INSERT OR REPLACE INTO providers (id, base_url, api_key, headers, wire, system_role, models, timeouts, fallbacks, prices,
       passthrough_auth, enabled, is_default, learned, created_at, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    row.id,
    row.base_url,
    row.api_key,
    row.headers,
    row.wire,
    row.system_role,
    row.models,
    row.timeouts,
    row.fallbacks,
    row.prices,
    row.passthrough_auth,
    row.enabled,
    row.is_default,
    row.learned,
    row.created_at,
    row.updated_at,
  );
}

export function deleteProviderRow(db: Database, id: string): boolean {
  return db.query("DELETE FROM providers WHERE id = ?").run(id).changes > 0;
}

/** Keeps what was learned about a server, unless the provider was edited meanwhile. */
export function writeLearned(db: Database, id: string, updatedAt: number, learned: string): void {
  db.query("UPDATE providers SET learned = ? WHERE id = ? AND updated_at = ?").run(learned, id, updatedAt);
}

/** A text that changes when a provider is added, edited or removed. */
export function providersStamp(db: Database): string {
  return (
    db
      .query<{ text: string | null }, []>(
        "SELECT group_concat(id || ' ' || updated_at) AS text FROM providers",
      )
      .get()!.text ?? ""
  );
}
