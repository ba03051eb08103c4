/** Turns of a session that wait until enough of them can be shown to a model at once (setting `extractEveryTurns`). */
import type { Database } from "bun:sqlite";
import { getMeta, setMeta } from "../db/meta.ts";

/** A batch that is not full is read once its session was quiet for this long. */
export const QUIET_MS = 10 * 60_000;

export type Batch<T> = { turns: T[]; lastAt: number };

/** Name of the batch of one owner's session. */
export const batchName = (ownerId: number, sessionId: string | null): string =>
  `batch:${ownerId}:${sessionId ?? ""}`;

export function readBatch<T>(db: Database, name: string): Batch<T> {
  const kept = getMeta(db, name);
  return typeof kept === "string" ? (JSON.parse(kept) as Batch<T>) : { turns: [], lastAt: 0 };
}

/** Adds a turn inside the caller's transaction and gives the batch as it is now. */
export function addTurn<T>(db: Database, name: string, turn: T, at: number): Batch<T> {
  const batch = readBatch<T>(db, name);
  const next = { turns: [...batch.turns, turn], lastAt: at };
  setMeta(db, name, JSON.stringify(next));
  return next;
}

/** Takes out the first `n` turns, which were read, and leaves what came since. */
export function dropTurns(db: Database, name: string, n: number): void {
  const batch = readBatch(db, name);
  if (batch.turns.length <= n) db.query("DELETE FROM meta WHERE name = ?").run(name);
  else setMeta(db, name, JSON.stringify({ ...batch, turns: batch.turns.slice(n) }));
}
