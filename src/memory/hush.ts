/** What was forgotten stays out of recall in every form: its block, and the exchanges that say it. */
import type { Database } from "bun:sqlite";
import type { MemoryRow } from "../db/memories.ts";
import { duplicateKey } from "../extract/duplicates.ts";
import type { Store } from "./store.ts";
import { wipeBlocks } from "./wipe.ts";

export type HushDeps = {
  db: Database;
  store: Pick<Store, "dropEpisode">;
  /** Ids of exchanges that hold every one of these words, newest first. */
  told: (ownerId: number, words: readonly string[], limit: number) => number[];
};

const MOST_TOLD = 50;

/** `episodeId` is the exchange that asked for it. Exchanges that say it, that one among them, are not recalled in its place. */
export function hush({ db, store, told }: HushDeps, forgotten: MemoryRow, episodeId: number | null): void {
  const owner = forgotten.owner_id;
  // Nor put back into a conversation that had it.
  wipeBlocks(db, owner, forgotten.id);
  const words = duplicateKey(forgotten.content).split(" ");
  // A single word says no statement.
  const saying = words.length < 2 ? [] : told(owner, words, MOST_TOLD);
  for (const id of new Set([forgotten.episode_id, episodeId, ...saying])) {
    if (id !== null) store.dropEpisode({ owner, id, row: "mute" });
  }
}
