/** Memories that a foreign primary backend found, as retrieval's rows: in its order, with its own scores, without floor. */
import type { Database } from "bun:sqlite";
import { contentTimes, memoryById } from "../db/memories.ts";
import { renderLine } from "./block.ts";
import { estimateTokens } from "./budget.ts";
import type { Loaded } from "./lines.ts";
import type { Memory } from "./types.ts";

type Owner = { id: number; name: string };
type Found = { memory: Memory; score: number | null };

/** What retrieval asks of a foreign primary; `active` is false while the primary is this box's own database. */
export type PrimaryMemories = {
  active(): boolean;
  search(input: {
    owner: string;
    query: string;
    sessionId: string | null;
    type?: string;
    limit: number;
    retentionDays: number;
    signal: AbortSignal;
  }): Promise<{ found: Found[]; failed: string[] }>;
  newest(input: {
    owner: string;
    sessionId: string | null;
    limit: number;
    retentionDays: number;
  }): Promise<Found[]>;
  /** The ones of these that the primary still has. */
  still(owner: string, ids: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>>;
};

/** No row of SQLite stands behind it, so there is nothing to count a use on. */
const NO_ROW = -1;

export function rowsOf(db: Database, owner: Owner, found: readonly Found[]): Loaded[] {
  return found.map(({ memory, score }) => {
    const { content, origin, createdAt } = memory;
    const kept = memoryById(db, owner.id, memory.id);
    const replaced =
      kept !== null && kept.version > 1 ? contentTimes(db, "seq", [kept.seq]).get(kept.seq) : undefined;
    const at = replaced ?? Date.parse(createdAt);
    const text = renderLine({ kind: "memory", content, origin, at });
    return {
      kind: "memory",
      id: memory.id,
      item: memory,
      text,
      tokens: estimateTokens(text),
      score,
      tier: "backend",
      ftsRank: null,
      ftsScore: null,
      vecRank: null,
      vecScore: null,
      owner: owner.name,
      ownerId: owner.id,
      seq: kept?.seq ?? NO_ROW,
      at,
    };
  });
}
