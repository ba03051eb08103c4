/** What search gives: ids and ranks, no rows and no policy. */

/** What can be ranked. The number of a kind's rows: memories.seq, and the id of the others. */
export type Kind = "memory" | "episode" | "entity" | "summary";

/** Where a result's place comes from, as the receipt shows it. */
export type Tier =
  | "fts5"
  | "vector"
  | "hybrid-scored"
  | "hybrid-rrf"
  | "qdrant"
  | "recent"
  | "standing"
  | "rerank"
  | "backend";

/** One row after fusion. `score` is a share of the best possible one, so that kinds can be merged; null for `recent`. */
export interface Candidate {
  readonly kind: Kind;
  readonly id: number;
  readonly score: number | null;
  readonly tier: Tier;
  readonly ftsRank: number | null;
  readonly ftsScore: number | null;
  readonly vecRank: number | null;
  /** Cosine of the best vector of the row. */
  readonly vecScore: number | null;
}

/** The rows a search may see. Every channel applies all of it before it cuts. */
export interface Predicate {
  /** owners.id, always given: no read without an owner. */
  readonly owner: number;
  /** External session id: rows of this session and rows without one. Null: all of the owner's rows. */
  readonly session: string | null;
  /** Setting `retentionDays`; 0 keeps for ever. */
  readonly retentionDays: number;
  /** Milliseconds UTC. */
  readonly now: number;
  /** Exchanges, entities and summaries made by then (milliseconds). Memories of the past are read from their history. */
  readonly before?: number;
  /** Memories of this type alone. */
  readonly type?: string;
}
