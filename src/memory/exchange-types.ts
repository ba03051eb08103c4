/** What the proxy tells the engine about a chat, and what it is told. Plain data that crosses threads. */
import type { UsageRow } from "../db/usage.ts";
import type { HashPair, Turn } from "./conversation-hash.ts";
import type { Scope } from "./types.ts";

/** What finds a conversation again. */
export interface Lookup {
  /** The session as the client names it. */
  named: string | null;
  /** How the conversation stood before; null when it begins here. */
  history: HashPair | null;
  /** Hashes of names under which the provider keeps the conversation (`previous_response_id`, `conversation`). */
  chain: string[];
}

export interface PrepareInput {
  owner: string;
  lookup: Lookup;
  /** Whether memories are wanted; else only the session is found. */
  read: boolean;
  query: string;
  turns: Turn[];
  /** Something stands after the last user turn: its block, if it has one, is put back and nothing new is added. */
  open: boolean;
  /** Whether blocks of earlier turns are put back (not with `system-first`). */
  keep: boolean;
  /** Tokens for the whole injection. */
  maxTokens: number;
  scope: Scope;
  sharedPool: boolean;
  /** Milliseconds for retrieval; null waits. */
  deadlineMs: number | null;
  /** Nobody waits for the answer after this time (milliseconds UTC); null for ever. */
  until: number | null;
  /** False for `count_tokens`, which leaves nothing behind. */
  count: boolean;
}

export interface Prepared {
  sessionId: string;
  /** Oldest first; the last belongs to the last user turn when `fresh`. */
  blocks: { at: number; text: string }[];
  /** How many memories stand in the blocks, and their tokens, wrappers included. */
  injected: number;
  tokens: number;
  reason: "nothing-relevant" | "deadline" | null;
  /** Null when nothing was looked for. */
  receiptId: string | null;
  /** Names of what retrieval left out, for the log. */
  fallback: string | null;
}

export interface RecordInput {
  owner: string;
  lookup: Lookup;
  /** As `prepare` gave it; null when memory was not asked or too late. */
  sessionId: string | null;
  receiptId: string | null;
  /** Whether words may be kept and learned from. */
  write: boolean;
  /** Whether blocks may be kept for the next turn. */
  keep: boolean;
  provider: string;
  model: string;
  placement: string | null;
  /** Why nothing was injected although something was found. */
  reason: string | null;
  fallbacks: string[];
  user: string;
  assistant: string;
  /** The reply is whole. */
  complete: boolean;
  /** The provider cut the stream: recorded as incomplete, teaches nothing. */
  cut: boolean;
  /** The reply wants tools run: the exchange goes on. */
  wantsTools: boolean;
  toolCalls: number;
  turn: HashPair | null;
  after: HashPair | null;
  /** Names under which the provider keeps the conversation now. */
  names: string[];
  usage: UsageRow;
}
