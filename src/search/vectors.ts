/** Vector search over one space: what is held in memory, read from the tables and kept in step with them. */
import { breathe } from "../memory/breathe.ts";
import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import { centre, createHeld, hasRoom, heldBytes, putHeld, type Held } from "./held-vectors.ts";
import { measure } from "./nearest.ts";
import { nearestHeld, spread, type Near } from "./nearest-held.ts";
import type { Sight } from "./sight.ts";
import { createSimd, type OpenSimd } from "./simd.ts";
import {
  bulkReader,
  dot,
  itemOf,
  MAX_K,
  nearestRows,
  ownerVectors,
  vectorReader,
  vectorRow,
} from "./vector-store.ts";
import { activeSpace, type Part, type Space } from "./vector-tables.ts";

/** All that is kept in memory, in bytes. */
const CACHE_BYTES = 96 * 2 ** 20;
/** Above this many vectors vec0's scan takes too long to stand in while they are being read. */
const COLD_SCAN = 20_000;
/** How long vectors are read before other calls get their turn, in milliseconds. */
const TURN_MS = 6;
/** Owners of up to this many are then measured whole. */
const COLD_K = 1024;
/** Vectors that are read at once, without giving way to other calls. */
const AT_ONCE = 400;
const SAMPLE = 256;

/** Cosines of the nearest rows, best first, and how near a random row of the owner is. */
export interface VectorHits {
  readonly hits: readonly { id: number; cosine: number }[];
  readonly mean: number;
  readonly deviation: number;
  /** Vectors of the owner. */
  readonly rows: number;
}

export interface VectorIndex {
  /** The space that is searched, or null before the first vector. */
  space(): Space | null;
  /**
   * The nearest rows that may be seen. Null while a large owner's vectors are being read: await `warm`. `roughly`: of many
   * one in a hundred may be missed, which takes half the time.
   */
  search(part: Part, sight: Sight, query: Float32Array, k: number, roughly?: boolean): VectorHits | null;
  /** Cosines of given rows; rows without a vector are left out. */
  cosines(part: Part, owner: number, ids: readonly number[], query: Float32Array): Map<number, number>;
  /** Whether {@link search} would answer now. */
  ready(part: Part, owner: number): boolean;
  /** Reads an owner's vectors into memory, giving way to other calls between slices. */
  warm(part: Part, owner: number): Promise<void>;
}

interface Kept {
  held: Held;
  rev: number;
  /** Items of more than one window, and how many they have. */
  windows: Map<number, number>;
}

interface Entry {
  item: number;
  window: number;
}

export function createVectorIndex(db: Database, openSimd: OpenSimd = createSimd()): VectorIndex {
  const kept = new LRUCache<string, Kept>({
    maxSize: CACHE_BYTES,
    // An owner without vectors is remembered too, and nothing may weigh nothing.
    sizeCalculation: (one) => 64 + heldBytes(one.held),
  });
  const warming = new Map<string, Promise<void>>();
  let seen: Space | null = null;

  function space(): Space | null {
    const now = activeSpace(db);
    if (now?.id !== seen?.id) {
      kept.clear();
      seen = now;
    }
    return now;
  }

  const keyOf = (now: Space, part: Part, owner: number) => `${now.id}:${part}:${owner}`;

  /** What is kept of the owner, brought up to date when little is missing, else null. */
  function current(now: Space, part: Part, owner: number): Kept | null {
    const key = keyOf(now, part, owner);
    const have = kept.get(key);
    const { n, rev } = ownerVectors(db, now, part, owner);
    if (have !== undefined && have.rev === rev) return have;
    if (have === undefined && n > AT_ONCE) return null;
    const next = have ?? {
      held: createHeld(now.dim, n, openSimd),
      rev: 0,
      windows: new Map<number, number>(),
    };
    const fresh = changedSince(now, part, owner, next.rev);
    // Rows that are gone stay as ghosts, which the predicate leaves out, until they are many.
    const crowded = next.held.n + fresh.length > n * 1.1 + 50 && next.held.at === null;
    if (
      fresh.length > AT_ONCE ||
      crowded ||
      !hasRoom(next.held, fresh.length) ||
      next.held.n > n * 1.2 + 50
    ) {
      kept.delete(key);
      return n > AT_ONCE ? null : current(now, part, owner);
    }
    const read = vectorReader(db, now, part);
    for (const entry of fresh) {
      const vector = read(vectorRow(entry.item, entry.window));
      if (vector !== null) put(next, entry, vector);
    }
    next.rev = rev;
    kept.set(key, next);
    return next;
  }

  function put(into: Kept, { item, window }: Entry, vector: Float32Array): void {
    putHeld(into.held, vectorRow(item, window), vector);
    if (window > 0) into.windows.set(item, Math.max(window + 1, into.windows.get(item) ?? 0));
  }

  function changedSince(now: Space, part: Part, owner: number, rev: number): Entry[] {
    return db
      .query<Entry, [number, string, number, number, number]>(
        "SELECT item, window FROM vec_items WHERE space = ? AND part = ? AND owner_id = ? AND rev > ? ORDER BY rev LIMIT ?",
      )
      .all(now.id, part, owner, rev, AT_ONCE + 1);
  }

  async function load(now: Space, part: Part, owner: number): Promise<void> {
    const { n, rev } = ownerVectors(db, now, part, owner);
    const next: Kept = { held: createHeld(now.dim, n, openSimd), rev, windows: new Map() };
    const slices = bulkReader(db, now, part, owner);
    const read = vectorReader(db, now, part);
    let turn = performance.now();
    for (let slice = slices(); slice !== null; slice = slices()) {
      for (const { row, vector } of slice) {
        if (!hasRoom(next.held, 1)) break;
        const item = itemOf(row);
        put(next, { item, window: Math.round((row - item) / vectorRow(0, 1)) }, vector);
      }
      centre(next.held, (at) => wholeAt(next.held, at) ?? read(next.held.rows[at]!));
      if (performance.now() - turn < TURN_MS) continue;
      await breathe();
      turn = performance.now();
    }
    if (seen?.id === now.id) kept.set(keyOf(now, part, owner), next);
  }

  function warm(part: Part, owner: number): Promise<void> {
    const now = space();
    if (now === null || current(now, part, owner) !== null) return Promise.resolve();
    const key = keyOf(now, part, owner);
    let running = warming.get(key);
    if (running === undefined) {
      running = load(now, part, owner).finally(() => warming.delete(key));
      warming.set(key, running);
    }
    return running;
  }

  /** The nearest by vec0, and a random row's cosine by all of them or by the owner's first vectors. */
  function fromTable(
    now: Space,
    part: Part,
    owner: number,
    query: Float32Array,
    want: number,
    total: number,
  ): Near {
    const found = nearestRows(db, now, part, owner, query, Math.min(Math.max(want, COLD_K), MAX_K));
    const cosines = found.map((one) => one.cosine);
    let scores = Float32Array.from(cosines);
    if (total > found.length) {
      const read = vectorReader(db, now, part);
      const vectors = changedSince(now, part, owner, 0)
        .slice(0, SAMPLE)
        .map((entry) => read(vectorRow(entry.item, entry.window)));
      scores = Float32Array.from(
        vectors.filter((vector) => vector !== null).map((vector) => dot(query, vector, 0)),
      );
    }
    return { rows: found.map((one) => one.row), cosines, ...spread(scores) };
  }

  function search(
    part: Part,
    sight: Sight,
    query: Float32Array,
    k: number,
    roughly = false,
  ): VectorHits | null {
    const now = space();
    if (now === null || now.dim !== query.length) return { hits: [], mean: 0, deviation: 1, rows: 0 };
    const { owner } = sight.predicate;
    const have = current(now, part, owner);
    const total = have?.held.n ?? ownerVectors(db, now, part, owner).n;
    if (have === null) {
      // Whoever needs it awaits it; a database that is closed meanwhile ends it.
      warm(part, owner).catch(() => {});
      if (total > COLD_SCAN) return null;
    }
    const read = vectorReader(db, now, part);
    const sees = sight.held?.sees ?? null;
    // Rows that may not be seen take places, so more are asked for until k may, or all were looked at.
    for (let want = k + 8, again = false; ; want *= 4, again = true) {
      const found: Near =
        have !== null
          ? nearestHeld(have.held, query, want, { sees, again, roughly, read })
          : fromTable(now, part, owner, query, want, total);
      const byItem = new Map<number, Hit>();
      found.rows.forEach((row, at) => {
        const id = itemOf(row);
        const hit = { id, row, cosine: found.cosines[at]!, error: found.errors?.[at] ?? 0 };
        if (hit.cosine > (byItem.get(id)?.cosine ?? -2)) byItem.set(id, hit);
      });
      const visible = sight.of([...byItem.keys()]);
      const hits = [...byItem.values()].filter(({ id }) => visible.has(id)).sort(nearer);
      const exhausted = found.rows.length < want || want >= total || (have === null && want >= MAX_K);
      if (hits.length >= k || exhausted)
        return {
          hits: cut(hits, k, read, query),
          mean: found.mean,
          deviation: found.deviation,
          rows: total,
        };
    }
  }

  function cosines(
    part: Part,
    owner: number,
    ids: readonly number[],
    query: Float32Array,
  ): Map<number, number> {
    const found = new Map<number, number>();
    const now = space();
    if (now === null || now.dim !== query.length || ids.length === 0) return found;
    const have = current(now, part, owner);
    const note = (id: number, cosine: number) => {
      if (cosine > (found.get(id) ?? -2)) found.set(id, cosine);
    };
    if (have !== null && have.held.at !== null) {
      const places: number[] = [];
      const items: number[] = [];
      for (const id of ids) {
        for (let window = 0; window < (have.windows.get(id) ?? 1); window++) {
          const at = have.held.at.get(vectorRow(id, window));
          if (at === undefined) continue;
          places.push(at);
          items.push(id);
        }
      }
      const cosines = measure(have.held, query, places)!;
      items.forEach((id, i) => note(id, cosines[i]!));
      return found;
    }
    const read = vectorReader(db, now, part);
    const rows = db
      .query<[number, number], [number, string, number, string]>(
        "SELECT item, window FROM vec_items WHERE space = ? AND part = ? AND owner_id = ? AND item IN (SELECT value FROM json_each(?))",
      )
      .values(now.id, part, owner, JSON.stringify(ids)) as [number, number][];
    for (const [item, window] of rows) {
      const vector = read(vectorRow(item, window));
      if (vector !== null) note(item, dot(query, vector, 0));
    }
    return found;
  }

  function ready(part: Part, owner: number): boolean {
    const now = space();
    return (
      now === null || ownerVectors(db, now, part, owner).n <= COLD_SCAN || current(now, part, owner) !== null
    );
  }

  return { space, search, cosines, ready, warm };
}

interface Hit {
  readonly id: number;
  readonly row: number;
  readonly cosine: number;
  readonly error: number;
}

const nearer = (a: Hit, b: Hit) => b.cosine - a.cosine || b.id - a.id;

/**
 * The best `k` of hits in order. Only where rounding leaves open on which side of the cut one falls is its vector read,
 * about 10 µs each.
 */
function cut(
  hits: Hit[],
  k: number,
  read: (row: number) => Float32Array | null,
  query: Float32Array,
): { id: number; cosine: number }[] {
  const last = hits[k - 1];
  const first = hits[k];
  if (last !== undefined && first !== undefined && last.cosine - first.cosine < last.error + first.error) {
    const open = (hit: Hit) => hit.error > 0 && Math.abs(hit.cosine - last.cosine) < hit.error + last.error;
    hits = hits.map((hit) => {
      const vector = open(hit) ? read(hit.row) : null;
      return vector === null ? hit : { ...hit, cosine: dot(query, vector, 0), error: 0 };
    });
    hits.sort(nearer);
  }
  return hits.slice(0, k).map(({ id, cosine }) => ({ id, cosine }));
}

function wholeAt(held: Held, at: number): Float32Array | null {
  return held.whole === null ? null : held.whole.subarray(at * held.stride, at * held.stride + held.dim);
}
