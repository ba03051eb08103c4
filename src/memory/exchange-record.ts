/** After the reply: what became of the exchange, in one transaction. */
import type { Database } from "bun:sqlite";
import { addSessionTurn, episodesOfTurn, putBlock, touchBlocks } from "../db/exchanges.ts";
import { insertEpisode } from "../db/episodes.ts";
import type { NewJob } from "../db/jobs.ts";
import { transact } from "../db/open.ts";
import { ensureOwner } from "../db/owners.ts";
import { insertReceipt } from "../db/receipts.ts";
import { ensureSession, touchSession } from "../db/sessions.ts";
import { insertUsage } from "../db/usage.ts";
import { estimateTokens } from "./budget.ts";
import { findSession, type Draft, type Drafts } from "./exchange-draft.ts";
import type { RecordInput } from "./exchange-types.ts";
import type { Redact } from "./fields.ts";
import type { ExtractPayload } from "./learn.ts";
import type { MemorySettings } from "./settings.ts";

export interface RecordDeps {
  db: Database;
  now: () => number;
  settings: () => MemorySettings;
  redact: Redact;
  /** Queues a job in the caller's transaction. */
  queue(job: NewJob): void;
  /** An episode was stored: its index rows and embedding job, in the caller's transaction. */
  episodeStored(row: { owner: number; id: number }): void;
  /** A repeated turn replaces its episode: takes it away, and the memories learned only from it that nobody touched. */
  dropEpisode(row: { owner: number; sessionId: number; id: number }): void;
}

const MAX_WAITING = 1000;
/** Text of one side that is kept, in UTF-16 units. */
const MAX_TEXT = 256 * 1024;

export function createRecord(deps: RecordDeps, drafts: Drafts) {
  const { db, now, redact } = deps;
  /** Exchanges whose next request will not repeat the user turn, since the provider keeps the conversation. */
  const waiting = new Map<string, Pick<RecordInput, "user" | "turn" | "toolCalls">>();

  /** One transaction: session, episode, receipt, blocks, usage, and the job that learns. */
  async function record(given: RecordInput): Promise<{ sessionId: string; episodeId: number | null }> {
    const input = takeUp(given);
    const draft = drafts.take(input.receiptId);
    const settings = deps.settings();
    const write = input.write && settings.enabled;
    const user = redact.text(input.user.slice(0, MAX_TEXT));
    const reply = redact.text(input.assistant.slice(0, MAX_TEXT));
    return transact(db, () => {
      const at = now();
      const owner = ensureOwner(db, input.owner);
      const sessionId = input.sessionId ?? findSession(db, owner, input.lookup);
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

  return record;
}
