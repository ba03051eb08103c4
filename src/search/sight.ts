/** Which rows of one kind one question may see, by SQL or, of exchanges that are held in memory, by what is held. */
import type { Database } from "bun:sqlite";
import { pinnedSessions, sessionIdOf } from "../db/sessions.ts";
import type { Postings } from "./postings.ts";
import { DAY_MS } from "../db/time.ts";
import { visibleOf } from "./predicate.ts";
import type { Kind, Predicate } from "./types.ts";

/** Each row is looked up once, however many channels find it. */
export interface Sight {
  readonly kind: Kind;
  readonly predicate: Predicate;
  /** Those of the ids that may be seen. */
  of(ids: readonly number[]): Set<number>;
  /** Has these looked up together with the next that are asked for. */
  soon(ids: readonly number[]): void;
  /**
   * The same of one row, by its id or by its slot, where memory knows it; null where it does not, or hides nothing but rows
   * that are gone.
   */
  readonly held: {
    readonly sees: (id: number) => boolean;
    readonly seesSlot: (slot: number) => boolean;
  } | null;
}

/** `held`: the owner's exchanges in memory, in step with the tables. */
export function createSight(
  db: Database,
  kind: Kind,
  predicate: Predicate,
  held: Postings | null = null,
): Sight {
  return held !== null && kind === "episode"
    ? sightInMemory(db, kind, predicate, held)
    : sightInTables(db, kind, predicate);
}

function sightInTables(db: Database, kind: Kind, predicate: Predicate): Sight {
  const known = new Map<number, boolean>();
  let later: readonly number[] = [];
  return {
    kind,
    predicate,
    held: null,
    of(ids) {
      const unknown = [...new Set([...ids, ...later])].filter((id) => !known.has(id));
      later = [];
      const visible = visibleOf(db, kind, predicate, unknown);
      for (const id of unknown) known.set(id, visible.has(id));
      return new Set(ids.filter((id) => known.get(id) === true));
    },
    soon(ids) {
      later = ids;
    },
  };
}

/** The rule of `live` for exchanges: one that has words in the index has `recall = 1` and this owner. */
function sightInMemory(
  db: Database,
  kind: Kind,
  predicate: Predicate,
  { slotOf, session: sessions, createdAt, storedAt, oldest }: Postings,
): Sight {
  const { owner, session, before = Infinity, retentionDays, now } = predicate;
  const only = session === null ? null : (sessionIdOf(db, owner, session) ?? -1);
  const since = retentionDays > 0 ? now - retentionDays * DAY_MS : -Infinity;
  let pinned: Set<number> | null = null;

  function seesSlot(slot: number): boolean {
    if (only !== null && sessions[slot] !== only) return false;
    if (createdAt[slot]! > before) return false;
    if (storedAt[slot]! > since) return true;
    pinned ??= pinnedSessions(db, owner);
    return pinned.has(sessions[slot]!);
  }

  function sees(id: number): boolean {
    const slot = slotOf.get(id);
    return slot !== undefined && seesSlot(slot);
  }

  return {
    kind,
    predicate,
    held: only === null && before === Infinity && since < oldest ? null : { sees, seesSlot },
    of: (ids) => new Set(ids.filter(sees)),
    soon() {},
  };
}
