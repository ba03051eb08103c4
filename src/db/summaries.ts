/** Rows of `summaries`. An owner of null means every owner, which only management may ask for. */
import type { Database } from "bun:sqlite";
import type { Summary } from "../memory/types.ts";
import { iso } from "./time.ts";

type Row = {
  id: number;
  session_id: number;
  text: string;
  first_episode_id: number;
  last_episode_id: number;
  token_count: number;
  stale: number;
  created_at: number;
};

const COLUMNS = "id, session_id, text, first_episode_id, last_episode_id, token_count, stale, created_at";

function summary(row: Row): Summary {
  return {
    id: row.id,
    sessionId: row.session_id,
    text: row.text,
    firstEpisodeId: row.first_episode_id,
    lastEpisodeId: row.last_episode_id,
    tokenCount: row.token_count,
    stale: row.stale === 1,
    createdAt: iso(row.created_at),
  };
}

export function getSummary(db: Database, owner: number | null, id: number): Summary | null {
  const row = db
    .query<Row, [number, number | null]>(
      `SELECT ${COLUMNS} FROM summaries WHERE id = ?1 AND (?2 IS NULL OR owner_id = ?2)`,
    )
    .get(id, owner);
  return row === null ? null : summary(row);
}

/** These summaries of this owner, by id. */
export function summariesByIds(db: Database, owner: number, ids: readonly number[]): Map<number, Summary> {
  const rows = db
    .query<Row, [number, string]>(
      `SELECT ${COLUMNS} FROM summaries WHERE +owner_id = ? AND id IN (SELECT value FROM json_each(?))`,
    )
    .all(owner, JSON.stringify(ids));
  return new Map(rows.map((row) => [row.id, summary(row)]));
}

/** Summaries of one session, oldest first. */
export function listSummaries(
  db: Database,
  sessionId: number,
  { limit, offset }: { limit: number; offset: number },
): { data: Summary[]; total: number } {
  const rows = db
    .query<Row, [number, number, number]>(
      `SELECT ${COLUMNS} FROM summaries WHERE session_id = ? ORDER BY id LIMIT ? OFFSET ?`,
    )
    .all(sessionId, limit, offset);
  const total =
    db
      .query<{ n: number }, [number]>("SELECT count(*) AS n FROM summaries WHERE session_id = ?")
      .get(sessionId)?.n ?? 0;
  return { data: rows.map(summary), total };
}

export function insertSummary(
  db: Database,
  row: {
    owner: number;
    sessionId: number;
    text: string;
    firstEpisodeId: number;
    lastEpisodeId: number;
    tokenCount: number;
    automatic: boolean;
  },
  now: number,
): number {
  return db
    .query<{ id: number }, [number, number, string, number, number, number, number, number]>(
      `INSERT INTO summaries (session_id, owner_id, text, first_episode_id, last_episode_id, token_count, automatic, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
    )
    .get(
      row.sessionId,
      row.owner,
      row.text,
      row.firstEpisodeId,
      row.lastEpisodeId,
      row.tokenCount,
      Number(row.automatic),
      now,
    )!.id;
}

export function deleteSummaryRow(db: Database, id: number): boolean {
  return db.query("DELETE FROM summaries WHERE id = ?").run(id).changes > 0;
}

/**
 * Summaries of the session that cover this episode, in the order in which it was said: imported exchanges have ids in
 * another. One whose first or last episode is gone reaches to that end.
 */
export function summariesOver(db: Database, sessionId: number, episodeId: number): Summary[] {
  return db
    .query<Row, [number, number]>(
      `SELECT m.* FROM summaries m JOIN episodes e ON e.id = ?2
       LEFT JOIN episodes first ON first.id = m.first_episode_id LEFT JOIN episodes last ON last.id = m.last_episode_id
       WHERE m.session_id = ?1
         AND (first.id IS NULL OR (first.created_at, first.id) <= (e.created_at, e.id))
         AND (last.id IS NULL OR (e.created_at, e.id) <= (last.created_at, last.id))`,
    )
    .all(sessionId, episodeId)
    .map(summary);
}

/** Marks a summary stale, with the text that is left of it. */
export function staleSummary(db: Database, id: number, text: string): void {
  db.query("UPDATE summaries SET stale = 1, text = ?2 WHERE id = ?1").run(id, text);
}

/** Whether the session has a summary of exactly this text. */
export function sameSummary(db: Database, sessionId: number, text: string): boolean {
  return db.query("SELECT 1 FROM summaries WHERE session_id = ? AND text = ?").get(sessionId, text) !== null;
}

/** Sessions quiet since `before` with more than `episodes` recallable episodes whose last one no valid summary reaches. */
export function sessionsToSummarize(
  db: Database,
  { before, episodes, after, limit }: { before: number; episodes: number; after: number; limit: number },
): { id: number; owner: string }[] {
  return db
    .query<{ id: number; owner: string }, [number, number, number, number]>(
      `SELECT s.id, o.name AS owner FROM sessions s JOIN owners o ON o.id = s.owner_id
       WHERE s.id > ?3 AND s.updated_at < ?1
         AND (SELECT count(*) FROM (SELECT 1 FROM episodes e WHERE e.session_id = s.id AND e.recall = 1 LIMIT ?2 + 1)) > ?2
         AND NOT EXISTS (
           SELECT 1 FROM summaries m WHERE m.session_id = s.id AND m.stale = 0 AND m.last_episode_id =
             (SELECT e.id FROM episodes e WHERE e.session_id = s.id AND e.recall = 1
              ORDER BY e.created_at DESC, e.id DESC LIMIT 1))
       ORDER BY s.id LIMIT ?4`,
    )
    .all(before, episodes, after, limit);
}

/** Automatic summaries of the session but this one. */
export function otherAutomatic(db: Database, sessionId: number, id: number): number[] {
  return db
    .query<{ id: number }, [number, number]>(
      "SELECT id FROM summaries WHERE session_id = ? AND automatic = 1 AND id <> ?",
    )
    .all(sessionId, id)
    .map((row) => row.id);
}
