/** What a retrieval says of itself: which way was taken, and why another was not. */
import type { Ranked } from "../search/rank.ts";
import type { Embedding } from "./embedding.ts";
import type { Resolution, RetrieveResult } from "./types.ts";

/** Where the results came from. */
export type Used = "recent" | "words" | "vectors" | "both" | "backend" | "none";

export interface ResolutionDeps {
  readonly embedding: Pick<Embedding, "resolve">;
  /** `sqlite-vec` or `scan`. */
  readonly vectorStore: string;
}

/** The strategy that a name of the API stands for. */
export function named(strategy: string): "recent" | "semantic" | "hybrid" {
  return strategy === "exact" || strategy === "recent"
    ? "recent"
    : strategy === "semantic"
      ? "semantic"
      : "hybrid";
}

export function usedOf(ranked: readonly Ranked[]): "words" | "vectors" | "both" | "none" {
  const words = ranked.some((one) => one.lexical);
  const found = ranked.some((one) => one.vector);
  return words && found ? "both" : words ? "words" : found ? "vectors" : "none";
}

export function resolutionOf(
  deps: ResolutionDeps,
  strategy: string,
  used: Used,
  notes: readonly string[],
  rerankApplied: boolean,
  fromQdrant = false,
): Resolution {
  const { source, model } = deps.embedding.resolve();
  const how = {
    recent: "recent",
    words: "keyword",
    vectors: "semantic",
    both: "hybrid",
    backend: "backend",
    none: strategy,
  }[used];
  const reasons = [...new Set(notes)].filter((note) => note !== "");
  return {
    embeddingSource: source,
    embeddingModel: model,
    vectorStore: fromQdrant ? "qdrant" : deps.vectorStore,
    strategyUsed: how,
    rerankApplied,
    fallbackReason: reasons.length === 0 ? null : reasons.join(" "),
  };
}

/** A result without anything, for this reason. */
export function nothing(
  deps: ResolutionDeps,
  strategy: string,
  budget: number,
  reason: string,
): RetrieveResult {
  return {
    results: [],
    dropped: [],
    resolution: resolutionOf(deps, strategy, "none", [reason], false),
    totalTokensUsed: 0,
    budgetMaxTokens: Math.max(0, budget),
    text: "",
  };
}
