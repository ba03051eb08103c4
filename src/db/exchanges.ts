/** Rows by which a conversation is found again: hashes of how it stood, and the blocks that were put into it. */
import type { Database } from "bun:sqlite";

const bytes = (hash: string): Uint8Array => Buffer.from(hash, "hex");

/**
 * The session in which a conversation stood like this: one that stands like this now before one that has gone on, then
 * the newest. So two conversations that began alike stay two.
 */
export function sessionByHash(db: Database, owner: number, hash: string): string | null {
  const row = db
    .query<{ external_id: string }, [number, Uint8Array]>(
      `SELECT s.external_id FROM session_turns t JOIN sessions s ON s.id = t.session_id
       WHERE t.owner_id = ? AND t.hash = ?
       ORDER BY t.created_at >= (SELECT max(x.created_at) FROM session_turns x WHERE x.session_id = t.session_id) DESC,
         s.updated_at DESC, s.id DESC LIMIT 1`,
    )
    .get(owner, bytes(hash));
  return row?.external_id ?? null;
}

/** The conversation of a session stands like this now. */
export function addSessionTurn(
  db: Database,
  owner: number,
  sessionId: number,
  hash: string,
  now: number,
): void {
  db.query(
    `INSERT INTO session_turns (owner_id, hash, session_id, created_at) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET created_at = excluded.created_at`,
  ).run(owner, bytes(hash), sessionId, now);
}

/** Episodes of a session whose user turn is this one: it is being said again. */
export function episodesOfTurn(db: Database, sessionId: number, hash: string): number[] {
  return db
    .query<{ id: number }, [number, Uint8Array]>(
      "SELECT id FROM episodes WHERE session_id = ? AND turn_hash = ?",
    )
    .all(sessionId, bytes(hash))
    .map((row) => row.id);
}

/** Episodes of a session that the request itself still holds, by their user turns. */
export function episodesOfTurns(
  db: Database,
  owner: number,
  externalId: string,
  hashes: readonly string[],
): number[] {
  return db
    .query<{ id: number }, [number, string, string]>(
      `SELECT e.id FROM sessions s JOIN episodes e ON e.session_id = s.id
       WHERE s.owner_id = ?1 AND s.external_id = ?2 AND e.turn_hash IN (SELECT unhex(value) FROM json_each(?3))`,
    )
    .all(owner, externalId, JSON.stringify(hashes))
    .map((row) => row.id);
}

export interface BlockRow {
  hash: string;
  text: string;
  tokens: number;
  /** Ids of what stands in it: uuids of memories, `episode:12` for the rest. */
  ids: string[];
  createdAt: number;
  usedAt: number;
}

/** The stored blocks of these hashes. */
export function blocksByHash(db: Database, owner: number, hashes: readonly string[]): Map<string, BlockRow> {
  if (hashes.length === 0) return new Map();
  const rows = db
    .query<
      { hash: string; text: string; tokens: number; memory_ids: string; created_at: number; used_at: number },
      [number, string]
    >(
      `SELECT lower(hex(b.hash)) AS hash, b.text, b.tokens, b.memory_ids, b.created_at, b.used_at FROM json_each(?2) j
       CROSS JOIN blocks b ON b.owner_id = ?1 AND b.hash = unhex(j.value)`,
    )
    .all(owner, JSON.stringify(hashes));
  return new Map(
    rows.map((row) => [
      row.hash,
      {
        hash: row.hash,
        text: row.text,
        tokens: row.tokens,
        ids: JSON.parse(row.memory_ids) as string[],
        createdAt: row.created_at,
        usedAt: row.used_at,
      },
    ]),
  );
}

export function putBlock(
  db: Database,
  owner: number,
  block: { hash: string; sessionId: string | null; text: string; tokens: number; ids: readonly string[] },
  now: number,
): void {
  db.query(
    `INSERT INTO blocks (owner_id, hash, session_id, text, tokens, memory_ids, created_at, used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
     ON CONFLICT DO UPDATE SET session_id = excluded.session_id, text = excluded.text, tokens = excluded.tokens,
       memory_ids = excluded.memory_ids, created_at = excluded.created_at, used_at = excluded.used_at`,
  ).run(owner, bytes(block.hash), block.sessionId, block.text, block.tokens, JSON.stringify(block.ids), now);
}

export function touchBlocks(db: Database, owner: number, hashes: readonly string[], now: number): void {
  if (hashes.length === 0) return;
  db.query(
    "UPDATE blocks SET used_at = ?3 WHERE owner_id = ?1 AND hash IN (SELECT unhex(value) FROM json_each(?2))",
  ).run(owner, JSON.stringify(hashes), now);
}

export function dropBlocks(db: Database, owner: number, hashes: readonly string[]): void {
  if (hashes.length === 0) return;
  db.query("DELETE FROM blocks WHERE owner_id = ?1 AND hash IN (SELECT unhex(value) FROM json_each(?2))").run(
    owner,
    JSON.stringify(hashes),
  );
}
