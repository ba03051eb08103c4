/** Everything of an owner, and of the people behind it, deleted for good. */
import type { Database } from "bun:sqlite";
import type { Conversations } from "../conversations/engine.ts";
import { emptyLog, transact } from "../db/open.ts";
import { ownersOfKey } from "../db/owners.ts";
import type { createMemories } from "./lifecycle.ts";
import type { Purge } from "./purge.ts";

const PAGE = 500;

export type EraserDeps = {
  db: Database;
  memories: Pick<ReturnType<typeof createMemories>, "bulkDelete">;
  conversations: Pick<Conversations, "deleteSession" | "deleteEntity">;
  purge: Purge;
};

export function createOwnerEraser({ db, memories, conversations, purge }: EraserDeps) {
  const ids = <T>(table: "memories" | "sessions" | "entities", owner: number) =>
    db
      .query<{ id: T }, [number]>(`SELECT id FROM ${table} WHERE owner_id = ? LIMIT ${PAGE}`)
      .all(owner)
      .map((row) => row.id);

  async function eraseOne(owner: { id: number; name: string }): Promise<number> {
    let deleted = 0;
    for (let page = ids<number>("sessions", owner.id); page.length > 0; page = ids("sessions", owner.id)) {
      for (const id of page)
        await conversations.deleteSession({ owner: owner.name, id, memories: false, partOfMany: true });
    }
    for (let page = ids<number>("entities", owner.id); page.length > 0; page = ids("entities", owner.id)) {
      for (const id of page) await conversations.deleteEntity({ owner: owner.name, id });
    }
    for (let page = ids<string>("memories", owner.id); page.length > 0; page = ids("memories", owner.id)) {
      const selection = { ids: page };
      const done = await memories.bulkDelete({
        owner: owner.name,
        selection,
        dryRun: false,
        partOfMany: true,
      });
      deleted += done.deleted;
    }
    transact(db, () => {
      for (const table of ["receipts", "blocks", "tombstones"]) {
        db.query(`DELETE FROM ${table} WHERE owner_id = ?`).run(owner.id);
      }
      db.query("DELETE FROM jobs WHERE owner_id = ? AND type = 'extract'").run(owner.id);
    });
    return deleted;
  }

  return {
    /** `owner` is the id of a key. Usage rows stay: they hold counts, no text. */
    async erase(input: { owner: string }): Promise<{ memories: number }> {
      let deleted = 0;
      for (const owner of ownersOfKey(db, input.owner)) deleted += await eraseOne(owner);
      await purge.finish(["episodes", "memories"]);
      emptyLog(db);
      return { memories: deleted };
    },
  };
}
