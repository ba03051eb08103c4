/**
 * Giving rows their vectors. A row that is new or has changed waits in `vec_pending` (its trigger puts it there) until a
 * batch has embedded it; a change of model walks over the old space's items instead. Every step is one transaction, so
 * that a crash at any moment leaves work to be done and nothing half done.
 */
import type { Database } from "bun:sqlite";
import { EmbeddingError, type Embedder } from "../embed/types.ts";
import { textHash, textOf } from "./embedded.ts";
import { putVectors } from "./vector-store.ts";
import {
  parts,
  spaceFor,
  spaces,
  switchTo,
  type Part,
  type Quantization,
  type Space,
} from "./vector-tables.ts";

/** Tries a text gets before it is set aside. */
const TRIES = 5;
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;

export interface IndexingDeps {
  readonly db: Database;
  readonly embedder: Embedder;
  readonly quantization: Quantization;
  readonly vec0: boolean;
  readonly now: number;
  readonly signal?: AbortSignal;
  /** How far a building space got; keep one object from batch to batch. Without it each batch looks from the beginning. */
  readonly cursor?: BuildCursor;
}

/** The last item that was looked at, in the order of {@link parts}, owner, item. */
export interface BuildCursor {
  space: number;
  part: number;
  owner: number;
  item: number;
}

/** What one batch did. `waitMs`: when a text that failed is due again, or null. */
export interface BatchResult {
  readonly embedded: number;
  readonly failed: number;
  readonly more: boolean;
  readonly waitMs: number | null;
}

/** How much of what should have a vector has one that is current. */
export interface Coverage {
  readonly rows: number;
  readonly current: number;
  readonly pending: number;
  readonly setAside: { readonly count: number; readonly reason: string | null };
  /** A space that is built beside the one that is searched. */
  readonly building: { readonly signature: string; readonly done: number; readonly total: number } | null;
}

interface Waiting {
  part: Part;
  item: number;
  owner_id: number;
  tries: number;
}

/**
 * Embeds up to `limit` texts: first rows that wait, the oldest first, then those that the old space has and a new one
 * lacks; when nothing is lacking the new space takes over. Throws an EmbeddingError with `partDown` when the embedder as
 * a whole is down; that costs no text a try.
 */
export async function embedBatch(deps: IndexingDeps, limit: number): Promise<BatchResult> {
  const { db, embedder, now } = deps;
  const want = { signature: embedder.signature, dim: embedder.dimensions, quantization: deps.quantization };
  const space = spaceFor(db, want, deps.vec0);
  const due = db
    .query<Waiting, [number, number]>(
      "SELECT part, item, owner_id, tries FROM vec_pending WHERE next_at <= ? ORDER BY next_at, item LIMIT ?",
    )
    .all(now, limit);
  const lacking =
    due.length < limit && space.state === "building" ? lackingIn(deps, space, limit - due.length) : [];
  const { embedded, failed } = await embedThese(deps, space, [...due, ...lacking]);
  if (due.length + lacking.length === 0 && space.state === "building") {
    switchTo(db, space);
    return { embedded, failed, more: false, waitMs: nextWait(db, now) };
  }
  const more = due.length + lacking.length >= limit || space.state === "building";
  return { embedded, failed, more, waitMs: more ? 0 : nextWait(db, now) };
}

/** Lets what was set aside of an owner (null: of all) try again; with `all`, everything of it is embedded anew. */
export function retryVectors(db: Database, all: boolean, now: number, owner: number | null = null): void {
  db.transaction(() => {
    db.query(
      `UPDATE vec_pending SET tries = 0, next_at = ?1, reason = NULL
       WHERE (next_at IS NULL OR tries > 0) AND (?2 IS NULL OR owner_id = ?2)`,
    ).run(now, owner);
    if (!all) return;
    db.query(
      `INSERT INTO vec_pending (part, item, owner_id, next_at) SELECT DISTINCT part, item, owner_id, ?1 FROM vec_items
       WHERE space IN (SELECT id FROM vec_spaces WHERE state = 'active') AND window = 0 AND (?2 IS NULL OR owner_id = ?2)
       ON CONFLICT DO NOTHING`,
    ).run(now, owner);
  }).immediate();
}

/** Coverage of all rows, or of an owner's. */
export function coverage(db: Database, owner: number | null = null): Coverage {
  const whose = owner === null ? "" : " AND owner_id = ?";
  const values = owner === null ? [] : [owner];
  const all = spaces(db);
  const active = all.find((space) => space.state === "active");
  const items = (space: Space) =>
    db
      .query<{ n: number | null }, number[]>(`SELECT sum(items) AS n FROM vec_counts WHERE space = ?${whose}`)
      .get(space.id, ...values)!.n ?? 0;
  const waiting = db
    .query<{ pending: number; aside: number; reason: string | null }, number[]>(
      `SELECT count(next_at) AS pending, count(*) - count(next_at) AS aside, max(CASE WHEN next_at IS NULL THEN reason END) AS reason
       FROM vec_pending WHERE 1${whose}`,
    )
    .get(...values)!;
  // A row that is embedded anew has a vector and waits; it is counted once.
  const again =
    active === undefined
      ? 0
      : db
          .query<{ n: number }, number[]>(
            `SELECT count(*) AS n FROM vec_pending p WHERE 1${whose.replace("owner_id", "p.owner_id")} AND EXISTS (
             SELECT 1 FROM vec_items i WHERE i.space = ? AND i.part = p.part AND i.owner_id = p.owner_id AND i.item = p.item AND i.window = 0)`,
          )
          .get(...values, active.id)!.n;
  const have = active === undefined ? 0 : items(active);
  const building = all.find((space) => space.state === "building");
  return {
    rows: have + waiting.pending + waiting.aside - again,
    current: have - again,
    pending: waiting.pending,
    setAside: { count: waiting.aside, reason: waiting.reason },
    building:
      building === undefined ? null : { signature: building.signature, done: items(building), total: have },
  };
}

async function embedThese(
  deps: IndexingDeps,
  space: Space,
  waiting: readonly Waiting[],
): Promise<{ embedded: number; failed: number }> {
  const { db, embedder, signal } = deps;
  const jobs: { waiting: Waiting; text: string; windows: string[] }[] = [];
  for (const one of waiting) {
    const text = textOf(db, one.part, one.item);
    if (text === null) forget(db, one);
    else jobs.push({ waiting: one, text, windows: embedder.windows(text) });
  }
  if (jobs.length === 0) return { embedded: 0, failed: 0 };
  let vectors: Float32Array[] | null = null;
  try {
    vectors = await embedder.embed(
      jobs.flatMap((job) => job.windows),
      signal,
    );
  } catch (error) {
    if ((error instanceof EmbeddingError && error.partDown) || signal?.aborted) throw error;
    // One of the texts is at fault; alone, each answers for itself.
  }
  let embedded = 0;
  let failed = 0;
  const done: { waiting: Waiting; text: string; vectors: Float32Array[] }[] = [];
  let at = 0;
  for (const job of jobs) {
    try {
      const made =
        vectors?.slice(at, (at += job.windows.length)) ?? (await embedder.embed(job.windows, signal));
      for (const vector of made) if (!usable(vector, space.dim)) throw new Error("the vector is not usable");
      done.push({ waiting: job.waiting, text: job.text, vectors: made });
    } catch (error) {
      if (error instanceof EmbeddingError && error.partDown) throw error;
      fail(deps, job.waiting, error instanceof Error ? error.message : String(error));
      failed++;
    }
  }
  db.transaction(() => {
    for (const { waiting: one, text, vectors: made } of done) {
      // The row may have changed meanwhile; then it waits again already, and this vector is of no use.
      if (textOf(db, one.part, one.item) !== text) continue;
      putVectors(db, space, one.part, one.owner_id, one.item, textHash(text), made);
      db.query("DELETE FROM vec_pending WHERE part = ? AND item = ?").run(one.part, one.item);
      embedded++;
    }
  }).immediate();
  return { embedded, failed };
}

/** Items of the searched space that the building one lacks, in the order of their keys. */
function lackingIn(deps: IndexingDeps, building: Space, limit: number): Waiting[] {
  const cursor = deps.cursor ?? { space: 0, part: 0, owner: 0, item: 0 };
  if (cursor.space !== building.id) Object.assign(cursor, { space: building.id, part: 0, owner: 0, item: 0 });
  const found: Waiting[] = [];
  for (
    ;
    cursor.part < parts.length && found.length < limit;
    Object.assign(cursor, { owner: 0, item: 0 }), cursor.part++
  ) {
    const part = parts[cursor.part]!;
    const lacking = deps.db
      .query<Waiting, (string | number)[]>(
        `SELECT i.part AS part, i.item AS item, i.owner_id AS owner_id, 0 AS tries FROM vec_items i
         WHERE i.space = (SELECT id FROM vec_spaces WHERE state = 'active') AND i.part = ? AND i.window = 0
           AND (i.owner_id, i.item) > (?, ?)
           AND NOT EXISTS (SELECT 1 FROM vec_items b WHERE b.space = ? AND b.part = i.part AND b.owner_id = i.owner_id
             AND b.item = i.item AND b.window = 0)
           AND NOT EXISTS (SELECT 1 FROM vec_pending p WHERE p.part = i.part AND p.item = i.item)
         ORDER BY i.owner_id, i.item LIMIT ?`,
      )
      .all(part, cursor.owner, cursor.item, building.id, limit - found.length);
    found.push(...lacking);
    const last = lacking.at(-1);
    if (last !== undefined) Object.assign(cursor, { owner: last.owner_id, item: last.item });
    if (found.length >= limit) break;
  }
  return found;
}

function forget(db: Database, one: Waiting): void {
  db.query("DELETE FROM vec_pending WHERE part = ? AND item = ?").run(one.part, one.item);
}

function fail(deps: IndexingDeps, one: Waiting, reason: string): void {
  const tries = one.tries + 1;
  const wait = Math.min(FIRST_WAIT_MS * 2 ** (tries - 1), LONGEST_WAIT_MS);
  deps.db
    .query(
      `INSERT INTO vec_pending (part, item, owner_id, tries, next_at, reason) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET tries = excluded.tries, next_at = excluded.next_at, reason = excluded.reason`,
    )
    .run(one.part, one.item, one.owner_id, tries, tries >= TRIES ? null : deps.now + wait, reason);
}

function usable(vector: Float32Array, dim: number): boolean {
  return vector.length === dim && vector.every((x) => Number.isFinite(x));
}

function nextWait(db: Database, now: number): number | null {
  const next = db
    .query<{ at: number | null }, []>("SELECT min(next_at) AS at FROM vec_pending WHERE next_at IS NOT NULL")
    .get()!.at;
  return next === null ? null : Math.max(0, next - now);
}
