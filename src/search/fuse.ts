/** Joining channels into one order. Scores here are shares of the best possible one, so that kinds can be merged. */
import type { Candidate, Kind, Tier } from "./types.ts";

/** A row before fusion. Scores are on each channel's own scale; null: the channel does not know the row. */
export interface Row {
  readonly id: number;
  readonly ftsRank: number | null;
  readonly ftsScore: number | null;
  readonly vecRank: number | null;
  readonly vecScore: number | null;
  /** Sum of the weighed, standardised scores. */
  readonly scored: number;
  /** Newest first on a tie; milliseconds. */
  readonly createdAt: number;
}

export type Fusion = "scored" | "rrf";

/**
 * `rrf`: Σ 1/(k + rank), rank from 1, equal weights (Cormack et al. 2009), divided by channels/(k + 1). `scored`: the sum
 * of standardised scores divided by `best`, the highest one there could be.
 */
export function fuse(
  kind: Kind,
  rows: readonly Row[],
  options: { fusion: Fusion; rrfK: number; channels: number; best: number; tier: Tier },
): Candidate[] {
  const { fusion, rrfK, channels, best, tier } = options;
  const reciprocal = (rank: number | null) => (rank === null ? 0 : 1 / (rrfK + rank));
  const ceiling = Math.max(1, channels) / (rrfK + 1);
  return rows
    .map((row) => ({
      row,
      score:
        fusion === "rrf"
          ? (reciprocal(row.ftsRank) + reciprocal(row.vecRank)) / ceiling
          : Math.max(0, Math.min(1, row.scored / (best || 1))),
      exact: fusion === "rrf" ? 0 : row.scored,
    }))
    .filter(({ row }) => fusion !== "rrf" || row.ftsRank !== null || row.vecRank !== null)
    .sort(
      (a, b) =>
        b.score - a.score || b.exact - a.exact || b.row.createdAt - a.row.createdAt || b.row.id - a.row.id,
    )
    .map(({ row, score }) => ({
      kind,
      id: row.id,
      score,
      tier,
      ftsRank: row.ftsRank,
      ftsScore: row.ftsScore,
      vecRank: row.vecRank,
      vecScore: row.vecScore,
    }));
}

/** One list of several kinds, by score; a memory stands before an episode of the same score. */
export function mergeKinds(lists: readonly (readonly Candidate[])[]): Candidate[] {
  const order: readonly Kind[] = ["memory", "episode", "entity", "summary"];
  return lists
    .flat()
    .sort((a, b) => (b.score ?? 0) - (a.score ?? 0) || order.indexOf(a.kind) - order.indexOf(b.kind));
}
