/** What is known of an exchange between its request and its reply. */
import type { Database } from "bun:sqlite";
import { randomUUID } from "node:crypto";
import { sessionByHash } from "../db/exchanges.ts";
import type { ReceiptCandidate } from "../db/receipts.ts";
import type { Lookup } from "./exchange-types.ts";

/** Receipts wait this long for their reply. */
const DRAFT_MS = 30 * 60_000;
const MAX_DRAFTS = 20_000;

/** What went into a request, for its receipt and for the next turn. */
export interface Draft {
  at: number;
  candidates: ReceiptCandidate[];
  /** The block of the last user turn, with what stands in it; "" when there is none. */
  block: string;
  tokens: number;
  ids: string[];
  /** Whether the block is new, not put back. */
  fresh: boolean;
  /** All blocks as they went out. */
  text: string;
  injected: number;
  allTokens: number;
  latencyMs: number;
  reason: string | null;
  fallback: string | null;
  hashes: string[];
  lastHash: string | null;
  chainIds: string[];
}

export type Drafts = ReturnType<typeof createDrafts>;

export function createDrafts(now: () => number) {
  const drafts = new Map<string, Draft>();
  return {
    keep(id: string, draft: Draft): void {
      for (const [old, { at }] of drafts) {
        if (drafts.size < MAX_DRAFTS && at > now() - DRAFT_MS) break;
        drafts.delete(old);
      }
      drafts.set(id, draft);
    },
    /** Gives the draft of a receipt and forgets it. */
    take(id: string | null): Draft | undefined {
      if (id === null) return undefined;
      const draft = drafts.get(id);
      drafts.delete(id);
      return draft;
    },
  };
}

/** The session as the client names it, else the one in which the conversation stood like this, else a new one. */
export function findSession(db: Database, owner: number | null, lookup: Lookup): string {
  if (lookup.named !== null) return lookup.named;
  const { history, chain } = lookup;
  if (owner !== null) {
    for (const hash of [...chain, ...(history ? [history.full, history.bare] : [])]) {
      const found = sessionByHash(db, owner, hash);
      if (found !== null) return found;
    }
  }
  if (chain[0] !== undefined) return `c-${chain[0]}`;
  return history ? `h-${history.full}` : randomUUID();
}
