/** What was deleted for good, as hashes: an exchange older than the deletion does not teach it again. */
import type { Database } from "bun:sqlite";
import { AHEAD_MS } from "./time.ts";
import { collapse, fold } from "../text/fold.ts";

/** Hashes under which a memory is remembered as deleted: its key's and its folded content's. */
function hashes(ownerId: number, key: string | null, content: string): Uint8Array[] {
  const texts = [`content\n${collapse(fold(content))}`, ...(key === null ? [] : [`key\n${key}`])];
  return texts.map((text) => new Bun.CryptoHasher("sha256").update(`${ownerId}\n${text}`).digest());
}

export function bury(db: Database, ownerId: number, key: string | null, content: string, at: number): void {
  const insert = db.query(
    "INSERT INTO tombstones (owner_id, hash, at) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at",
  );
  for (const hash of hashes(ownerId, key, content)) insert.run(ownerId, hash, at);
}

/** Deletions that are still to come, by a clock that has been put back since, happened by now. */
export function settleTombstones(db: Database, now: number): void {
  db.query("UPDATE tombstones SET at = ?1 WHERE at > ?1 + ?2").run(now, AHEAD_MS);
}

/** True when a statement made at `saidAt` was deleted at that time or later. */
export function isBuried(
  db: Database,
  ownerId: number,
  key: string | null,
  content: string,
  saidAt: number,
): boolean {
  const find = db.query<{ at: number }, [number, Uint8Array]>(
    "SELECT at FROM tombstones WHERE owner_id = ? AND hash = ?",
  );
  return hashes(ownerId, key, content).some((hash) => (find.get(ownerId, hash)?.at ?? -1) >= saidAt);
}
