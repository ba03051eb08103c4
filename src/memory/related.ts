/** What belongs to memories and exchanges without being one of their fields: chains, holders of a key, what was learned. */
import type { Database } from "bun:sqlite";
import { activeByKey, memoriesOfEpisode, memoryById, memoryColumns, toMemory } from "../db/memories.ts";
import type { MemoryRow } from "../db/memories.ts";
import { ownerId } from "../db/owners.ts";
import { notFound } from "../error.ts";
import type { Caller } from "./listing.ts";
import type { Kind, Memory } from "./types.ts";

/** Rows of a chain that are given at most; a summary may stand for thousands. */
const CHAIN_MAX = 100;

export function createRelated({ db }: { db: Database }) {
  const owned = (caller: Caller, name: string) => caller.owner === null || caller.owner === name;

  function find(caller: Caller, id: string): MemoryRow {
    const row = memoryById(db, null, id);
    if (!row || !owned(caller, row.owner)) throw notFound("memory");
    return row;
  }

  return {
    /** What a memory replaced (newest first, 100 at most), what replaced it, and its size in tokens. */
    async chain(
      input: Caller & { id: string },
    ): Promise<{ replaced: Memory[]; replacedBy: Memory | null; tokens: number }> {
      const row = find(input, input.id);
      const replaced = db
        .query<MemoryRow, [string, number, number]>(
          `SELECT ${memoryColumns} FROM memories m JOIN owners o ON o.id = m.owner_id
           WHERE m.superseded_by = ? AND +m.owner_id = ? ORDER BY m.updated_at DESC, m.seq DESC LIMIT ?`,
        )
        .all(row.id, row.owner_id, CHAIN_MAX)
        .map(toMemory);
      const by = row.superseded_by === null ? null : memoryById(db, row.owner_id, row.superseded_by);
      return { replaced, replacedBy: by ? toMemory(by) : null, tokens: row.tokens };
    },

    /** By id of a waiting memory, the active one that approving it would update. */
    async holders(input: Caller & { ids: string[] }): Promise<Record<string, Memory>> {
      const held: Record<string, Memory> = {};
      for (const id of input.ids) {
        const row = memoryById(db, null, id);
        if (!row || !owned(input, row.owner) || row.key === null || row.status !== "pending") continue;
        const holder = activeByKey(db, row.owner_id, row.key);
        if (holder) held[id] = toMemory(holder);
      }
      return held;
    },

    /** The texts behind the ids of a receipt: null where the row is gone. `sessionId` leads to an exchange or summary. */
    async texts(input: {
      refs: { kind: Kind; id: string }[];
    }): Promise<{ text: string | null; sessionId: number | null }[]> {
      return input.refs.map(({ kind, id }) => textOf(db, kind, id));
    },

    /** By episode, what was learned from it. */
    async learned(input: {
      owner: string;
      episodeIds: number[];
    }): Promise<Record<number, { id: string; content: string }[]>> {
      const owner = ownerId(db, input.owner);
      if (owner === null) return {};
      return Object.fromEntries(
        input.episodeIds.map((id) => [
          id,
          memoriesOfEpisode(db, owner, id).map((row) => ({ id: row.id, content: row.content })),
        ]),
      );
    },
  };
}

type TextRow = { text: string; session_id: number | null };

const texts: Record<Exclude<Kind, "memory">, string> = {
  episode:
    "SELECT iif(user_message = '', ai_response, user_message) AS text, session_id FROM episodes WHERE id = ?",
  entity: "SELECT name AS text, NULL AS session_id FROM entities WHERE id = ?",
  summary: "SELECT text, session_id FROM summaries WHERE id = ?",
};

function textOf(db: Database, kind: Kind, id: string): { text: string | null; sessionId: number | null } {
  if (kind === "memory") return { text: memoryById(db, null, id)?.content ?? null, sessionId: null };
  const row = db.query<TextRow, [number]>(texts[kind]).get(Number(id));
  return { text: row?.text ?? null, sessionId: row?.session_id ?? null };
}
