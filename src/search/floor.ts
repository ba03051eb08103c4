/**
 * The relevance floor: whether anything fits the question at all (the gate), and how far below the best a row may be (the
 * cut). A logistic gate over several signals, since no pair of fixed thresholds separates well; fitted by `bench retrieval`.
 */
import type { Signals } from "./rank.ts";
import type { ModelClass } from "./weights.ts";

interface Gate {
  readonly bias: number;
  readonly mass: number;
  readonly cosine: number;
  readonly unknown: number;
  readonly commonest: number;
}

const gates: Readonly<Record<ModelClass, Gate>> = {
  none: { bias: -2, mass: 8, cosine: 0, unknown: -2, commonest: 0 },
  static: { bias: -4, mass: 7, cosine: 0.8, unknown: -2, commonest: 0 },
  minilm: { bias: -4, mass: 6, cosine: 0.9, unknown: -2, commonest: 0 },
  other: { bias: -4, mass: 6, cosine: 0.8, unknown: -2, commonest: 0 },
};

/** Share of the best row's score that a row must reach. */
const cuts: Readonly<Record<ModelClass, number>> = { none: 0.3, static: 0.35, minilm: 0.35, other: 0.35 };

/** Whether any row of a kind is relevant to the question. */
export function passesGate(signals: Signals, model: ModelClass): boolean {
  if (signals.mass === 0 && signals.rawCosine <= 0) return false;
  const gate = gates[model];
  const sum =
    gate.bias +
    gate.mass * signals.mass +
    gate.cosine * signals.cosine +
    gate.unknown * signals.unknown +
    gate.commonest * signals.commonest;
  return sum > 0;
}

/** Whether a row with this score stays behind the gate, beside a best row of that score. */
export function passesCut(score: number | null, best: number | null, model: ModelClass): boolean {
  return score === null || best === null || score >= cuts[model] * best;
}
