/** Before the request: the session, the blocks to put back, and what is relevant. */
import type { Database } from "bun:sqlite";
import { randomUUID } from "node:crypto";
import { blocksByHash, dropBlocks, episodesOfTurns } from "../db/exchanges.ts";
import { contentTimes } from "../db/memories.ts";
import { ownerId } from "../db/owners.ts";
import type { ReceiptCandidate } from "../db/receipts.ts";
import { estimateTokens } from "./budget.ts";
import type { Turn } from "./conversation-hash.ts";
import { findSession, type Draft, type Drafts } from "./exchange-draft.ts";
import type { PrepareInput, Prepared } from "./exchange-types.ts";
import type { RetrieveInput, RetrieveResult } from "./types.ts";

export interface PrepareDeps {
  db: Database;
  now: () => number;
  retrieve(input: RetrieveInput): Promise<RetrieveResult>;
}

/** Old blocks are dropped once nobody has asked for so long: the provider's cache of the prefix is gone as well. */
const QUIET_MS = 60 * 60_000;
/** New memories need at least this part of the budget. */
const LEAST_SHARE = 1 / 5;
/** Candidates that were left out, as far as a receipt names them: one is written for every request. */
const MAX_DROPPED = 20;

const NO_BLOCKS = { rows: [], last: undefined, chain: null };

export function createPrepare(deps: PrepareDeps, drafts: Drafts) {
  const { db, now } = deps;

  async function prepare(input: PrepareInput): Promise<Prepared> {
    const started = performance.now();
    const owner = ownerId(db, input.owner);
    const sessionId = findSession(db, owner, input.lookup);
    const none: Prepared = {
      sessionId,
      blocks: [],
      injected: 0,
      tokens: 0,
      reason: null,
      receiptId: null,
      fallback: null,
    };
    if (!input.read) return none;
    // Under a burst the caller may have gone on without memory already; the next one still waits.
    if (input.until !== null && now() > input.until) return { ...none, reason: "deadline" };
    const old = owner === null ? NO_BLOCKS : oldBlocks(owner, input);
    const blocks: Prepared["blocks"] = [];
    const ids = new Set<string>(old.chain?.ids);
    let spent = old.chain?.tokens ?? 0;
    const put = (at: number, text: string, tokens: number, all: readonly string[]) => {
      if (text === "") return;
      blocks.push({ at, text });
      spent += tokens;
      for (const id of all) ids.add(id);
    };
    const lastAt = input.turns.at(-1)?.at ?? -1;
    for (const { at, block } of old.rows) {
      if (spent + block.tokens <= input.maxTokens) put(at, block.text, block.tokens, block.ids);
    }
    const draft: Draft = {
      at: now(),
      candidates: [],
      block: "",
      tokens: 0,
      ids: [],
      fresh: false,
      text: "",
      injected: 0,
      allTokens: 0,
      latencyMs: 0,
      reason: null,
      fallback: null,
      hashes: old.rows.map(({ block }) => block.hash),
      lastHash: input.turns.at(-1)?.hash ?? null,
      chainIds: [],
    };
    if (old.last) {
      draft.hashes.push(old.last.hash);
      if (spent + old.last.tokens <= input.maxTokens)
        put(lastAt, old.last.text, old.last.tokens, old.last.ids);
    } else if (input.maxTokens - spent >= input.maxTokens * LEAST_SHARE) {
      const found = await deps.retrieve({
        owner: input.owner,
        query: input.query,
        sessionId,
        scope: input.scope,
        sharedPool: input.sharedPool,
        maxTokens: input.maxTokens - spent,
        limit: 30,
        deadlineMs: input.deadlineMs,
        mode: "proxy",
        exclude: [...stillSaid(ids, old), ...inRequest(owner, sessionId, input.turns)],
        count: input.count,
      });
      draft.fresh = true;
      draft.fallback = found.resolution.fallbackReason;
      draft.block = found.text;
      draft.tokens = found.text === "" ? 0 : estimateTokens(found.text);
      draft.ids = found.results.map(refOf);
      draft.candidates = candidatesOf(found);
      put(lastAt, draft.block, draft.tokens, draft.ids);
      if (blocks.length === 0) draft.reason = isLate(found) ? "deadline" : "nothing-relevant";
    }
    draft.chainIds = [...ids];
    draft.text = blocks.map((block) => block.text).join("\n\n");
    draft.injected = blocks.length === 0 ? 0 : ids.size;
    draft.allTokens = spent;
    draft.latencyMs = performance.now() - started;
    if (blocks.length === 0) draft.reason ??= "nothing-relevant";
    const receiptId = input.count ? randomUUID() : null;
    if (receiptId !== null) drafts.keep(receiptId, draft);
    return {
      sessionId,
      blocks,
      injected: draft.injected,
      tokens: blocks.length === 0 ? 0 : spent,
      reason: draft.reason as Prepared["reason"],
      receiptId,
      fallback: draft.fallback,
    };
  }

  /** Of what older blocks hold, what is still as it was given: a value that was replaced since is told anew. */
  function stillSaid(ids: ReadonlySet<string>, old: ReturnType<typeof oldBlocks>): string[] {
    const given = new Map<string, number>();
    const blocks = [...old.rows.map(({ block }) => block), ...(old.chain ? [old.chain] : [])];
    for (const block of blocks) {
      for (const id of block.ids) given.set(id, Math.max(block.createdAt, given.get(id) ?? 0));
    }
    const replaced = contentTimes(db, "id", [...ids]);
    return [...ids].filter((id) => (replaced.get(id) ?? 0) <= (given.get(id) ?? 0));
  }

  /** Exchanges that the model sees anyway, since the client sends them along. */
  function inRequest(owner: number | null, sessionId: string, turns: Turn[]): string[] {
    if (owner === null || turns.length === 0) return [];
    const hashes = turns.map((turn) => turn.hash);
    return episodesOfTurns(db, owner, sessionId, hashes).map((id) => `episode:${id}`);
  }

  /** What was injected into earlier turns of this conversation, while it is worth keeping. */
  function oldBlocks(owner: number, input: PrepareInput) {
    const hashes = input.keep ? input.turns.map((turn) => turn.hash) : [];
    // The block of a turn that is only now said is not put back: it is looked for anew.
    const wanted = input.open ? hashes : hashes.slice(0, -1);
    const found = blocksByHash(db, owner, [...wanted, ...input.lookup.chain]);
    const chained = input.lookup.chain.map((hash) => found.get(hash)).find((row) => row !== undefined);
    const last = input.open ? found.get(hashes.at(-1) ?? "") : undefined;
    const rows = input.turns.slice(0, -1).flatMap((turn) => {
      const block = input.keep ? found.get(turn.hash) : undefined;
      return block ? [{ at: turn.at, block }] : [];
    });
    const newest = Math.max(...rows.map(({ block }) => block.usedAt), last?.usedAt ?? 0);
    if (newest > 0 && newest < now() - QUIET_MS) {
      dropBlocks(db, owner, [...rows.map(({ block }) => block.hash), ...(last ? [last.hash] : [])]);
      return { rows: [], last: undefined, chain: chained ?? null };
    }
    return { rows, last, chain: chained ?? null };
  }

  return prepare;
}

const refOf = (result: { kind: string; id: string }): string =>
  result.kind === "memory" ? result.id : `${result.kind}:${result.id}`;

function candidatesOf(found: RetrieveResult): ReceiptCandidate[] {
  const empty = {
    score: null,
    ftsRank: null,
    ftsScore: null,
    vecRank: null,
    vecScore: null,
    tokens: 0,
    tier: null,
  };
  return [
    ...found.results.map(({ kind, id, score, tier, ftsRank, ftsScore, vecRank, vecScore, tokens }) => ({
      kind,
      id,
      score,
      tier,
      ftsRank,
      ftsScore,
      vecRank,
      vecScore,
      tokens,
      injected: true,
      reason: null,
    })),
    ...found.dropped.slice(0, MAX_DROPPED).map((one) => ({ ...empty, ...one, injected: false })),
  ];
}

/** Nothing was found because no channel was ready in time. */
function isLate(found: RetrieveResult): boolean {
  return found.results.length === 0 && /no channel|deadline/i.test(found.resolution.fallbackReason ?? "");
}
