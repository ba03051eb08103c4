/** Rows of `episodes`. An owner of null means every owner, which only management may ask for. */
import type { Database } from "bun:sqlite";
import type { Episode, JsonObject } from "../memory/types.ts";
import { iso } from "./time.ts";

type Row = {
  id: number;
  session_id: number;
  external_id: string;
  owner: string;
  user_message: string;
  ai_response: string;
  token_count: number;
  metadata: string;
  complete: number;
  recall: number;
  created_at: number;
};

const SELECT = `SELECT e.id, e.session_id, s.external_id, o.name AS owner, e.user_message, e.ai_response, e.token_count,
    e.metadata, e.complete, e.recall, e.created_at
  FROM episodes e JOIN sessions s ON s.id = e.session_id JOIN owners o ON o.id = e.owner_id`;

function episode(row: Row): Episode {
  return {
    id: row.id,
    sessionId: row.session_id,
    externalId: row.external_id,
    apiKeyId: row.owner,
    userMessage: row.user_message,
    aiResponse: row.ai_response,
    tokenCount: row.token_count,
    metadata: JSON.parse(row.metadata) as JsonObject,
    complete: row.complete === 1,
    recall: row.recall === 1,
    createdAt: iso(row.created_at),
  };
}

/** What a new row needs. Texts are already free of secrets. Times in milliseconds. */
export type NewEpisode = {
  owner: number;
  sessionId: number;
  /** External id of the session, part of the content hash. */
  externalId: string;
  userMessage: string;
  aiResponse: string;
  tokenCount: number;
  metadata?: JsonObject | undefined;
  complete?: boolean;
  recall?: boolean;
  turnHash?: Uint8Array | null;
  importId?: string | null;
  /** Null: the caller named no time, so the row gets `now`. */
  createdAt: number | null;
};

/**
 * What makes two episodes the same where no id says so: session, time (or that none was named) and both texts.
 * The first 16 bytes of a SHA-256.
 */
export function contentHash(
  episode: Pick<NewEpisode, "externalId" | "createdAt" | "userMessage" | "aiResponse">,
): Uint8Array {
  const { externalId, createdAt, userMessage, aiResponse } = episode;
  const head = `${externalId.length} ${createdAt ?? "-"} ${userMessage.length} ${aiResponse.length}\n`;
  const digest = new Bun.CryptoHasher("sha256")
    .update(head)
    .update(externalId)
    .update(userMessage)
    .update(aiResponse)
    .digest();
  return new Uint8Array(digest.buffer, digest.byteOffset, 16);
}

/** Inserts a row and gives its id. */
export function insertEpisode(
  db: Database,
  episode: NewEpisode,
  now: number,
  hash = contentHash(episode),
): number {
  const row = db
    .query<
      { id: number },
      [
        number,
        number,
        string,
        string,
        number,
        string,
        number,
        number,
        Uint8Array | null,
        string | null,
        Uint8Array,
        number,
        number,
      ]
    >(
      `INSERT INTO episodes (session_id, owner_id, user_message, ai_response, token_count, metadata, complete, recall,
         turn_hash, import_id, content_hash, stored_at, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
    )
    .get(
      episode.sessionId,
      episode.owner,
      episode.userMessage,
      episode.aiResponse,
      episode.tokenCount,
      JSON.stringify(episode.metadata ?? {}),
      Number(episode.complete ?? true),
      Number(episode.recall ?? true),
      episode.turnHash ?? null,
      episode.importId ?? null,
      hash,
      now,
      episode.createdAt ?? now,
    );
  return row!.id;
}

/** The episode that came from this line id, or that has this content in this session; null when there is none. */
export function sameEpisode(
  db: Database,
  owner: number,
  { importId, externalId }: Pick<NewEpisode, "externalId" | "importId">,
  hash: Uint8Array,
): number | null {
  const row =
    importId == null
      ? db
          .query<{ id: number }, [number, string, Uint8Array]>(
            `SELECT e.id FROM sessions s CROSS JOIN episodes e ON e.session_id = s.id
             WHERE s.owner_id = ? AND s.external_id = ? AND e.content_hash = ? LIMIT 1`,
          )
          .get(owner, externalId, hash)
      : db
          .query<{ id: number }, [number, string]>(
            "SELECT id FROM episodes WHERE owner_id = ? AND import_id = ?",
          )
          .get(owner, importId);
  return row?.id ?? null;
}

/** The episode of this number, when it has these texts and session. */
export function sameTexts(
  db: Database,
  owner: number,
  id: number,
  texts: Pick<NewEpisode, "externalId" | "userMessage" | "aiResponse">,
): number | null {
  const row = getEpisode(db, owner, id);
  const same =
    row !== null &&
    row.externalId === texts.externalId &&
    row.userMessage === texts.userMessage &&
    row.aiResponse === texts.aiResponse;
  return same ? id : null;
}

export function getEpisode(db: Database, owner: number | null, id: number): Episode | null {
  const row = db
    .query<Row, [number, number | null]>(`${SELECT} WHERE e.id = ?1 AND (?2 IS NULL OR e.owner_id = ?2)`)
    .get(id, owner);
  return row === null ? null : episode(row);
}

/** These episodes of this owner, by id. */
export function episodesByIds(db: Database, owner: number, ids: readonly number[]): Map<number, Episode> {
  const rows = db
    .query<Row, [number, string]>(
      `${SELECT} WHERE +e.owner_id = ? AND e.id IN (SELECT value FROM json_each(?))`,
    )
    .all(owner, JSON.stringify(ids));
  return new Map(rows.map((row) => [row.id, episode(row)]));
}

/** Episodes of one session, oldest first. */
export function listEpisodes(
  db: Database,
  sessionId: number,
  { limit, offset }: { limit: number; offset: number },
): { data: Episode[]; total: number } {
  const rows = db
    .query<Row, [number, number, number]>(
      `${SELECT} WHERE e.session_id = ? ORDER BY e.created_at, e.id LIMIT ? OFFSET ?`,
    )
    .all(sessionId, limit, offset);
  const total =
    db
      .query<{ n: number }, [number]>("SELECT count(*) AS n FROM episodes WHERE session_id = ?")
      .get(sessionId)?.n ?? 0;
  return { data: rows.map(episode), total };
}

/** What the person said in the same session before this episode, at most `limit` messages of some length, oldest first. */
export function saidBefore(db: Database, id: number, limit: number): { text: string; at: number }[] {
  return db
    .query<{ text: string; at: number }, [number, number]>(
      `SELECT substr(b.user_message, 1, 2000) AS text, b.created_at AS at FROM episodes e JOIN episodes b ON b.session_id = e.session_id
       WHERE e.id = ?1 AND (b.created_at, b.id) < (e.created_at, e.id) ORDER BY b.created_at DESC, b.id DESC LIMIT ?2`,
    )
    .all(id, limit)
    .toReversed();
}

/** Ids of at most `limit` episodes of a session, in any order. */
export function episodeIdsOf(db: Database, sessionId: number, limit: number): number[] {
  return db
    .query<{ id: number }, [number, number]>("SELECT id FROM episodes WHERE session_id = ? LIMIT ?")
    .all(sessionId, limit)
    .map((row) => row.id);
}

export function deleteEpisodeRows(db: Database, ids: readonly number[]): void {
  db.query("DELETE FROM episodes WHERE id IN (SELECT value FROM json_each(?))").run(JSON.stringify(ids));
}
