/** Rows by time instead of by fit: the newest, and the standing memories. The same predicate holds as everywhere. */
import type { Database } from "bun:sqlite";
import { live } from "./predicate.ts";
import type { Candidate, Kind, Predicate } from "./types.ts";

const sources = {
  memory: { table: "memories", id: "seq" },
  episode: { table: "episodes", id: "id" },
  entity: { table: "entities", id: "id" },
  summary: { table: "summaries", id: "id" },
} as const satisfies Record<Kind, { table: string; id: string }>;

/** The newest rows of a kind, at most `limit`. */
export function newest(
  db: Database,
  kind: Kind,
  predicate: Predicate,
  limit: number,
): (Candidate & { createdAt: number })[] {
  const { table, id } = sources[kind];
  const { join, where, values } = live(kind, `n.${id}`, predicate);
  const status = kind === "memory" ? " AND n.status = 'active'" : "";
  const rows = db
    .query<[number, number], (string | number)[]>(
      `SELECT n.${id}, n.created_at FROM ${table} n CROSS ${join} WHERE n.owner_id = ?${status} AND ${where}
       ORDER BY n.created_at DESC, n.${id} DESC LIMIT ?`,
    )
    .values(predicate.owner, ...values, limit) as [number, number][];
  return rows.map(([row, createdAt]) => ({ ...unranked(kind, row, "recent"), createdAt }));
}

/** Standing memories, newest first. */
export function standing(db: Database, predicate: Predicate, limit: number): Candidate[] {
  const { join, where, values } = live("memory", "n.seq", predicate);
  const rows = db
    .query<[number], (string | number)[]>(
      `SELECT n.seq FROM memories n INDEXED BY memories_standing CROSS ${join}
       WHERE n.owner_id = ? AND n.status = 'active' AND (n.standing = 1 OR n.pinned = 1) AND ${where}
       ORDER BY n.created_at DESC, n.seq DESC LIMIT ?`,
    )
    .values(predicate.owner, ...values, limit) as [number][];
  return rows.map(([row]) => unranked("memory", row, "standing"));
}

function unranked(kind: Kind, id: number, tier: "recent" | "standing"): Candidate {
  return { kind, id, score: null, tier, ftsRank: null, ftsScore: null, vecRank: null, vecScore: null };
}
