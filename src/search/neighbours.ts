/** Where exchanges stand in their sessions: what was said just before and after says what a short turn is about. */
import type { Database } from "bun:sqlite";

/** An episode's session, its number in it by order of arrival, and its time in milliseconds. */
export interface Place {
  readonly id: number;
  readonly session: number;
  readonly pos: number;
  readonly createdAt: number;
}

/** How far around an exchange its neighbours reach. */
export const REACH = 2;

/** Places of given episodes. */
export function placesOf(db: Database, ids: readonly number[]): Place[] {
  return read(
    db,
    "SELECT id, session_id, pos, created_at FROM episodes_terms WHERE id IN (SELECT value FROM json_each(?))",
    JSON.stringify(ids),
  );
}

/** The episodes up to two before and after the given ones in their sessions, themselves included. */
export function around(db: Database, places: readonly Place[]): Place[] {
  const wanted = new Map<string, [number, number]>();
  for (const { session, pos } of places)
    for (let at = Math.max(1, pos - REACH); at <= pos + REACH; at++)
      wanted.set(`${session}:${at}`, [session, at]);
  return read(
    db,
    `SELECT t.id, t.session_id, t.pos, t.created_at FROM json_each(?) j
     CROSS JOIN episodes_terms t ON t.session_id = j.value ->> 0 AND t.pos = j.value ->> 1`,
    JSON.stringify([...wanted.values()]),
  );
}

function read(db: Database, sql: string, value: string): Place[] {
  const rows = db.query<[number, number, number, number], [string]>(sql).values(value) as [
    number,
    number,
    number,
    number,
  ][];
  return rows.map(([id, session, pos, createdAt]) => ({ id, session, pos, createdAt }));
}
