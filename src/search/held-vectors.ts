/** An owner's vectors in memory, in the forms that nearest.ts measures them in. */
import { BLOCK, PAD, type OpenSimd, type Simd } from "./simd.ts";

/** Up to this many vectors each is measured. */
export const MEASURE_ALL = 4000;
/** Vectors of an owner are kept rounded to bytes up to this many bytes, and beside that as they are; else as bits alone. */
const WHOLE_BYTES = 16 * 2 ** 20;
const CODE_BYTES = 40 * 2 ** 20;
/** Room for more than there are, so that what is added one by one does not have all read anew each time. */
const roomFor = (total: number) => total + Math.min(10_000, total / 2) + 128;
/** Fewer vectors are measured as fast without a memory of their own. */
const LEAST_SIMD = 64;
/** Vectors that the mean is taken from. */
const MEAN_OF = 2000;
/** Vectors whose cosines say how near a random row is. */
const SAMPLE = 256;

/** An owner's vectors of one part. All arrays but the row numbers lie in one buffer. */
export interface Held {
  readonly dim: number;
  /** Numbers of a row, padded with zeros. */
  readonly stride: number;
  /** Row numbers in the order they came, and where each is. */
  rows: Float64Array;
  readonly at: Map<number, number> | null;
  n: number;
  /** Whole vectors, where there is room, and rounded ones, where there is room for these: code times scale. */
  readonly whole: Float32Array | null;
  readonly codes: Int8Array | null;
  readonly scales: Float32Array;
  /** By block of {@link BLOCK} rows: byte 0 of each, byte 1 of each, and so on. */
  readonly bits: Uint8Array;
  mean: Float32Array | null;
  /** Every k-th vector of many. */
  readonly sample: Float32Array;
  sampled: number;
  readonly tables: Uint8Array;
  readonly query: Float32Array;
  readonly queryCodes: Int16Array;
  /** Places to measure, and what was measured, as floats, integers or sums of bits. */
  readonly list: Uint32Array;
  readonly out: Float32Array;
  readonly outCodes: Int32Array;
  readonly outSums: Uint16Array;
  readonly buffer: ArrayBuffer;
  readonly simd: Simd | null;
}

/** Room for `total` vectors, in the form that fits. */
export function createHeld(dim: number, total: number, openSimd: OpenSimd): Held {
  const room = Math.ceil(roomFor(total) / BLOCK) * BLOCK;
  const stride = Math.ceil(dim / PAD) * PAD;
  const keepWhole = room * stride * 4 <= WHOLE_BYTES;
  const keepCodes = room * stride <= CODE_BYTES;
  const sample = room > MEASURE_ALL ? SAMPLE : 0;
  let size = 0;
  const take = (bytes: number) => {
    const from = size;
    size += Math.ceil(bytes / 64) * 64;
    return from;
  };
  const at = {
    whole: take(keepWhole ? room * stride * 4 : 0),
    codes: take(keepCodes ? room * stride : 0),
    scales: take(keepCodes ? room * 4 : 0),
    bits: take(room * bytesOf(dim)),
    sample: take(sample * stride * 4),
    tables: take(bytesOf(dim) * 32),
    query: take(stride * 4),
    queryCodes: take(stride * 2),
    list: take(room * 4),
    out: take(room * 4),
  };
  const simd = total >= LEAST_SIMD ? openSimd(size) : null;
  const buffer = simd?.memory ?? new ArrayBuffer(size);
  return {
    dim,
    stride,
    rows: new Float64Array(room),
    at: keepCodes ? new Map() : null,
    n: 0,
    whole: keepWhole ? new Float32Array(buffer, at.whole, room * stride) : null,
    codes: keepCodes ? new Int8Array(buffer, at.codes, room * stride) : null,
    scales: new Float32Array(buffer, at.scales, keepCodes ? room : 0),
    bits: new Uint8Array(buffer, at.bits, room * bytesOf(dim)),
    mean: null,
    sample: new Float32Array(buffer, at.sample, sample * stride),
    sampled: 0,
    tables: new Uint8Array(buffer, at.tables, bytesOf(dim) * 32),
    query: new Float32Array(buffer, at.query, stride),
    queryCodes: new Int16Array(buffer, at.queryCodes, stride),
    list: new Uint32Array(buffer, at.list, room),
    out: new Float32Array(buffer, at.out, room),
    outCodes: new Int32Array(buffer, at.out, room),
    outSums: new Uint16Array(buffer, at.out, room),
    buffer,
    simd,
  };
}

/** Bytes that it takes. */
export function heldBytes(held: Held): number {
  const map = held.at === null ? 0 : held.n * 32;
  return held.rows.byteLength + held.buffer.byteLength + map;
}

/** Whether `more` vectors still fit. */
export function hasRoom(held: Held, more: number): boolean {
  return held.n + more <= held.rows.length;
}

/** Adds a vector or, where its row is known, replaces it. */
export function putHeld(held: Held, row: number, vector: Float32Array): void {
  const { dim, stride, codes } = held;
  const known = held.at?.get(row);
  const at = known ?? held.n++;
  held.rows[at] = row;
  held.at?.set(row, at);
  held.whole?.set(vector, at * stride);
  if (codes !== null) {
    // The largest number becomes 127; half is added to round.
    const most = largest(vector) || 1;
    held.scales[at] = most / 127;
    for (let d = 0, to = at * stride; d < dim; d++, to++)
      codes[to] = Math.floor((vector[d]! * 127) / most + 0.5);
  }
  setBits(held, at, vector);
  // Every k-th vector, k growing, so that the sample stays spread over all of them.
  const room = held.sample.length / stride;
  if (held.sampled < room) held.sample.set(vector, held.sampled++ * stride);
  else if (room > 0 && at % Math.ceil((at + 1) / room) === 0) held.sample.set(vector, (at % room) * stride);
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

/** The largest absolute number. */
export function largest(vector: Float32Array): number {
  let most = 0;
  for (let d = 0; d < vector.length; d++) most = Math.max(most, Math.abs(vector[d]!));
  return most;
}

/**
 * How far the cosine of a rounded vector is off at most, in nineteen cases of twenty: each number is off by up to half a
 * step, evenly spread, so the sum over a unit query deviates by step/√12; these are two of these.
 */
export function roundingOf(held: Held, at: number): number {
  return held.scales[at]! * (2 / Math.sqrt(12));
}

/** Bytes of a row's bits. */
export function bytesOf(dim: number): number {
  return Math.ceil(dim / 8);
}

function setBits(held: Held, at: number, vector: Float32Array): void {
  const bytes = bytesOf(held.dim);
  const { bits, mean } = held;
  const block = Math.floor(at / BLOCK) * bytes * BLOCK + (at % BLOCK);
  for (let byte = 0; byte < bytes; byte++) {
    let value = 0;
    for (let bit = 0; bit < 8; bit++) {
      const d = byte * 8 + bit;
      if (d < held.dim && vector[d]! > (mean?.[d] ?? 0)) value |= 1 << bit;
    }
    bits[block + byte * BLOCK] = value;
  }
}
