/** Deleting for good: the row, its history, every copy of its text, and the proof that nothing is left. */
import type { Database } from "bun:sqlite";
import type { MemoryRow } from "../db/memories.ts";
import { bury } from "../db/tombstones.ts";
import type { Store } from "./store.ts";
import { wipeBlocks, wipeReceipts } from "./wipe.ts";
import type { Candidate } from "./wipe.ts";

export type QdrantProof = "confirmed" | "pending" | "off";

/** Each number is what was found afterwards; all are 0 when the deletion is whole. */
export type DeletionProof = {
  row: number;
  history: number;
  fts: number;
  vectors: number;
  receipts: number;
  blocks: number;
  episodes: number;
  qdrant: QdrantProof;
};

/** What becomes of the exchange a deleted memory came from: never recalled again (`mute`), removed, or left alone. */
export type EpisodeFate = "mute" | "delete" | "keep";

/** Counts index rows of a memory that is gone; the search module knows its own tables. */
export type IndexProbe = (db: Database, seq: number) => { fts: number; vectors: number };

/**
 * Removes one memory for good, inside the caller's transaction. The exchange it came from shares its fate as told. What is said anew after this moment may be learned again.
 */
export function deleteForGood(
  db: Database,
  store: Store,
  row: MemoryRow,
  options: { episode: EpisodeFate; at: number; bury?: boolean },
): void {
  if (options.bury !== false) buryAll(db, row, options.at);
  wipeReceipts(db, row);
  wipeBlocks(db, row.owner_id, row.id);
  if (row.episode_id !== null && options.episode !== "keep") {
    store.dropEpisode({ owner: row.owner_id, id: row.episode_id, row: options.episode });
  }
  store.purge(row);
}

/** Remembers the memory and all its earlier contents as deleted. */
function buryAll(db: Database, row: MemoryRow, at: number): void {
  bury(db, row.owner_id, row.key, row.content, at);
  const versions = db.query<{ key: string | null; content: string }, [number]>(
    "SELECT key, content FROM memory_versions WHERE memory_seq = ?",
  );
  for (const version of versions.all(row.seq)) bury(db, row.owner_id, version.key, version.content, at);
}

/** Looks everywhere for what was deleted. `qdrant` is the outbox's word. */
export function proveDeletion(
  db: Database,
  row: MemoryRow,
  probe: IndexProbe,
  source: boolean,
  qdrant: QdrantProof,
): DeletionProof {
  const count = (sql: string, ...values: (string | number)[]) =>
    db.query<{ n: number }, (string | number)[]>(`SELECT count(*) AS n FROM ${sql}`).get(...values)!.n;
  const texts = db
    .query<{ text: string | null; candidates: string }, [string]>(
      "SELECT r.text, r.candidates FROM receipt_uses u JOIN receipts r ON r.id = u.receipt_id WHERE u.kind = 'memory' AND u.ref = ?",
    )
    .all(row.id)
    .filter(
      (receipt) =>
        receipt.text !== null ||
        (JSON.parse(receipt.candidates) as Candidate[]).some(
          (c) => c.kind === "memory" && c.id === row.id && c.text !== undefined,
        ),
    );
  return {
    row: count("memories WHERE id = ?", row.id),
    history: count("memory_versions WHERE memory_seq = ?", row.seq),
    ...probe(db, row.seq),
    receipts: texts.length,
    blocks: count("blocks WHERE owner_id = ? AND instr(memory_ids, ?) > 0", row.owner_id, row.id),
    episodes:
      row.episode_id === null
        ? 0
        : count(`episodes WHERE id = ?${source ? "" : " AND recall = 1"}`, row.episode_id),
    qdrant,
  };
}
