/** One request on its way through the pipeline, and what its answer says about memory. */
import type { Principal } from "../auth.ts";
import type { HashPair } from "../memory/conversation-hash.ts";
import type { Conversation, JsonBody, Wire } from "../memory/conversation.ts";
import type { Lookup, Prepared } from "../memory/exchange-types.ts";
import type { Placement } from "../memory/inject.ts";
import type { HeaderMap } from "../upstream/headers.ts";
import type { Upstream } from "../upstream/providers.ts";
import type { createUsageBuffer } from "./account.ts";
import type { ParsedBody } from "./body.ts";
import type { ProxyDeps } from "./deps.ts";
import type { Forwarded } from "./forward.ts";
import type { MemoryAccess, Reason } from "./identity.ts";

export interface ConversationRoute {
  wire: Wire;
  /** `count_tokens` injects, so that the count is true, and records nothing. */
  counting?: boolean;
}

export type Usage = ReturnType<typeof createUsageBuffer>;

/** What the steps share. */
export interface Turn {
  deps: ProxyDeps;
  usage: Usage;
  route: ConversationRoute;
  principal: Principal;
  request: Request;
  headers: HeaderMap;
  /** Null once it has been forwarded: a stream may last for minutes, and bodies are large. */
  sending: { body: ParsedBody; conversation: Conversation } | null;
  /** Length of the body in UTF-16 units. */
  sentChars: number;
  /** What is recorded of it; null where nothing is. */
  said: Said | null;
  memory: MemoryAccess;
  lookup: Lookup;
  prepared: Prepared | null;
  /** As the client is told. */
  sessionId: string;
  reason: Reason | null;
  requestId: string;
  startedAt: number;
  upstream: Upstream;
  model: string;
}

/** What the record of an exchange needs of its request. */
export interface Said {
  user: string;
  turn: HashPair | null;
  after: (reply: string) => HashPair;
  /** Tool calls of this exchange that the request itself shows. */
  calls: number;
  /** Whether its blocks are kept for the next turn. */
  keep: boolean;
  /** It goes on from a response by its id. */
  continues: boolean;
}

/** Of what was said this much is recorded, in UTF-16 units. */
const TEXT_LIMIT = 256 * 1024;

export function saidIn(conversation: Conversation, body: JsonBody, placement: Placement): Said {
  const last = conversation.turns.at(-1)?.at ?? -1;
  return {
    user: (conversation.query || conversation.userText).slice(0, TEXT_LIMIT),
    turn: conversation.turn,
    after: conversation.after,
    calls: conversation.items.reduce((sum, item) => sum + (item.at > last ? item.calls.length : 0), 0),
    keep: keepsBlocks(placement, conversation),
    continues: body["previous_response_id"] !== undefined,
  };
}

/** Whether blocks are put back turn by turn, which `system-first` does only where cache marks make it act as `auto`. */
export const keepsBlocks = (placement: Placement, conversation: Conversation): boolean =>
  placement === "auto" || conversation.marked;

/** Tells the client what memory did. */
export function memoryHeaders(
  turn: Turn,
  forwarded: Forwarded | null,
  headers: Record<string, string>,
  receipt: boolean,
): Record<string, string> {
  const { prepared } = turn;
  const reason = reasonOf(turn, forwarded);
  const injected = reason === null && prepared ? prepared.injected : 0;
  headers["x-memory-injected"] = String(injected);
  headers["x-memory-tokens"] = String(injected === 0 ? 0 : prepared!.tokens);
  if (injected === 0) headers["x-memory-reason"] = reason ?? "nothing-relevant";
  if (prepared?.receiptId && receipt) headers["x-memory-receipt"] = prepared.receiptId;
  headers["x-omniroute-session-id"] = asHeader(turn.sessionId);
  if (headers["x-request-id"] === undefined) headers["x-request-id"] = turn.requestId;
  return headers;
}

/** A header holds Latin-1 alone; a name in another script is percent-encoded. */
const asHeader = (name: string): string =>
  /^[\x20-\x7e\xa0-\xff]*$/.test(name) ? name : encodeURIComponent(name);

/** Why nothing of memory went through; null when something did. */
export function reasonOf(turn: Turn, forwarded: Forwarded | null): Reason | null {
  if (!turn.prepared || turn.prepared.blocks.length === 0) return turn.reason;
  // Every form was refused, or only the one without memory was taken.
  return forwarded && (forwarded.rejected || forwarded.form === "none") ? "rejected" : null;
}

/** Where the engine did not say in time: the conversation's name, one derived from how it stood, else a new one. */
export function sessionOf(prepared: Prepared | null, { named, chain, history }: Lookup): string {
  if (prepared) return prepared.sessionId;
  if (named !== null) return named;
  if (chain[0] !== undefined) return `c-${chain[0]}`;
  return history ? `h-${history.full}` : crypto.randomUUID();
}
