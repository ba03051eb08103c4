/**
 * Nearest vectors of one owner in memory. Few are measured one by one. Of many, one bit a dimension (its sign against the
 * owner's mean) tells roughly how near each is: the query's own numbers are added up from tables of half bytes, as in
 * product quantisation (André, Kermarrec and Le Scouarnec, "Quicker ADC", 2019), and only the best of those are measured.
 * Static tables of words keep most of what they know in few dimensions, so bits against bits (Hamming) would miss a fifth
 * of the nearest where this misses one in a thousand.
 */
import { bytesOf, largest, MEASURE_ALL, type Held } from "./held-vectors.ts";
import { BLOCK } from "./simd.ts";
import { dot } from "./vector-store.ts";

/** With SIMD up to this many vectors are measured each. */
const MEASURE_ALL_FAST = 25_000;
/** How many are measured of more: this share of them, within these bounds. */
const SHARE = 0.025;
const LEAST = 1500;
const MOST = 2500;
/** The same where some of the nearest may be missed. */
const ROUGHLY = 1000;
/** The same where measuring one means reading it from the table. */
const READ_MOST = 1800;
/** Up to this many are measured as they are; of more, the rounded ones tell which: a quarter of the bytes to read. */
const EXACT = 300;
/** Largest entry of a table of half bytes: two make a byte. */
const UNITS = 127;
/** Steps of a query that is rounded for {@link Simd.codeDots}. */
const QUERY_STEPS = 4095;

/** Whether the rows are so few that measuring them exactly costs nothing worth saving. */
export function isFew(held: Held, count: number): boolean {
  return held.whole !== null && count <= EXACT;
}

/** Cosines of the rows at these places, in their order, or of all, exact where whole vectors are held. Null: only bits are held. */
export function measure(
  held: Held,
  query: Float32Array,
  places: ArrayLike<number> | null,
): Float32Array | null {
  const { simd, stride, whole, list, out } = held;
  if (whole === null) return measureRoughly(held, query, places);
  const n = places === null ? held.n : places.length;
  if (simd === null || n > list.length) {
    const cosines = new Float32Array(n);
    for (let i = 0; i < n; i++) cosines[i] = dot(query, whole, (places === null ? i : places[i]!) * stride);
    return cosines;
  }
  fillList(list, places, n);
  held.query.set(query);
  simd.dots(list.byteOffset, n, whole.byteOffset, stride * 4, held.query.byteOffset, out.byteOffset);
  return out.slice(0, n);
}

/** The same by the rounded vectors, within a thousandth or two. */
export function measureRoughly(
  held: Held,
  query: Float32Array,
  places: ArrayLike<number> | null,
): Float32Array | null {
  const { simd, stride, codes, scales, list, out, queryCodes } = held;
  if (codes === null) return null;
  const n = places === null ? held.n : places.length;
  const cosines = new Float32Array(n);
  if (simd === null || n > list.length) {
    for (let i = 0; i < n; i++) {
      const at = places === null ? i : places[i]!;
      cosines[i] = dotCodes(query, codes, at * stride) * scales[at]!;
    }
    return cosines;
  }
  fillList(list, places, n);
  const scale = QUERY_STEPS / (largest(query) || 1);
  for (let d = 0; d < query.length; d++) queryCodes[d] = Math.round(query[d]! * scale);
  simd.codeDots(list.byteOffset, n, codes.byteOffset, stride, queryCodes.byteOffset, out.byteOffset);
  for (let i = 0; i < n; i++) cosines[i] = (held.outCodes[i]! * scales[list[i]!]!) / scale;
  return cosines;
}

function fillList(list: Uint32Array, places: ArrayLike<number> | null, n: number): void {
  if (places !== null) list.set(places);
  else for (let i = 0; i < n; i++) list[i] = i;
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

/** Places worth measuring for the best `want`: null for all of few, of many those whose bits promise most. */
export function promising(
  held: Held,
  query: Float32Array,
  want: number,
  roughly = false,
): Uint32Array | null {
  // Rounded ones read one after the other are faster than a few thousand here and there.
  const all = held.codes !== null && held.simd !== null ? MEASURE_ALL_FAST : MEASURE_ALL;
  if (held.n <= all || held.mean === null) return null;
  const most = held.whole === null && held.codes === null ? READ_MOST : MOST;
  const share = roughly ? ROUGHLY : Math.max(LEAST, Math.ceil(held.n * SHARE));
  const measured = Math.max(Math.min(most, share), want * 4);
  return measured >= held.n ? null : byBits(held, query, measured);
}

/** Cosines of an even sample. */
export function sampleCosines(held: Held, query: Float32Array): Float32Array {
  const scores = new Float32Array(held.sampled);
  for (let at = 0; at < held.sampled; at++) scores[at] = dot(query, held.sample, at * held.stride);
  return scores;
}

/** The `measured` places with the largest Σ ±(query − mean), plus where the bit is set. */
function byBits(held: Held, query: Float32Array, measured: number): Uint32Array {
  const { bits, n, dim, simd, tables, outSums: sums } = held;
  const bytes = bytesOf(dim);
  const units = fillTables(held, query, bytes);
  const blocks = Math.ceil(n / BLOCK);
  if (simd === null) sumBits(bits, blocks, bytes, tables, sums);
  else simd.sums(bits.byteOffset, blocks, bytes, tables.byteOffset, sums.byteOffset);
  const counts = new Uint32Array(units + 1);
  for (let at = 0; at < n; at++) counts[sums[at]!]! += 1;
  let least = units;
  let many = counts[least]!;
  while (many < measured && least > 0) many += counts[--least]!;
  const found = new Uint32Array(many);
  for (let at = 0, to = 0; at < n; at++) if (sums[at]! >= least) found[to++] = at;
  return found;
}

/** Two tables a byte, of what its low and its high half add to the sum, from 0 up. Returns the largest possible sum. */
function fillTables({ mean, dim, tables }: Held, query: Float32Array, bytes: number): number {
  const most = Math.min(UNITS, Math.floor(65_535 / (2 * bytes)));
  const step = (d: number) => (d < dim ? query[d]! - mean![d]! : 0);
  let widest = 0;
  for (let half = 0; half < bytes * 2; half++) {
    let sum = 0;
    for (let bit = 0; bit < 4; bit++) sum += 2 * Math.abs(step(half * 4 + bit));
    widest = Math.max(widest, sum);
  }
  const unit = most / (widest || 1);
  for (let half = 0; half < bytes * 2; half++) {
    for (let value = 0; value < 16; value++) {
      let sum = 0;
      // A bit that agrees with the sign of its step adds it twice over one that does not.
      for (let bit = 0; bit < 4; bit++) {
        const one = step(half * 4 + bit);
        if ((value >> bit) % 2 === (one > 0 ? 1 : 0)) sum += 2 * Math.abs(one);
      }
      tables[half * 16 + value] = Math.min(most, Math.round(sum * unit));
    }
  }
  return most * bytes * 2;
}

/** What {@link Simd.sums} does, a row after the other. */
function sumBits(
  bits: Uint8Array,
  blocks: number,
  bytes: number,
  tables: Uint8Array,
  sums: Uint16Array,
): void {
  // One look a byte instead of two.
  const whole = new Uint8Array(bytes * 256);
  for (let byte = 0; byte < bytes; byte++)
    for (let value = 0; value < 256; value++)
      whole[byte * 256 + value] = tables[byte * 32 + (value & 15)]! + tables[byte * 32 + 16 + (value >> 4)]!;
  for (let block = 0; block < blocks; block++) {
    for (let row = 0; row < BLOCK; row++) {
      let sum = 0;
      for (let byte = 0, at = block * bytes * BLOCK + row; byte < bytes; byte++, at += BLOCK)
        sum += whole[byte * 256 + bits[at]!]!;
      sums[block * BLOCK + row] = sum;
    }
  }
}
