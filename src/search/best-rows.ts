/**
 * The rows with the highest BM25 among those held in memory. Words are added up from the rarest on; once `k` rows have more
 * than all words left could give together, no other row can be among the best, and the common words, which most rows hold,
 * only score the rows that are there already ("MaxScore" a term at a time: Turtle and Flood, "Query evaluation: strategies
 * and optimizations", 1995).
 */
import type { Saturation } from "./bm25.ts";
import type { Postings, WordPostings } from "./postings.ts";

/** A word to search with: its weights, and the postings of every form that counts as it. */
export interface SearchWord {
  readonly idf: number;
  readonly saidIdf: number;
  readonly forms: readonly WordPostings[];
}

/** How a side is measured: `length` is the mean length of such rows. */
export interface Side extends Saturation {
  readonly length: number;
}

/** Both columns together, and the first alone where there are two. */
export interface Sides {
  readonly whole: Side;
  readonly said: Side | null;
}

/** Ids of at most `k` rows by each side; those that score nothing are left out. */
export interface BestRows {
  readonly k: number;
  readonly whole: readonly number[];
  readonly said: readonly number[];
}

/** Looking for the `k`-th best costs about as much as adding so many postings a touched row. */
const WORTH = 2;

/**
 * The best `k` of each side among the rows that `sees` lets through (null: all), best first, the newest first among equals.
 * `words` stand in order, rarest first.
 */
export function bestRows(
  held: Postings,
  words: readonly SearchWord[],
  sides: Sides,
  k: number,
  sees: ((slot: number) => boolean) | null,
): BestRows {
  if (held.sums.whole.length < held.slots) {
    const room = held.ids.length;
    Object.assign(held.sums, {
      whole: new Float32Array(room),
      said: new Float32Array(room),
      touched: new Uint32Array(room),
    });
  }
  const { whole, said, touched } = held.sums;
  const state: State = { n: 0, open: true, sees };
  words.forEach((word, at) => {
    const postings = word.forms.length === 1 ? word.forms[0]! : [merged(word.forms)];
    if (state.open && state.n >= k && sizeOf(postings) > state.n * WORTH) {
      const rest = words.slice(at);
      state.open = !(
        least(whole, touched, state.n, k) > most(rest, "idf", sides.whole) &&
        (sides.said === null || least(said, touched, state.n, k) > most(rest, "saidIdf", sides.said))
      );
    }
    for (const part of postings) add(held, word, sides, part, state);
  });
  const found = {
    k,
    whole: top(whole, touched, state.n, k, held.ids),
    said: sides.said === null ? [] : top(said, touched, state.n, k, held.ids),
  };
  for (let i = 0; i < state.n; i++) {
    whole[touched[i]!] = 0;
    said[touched[i]!] = 0;
  }
  return found;
}

interface State {
  /** Rows touched. */
  n: number;
  /** Whether further rows may come. */
  open: boolean;
  readonly sees: ((slot: number) => boolean) | null;
}

/** Adds one word's postings to the sums; rows that have none yet are touched while `open`. */
function add(
  { saidLength, replyLength, gone, sums: { whole, said, touched } }: Postings,
  { idf, saidIdf }: Pick<SearchWord, "idf" | "saidIdf">,
  sides: Sides,
  { slots, times }: WordPostings[number],
  state: State,
): void {
  const { open, sees } = state;
  const one = weightsOf(sides.whole, idf);
  const other = sides.said === null ? null : weightsOf(sides.said, saidIdf);
  let { n } = state;
  for (let i = 0; i < slots.length; i++) {
    const slot = slots[i]!;
    if (whole[slot] === 0) {
      if (!open || gone[slot] === 1 || (sees !== null && !sees(slot))) continue;
      touched[n++] = slot;
    }
    const inSaid = times[i]! >> 8;
    const both = inSaid + (times[i]! & 255);
    const words = saidLength[slot]!;
    whole[slot]! += (one.gain * both) / (both + one.fixed + one.slope * (words + replyLength[slot]!));
    if (inSaid > 0 && other !== null)
      said[slot]! += (other.gain * inSaid) / (inSaid + other.fixed + other.slope * words);
  }
  state.n = n;
}

/** BM25 of one word: gain · times / (times + fixed + slope · words). */
function weightsOf({ k1, b, length }: Side, idf: number): { gain: number; fixed: number; slope: number } {
  return { gain: idf * (k1 + 1), fixed: k1 * (1 - b), slope: (k1 * b) / (length || 1) };
}

/** Forms of one word are counted together before they saturate. */
function merged(forms: readonly WordPostings[]): { slots: ArrayLike<number>; times: ArrayLike<number> } {
  const sums = new Map<number, number>();
  for (const postings of forms)
    for (const { slots, times } of postings)
      for (let i = 0; i < slots.length; i++) {
        const before = sums.get(slots[i]!) ?? 0;
        const inSaid = Math.min(255, (before >> 8) + (times[i]! >> 8));
        sums.set(slots[i]!, (inSaid << 8) | Math.min(255, (before & 255) + (times[i]! & 255)));
      }
  return { slots: Uint32Array.from(sums.keys()), times: Uint16Array.from(sums.values()) };
}

function sizeOf(postings: WordPostings): number {
  return postings.reduce((sum, { slots }) => sum + slots.length, 0);
}

/** What a row with all of the words gets at most: a word's part of BM25 stays below idf · (k1 + 1). */
function most(words: readonly SearchWord[], weight: "idf" | "saidIdf", { k1 }: Side): number {
  return words.reduce((sum, word) => sum + word[weight], 0) * (k1 + 1);
}

/** Bins of scores. */
const BINS = 1023;

/** How many touched rows score in each of the bins up to the highest score; what scores nothing is in none. */
function binsOf(
  scores: Float32Array,
  touched: Uint32Array,
  n: number,
): { bins: Uint32Array; scale: number } | null {
  let highest = 0;
  for (let i = 0; i < n; i++) if (scores[touched[i]!]! > highest) highest = scores[touched[i]!]!;
  if (highest === 0) return null;
  const bins = new Uint32Array(BINS + 1);
  const scale = BINS / highest;
  for (let i = 0; i < n; i++) {
    const score = scores[touched[i]!]!;
    if (score > 0) bins[(score * scale) | 0]! += 1;
  }
  return { bins, scale };
}

/** The bin that the `k`-th best is in, or the lowest when there are fewer. */
function binOf(bins: Uint32Array, k: number): number {
  let bin = BINS;
  for (let sum = bins[bin]!; sum < k && bin > 0;) sum += bins[--bin]!;
  return bin;
}

/** At least so much the `k`-th best has; 0 when there are fewer. */
function least(scores: Float32Array, touched: Uint32Array, n: number, k: number): number {
  const found = binsOf(scores, touched, n);
  return found === null ? 0 : binOf(found.bins, k) / found.scale;
}

/** Ids of the `k` highest scores above 0, best first, the newest first among equals. */
function top(scores: Float32Array, touched: Uint32Array, n: number, k: number, ids: Float64Array): number[] {
  const found = binsOf(scores, touched, n);
  if (found === null) return [];
  const from = binOf(found.bins, k);
  const slots: number[] = [];
  for (let i = 0; i < n; i++) {
    const score = scores[touched[i]!]!;
    if (score > 0 && ((score * found.scale) | 0) >= from) slots.push(touched[i]!);
  }
  slots.sort((a, b) => scores[b]! - scores[a]! || ids[b]! - ids[a]!);
  if (slots.length > k) slots.length = k;
  return slots.map((slot) => ids[slot]!);
}
