/** What grows is cut back: expired and outlived memories, receipts, injected blocks. A few rows a slice, once an hour. */
import { breathe } from "./breathe.ts";
import type { Database } from "bun:sqlite";
import { memoryById } from "../db/memories.ts";
import { transact } from "../db/open.ts";
import { settleTombstones } from "../db/tombstones.ts";
import { DAY_MS } from "../db/time.ts";
import type { Log } from "../log.ts";
import { deleteForGood } from "./delete.ts";
import type { MemorySettings } from "./settings.ts";
import type { Store } from "./store.ts";

const HOUR_MS = 3_600_000;
/** Receipts are kept 30 days, blocks a day, usage rows two years. */
const RECEIPT_MS = 30 * DAY_MS;
const BLOCK_MS = DAY_MS;
const USAGE_MS = 730 * DAY_MS;
/** An expired memory is out of every reading at once; its row goes a day later. */
const EXPIRED_MS = DAY_MS;
const SLICE = 100;

export type HousekeepingDeps = {
  db: Database;
  store: Store;
  log: Log;
  settings: () => MemorySettings;
  now: () => number;
  /** More to do once a night (summaries). */
  nightly?: () => Promise<void>;
};

export function createHousekeeping(deps: HousekeepingDeps) {
  const { db, log, now } = deps;
  let timer: ReturnType<typeof setInterval> | null = null;
  let running: Promise<unknown> = Promise.resolve();
  let lastNight = "";
  let stopped = false;

  /** Repeats a deletion of a slice until it finds nothing more; other calls run between two slices. */
  async function sweep(slice: () => number): Promise<number> {
    let total = 0;
    while (!stopped) {
      const n = transact(db, slice);
      total += n;
      if (n < SLICE) break;
      await breathe();
    }
    return total;
  }

  const removeOlder =
    (table: string, column: string, before: number, and = "") =>
    () =>
      db
        .query(
          `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${column} < ? ${and} LIMIT ${SLICE})`,
        )
        .run(before).changes;

  function removeMemories(where: string, before: number): () => number {
    return () => {
      const ids = db
        .query<{ id: string }, [number]>(`SELECT id FROM memories WHERE ${where} LIMIT ${SLICE}`)
        .all(before);
      for (const { id } of ids) {
        const row = memoryById(db, null, id);
        // Time took it, not a person: no tombstone forbids learning it again.
        if (row) deleteForGood(db, deps.store, row, { episode: "keep", at: now(), bury: false });
      }
      return ids.length;
    };
  }

  /** One round. Resolves to what was removed. */
  async function run(): Promise<{ memories: number; receipts: number }> {
    const at = now();
    const { deleteAfterDays } = deps.settings();
    let memories = await sweep(removeMemories("expires_at < ?", at - EXPIRED_MS));
    if (deleteAfterDays !== null) {
      memories += await sweep(
        removeMemories("confirmed_at < ? AND pinned = 0", at - deleteAfterDays * DAY_MS),
      );
    }
    const receipts = await sweep(() => {
      const ids = db
        .query<{ id: string }, [number]>(`SELECT id FROM receipts WHERE created_at < ? LIMIT ${SLICE}`)
        .all(at - RECEIPT_MS);
      const remove = db.query("DELETE FROM receipts WHERE id = ?");
      for (const { id } of ids) remove.run(id);
      return ids.length;
    });
    await sweep(() => {
      const { changes } = db.query("DELETE FROM blocks WHERE used_at < ?").run(at - BLOCK_MS);
      return Math.min(changes, SLICE - 1);
    });
    settleTombstones(db, at);
    await sweep(removeOlder("usage", "created_at", at - USAGE_MS));
    const night = new Date(at).toISOString().slice(0, 10);
    if (deps.nightly && night !== lastNight && new Date(at).getUTCHours() >= 3) {
      lastNight = night;
      await deps.nightly();
    }
    if (memories + receipts > 0) log.info("housekeeping", { memories, receipts });
    return { memories, receipts };
  }

  return {
    run,
    start(): void {
      const round = () => {
        if (stopped) return;
        running = running.then(run).catch((error: unknown) => log.error("housekeeping.failed", { error }));
      };
      timer = setInterval(round, HOUR_MS);
      // The first round waits until the start is over.
      setTimeout(round, 60_000).unref?.();
    },
    async stop(): Promise<void> {
      stopped = true;
      if (timer) clearInterval(timer);
      await running;
    },
  };
}
