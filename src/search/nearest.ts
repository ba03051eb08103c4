/**
 * Nearest vectors of one owner in memory. Few are measured one by one. Of many, one bit a dimension (its sign against the
 * owner's mean) tells roughly how near each is: the query's own numbers are added up byte by byte from tables, as in
 * product quantisation, and only the best of those are measured. Static tables of words keep most of what they know in
 * few dimensions, so bits against bits (Hamming) would miss a fifth of the nearest where this misses one in a thousand.
 */
import { dot } from "./vector-store.ts";

/** Up to this many vectors each is measured. */
export const MEASURE_ALL = 4000;
/** How many are measured of more: this share of them, within these bounds. */
const SHARE = 0.04;
const LEAST = 1500;
const MOST = 4000;
/** The same where measuring one means reading it from the table. */
const READ_MOST = 1200;
/** Whole vectors of an owner up to this many bytes are kept as they are, then rounded to bytes, then as bits alone. */
const WHOLE_BYTES = 16 * 2 ** 20;
const CODE_BYTES = 40 * 2 ** 20;
/** Vectors that the mean is taken from. */
const MEAN_OF = 2000;
/** Vectors whose cosines say how near a random row is. */
const SAMPLE = 256;
/** Sums of bits lie between 0 and this, and fall into bins for choosing the largest. */
const UNITS = 2 ** 22;
const BIN_SHIFT = 11;
const BINS = (UNITS >> BIN_SHIFT) + 1;

/** An owner's vectors of one part. */
export interface Held {
  readonly dim: number;
  /** Row numbers in the order they came, and where each is. */
  rows: Float64Array;
  readonly at: Map<number, number> | null;
  n: number;
  /** Whole vectors, or rounded ones (of unit length times 127), or neither. */
  whole: Float32Array | null;
  codes: Int8Array | null;
  bits: Uint8Array;
  mean: Float32Array | null;
  sample: Float32Array;
  sampled: number;
}

/** Room for `total` vectors, in the form that fits. */
export function createHeld(dim: number, total: number): Held {
  const room = Math.ceil(total * 1.1) + 64;
  const whole = room * dim * 4 <= WHOLE_BYTES;
  const codes = !whole && room * dim <= CODE_BYTES;
  return {
    dim,
    rows: new Float64Array(room),
    at: whole || codes ? new Map() : null,
    n: 0,
    whole: whole ? new Float32Array(room * dim) : null,
    codes: codes ? new Int8Array(room * dim) : null,
    bits: new Uint8Array(room * bytesOf(dim)),
    mean: null,
    sample: new Float32Array(SAMPLE * dim),
    sampled: 0,
  };
}

/** Bytes that it takes. */
export function heldBytes(held: Held): number {
  const map = held.at === null ? 0 : held.n * 32;
  return (
    held.rows.byteLength +
    held.bits.byteLength +
    (held.whole?.byteLength ?? 0) +
    (held.codes?.byteLength ?? 0) +
    held.sample.byteLength +
    map
  );
}

/** Whether `more` vectors still fit. */
export function hasRoom(held: Held, more: number): boolean {
  return held.n + more <= held.rows.length;
}

/** Adds a vector or, where its row is known, replaces it. */
export function putHeld(held: Held, row: number, vector: Float32Array): void {
  const { dim } = held;
  const known = held.at?.get(row);
  const at = known ?? held.n++;
  held.rows[at] = row;
  held.at?.set(row, at);
  held.whole?.set(vector, at * dim);
  const { codes } = held;
  // Of unit length, so no number is beyond ±1; half is added to round.
  if (codes !== null)
    for (let d = 0, to = at * dim; d < dim; d++, to++) codes[to] = Math.floor(vector[d]! * 127 + 0.5);
  setBits(held, at, vector);
  // Every k-th vector, k growing, so that the sample stays spread over all of them.
  if (held.sampled < SAMPLE) held.sample.set(vector, held.sampled++ * dim);
  else if (at % Math.ceil((at + 1) / SAMPLE) === 0) held.sample.set(vector, (at % SAMPLE) * dim);
}

/** Takes the owner's mean once enough vectors are there; the bits before it are made anew. */
export function centre(held: Held, vectors: (at: number) => Float32Array | null): void {
  const { dim } = held;
  if (held.mean !== null || held.n <= MEASURE_ALL / 2) return;
  const mean = new Float32Array(dim);
  const of = Math.min(held.n, MEAN_OF);
  for (let at = 0; at < of; at++) {
    const vector = vectors(at);
    if (vector !== null) for (let d = 0; d < dim; d++) mean[d]! += vector[d]! / of;
  }
  held.mean = mean;
  for (let at = 0; at < held.n; at++) {
    const vector = vectors(at);
    if (vector !== null) setBits(held, at, vector);
  }
}

/** Measures the vectors at given places. Null: measured from the table by the caller. */
export function cosineAt(held: Held, query: Float32Array, at: number): number | null {
  if (held.whole !== null) return dot(query, held.whole, at * held.dim);
  if (held.codes !== null) return dotCodes(query, held.codes, at * held.dim) / 127;
  return null;
}

/** As `dot`, over rounded vectors: its own function, so that each stays fast on its one kind of array. */
function dotCodes(query: Float32Array, codes: Int8Array, from: number): number {
  let a = 0;
  let b = 0;
  let at = 0;
  for (; at + 1 < query.length; at += 2) {
    a += query[at]! * codes[from + at]!;
    b += query[at + 1]! * codes[from + at + 1]!;
  }
  if (at < query.length) a += query[at]! * codes[from + at]!;
  return a + b;
}

/** Places worth measuring for the best `want`: all of few, of many those whose bits promise most. */
export function promising(held: Held, query: Float32Array, want: number): number[] | null {
  if (held.n <= MEASURE_ALL || held.mean === null) return null;
  const most = held.whole === null && held.codes === null ? READ_MOST : MOST;
  const measured = Math.max(Math.min(most, Math.max(LEAST, Math.ceil(held.n * SHARE))), want * 4);
  return measured >= held.n ? null : byBits(held, query, measured);
}

/** Mean and deviation of the cosines of an even sample. */
export function sampleCosines(held: Held, query: Float32Array): Float32Array {
  const scores = new Float32Array(held.sampled);
  for (let at = 0; at < held.sampled; at++) scores[at] = dot(query, held.sample, at * held.dim);
  return scores;
}

function bytesOf(dim: number): number {
  return Math.ceil(dim / 8);
}

function setBits(held: Held, at: number, vector: Float32Array): void {
  const bytes = bytesOf(held.dim);
  const { bits, mean } = held;
  for (let byte = 0; byte < bytes; byte++) {
    let value = 0;
    for (let bit = 0; bit < 8; bit++) {
      const d = byte * 8 + bit;
      if (d < held.dim && vector[d]! > (mean?.[d] ?? 0)) value |= 1 << bit;
    }
    bits[at * bytes + byte] = value;
  }
}

/** The `measured` places with the largest Σ ±(query − mean), plus where the bit is set. In whole numbers, which add up faster. */
function byBits(held: Held, query: Float32Array, measured: number): number[] {
  const { bits, n, dim } = held;
  const bytes = bytesOf(dim);
  let bound = 0;
  for (let d = 0; d < dim; d++) bound += Math.abs(query[d]! - held.mean![d]!);
  const unit = (UNITS - dim) / 2 / (bound || 1);
  const tables = new Int32Array(bytes * 256);
  for (let byte = 0; byte < bytes; byte++) {
    const from = byte * 256;
    const step = new Int32Array(8);
    for (let bit = 0; bit < 8; bit++) {
      const d = byte * 8 + bit;
      if (d < dim) step[bit] = Math.round((query[d]! - held.mean![d]!) * unit);
      tables[from]! -= step[bit]!;
    }
    // A value is one bit more than the value without its lowest bit.
    for (let value = 1; value < 256; value++)
      tables[from + value] =
        tables[from + (value & (value - 1))]! + 2 * step[31 - Math.clz32(value & -value)]!;
  }
  const bins = new Uint16Array(n);
  const counts = new Uint32Array(BINS);
  for (let at = 0, from = 0; at < n; at++, from += bytes) {
    let a = UNITS / 2;
    let b = 0;
    let byte = 0;
    for (; byte + 1 < bytes; byte += 2) {
      a = (a + tables[(byte << 8) + bits[from + byte]!]!) | 0;
      b = (b + tables[((byte + 1) << 8) + bits[from + byte + 1]!]!) | 0;
    }
    if (byte < bytes) a = (a + tables[(byte << 8) + bits[from + byte]!]!) | 0;
    const bin = (a + b) >> BIN_SHIFT;
    bins[at] = bin;
    counts[bin]! += 1;
  }
  let least = BINS - 1;
  for (let sum = counts[least]!; sum < measured && least > 0;) sum += counts[--least]!;
  const found: number[] = [];
  for (let at = 0; at < n; at++) if (bins[at]! >= least) found.push(at);
  return found;
}
