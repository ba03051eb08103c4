/** Where exchanges stand in their sessions: what was said just before and after says what a short turn is about. */
import type { Database } from "bun:sqlite";
import { NO_TURN, type Postings } from "./postings.ts";

/** An episode's session, its number in it by order of arrival, and its time in milliseconds. */
export interface Place {
  readonly id: number;
  readonly session: number;
  readonly pos: number;
  readonly createdAt: number;
}

/** How far around an exchange its neighbours reach. */
const REACH = 2;

/** Looks places up, in memory where the owner's exchanges are held. */
export interface Places {
  /** Places of given episodes. */
  of(ids: readonly number[]): Place[];
  /** The episodes up to two before and after the given ones in their sessions, themselves included. */
  around(places: readonly Place[]): Place[];
}

export function createPlaces(db: Database, held: Postings | null): Places {
  return held === null ? inTables(db) : inMemory(held);
}

function inTables(db: Database): Places {
  function read(sql: string, value: unknown): Place[] {
    const rows = db.query<[number, number, number, number], [string]>(sql).values(JSON.stringify(value));
    return (rows as [number, number, number, number][]).map(([id, session, pos, createdAt]) => ({
      id,
      session,
      pos,
      createdAt,
    }));
  }

  return {
    of: (ids) =>
      read(
        "SELECT id, session_id, pos, created_at FROM episodes_terms WHERE id IN (SELECT value FROM json_each(?))",
        ids,
      ),
    around(places) {
      const wanted = new Map<string, [number, number]>();
      for (const { session, pos } of places)
        for (let at = Math.max(1, pos - REACH); at <= pos + REACH; at++)
          wanted.set(`${session}:${at}`, [session, at]);
      return read(
        `SELECT t.id, t.session_id, t.pos, t.created_at FROM json_each(?) j
         CROSS JOIN episodes_terms t ON t.session_id = j.value ->> 0 AND t.pos = j.value ->> 1`,
        [...wanted.values()],
      );
    },
  };
}

function inMemory({ ids, slotOf, turns, session, pos, createdAt }: Postings): Places {
  const placeOf = (slot: number): Place => ({
    id: ids[slot]!,
    session: session[slot]!,
    pos: pos[slot]!,
    createdAt: createdAt[slot]!,
  });
  return {
    of: (wanted) =>
      wanted.flatMap((id) => {
        const slot = slotOf.get(id);
        return slot === undefined ? [] : [placeOf(slot)];
      }),
    around(places) {
      const slots = new Set<number>();
      for (const place of places) {
        const turn = turns.get(place.session);
        for (let at = Math.max(1, place.pos - REACH); at <= place.pos + REACH; at++) {
          const slot = turn?.[at] ?? NO_TURN;
          if (slot !== NO_TURN) slots.add(slot);
        }
      }
      return [...slots].map(placeOf);
    },
  };
}
