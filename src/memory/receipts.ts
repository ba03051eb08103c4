/** Receipts and usage as the faces read them. */
import type { Database } from "bun:sqlite";
import { ownerId } from "../db/owners.ts";
import {
  countReceiptsUsing,
  listReceiptLines,
  listReceipts,
  receiptById,
  receiptsOfEpisodes,
  receiptsUsing,
} from "../db/receipts.ts";
import type { Receipt, ReceiptDetail, ReceiptLine } from "../db/receipts.ts";
import { sumUsage, tokensSince, usageMeans, usageOfReceipt } from "../db/usage.ts";
import type { RequestUsage, UsageGroup, UsageMeans, UsageSum } from "../db/usage.ts";
import { notFound } from "../error.ts";
import type { Kind } from "./types.ts";

/** An owner's name; null for management, which sees every owner. */
type Caller = { owner: string | null };

/** Nobody has rows under this number. */
const NOBODY = -1;

export function createReceipts(db: Database) {
  const as = (caller: Caller) => (caller.owner === null ? null : (ownerId(db, caller.owner) ?? NOBODY));
  return {
    async list(
      input: Caller & { sessionId?: string | undefined; limit: number; offset: number },
    ): Promise<{ data: Receipt[]; total: number }> {
      return listReceipts(db, as(input), input);
    },
    /** 404 for one that is not there or not the caller's. */
    async get(input: Caller & { id: string }): Promise<ReceiptDetail> {
      const found = receiptById(db, as(input), input.id);
      if (!found) throw notFound("receipt");
      return found;
    },
    /** Newest first, with the beginning of what was asked. `since` in milliseconds. */
    async lines(
      input: Caller & { since?: number; limit: number; offset: number },
    ): Promise<{ data: ReceiptLine[]; total: number }> {
      return listReceiptLines(db, as(input), { ...input, since: input.since ?? 0 });
    },
    /** By episode, its newest receipt. */
    async ofEpisodes(input: {
      episodeIds: number[];
    }): Promise<{ episodeId: number; id: string; injected: number }[]> {
      return receiptsOfEpisodes(db, input.episodeIds);
    },
    /** How many receipts hold a memory or an exchange. */
    async countUsing(input: { kind: Kind; id: string }): Promise<number> {
      return countReceiptsUsing(db, input.kind, input.id);
    },
    /** Newest requests that a memory or an exchange was used in. */
    async using(input: Caller & { kind: Kind; id: string; limit: number }): Promise<Receipt[]> {
      return receiptsUsing(db, as(input), input.kind, input.id, input.limit);
    },
  };
}

export function createUsage(db: Database) {
  return {
    /** Sums between two times in milliseconds, `to` excluded. */
    async sum(
      input: Caller & { from: number; to: number; groupBy: readonly UsageGroup[] },
    ): Promise<UsageSum[]> {
      const owner = input.owner === null ? null : (ownerId(db, input.owner) ?? NOBODY);
      return sumUsage(db, { ...input, owner });
    },
    /** What the request of a receipt cost; null when nothing was written yet. */
    async ofReceipt(input: { id: string; createdAt: string }): Promise<RequestUsage | null> {
      return usageOfReceipt(db, input.id, Date.parse(input.createdAt));
    },
    /** Counts and means between two times in milliseconds. */
    async means(input: Caller & { from: number; to: number }): Promise<UsageMeans> {
      const owner = input.owner === null ? null : (ownerId(db, input.owner) ?? NOBODY);
      return usageMeans(db, owner, input.from, input.to);
    },
    /** Tokens in and out that a key has used since a time in milliseconds. */
    async tokensSince(input: { keyId: string; since: number }): Promise<number> {
      return tokensSince(db, input.keyId, input.since);
    },
  };
}
