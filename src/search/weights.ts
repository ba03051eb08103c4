/**
 * The numbers of the ranking, in one place. Chosen by `bench retrieval`; none of them knows a corpus: they follow what can
 * be seen in an owner's rows, how long they are and whether both sides of an exchange speak alike.
 */
import type { OwnerShape, Saturation } from "./bm25.ts";

/** Weights of the channels, each on the scale of its own deviation. */
export interface Weights {
  /** BM25 of the whole row, of the user's words. */
  readonly whole: number;
  readonly said: number;
  /** Cosine of the whole row, of the user's message. */
  readonly vector: number;
  readonly vectorSaid: number;
  /** A date in the question against the row's time. */
  readonly date: number;
  /** Scores of the exchanges one and two before and after in the session. */
  readonly near: number;
  readonly far: number;
  /** The best score in the session. */
  readonly session: number;
}

/** Which vectors there are: a weak table of words, a small transformer, anything else. */
export type ModelClass = "none" | "static" | "minilm" | "other";

const vectorWeight: Readonly<Record<ModelClass, number>> = { none: 0, static: 0.7, minilm: 0.9, other: 1 };

/** Cosine of a question to a random row of anybody, which counts as so many rows of an owner who has few. */
const usual: Readonly<Record<ModelClass, { mean: number; deviation: number } | null>> = {
  none: null,
  static: { mean: 0.4, deviation: 0.08 },
  minilm: { mean: 0.15, deviation: 0.12 },
  other: null,
};
const USUAL_ROWS = 20;

/** How near a random row of the owner is, of whom `rows` vectors are known, so that a few alike rows are not each "average". */
export function spreadFor(
  model: ModelClass,
  rows: number,
  own: { mean: number; deviation: number },
): { mean: number; deviation: number } {
  const prior = usual[model];
  if (prior === null) return { mean: own.mean, deviation: Math.max(0.03, own.deviation) };
  const share = USUAL_ROWS / (USUAL_ROWS + rows);
  const mean = own.mean + share * (prior.mean - own.mean);
  const square = (one: { mean: number; deviation: number }) => one.deviation ** 2 + (one.mean - mean) ** 2;
  return { mean, deviation: Math.sqrt((1 - share) * square(own) + share * square(prior)) };
}

export function modelClass(signature: string | null): ModelClass {
  if (signature === null) return "none";
  if (signature.startsWith("static:")) return "static";
  return /minilm/i.test(signature) ? "minilm" : "other";
}

/**
 * How unlike the two sides of an owner's exchanges are: 0 where people talk to each other (or one side is silent), 1 where
 * short questions get long answers. Then the user's words say what an exchange is about, and the answer's many words mislead.
 */
export function asymmetry(shape: OwnerShape): number {
  const both = Math.min(shape.saidRows, shape.replyRows) >= 0.1 * shape.rows && shape.rows > 0;
  if (!both || shape.saidLength === 0) return 0;
  return clamp((shape.replyLength / shape.saidLength - 1.5) / 1.5);
}

/** Weights for episodes of such an owner, between those of a dialogue and those of question and answer. `neighbours`: see cohesion.ts. */
export function episodeWeights(
  shape: OwnerShape,
  model: ModelClass,
  neighbours: { near: number; far: number },
): Weights {
  const a = asymmetry(shape);
  const vector = vectorWeight[model];
  const between = (dialogue: number, answers: number) => dialogue + a * (answers - dialogue);
  return {
    whole: between(1, 0.3),
    said: between(0, 1),
    vector: between(vector, 0.5 * vector),
    vectorSaid: between(0, 0.6 * vector),
    date: 2,
    near: neighbours.near * between(0.2, 0),
    far: neighbours.far * between(0.12, 0),
    session: (0.4 + 0.6 * neighbours.near) * between(0.35, 0.5),
  };
}

/** Weights for rows that stand alone. */
export function plainWeights(model: ModelClass): Weights {
  const vector = vectorWeight[model];
  return { whole: 1, said: 0, vector, vectorSaid: 0, date: 1, near: 0, far: 0, session: 0 };
}

/** Short rows want little normalisation by length, long ones the textbook's. */
export function saturationFor(length: number): Saturation {
  const long = clamp((length - 40) / 80);
  return { k1: 0.8 + 0.4 * long, b: 0.3 + 0.45 * long };
}

function clamp(x: number): number {
  return Math.max(0, Math.min(1, x));
}
