/** Takes the text of what was deleted out of the copies that receipts and stored blocks hold. */
import type { Database } from "bun:sqlite";

export type Candidate = { kind: string; id: string; text?: string };

/** Takes a memory's text out of the receipts that hold a copy; ids, ranks and counts stay. */
export function wipeReceipts(db: Database, row: { id: string }, kind = "memory"): void {
  const held = db
    .query<{ id: string; candidates: string }, [string, string]>(
      "SELECT r.id, r.candidates FROM receipt_uses u JOIN receipts r ON r.id = u.receipt_id WHERE u.kind = ? AND u.ref = ?",
    )
    .all(kind, row.id);
  const update = db.query("UPDATE receipts SET text = NULL, candidates = ? WHERE id = ?");
  for (const receipt of held) {
    const candidates = (JSON.parse(receipt.candidates) as Candidate[]).map((candidate) => {
      if (candidate.kind !== kind || candidate.id !== row.id) return candidate;
      const { text: _, ...rest } = candidate;
      return rest;
    });
    update.run(JSON.stringify(candidates), receipt.id);
  }
}

/** Removes the stored blocks that hold a memory (`ref` its uuid) or a recalled exchange (`ref` `"episode:<id>"`). */
export function wipeBlocks(db: Database, owner: number, ref: string): void {
  db.query("DELETE FROM blocks WHERE owner_id = ? AND instr(memory_ids, ?) > 0").run(owner, ref);
}

/** The same for many exchanges at once: one look at the owner's blocks instead of one for each. */
export function wipeBlocksOfEpisodes(db: Database, owner: number, ids: readonly number[]): void {
  const refs = new Set(ids.map((id) => `episode:${id}`));
  const remove = db.query("DELETE FROM blocks WHERE owner_id = ? AND hash = ?");
  const blocks = db
    .query<{ hash: Uint8Array; memory_ids: string }, [number]>(
      "SELECT hash, memory_ids FROM blocks WHERE owner_id = ? AND instr(memory_ids, 'episode:') > 0",
    )
    .all(owner);
  for (const block of blocks) {
    if ((JSON.parse(block.memory_ids) as string[]).some((ref) => refs.has(ref)))
      remove.run(owner, block.hash);
  }
}
