/** Which id a memory has in another system, where that did not keep ours. */
import type { Database } from "bun:sqlite";

export function remoteId(db: Database, backend: string, memoryId: string): string | null {
  return (
    db
      .query<{ remote_id: string }, [string, string]>(
        "SELECT remote_id FROM backend_ids WHERE backend = ? AND memory_id = ?",
      )
      .get(backend, memoryId)?.remote_id ?? null
  );
}

export function memoryIdOf(db: Database, backend: string, remote: string): string | null {
  return (
    db
      .query<{ memory_id: string }, [string, string]>(
        "SELECT memory_id FROM backend_ids WHERE backend = ? AND remote_id = ?",
      )
      .get(backend, remote)?.memory_id ?? null
  );
}

export function mapIds(db: Database, backend: string, remote: string, memoryId: string): void {
  db.query(
    "INSERT INTO backend_ids (backend, remote_id, memory_id) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET memory_id = excluded.memory_id",
  ).run(backend, remote, memoryId);
}

export function forgetIds(db: Database, backend: string, memoryId: string): void {
  db.query("DELETE FROM backend_ids WHERE backend = ? AND memory_id = ?").run(backend, memoryId);
}
