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
