/** Finds the memories and exchanges that a statement may be about: those that hold all of its words. */
import type { Database } from "bun:sqlite";
import { memoryBySeq, memoryColumns } from "../db/memories.ts";
import type { MemoryRow } from "../db/memories.ts";
import { ownerPrefix, stemsOf } from "../search/tokens.ts";

/** Rows that are looked through where there is no index of words, newest first. */
const SCANNED = 2000;

/**
 * Active memories of an owner that hold every one of these words, newest first. A word counts in its form of any
 * language: what a short memory was stemmed in need not be what the statement is. Where FTS5 is missing: the newest
 * active ones, whatever they hold; the caller compares anyway.
 */
export function wordHolders(db: Database, fts5: boolean) {
  return (ownerId: number, words: readonly string[], limit: number): MemoryRow[] => {
    if (words.length === 0) return [];
    if (!fts5) {
      return db
        .query<MemoryRow, [number, number]>(
          `SELECT ${memoryColumns} FROM memories m JOIN owners o ON o.id = m.owner_id
           WHERE m.owner_id = ? AND m.status = 'active' ORDER BY m.created_at DESC, m.seq DESC LIMIT ?`,
        )
        .all(ownerId, SCANNED);
    }
    const match = allOf(ownerId, words);
    const found = db
      .query<{ rowid: number }, [string, number]>(
        "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rowid DESC LIMIT ?",
      )
      .all(match, limit);
    return found.map(({ rowid }) => memoryBySeq(db, ownerId, rowid)).filter((row) => row !== null);
  };
}

/**
 * Ids of the exchanges of an owner, among those that are recalled, whose two texts together hold every one of these
 * words, newest first. None where FTS5 is missing.
 */
export function exchangesHolding(db: Database, fts5: boolean) {
  return (ownerId: number, words: readonly string[], limit: number): number[] =>
    !fts5 || words.length === 0
      ? []
      : db
          .query<{ rowid: number }, [string, number]>(
            "SELECT rowid FROM episodes_fts WHERE episodes_fts MATCH ? ORDER BY rowid DESC LIMIT ?",
          )
          .all(allOf(ownerId, words), limit)
          .map(({ rowid }) => rowid);
}

function allOf(ownerId: number, words: readonly string[]): string {
  const prefix = ownerPrefix(ownerId);
  const form = (stem: string) => `"${prefix}${stem.replaceAll('"', "")}"`;
  return words.map((word) => `(${stemsOf(word).map(form).join(" OR ")})`).join(" AND ");
}
