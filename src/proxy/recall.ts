/** The step before forwarding: which conversation this is, and what memory has for it. */
import { namedHash } from "../memory/conversation-hash.ts";
import { isObject } from "../memory/conversation.ts";
import type { Conversation, JsonBody, Wire } from "../memory/conversation.ts";
import type { Lookup, Prepared } from "../memory/exchange-types.ts";
import type { HeaderMap } from "../upstream/headers.ts";
import type { Upstream } from "../upstream/providers.ts";
import { within } from "../within.ts";
import type { ProxyDeps } from "./deps.ts";
import { isHousekeeping } from "./housekeeping.ts";
import { namedSession } from "./identity.ts";
import type { MemoryAccess, Reason } from "./identity.ts";
import { keepsBlocks } from "./turn.ts";

/** Beyond retrieval's own deadline: for the engine's thread being busy. */
const SLACK_MS = 350;
const BASE_DEADLINE_MS = 150;
/** Of a question that is longer its beginning is looked for. In UTF-16 units. */
const QUERY_LIMIT = 16 * 1024;

/** What is left of the access for this request: clients' own calls and requests without a user turn get nothing. */
export function gate(access: MemoryAccess, body: JsonBody, conversation: Conversation): MemoryAccess {
  if (access.owner === null || (!access.read && !access.write)) return access;
  if (isHousekeeping(body, conversation))
    return { ...access, read: false, write: false, reason: "housekeeping" };
  if (conversation.items.some((item) => item.role === "user")) return access;
  // A step of a tool loop over a chain names no user turn, yet its reply may end the exchange.
  return { ...access, read: false, reason: access.reason ?? "nothing-relevant" };
}

/** What finds the conversation again: its name, how it stood, the provider's names for it. */
export function lookupOf(headers: HeaderMap, wire: Wire, body: JsonBody, conversation: Conversation): Lookup {
  const chain: string[] = [];
  if (wire === "responses") {
    const previous = body["previous_response_id"];
    if (typeof previous === "string" && previous !== "") chain.push(namedHash("response", previous));
    const kept = isObject(body["conversation"]) ? body["conversation"]["id"] : body["conversation"];
    if (typeof kept === "string" && kept !== "") chain.push(namedHash("conversation", kept));
  }
  return { named: namedSession(headers, body), history: conversation.history, chain };
}

/** Whether the engine is asked at all. */
export const wanted = (memory: MemoryAccess, counting: boolean): boolean =>
  memory.owner !== null && (memory.read || (memory.write && !counting));

/** Asks the engine within the deadline, for who has an owner. A failure in memory never fails a good request. */
export async function recall(
  deps: ProxyDeps,
  ask: {
    memory: MemoryAccess;
    lookup: Lookup;
    conversation: Conversation;
    upstream: Upstream;
    model: string;
    counting: boolean;
  },
): Promise<{ got: Prepared | null; reason: Reason | null }> {
  const { memory, conversation } = ask;
  if (memory.owner === null) return { got: null, reason: memory.reason };
  const settings = deps.settings();
  const context = memory.read ? await deps.models.context(ask.upstream, ask.model) : null;
  const maxTokens =
    context === null ? memory.maxTokens : Math.min(memory.maxTokens, Math.floor(context / 10));
  const deadline =
    settings.retrievalTimeoutMs ??
    BASE_DEADLINE_MS +
      (settings.embeddingSource === "remote" ||
      settings.embeddingProviderModel !== null ||
      settings.customBaseUrl !== null
        ? 400
        : 0) +
      (settings.rerankEnabled ? 500 : 0);
  const started = performance.now();
  try {
    const work = deps.engine.exchange.prepare({
      owner: memory.owner,
      lookup: ask.lookup,
      read: memory.read && maxTokens > 0,
      query: conversation.query.slice(0, QUERY_LIMIT),
      turns: conversation.turns,
      open: conversation.open,
      keep: keepsBlocks(settings.injectionPlacement, conversation),
      maxTokens,
      scope: memory.scope,
      sharedPool: memory.sharedPool,
      deadlineMs: deadline,
      until: (deps.now ?? Date.now)() + deadline + SLACK_MS,
      count: !ask.counting,
    });
    const got = await within(work, deadline + SLACK_MS);
    if (got === null) {
      deps.log.warn("memory.injection.skipped", { reason: "deadline" });
      return { got: null, reason: memory.read ? "deadline" : memory.reason };
    }
    deps.metrics.observe("recollect_retrieval_seconds", (performance.now() - started) / 1000, {
      channel: "all",
    });
    return { got, reason: memory.read ? got.reason : memory.reason };
  } catch (error) {
    deps.log.error("memory.retrieval.failed", { error });
    return { got: null, reason: memory.read ? "deadline" : memory.reason };
  }
}
