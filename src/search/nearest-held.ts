/** The best rows of an owner's vectors in memory: which are measured, and how exactly. */
import { roundingOf, type Held } from "./held-vectors.ts";
import { isFew, measure, measureRoughly, promising, sampleCosines } from "./nearest.ts";
import { dot, itemOf } from "./vector-store.ts";

/** Rows, best first, and how near a random row of the owner is. */
export interface Near {
  rows: readonly number[];
  cosines: readonly number[];
  /** How far rounding may have moved each cosine; left out where none was rounded. */
  errors?: readonly number[];
  mean: number;
  deviation: number;
}

export interface Manner {
  /** Whether an item may be seen, where memory knows it. */
  readonly sees: ((id: number) => boolean) | null;
  /** Fewer than were wanted could be seen before. */
  readonly again: boolean;
  /** Of many some may be missed. */
  readonly roughly: boolean;
  /** Reads a whole vector. */
  readonly read: (row: number) => Float32Array | null;
}

/**
 * The best `want` rows. Where some of many are measured, these are rows that `sees` lets through; `again`: there were too
 * few of them. Else the predicate follows.
 */
export function nearestHeld(
  held: Held,
  query: Float32Array,
  want: number,
  { sees, again, roughly, read }: Manner,
): Near {
  const chosen =
    sees === null ? promising(held, query, want, roughly) : among(held, query, want, sees, again);
  const exactly = isFew(held, chosen?.length ?? held.n);
  const scores =
    (exactly ? measure(held, query, chosen) : measureRoughly(held, query, chosen)) ??
    measureRead(held, query, chosen, read);
  // All were measured, or a sample says how the others are.
  const around = chosen === null ? spread(scores) : spread(sampleCosines(held, query));
  const rough = !exactly && held.codes !== null;
  const order = best(scores, rough && held.whole === null ? want + ROUNDED : want);
  const places = order.map((i) => (chosen === null ? i : chosen[i]!));
  // Rounded vectors chose; where whole ones are held they decide.
  const exact = rough && held.whole !== null ? measure(held, query, places) : null;
  const near = {
    rows: places.map((at) => held.rows[at]!),
    cosines: order.map((i, n) => exact?.[n] ?? scores[i]!),
    ...around,
  };
  if (!rough || roughly || exact !== null) return near;
  return { ...near, errors: places.map((at) => roundingOf(held, at)) };
}

/** The same as `measure` where only bits are held. */
function measureRead(
  held: Held,
  query: Float32Array,
  chosen: Uint32Array | null,
  read: Manner["read"],
): Float32Array {
  return Float32Array.from(chosen ?? held.rows.keys().take(held.n), (at) => {
    const vector = read(held.rows[at]!);
    return vector === null ? -1 : dot(query, vector, 0);
  });
}

/**
 * Places of rows that may be seen, worth measuring for the best `want`: enough of them that bits do not decide. Null: all
 * are few, and measured faster than looked through.
 */
function among(
  held: Held,
  query: Float32Array,
  want: number,
  sees: (id: number) => boolean,
  again: boolean,
): Uint32Array | null {
  const seen = (at: number) => sees(itemOf(held.rows[at]!));
  let found = promising(held, query, want);
  if (found === null && !(again && held.sampled > 0)) return null;
  while (found !== null) {
    const some = found.filter(seen);
    if (some.length >= want * ENOUGH) return some;
    found = promising(held, query, found.length);
  }
  return Uint32Array.from({ length: held.n }, (_, at) => at).filter(seen);
}

/** Rows of many that bits have to bring for each that is wanted. */
const ENOUGH = 4;

/** Further rows that rounded vectors may have put too low. */
const ROUNDED = 16;

/** Positions of the `want` highest scores, best first. */
function best(scores: Float32Array, want: number): number[] {
  const order: number[] = [];
  if (scores.length <= want * 2) for (let at = 0; at < scores.length; at++) order.push(at);
  else {
    // Cosines fall into bins; everything from the bin on that the want-th best is in.
    const bins = new Uint32Array(BINS + 1);
    const binOf = (score: number) => Math.max(0, Math.min(BINS, ((score + 1) * (BINS / 2)) | 0));
    for (let at = 0; at < scores.length; at++) bins[binOf(scores[at]!)]! += 1;
    let least = BINS;
    for (let sum = bins[least]!; sum < want && least > 0;) sum += bins[--least]!;
    for (let at = 0; at < scores.length; at++) if (binOf(scores[at]!) >= least) order.push(at);
  }
  order.sort((a, b) => scores[b]! - scores[a]!);
  if (order.length > want) order.length = want;
  return order;
}

const BINS = 8191;

/** Mean and deviation; of nothing 0 and 1. */
export function spread(scores: Float32Array): { mean: number; deviation: number } {
  if (scores.length === 0) return { mean: 0, deviation: 1 };
  let sum = 0;
  for (let at = 0; at < scores.length; at++) sum += scores[at]!;
  const mean = sum / scores.length;
  let squares = 0;
  for (let at = 0; at < scores.length; at++) squares += (scores[at]! - mean) ** 2;
  return { mean, deviation: Math.sqrt(squares / scores.length) || 1 };
}
