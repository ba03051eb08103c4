/**
 * The relevance floor: whether anything fits the question at all (the gate), and how far below the best a row may be (the
 * cut). A logistic gate over several signals, since no pair of thresholds separates well. Fitted on one half of the
 * questions and checked on the other (`bench retrieval` prints both sides of it).
 */
import type { Signals } from "./rank.ts";
import type { ModelClass } from "./weights.ts";

/** Weights of the gate's signals, each brought to about 0–1. */
interface Gate {
  readonly bias: number;
  /** Largest share of the query's idf that one row matches. */
  readonly mass: number;
  /** Share of the words that this owner never used. */
  readonly unknown: number;
  /** Words of the query in one row, at most 3, over 3. */
  readonly words: number;
  /** Best cosine in deviations over a random row's, over 5; and as it is. */
  readonly cosine: number;
  readonly raw: number;
  /** log10 of the owner's rows (10 to 1,000), less 2: with few rows most words are unknown and few match. */
  readonly size: number;
}

const gates: Readonly<Record<ModelClass, Gate>> = {
  none: { bias: -0.41, mass: 0.43, unknown: -7, words: 9.98, cosine: 0, raw: 0, size: -2.72 },
  static: { bias: -2.9, mass: 0.1, unknown: -6.92, words: 8.84, cosine: 3.74, raw: 3.4, size: -3.32 },
  minilm: { bias: -2, mass: 0.28, unknown: -4.88, words: 4.4, cosine: 0.66, raw: 14.78, size: -2.69 },
  // Fitted on both models without their raw cosines, which say nothing about a model nobody has measured.
  other: { bias: -2.1, mass: 0.09, unknown: -6.88, words: 9.91, cosine: 4.92, raw: 0, size: -3.83 },
};

/** Share of the best row's score that the first rows must reach, and that those behind them must. */
const FIRST_ROWS = 10;
const FIRST_SHARE: Readonly<Record<ModelClass, number>> = {
  none: 0.37,
  static: 0.385,
  minilm: 0.42,
  other: 0.38,
};
const LATER_SHARE = 0.97;

/** Whether any row of a kind is relevant to the question. */
export function passesGate(signals: Signals, model: ModelClass): boolean {
  if (signals.mass === 0 && signals.rawCosine <= 0) return false;
  const gate = gates[model];
  const size = Math.log10(Math.min(1000, Math.max(10, signals.rows))) - 2;
  const sum =
    gate.bias +
    gate.mass * signals.mass +
    gate.unknown * signals.unknown +
    (gate.words * Math.min(3, signals.words)) / 3 +
    (gate.cosine * signals.cosine) / 5 +
    gate.raw * signals.rawCosine +
    gate.size * size;
  return sum > 0;
}

/** Whether the row at `place` (from 0) stays behind the gate, beside a best row of that score. */
export function passesCut(
  score: number | null,
  best: number | null,
  place: number,
  model: ModelClass,
): boolean {
  if (score === null || best === null) return true;
  return score >= (place < FIRST_ROWS ? FIRST_SHARE[model] : LATER_SHARE) * best;
}
