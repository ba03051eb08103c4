/** The review inbox: what waits for a person is approved on the current version, or goes. */
import type { Database } from "bun:sqlite";
import { activeByKey, memoryById, toMemory } from "../db/memories.ts";
import type { MemoryRow } from "../db/memories.ts";
import { countQuality } from "../db/quality.ts";
import { AppError, conflict } from "../error.ts";
import { deleteForGood } from "./delete.ts";
import { hush } from "./hush.ts";
import type { HushDeps } from "./hush.ts";
import type { Caller } from "./listing.ts";
import { heldAgain } from "./store.ts";
import type { Store } from "./store.ts";
import type { JsonObject, Memory } from "./types.ts";

/** `find` gives a row that the caller may see, or throws; `write` runs a transaction. */
export type ReviewDeps = {
  db: Database;
  store: Store;
  now: () => number;
  find: (caller: Caller, id: string) => MemoryRow;
  write: <T>(work: () => T) => T;
  told: HushDeps["told"];
};

export function createReview({ db, store, now, find, write, told }: ReviewDeps) {
  /** Approves a pending memory on the current version: where an active one holds its key by now, that one is updated. */
  async function approve(input: Caller & { id: string }): Promise<Memory> {
    return write(() => toMemory(approveRow(pending(input, input.id))));
  }

  async function reject(input: Caller & { id: string }): Promise<{ success: true }> {
    write(() => rejectRow(pending(input, input.id)));
    return { success: true };
  }

  async function review(
    input: Caller & { ids: string[]; action: "approve" | "reject" },
  ): Promise<{ done: number; failed: { id: string; message: string }[] }> {
    const failed: { id: string; message: string }[] = [];
    let done = 0;
    for (const id of input.ids) {
      try {
        write(() => {
          const row = pending(input, id);
          if (input.action === "approve") approveRow(row);
          else rejectRow(row);
        });
        done++;
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        failed.push({ id, message: error.message });
      }
    }
    return { done, failed };
  }

  function pending(caller: Caller, id: string): MemoryRow {
    const row = find(caller, id);
    if (row.status !== "pending") throw conflict("This memory does not wait for review.", "status");
    return row;
  }

  function approveRow(row: MemoryRow): MemoryRow {
    const metadata = JSON.parse(row.metadata) as JsonObject;
    if (metadata["forget"] === true) {
      for (const id of Array.isArray(metadata["matches"]) ? metadata["matches"] : []) {
        const match = typeof id === "string" ? memoryById(db, row.owner_id, id) : null;
        if (match?.status !== "active") continue;
        store.setStatus(match, "archived", "forget");
        hush({ db, store, told }, match, row.episode_id);
      }
      return store.setStatus(row, "archived", "approve");
    }
    const holder = row.key === null ? null : activeByKey(db, row.owner_id, row.key);
    if (!holder) return store.edit(store.setStatus(row, "active", "approve"), { by_hand: 1 }, "approve");
    const merged = { ...(JSON.parse(holder.metadata) as JsonObject), ...metadata };
    const updated = store.edit(
      holder,
      {
        ...heldAgain(holder, now()),
        content: row.content,
        type: row.type,
        metadata: JSON.stringify(merged),
        // What it says now came from there: its deletion reaches that exchange.
        origin: row.origin,
        ...(row.episode_id === null ? {} : { episode_id: row.episode_id }),
        ...(row.pinned === 1 ? { pinned: 1 } : {}),
        by_hand: 1,
      },
      "approve",
    );
    store.purge(row, updated);
    return updated;
  }

  function rejectRow(row: MemoryRow): void {
    deleteForGood(db, store, row, { episode: "keep", at: now() });
    countQuality(db, "rejected", 1, now());
  }

  return { approve, reject, review };
}
