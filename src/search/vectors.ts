/**
 * Vector search. Vectors of owners that ask are kept in memory: whole ones for small owners, for large ones one bit a
 * dimension, from which the nearest are picked and then measured exactly. A plain loop here beats vec0's own scan from
 * about 1,000 vectors on (`bench engine` prints both); vec0 answers while an owner's vectors are still being read.
 */
import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import { live } from "./predicate.ts";
import type { Kind, Predicate } from "./types.ts";
import {
  dot,
  itemOf,
  MAX_K,
  nearestRows,
  ownerVectors,
  signatureOf,
  signatureWords,
  vectorReader,
  vectorRow,
} from "./vector-store.ts";
import { activeSpace, type Part, type Space } from "./vector-tables.ts";

/** Up to this many bytes of whole vectors an owner is searched exactly in memory. */
const WHOLE_BYTES = 16 * 2 ** 20;
/** From this many vectors on, bits choose whom to measure. */
export const SIGNATURES_FROM = 4000;
/** Vectors measured exactly for one query that went by signatures. */
const MEASURED = 400;
/** All that is kept in memory, in bytes. */
const CACHE_BYTES = 64 * 2 ** 20;
/** Above this many vectors vec0's scan takes too long to stand in while they are being read. */
const COLD_SCAN = 100_000;
/** Vectors whose cosines say how near a random row of this owner is. */
const SAMPLE = 256;
/** Owners of up to this many are then measured whole. */
const COLD_K = 1024;
/** Rows read at a time while other calls wait. */
const SLICE = 400;

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
  /** The nearest rows that may be seen. Null while a large owner's vectors are being read: await `warm`. */
  search(part: Part, kind: Kind, predicate: Predicate, query: Float32Array, k: number): VectorHits | null;
  /** Cosines of given rows; rows without a vector are left out. */
  cosines(part: Part, owner: number, ids: readonly number[], query: Float32Array): Map<number, number>;
  /** Whether {@link search} would answer now. */
  ready(part: Part, owner: number): boolean;
  /** Reads an owner's vectors into memory, giving way to other calls between slices. */
  warm(part: Part, owner: number): Promise<void>;
}

/** An owner's vectors of one part. `rows` are row numbers in the order they were read. */
interface Held {
  rows: Float64Array;
  at: Map<number, number> | null;
  /** Items of more than one window, and how many they have. */
  windows: Map<number, number>;
  bits: Uint32Array;
  /** Whole vectors one after another, or null for a large owner. */
  whole: Float32Array | null;
  n: number;
  rev: number;
  sample: Float32Array;
}

export function createVectorIndex(db: Database): VectorIndex {
  const held = new LRUCache<string, Held>({
    maxSize: CACHE_BYTES,
    // An owner without vectors is remembered too, and nothing may weigh nothing.
    sizeCalculation: (h) =>
      64 + h.bits.byteLength + h.rows.byteLength * 2 + (h.whole?.byteLength ?? 0) + h.sample.byteLength,
  });
  const warming = new Map<string, Promise<void>>();
  let seen: Space | null = null;

  function space(): Space | null {
    const now = activeSpace(db);
    if (now?.id !== seen?.id) {
      held.clear();
      seen = now;
    }
    return now;
  }

  /** What is held of the owner, brought up to date when little is missing, else null. */
  function current(now: Space, part: Part, owner: number): Held | null {
    const key = `${now.id}:${part}:${owner}`;
    const have = held.get(key);
    const { n, rev } = ownerVectors(db, now, part, owner);
    if (have !== undefined && have.rev === rev) return have;
    if (have === undefined && n > SLICE) return null;
    const next = have ?? emptyHeld();
    const fresh = readSince(now, part, owner, next.rev, SLICE + 1);
    if (fresh.length > SLICE) return null;
    add(now, part, next, fresh, n);
    next.rev = rev;
    // Rows that are gone stay as ghosts, which the predicate leaves out, until they are many.
    if (next.n > n * 1.1 + 50) {
      held.delete(key);
      return n > SLICE ? null : current(now, part, owner);
    }
    held.set(key, next);
    return next;
  }

  function readSince(now: Space, part: Part, owner: number, rev: number, limit: number): Entry[] {
    return db
      .query<Entry, [number, string, number, number, number]>(
        "SELECT item, window, rev, sig FROM vec_items WHERE space = ? AND part = ? AND owner_id = ? AND rev > ? ORDER BY rev LIMIT ?",
      )
      .all(now.id, part, owner, rev, limit);
  }

  function add(now: Space, part: Part, have: Held, entries: readonly Entry[], total: number): void {
    if (entries.length === 0) return;
    const words = signatureWords(now.dim);
    const read = vectorReader(db, now, part);
    const room = Math.max(total, have.n + entries.length);
    const keepWhole = room * now.dim * 4 <= WHOLE_BYTES && (have.n === 0 || have.whole !== null);
    if (have.rows.length < room) grow(have, Math.ceil(room * 1.25) + 16, words, keepWhole ? now.dim : 0);
    if (!keepWhole) {
      have.whole = null;
      have.at = null;
    } else have.at ??= new Map();
    for (const entry of entries) {
      const row = vectorRow(entry.item, entry.window);
      const known = have.at?.get(row);
      const at = known ?? have.n++;
      have.rows[at] = row;
      have.bits.set(wordsOf(entry.sig, words), at * words);
      if (have.whole !== null) {
        const vector = read(row);
        if (vector !== null) have.whole.set(vector, at * now.dim);
        have.at?.set(row, at);
        if (entry.window > 0)
          have.windows.set(entry.item, Math.max(entry.window + 1, have.windows.get(entry.item) ?? 0));
      }
      have.rev = Math.max(have.rev, entry.rev);
    }
  }

  /** Evenly spaced vectors of the owner. */
  function takeSample(now: Space, part: Part, have: Held): void {
    const read = vectorReader(db, now, part);
    const step = Math.max(1, Math.floor(have.n / SAMPLE));
    const kept: Float32Array[] = [];
    for (let at = 0; at < have.n && kept.length < SAMPLE; at += step) {
      const vector = read(have.rows[at]!);
      if (vector !== null) kept.push(vector);
    }
    have.sample = new Float32Array(kept.length * now.dim);
    kept.forEach((vector, at) => have.sample.set(vector, at * now.dim));
  }

  async function load(now: Space, part: Part, owner: number): Promise<void> {
    const have = emptyHeld();
    for (;;) {
      const { n, rev } = ownerVectors(db, now, part, owner);
      if (have.rev >= rev) break;
      const large = n * now.dim * 4 > WHOLE_BYTES;
      const entries = readSince(now, part, owner, have.rev, large ? SLICE * 10 : SLICE);
      if (entries.length === 0) {
        have.rev = rev;
        break;
      }
      add(now, part, have, entries, n);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (have.whole === null) takeSample(now, part, have);
    if (seen?.id === now.id) held.set(`${now.id}:${part}:${owner}`, have);
  }

  function warm(part: Part, owner: number): Promise<void> {
    const now = space();
    if (now === null || current(now, part, owner) !== null) return Promise.resolve();
    const key = `${now.id}:${part}:${owner}`;
    let running = warming.get(key);
    if (running === undefined) {
      running = load(now, part, owner).finally(() => warming.delete(key));
      warming.set(key, running);
    }
    return running;
  }

  /** The best `want` rows, before the predicate. */
  function nearest(now: Space, part: Part, have: Held, query: Float32Array, want: number): Near {
    const { dim } = now;
    if (have.whole !== null && have.n <= SIGNATURES_FROM) {
      const scores = new Float32Array(have.n);
      for (let at = 0; at < have.n; at++) scores[at] = dot(query, have.whole, at * dim);
      const { mean, deviation } = spread(scores);
      return { ...pick(have, scores, allOf(have.n), want), mean, deviation };
    }
    const near = byBits(have, signatureOf(query), signatureWords(dim), Math.max(MEASURED, want * 2));
    const scores = new Float32Array(near.length);
    const read = have.whole === null ? vectorReader(db, now, part) : null;
    near.forEach((at, i) => {
      if (read === null) scores[i] = dot(query, have.whole!, at * dim);
      else {
        const vector = read(have.rows[at]!);
        scores[i] = vector === null ? -1 : dot(query, vector, 0);
      }
    });
    const sampled = sampleScores(have, query, dim);
    return { ...pick(have, scores, near, want), ...spread(sampled) };
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
    const found = nearestRows(db, now, part, owner, query, want);
    const cosines = found.map((one) => one.cosine);
    let scores = Float32Array.from(cosines);
    if (total > found.length) {
      const read = vectorReader(db, now, part);
      const vectors = readSince(now, part, owner, 0, SAMPLE).map((entry) =>
        read(vectorRow(entry.item, entry.window)),
      );
      scores = Float32Array.from(
        vectors.filter((vector) => vector !== null).map((vector) => dot(query, vector, 0)),
      );
    }
    return { rows: found.map((one) => one.row), cosines, ...spread(scores) };
  }

  function search(
    part: Part,
    kind: Kind,
    predicate: Predicate,
    query: Float32Array,
    k: number,
  ): VectorHits | null {
    const now = space();
    if (now === null || now.dim !== query.length) return { hits: [], mean: 0, deviation: 1, rows: 0 };
    const { owner } = predicate;
    const have = current(now, part, owner);
    const total = have?.n ?? ownerVectors(db, now, part, owner).n;
    if (have === null) {
      void warm(part, owner);
      if (total > COLD_SCAN) return null;
    }
    // Rows that may not be seen take places, so more are asked for until k may, or all were looked at.
    for (let want = k + 8; ; want *= 4) {
      const found: Near =
        have !== null
          ? nearest(now, part, have, query, want)
          : fromTable(now, part, owner, query, Math.min(Math.max(want, COLD_K), MAX_K), total);
      const best = new Map<number, number>();
      found.rows.forEach((row, at) => {
        const id = itemOf(row);
        const cosine = found.cosines[at]!;
        if (cosine > (best.get(id) ?? -2)) best.set(id, cosine);
      });
      const visible = visibleOf(db, kind, predicate, [...best.keys()]);
      const hits = [...best]
        .filter(([id]) => visible.has(id))
        .map(([id, cosine]) => ({ id, cosine }))
        .sort((a, b) => b.cosine - a.cosine || b.id - a.id);
      const exhausted = found.rows.length < want || want >= total || (have === null && want >= MAX_K);
      if (hits.length >= k || exhausted)
        return { hits: hits.slice(0, k), mean: found.mean, deviation: found.deviation, rows: total };
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
    if (have?.whole && have.at !== null) {
      for (const id of ids) {
        let best: number | null = null;
        const windows = have.windows.get(id) ?? 1;
        for (let window = 0; window < windows; window++) {
          const at = have.at.get(vectorRow(id, window));
          if (at !== undefined) best = Math.max(best ?? -2, dot(query, have.whole, at * now.dim));
        }
        if (best !== null) found.set(id, best);
      }
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
      if (vector === null) continue;
      const cosine = dot(query, vector, 0);
      if (cosine > (found.get(item) ?? -2)) found.set(item, cosine);
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

interface Entry {
  item: number;
  window: number;
  rev: number;
  sig: Uint8Array;
}

interface Near {
  rows: readonly number[];
  cosines: readonly number[];
  mean: number;
  deviation: number;
}

function emptyHeld(): Held {
  const none = new Float32Array(0);
  return {
    rows: new Float64Array(0),
    at: null,
    windows: new Map(),
    bits: new Uint32Array(0),
    whole: null,
    n: 0,
    rev: 0,
    sample: none,
  };
}

function grow(have: Held, room: number, words: number, dim: number): void {
  const rows = new Float64Array(room);
  rows.set(have.rows.subarray(0, have.n));
  have.rows = rows;
  const bits = new Uint32Array(room * words);
  bits.set(have.bits.subarray(0, have.n * words));
  have.bits = bits;
  if (dim === 0) return;
  const whole = new Float32Array(room * dim);
  if (have.whole !== null) whole.set(have.whole.subarray(0, have.n * dim));
  have.whole = whole;
}

function wordsOf(sig: Uint8Array, words: number): Uint32Array {
  const copy = new Uint8Array(words * 4);
  copy.set(sig.subarray(0, words * 4));
  return new Uint32Array(copy.buffer);
}

/** Which of the ids may be seen. */
export function visibleOf(
  db: Database,
  kind: Kind,
  predicate: Predicate,
  ids: readonly number[],
): Set<number> {
  if (ids.length === 0) return new Set();
  const { join, where, values } = live(kind, "j.value", predicate);
  const rows = db
    .query<[number], (string | number)[]>(`SELECT j.value FROM json_each(?) j CROSS ${join} WHERE ${where}`)
    .values(JSON.stringify(ids), ...values) as [number][];
  return new Set(rows.map(([id]) => id));
}

/** Positions of the `want` rows whose bits differ least: one counting pass, since a distance is a small whole number. */
function byBits(have: Held, query: Uint32Array, words: number, want: number): number[] {
  const { bits, n } = have;
  const distances = new Uint16Array(n);
  const counts = new Uint32Array(words * 32 + 1);
  for (let at = 0, from = 0; at < n; at++, from += words) {
    let distance = 0;
    for (let word = 0; word < words; word++) {
      let v = bits[from + word]! ^ query[word]!;
      v -= (v >>> 1) & 0x55555555;
      v = (v & 0x33333333) + ((v >>> 2) & 0x33333333);
      distance += Math.imul((v + (v >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
    }
    distances[at] = distance;
    counts[distance]! += 1;
  }
  let limit = 0;
  for (let sum = counts[0]!; sum < want && limit < counts.length - 1;) sum += counts[++limit]!;
  const found: number[] = [];
  for (let at = 0; at < n; at++) if (distances[at]! <= limit) found.push(at);
  // The last distance may hold many more than are wanted.
  if (found.length <= want * 2) return found;
  return found.sort((a, b) => distances[a]! - distances[b]!).slice(0, want);
}

function allOf(n: number): number[] {
  return Array.from({ length: n }, (_, at) => at);
}

/** The best `want` of the rows at `positions`, whose scores stand in the same order. */
function pick(
  have: Held,
  scores: Float32Array,
  positions: readonly number[],
  want: number,
): { rows: number[]; cosines: number[] } {
  let order: number[];
  if (scores.length <= want * 2) order = allOf(scores.length);
  else {
    // Everything at or above the score that the want-th best has.
    const sorted = scores.slice().sort();
    const least = sorted[sorted.length - want]!;
    order = [];
    for (let at = 0; at < scores.length; at++) if (scores[at]! >= least) order.push(at);
  }
  order.sort((a, b) => scores[b]! - scores[a]!);
  if (order.length > want) order.length = want;
  return { rows: order.map((at) => have.rows[positions[at]!]!), cosines: order.map((at) => scores[at]!) };
}

function sampleScores(have: Held, query: Float32Array, dim: number): Float32Array {
  if (have.whole !== null) {
    const step = Math.max(1, Math.floor(have.n / SAMPLE));
    const scores: number[] = [];
    for (let at = 0; at < have.n; at += step) scores.push(dot(query, have.whole, at * dim));
    return Float32Array.from(scores);
  }
  const n = have.sample.length / dim;
  const scores = new Float32Array(n);
  for (let at = 0; at < n; at++) scores[at] = dot(query, have.sample, at * dim);
  return scores;
}

function spread(scores: Float32Array): { mean: number; deviation: number } {
  if (scores.length === 0) return { mean: 0, deviation: 1 };
  let sum = 0;
  for (const score of scores) sum += score;
  const mean = sum / scores.length;
  let squares = 0;
  for (const score of scores) squares += (score - mean) ** 2;
  return { mean, deviation: Math.sqrt(squares / scores.length) || 1 };
}
