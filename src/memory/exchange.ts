/**
 * The engine's half of a chat: finds the session, the blocks to put back and what is relevant before the request, and
 * writes what became of it after the reply, in one transaction.
 */
import type { Database } from "bun:sqlite";
import { randomUUID } from "node:crypto";
import {
  addSessionTurn,
  blocksByHash,
  dropBlocks,
  episodesOfTurn,
  episodesOfTurns,
  putBlock,
  sessionByHash,
  touchBlocks,
} from "../db/exchanges.ts";
import { insertEpisode } from "../db/episodes.ts";
import type { NewJob } from "../db/jobs.ts";
import { transact } from "../db/open.ts";
import { ensureOwner, ownerId } from "../db/owners.ts";
import { insertReceipt } from "../db/receipts.ts";
import type { ReceiptCandidate } from "../db/receipts.ts";
import { ensureSession, touchSession } from "../db/sessions.ts";
import { insertUsage } from "../db/usage.ts";
import type { UsageRow } from "../db/usage.ts";
import { estimateTokens } from "./budget.ts";
import type { Turn } from "./conversation-hash.ts";
import type { Lookup, PrepareInput, Prepared, RecordInput } from "./exchange-types.ts";
import type { Redact } from "./fields.ts";
import type { ExtractPayload } from "./learn.ts";
import type { MemorySettings } from "./settings.ts";
import type { RetrieveInput, RetrieveResult } from "./types.ts";

export interface ExchangeDeps {
  db: Database;
  now: () => number;
  settings: () => MemorySettings;
  redact: Redact;
  retrieve(input: RetrieveInput): Promise<RetrieveResult>;
  /** Queues a job in the caller's transaction. */
  queue(job: NewJob): void;
  /** An episode was stored: its index rows and embedding job, in the caller's transaction. */
  episodeStored(row: { owner: number; id: number }): void;
  /** A repeated turn replaces its episode: takes it away, and the memories learned only from it that nobody touched. */
  dropEpisode(row: { owner: number; sessionId: number; id: number }): void;
}

/** Old blocks are dropped once nobody has asked for so long: the provider's cache of the prefix is gone as well. */
const QUIET_MS = 60 * 60_000;
/** New memories need at least this part of the budget. */
const LEAST_SHARE = 1 / 5;
/** Receipts wait this long for their reply. */
const DRAFT_MS = 30 * 60_000;
const MAX_DRAFTS = 20_000;
const MAX_WAITING = 1000;
/** Candidates that were left out, as far as a receipt names them: one is written for every request. */
const MAX_DROPPED = 20;
/** Text of one side that is kept, in UTF-16 units. */
const MAX_TEXT = 256 * 1024;

interface Draft {
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

export function createExchanges(deps: ExchangeDeps) {
  const { db, now, redact } = deps;
  const drafts = new Map<string, Draft>();
  /** Exchanges whose next request will not repeat the user turn, since the provider keeps the conversation. */
  const waiting = new Map<string, Pick<RecordInput, "user" | "turn" | "toolCalls">>();

  function findSession(owner: number | null, lookup: Lookup): string {
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

  async function prepare(input: PrepareInput): Promise<Prepared> {
    const started = performance.now();
    const owner = ownerId(db, input.owner);
    const sessionId = findSession(owner, input.lookup);
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
    const old = owner === null ? { rows: [], last: undefined, chain: null } : oldBlocks(owner, input);
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
        exclude: [...ids, ...inRequest(owner, sessionId, input.turns)],
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
    if (receiptId !== null) keepDraft(receiptId, draft);
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

  function keepDraft(id: string, draft: Draft): void {
    for (const [old, { at }] of drafts) {
      if (drafts.size < MAX_DRAFTS && at > now() - DRAFT_MS) break;
      drafts.delete(old);
    }
    drafts.set(id, draft);
  }

  /** One transaction: session, episode, receipt, blocks, usage, and the job that learns. */
  async function record(given: RecordInput): Promise<{ sessionId: string; episodeId: number | null }> {
    const input = takeUp(given);
    const draft = input.receiptId === null ? undefined : drafts.get(input.receiptId);
    if (input.receiptId !== null) drafts.delete(input.receiptId);
    const settings = deps.settings();
    const write = input.write && settings.enabled;
    const user = redact.text(input.user.slice(0, MAX_TEXT));
    const reply = redact.text(input.assistant.slice(0, MAX_TEXT));
    return transact(db, () => {
      const at = now();
      const owner = ensureOwner(db, input.owner);
      const sessionId = input.sessionId ?? findSession(owner, input.lookup);
      const ended = !input.wantsTools;
      let episodeId: number | null = null;
      if (write) {
        const session = ensureSession(db, owner, sessionId, {}, at).id;
        touchSession(db, session, at);
        for (const pair of [input.turn, input.after]) {
          if (pair) for (const hash of [pair.bare, pair.full]) addSessionTurn(db, owner, session, hash, at);
        }
        for (const name of input.names) addSessionTurn(db, owner, session, name, at);
        if (ended && input.turn) {
          for (const id of episodesOfTurn(db, session, input.turn.bare))
            deps.dropEpisode({ owner, sessionId: session, id });
        }
        if (ended && settings.recordEpisodes && (user.text !== "" || reply.text !== "")) {
          episodeId = insertEpisode(
            db,
            {
              owner,
              sessionId: session,
              externalId: sessionId,
              userMessage: user.text,
              aiResponse: reply.text,
              tokenCount: estimateTokens(user.text) + estimateTokens(reply.text),
              metadata: {
                ...(input.toolCalls > 0 ? { toolCalls: input.toolCalls } : {}),
                provider: input.provider,
                model: input.model,
              },
              complete: input.complete,
              turnHash: input.turn ? Buffer.from(input.turn.bare, "hex") : null,
              createdAt: at,
            },
            at,
          );
          deps.episodeStored({ owner, id: episodeId });
        }
        if (ended && !input.cut && settings.extractFrom !== "off") {
          const payload: ExtractPayload = {
            episodeId,
            sessionId,
            ...(episodeId === null ? { user: user.text, assistant: input.complete ? reply.text : "" } : {}),
            saidAt: at,
            injected: (draft?.chainIds ?? []).filter((id) => !id.includes(":")),
            receiptId: draft ? input.receiptId : null,
          };
          deps.queue({ type: "extract", ownerId: owner, payload });
        }
      }
      if (draft && input.keep) keepBlocks(owner, sessionId, draft, input, at);
      if (draft && input.receiptId !== null) {
        insertReceipt(
          db,
          {
            id: input.receiptId,
            owner,
            sessionId,
            provider: input.provider,
            model: input.model,
            injected: input.reason === null ? draft.injected : 0,
            tokens: input.reason === null ? draft.allTokens : 0,
            placement: input.placement,
            reason: input.reason ?? draft.reason,
            latencyMs: draft.latencyMs,
            fallbacks: [...(draft.fallback === null ? [] : [draft.fallback]), ...input.fallbacks],
            candidates:
              input.reason === null
                ? draft.candidates
                : draft.candidates.map((one) =>
                    one.injected ? { ...one, injected: false, reason: input.reason } : one,
                  ),
            text: input.reason === null && draft.text !== "" ? draft.text : null,
            redacted: user.count + reply.count,
            episodeId,
          },
          at,
        );
      }
      insertUsage(db, [input.usage]);
      return { sessionId, episodeId };
    });
  }

  /** A step of a tool loop over `previous_response_id` names its user turn only in the first request. */
  function takeUp(input: RecordInput): RecordInput {
    const begun =
      input.turn === null ? input.lookup.chain.map((name) => waiting.get(name)).find(Boolean) : undefined;
    const whole = begun ? { ...input, ...begun, toolCalls: begun.toolCalls + input.toolCalls } : input;
    if (input.wantsTools) {
      for (const name of input.names) {
        waiting.delete(name);
        waiting.set(name, { user: whole.user, turn: whole.turn, toolCalls: whole.toolCalls });
      }
      for (const name of waiting.keys()) {
        if (waiting.size <= MAX_WAITING) break;
        waiting.delete(name);
      }
    }
    return whole;
  }

  /** Keeps the new block for the next turn, and what the provider now holds of a conversation that it keeps itself. */
  function keepBlocks(owner: number, sessionId: string, draft: Draft, input: RecordInput, at: number): void {
    touchBlocks(db, owner, draft.hashes, at);
    const went = input.reason === null;
    if (draft.fresh && draft.lastHash !== null) {
      const block = {
        text: went ? draft.block : "",
        tokens: went ? draft.tokens : 0,
        ids: went ? draft.ids : [],
      };
      putBlock(db, owner, { hash: draft.lastHash, sessionId, ...block }, at);
    }
    for (const name of input.names) {
      if (went)
        putBlock(
          db,
          owner,
          { hash: name, sessionId, text: "", tokens: draft.allTokens, ids: draft.chainIds },
          at,
        );
    }
  }

  /** For requests that leave nothing else. */
  async function addUsage(input: { rows: UsageRow[] }): Promise<void> {
    insertUsage(db, input.rows);
  }

  return { prepare, record, addUsage };
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
