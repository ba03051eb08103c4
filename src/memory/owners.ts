/** Merging two owners: everything of one becomes the other's, in short transactions. */
import { breathe } from "./breathe.ts";
import type { Database } from "bun:sqlite";
import { activeByKey, memoryById } from "../db/memories.ts";
import { memoriesAfter } from "../db/memory-list.ts";
import { transact } from "../db/open.ts";
import { ensureOwner, ownerId } from "../db/owners.ts";
import type { Store } from "./store.ts";
import type { JsonObject } from "./types.ts";

const BATCH = 200;

export function createOwners(deps: { db: Database; store: Store }) {
  const { db, store } = deps;

  /**
   * Moves memories and sessions of `from` to `to`. Where both have an active memory of one key, the one confirmed last
   * stays active and the other becomes superseded by it. Ids stay.
   */
  async function merge(input: { from: string; to: string }): Promise<{ memories: number; sessions: number }> {
    const source = ownerId(db, input.from);
    if (source === null) return { memories: 0, sessions: 0 };
    const target = ensureOwner(db, input.to);
    let memories = 0;
    for (;;) {
      const moved = transact(db, () => {
        const rows = memoriesAfter(db, { ownerId: source }, 0, BATCH);
        for (const row of rows) moveOne(row.id, source, target);
        return rows.length;
      });
      memories += moved;
      if (moved < BATCH) break;
      await breathe();
    }
    const sessions = transact(db, () => moveSessions(source, target));
    return { memories, sessions };
  }

  function moveOne(id: string, source: number, target: number): void {
    const row = memoryById(db, source, id)!;
    const holder = row.status === "active" && row.key !== null ? activeByKey(db, target, row.key) : null;
    if (holder) {
      const [newer, older] = holder.confirmed_at >= row.confirmed_at ? [holder, row] : [row, holder];
      store.setStatus(older, "superseded", "merge", newer.id);
    }
    const current = memoryById(db, source, id)!;
    store.move(current, target);
  }

  function moveSessions(source: number, target: number): number {
    // Both may have imported the same file: the number of a line is one owner's once.
    db.query(
      `UPDATE episodes SET import_id = NULL WHERE owner_id = ?1
       AND import_id IN (SELECT import_id FROM episodes WHERE owner_id = ?2)`,
    ).run(source, target);
    type Row = { id: number; external_id: string; metadata: string };
    const rows = db
      .query<Row, [number]>("SELECT id, external_id, metadata FROM sessions WHERE owner_id = ?")
      .all(source);
    for (const row of rows) {
      const same = db
        .query<{ id: number; metadata: string }, [number, string]>(
          "SELECT id, metadata FROM sessions WHERE owner_id = ? AND external_id = ?",
        )
        .get(target, row.external_id);
      if (same) {
        const metadata = {
          ...(JSON.parse(row.metadata) as JsonObject),
          ...(JSON.parse(same.metadata) as JsonObject),
        };
        db.query("UPDATE sessions SET metadata = ? WHERE id = ?").run(JSON.stringify(metadata), same.id);
        for (const table of ["episodes", "summaries"]) {
          db.query(`UPDATE ${table} SET session_id = ?, owner_id = ? WHERE session_id = ?`).run(
            same.id,
            target,
            row.id,
          );
        }
        db.query("DELETE FROM sessions WHERE id = ?").run(row.id);
      } else {
        db.query("UPDATE sessions SET owner_id = ? WHERE id = ?").run(target, row.id);
        for (const table of ["episodes", "summaries"]) {
          db.query(`UPDATE ${table} SET owner_id = ? WHERE session_id = ?`).run(target, row.id);
        }
      }
    }
    for (const table of ["receipts", "usage"]) {
      db.query(`UPDATE ${table} SET owner_id = ? WHERE owner_id = ?`).run(target, source);
    }
    db.query("DELETE FROM session_turns WHERE owner_id = ?").run(source);
    db.query("DELETE FROM blocks WHERE owner_id = ?").run(source);
    moveEntities(source, target);
    return rows.length;
  }

  /** What both know by the same name becomes one, as the two speakers do. */
  function moveEntities(source: number, target: number): void {
    const rows = db.query<EntityRow, [number]>(`${ENTITY} WHERE owner_id = ?`).all(source);
    const named = db.query<EntityRow, [number, string, string]>(
      `${ENTITY} WHERE owner_id = ? AND name = ? AND type = ?`,
    );
    const speaker = db
      .query<EntityRow, [number]>(
        `${ENTITY} WHERE owner_id = ? AND json_extract(metadata, '$.self') = 1 ORDER BY id`,
      )
      .get(target);
    for (const row of rows) {
      const metadata = JSON.parse(row.metadata) as JsonObject;
      const same = (metadata["self"] === true ? speaker : null) ?? named.get(target, row.name, row.type);
      if (!same) {
        db.query("UPDATE entities SET owner_id = ? WHERE id = ?").run(target, row.id);
        db.query("UPDATE entity_names SET owner_id = ? WHERE entity_id = ?").run(target, row.id);
        continue;
      }
      const kept = db.query<EntityRow, [number]>(`${ENTITY} WHERE id = ?`).get(same.id)!;
      const before = JSON.parse(kept.metadata) as JsonObject;
      db.query("UPDATE entities SET notes = COALESCE(notes, ?2), metadata = ?3 WHERE id = ?1").run(
        same.id,
        row.notes,
        JSON.stringify({ ...metadata, ...before, ...lists(metadata, before) }),
      );
      db.query("UPDATE OR IGNORE entity_names SET owner_id = ?, entity_id = ? WHERE entity_id = ?").run(
        target,
        same.id,
        row.id,
      );
      db.query("UPDATE OR IGNORE relationships SET from_id = ? WHERE from_id = ?").run(same.id, row.id);
      db.query("UPDATE OR IGNORE relationships SET to_id = ? WHERE to_id = ?").run(same.id, row.id);
      db.query("DELETE FROM entities WHERE id = ?").run(row.id);
    }
  }

  return { merge };
}

type EntityRow = { id: number; name: string; type: string; notes: string | null; metadata: string };
const ENTITY = "SELECT id, name, type, notes, metadata FROM entities";

/** The lists that both hold, as one each. */
function lists(one: JsonObject, other: JsonObject): JsonObject {
  const joined: JsonObject = {};
  for (const name of ["aliases", "episodeIds"]) {
    const [a, b] = [one[name], other[name]];
    if (Array.isArray(a) && Array.isArray(b)) joined[name] = [...new Set([...b, ...a])];
  }
  return joined;
}
