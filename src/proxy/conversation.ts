/**
 * The pipeline of the three conversation routes: principal, session, query → retrieve → inject → forward → tee → record.
 */
import type { Context } from "hono";
import type { Env, Principal } from "../auth.ts";
import type { UsageRow } from "../db/usage.ts";
import { AppError, invalid } from "../error.ts";
import { listOf, namedHash, readConversation } from "../memory/conversation.ts";
import type { Conversation, JsonBody, Wire } from "../memory/conversation.ts";
import type { Lookup, Prepared } from "../memory/exchange.ts";
import { isObject } from "../memory/conversation.ts";
import { call } from "../upstream/answer.ts";
import { captureJson } from "../upstream/capture.ts";
import type { Captured } from "../upstream/capture.ts";
import { isTimeout, TransportError } from "../upstream/errors.ts";
import { clientHeaders, hasOwnAuthorization, headerMap, upstreamHeaders } from "../upstream/headers.ts";
import type { HeaderMap } from "../upstream/headers.ts";
import type { Upstream } from "../upstream/providers.ts";
import { CONTENT_TYPE } from "../upstream/sse.ts";
import { targetOf } from "../upstream/target.ts";
import { admit, checkModel } from "./access.ts";
import { costOf, countUsage, tokensOf } from "./account.ts";
import type { createUsageBuffer } from "./account.ts";
import { readBody, stringMember } from "./body.ts";
import type { ParsedBody } from "./body.ts";
import { callDemo } from "../upstream/demo.ts";
import type { ProxyDeps } from "./deps.ts";
import { withCors } from "./edge.ts";
import { forward } from "./forward.ts";
import type { Forwarded } from "./forward.ts";
import { isHousekeeping } from "./housekeeping.ts";
import { memoryAccess, namedSession } from "./identity.ts";
import type { MemoryAccess, Reason } from "./identity.ts";
import { teeBytes, teeEvents } from "./tee.ts";
import type { Ended } from "./tee.ts";
import { endpoints, wireError } from "./wire.ts";

/** A JSON reply up to this size is read whole before it goes on, so that a broken one can still become an error. */
const WHOLE_LIMIT = 1 << 20;
/** More of a long JSON reply is not captured. */
const CAPTURE_LIMIT = 8 << 20;
/** Beyond retrieval's own deadline: for the engine's thread being busy. */
const SLACK_MS = 350;
const BASE_DEADLINE_MS = 150;
/** Of a question that is longer its beginning is looked for; of what is recorded more is kept. In UTF-16 units. */
const QUERY_LIMIT = 16 * 1024;
const TEXT_LIMIT = 256 * 1024;

export interface ConversationRoute {
  wire: Wire;
  /** `count_tokens` injects, so that the count is true, and records nothing. */
  counting?: boolean;
}

type Usage = ReturnType<typeof createUsageBuffer>;

export function conversationRoute(deps: ProxyDeps, usage: Usage, route: ConversationRoute) {
  return async (c: Context<Env>): Promise<Response> => {
    const principal = c.get("principal");
    admit(principal, deps);
    const started = performance.now();
    const request = c.req.raw;
    const headers = headerMap(request);
    const body = await readBody(request);
    const name = stringMember(body.json, "model");
    checkList(route.wire, body.json);
    const { upstream, model } = await deps.models.route(name, route.wire);
    checkModel(principal, name, upstream.id, model);
    const conversation = readConversation(route.wire, body.json);
    const memory = gate(
      memoryAccess(principal, headers, body.json, deps.settings()),
      body.json,
      conversation,
    );
    const lookup = lookupOf(headers, route.wire, body.json, conversation);
    const prepared = await recall(deps, {
      memory,
      lookup,
      conversation,
      body,
      upstream,
      model,
      counting: route.counting === true,
    });
    const turn: Turn = {
      deps,
      usage,
      route,
      principal,
      request,
      headers,
      body,
      conversation,
      memory,
      lookup,
      prepared: prepared.got,
      reason: prepared.reason,
      requestId: headers["x-request-id"] ?? crypto.randomUUID(),
      startedAt: started,
      askedModel: name,
      upstream,
      model,
    };
    return answerTurn(turn);
  };
}

/** One request on its way, as the steps below share it. */
interface Turn {
  deps: ProxyDeps;
  usage: Usage;
  route: ConversationRoute;
  principal: Principal;
  request: Request;
  headers: HeaderMap;
  body: ParsedBody;
  conversation: Conversation;
  memory: MemoryAccess;
  lookup: Lookup;
  prepared: Prepared | null;
  reason: Reason | null;
  requestId: string;
  startedAt: number;
  askedModel: string;
  upstream: Upstream;
  model: string;
}

function checkList(wire: Wire, body: JsonBody): void {
  const field = wire === "responses" ? "input" : "messages";
  // A response may be made from a stored prompt or conversation alone.
  if (wire === "responses" && body["input"] === undefined) return;
  const list = listOf(wire, body);
  if (!list) throw invalid(field, wire === "responses" ? "must be a string or an array" : "must be an array");
  if (list.length === 0) throw invalid(field, "must not be empty");
  const bad = list.findIndex((item) => !isObject(item));
  if (bad >= 0) throw invalid(`${field}.${bad}`, "must be an object");
}

function gate(access: MemoryAccess, body: JsonBody, conversation: Conversation): MemoryAccess {
  if (access.owner === null || (!access.read && !access.write)) return access;
  if (isHousekeeping(body, conversation))
    return { ...access, read: false, write: false, reason: "housekeeping" };
  if (conversation.items.some((item) => item.role === "user")) return access;
  // A step of a tool loop over a chain names no user turn, yet its reply may end the exchange.
  return { ...access, read: false, reason: access.reason ?? "nothing-relevant" };
}

function lookupOf(headers: HeaderMap, wire: Wire, body: JsonBody, conversation: Conversation): Lookup {
  const chain: string[] = [];
  if (wire === "responses") {
    const previous = body["previous_response_id"];
    if (typeof previous === "string" && previous !== "") chain.push(namedHash("response", previous));
    const kept = isObject(body["conversation"]) ? body["conversation"]["id"] : body["conversation"];
    if (typeof kept === "string" && kept !== "") chain.push(namedHash("conversation", kept));
  }
  return { named: namedSession(headers, body), history: conversation.history, chain };
}

/** Asks the engine within the deadline. A failure in memory never fails a good request. */
async function recall(
  deps: ProxyDeps,
  ask: {
    memory: MemoryAccess;
    lookup: Lookup;
    conversation: Conversation;
    body: ParsedBody;
    upstream: Upstream;
    model: string;
    counting: boolean;
  },
): Promise<{ got: Prepared | null; reason: Reason | null }> {
  const { memory, conversation } = ask;
  if (memory.owner === null || (!memory.read && (!memory.write || ask.counting)))
    return { got: null, reason: memory.reason };
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

const keepsBlocks = (placement: "auto" | "system-first", conversation: Conversation): boolean =>
  placement === "auto" || conversation.marked;

async function within<T>(work: Promise<T>, ms: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => {});
  }
}

async function answerTurn(turn: Turn): Promise<Response> {
  const { deps, request, route } = turn;
  const { signal } = request;
  const streaming = turn.body.json["stream"] === true && !route.counting;
  const path = `${endpoints[route.wire]}${route.counting ? "/count_tokens" : ""}${queryOf(request.url)}`;
  deps.metrics.observe("recollect_added_seconds", (performance.now() - turn.startedAt) / 1000);
  let forwarded: Forwarded;
  try {
    forwarded = await forward({
      wire: route.wire,
      body: turn.body,
      conversation: turn.conversation,
      blocks: turn.prepared?.blocks ?? [],
      placement: deps.settings().injectionPlacement,
      targets: targetsOf(turn),
      streaming,
      learn: (upstream, add) => deps.providers.learn(upstream, add),
      signal,
      send(upstream, bytes) {
        if (upstream.builtin) return callDemo(route.wire, bytes, route.counting === true);
        return call(deps.transport, {
          target: targetOf(`${upstream.base}${path}`),
          method: "POST",
          headers: upstreamHeaders(turn.headers, upstream, {
            messages: route.wire === "messages",
            ownAuthorization: hasOwnAuthorization(turn.headers),
            json: true,
          }),
          body: bytes,
          timeouts: upstream.timeouts,
          signal,
        });
      },
    });
  } catch (error) {
    return failed(turn, error);
  }
  const { answer } = forwarded;
  if (answer.status >= 300 && answer.status < 400) {
    answer.abort();
    return failed(
      turn,
      new TransportError("protocol", "The provider answered with a redirect, which is not followed."),
      forwarded,
    );
  }
  const headers = withCors(memoryHeaders(turn, forwarded, clientHeaders(answer.headers)));
  if (answer.status >= 400) return relayError(turn, forwarded, headers);
  const settle = (ended: Ended, ttftMs: number | null) => finish(turn, forwarded, ended, ttftMs);
  const encoding = answer.header("content-encoding");
  const plain = encoding === null || encoding === "identity";
  if (plain && (answer.header("content-type") ?? "").includes(CONTENT_TYPE)) {
    headers["cache-control"] = "no-cache, no-transform";
    headers["x-accel-buffering"] = "no";
    let ttft: number | null = null;
    const stream = teeEvents(route.wire, answer, {
      dropUsage: forwarded.askedUsage,
      firstByte: () => (ttft = performance.now() - turn.startedAt),
      ended: (ended) => settle(ended, ttft),
    });
    return new Response(stream, { status: answer.status, headers });
  }
  return wholeOrFollowed(turn, forwarded, headers, plain, settle);
}

/** The query as it was sent, with its question mark; some clients name beta features in it. */
function queryOf(url: string): string {
  const at = url.indexOf("?");
  return at < 0 ? "" : url.slice(at);
}

/** The first provider, then those of its fallbacks that are there and speak the format. */
function targetsOf({ deps, upstream, model, route }: Turn): { upstream: Upstream; model: string }[] {
  const targets = [{ upstream, model }];
  if (upstream.fallbacks.length === 0) return targets;
  const active = deps.providers.active();
  for (const id of upstream.fallbacks) {
    const next = active.find((one) => one.id === id);
    if (next?.wire.has(route.wire)) targets.push({ upstream: next, model });
  }
  return targets;
}

/** A JSON reply: whole when it is short, so that one that breaks off can still be told as an error. */
async function wholeOrFollowed(
  turn: Turn,
  forwarded: Forwarded,
  headers: Record<string, string>,
  plain: boolean,
  settle: (ended: Ended, ttftMs: number | null) => void,
): Promise<Response> {
  const { wire } = turn.route;
  const { answer } = forwarded;
  let read: { bytes: Buffer; whole: boolean };
  try {
    read = await answer.read(WHOLE_LIMIT);
  } catch (error) {
    return failed(turn, error, forwarded);
  }
  const ttft = performance.now() - turn.startedAt;
  const capture = (bytes: Buffer): Captured => captureJson(wire, plain ? parse(bytes) : null);
  if (read.whole) {
    settle({ captured: capture(read.bytes), left: false, cut: false }, ttft);
    return new Response(read.bytes as Uint8Array<ArrayBuffer>, { status: answer.status, headers });
  }
  const parts = [read.bytes];
  let size = read.bytes.length;
  const length = answer.header("content-length");
  if (length !== null) headers["content-length"] = length;
  const stream = teeBytes(answer, read.bytes, {
    data(chunk) {
      size += chunk.length;
      if (size <= CAPTURE_LIMIT) parts.push(chunk);
    },
    ended: ({ left, cut }) => {
      const captured =
        size <= CAPTURE_LIMIT && !left && !cut ? capture(Buffer.concat(parts)) : captureJson(wire, null);
      settle({ captured, left, cut }, ttft);
    },
  });
  return new Response(stream, { status: answer.status, headers });
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null;
  }
}

/** The provider's error as it is: status, body, the headers that tell when to come back. One without a body gets ours. */
async function relayError(
  turn: Turn,
  forwarded: Forwarded,
  headers: Record<string, string>,
): Promise<Response> {
  const { answer } = forwarded;
  let { read } = forwarded;
  try {
    read ??= await answer.read(WHOLE_LIMIT);
  } catch (error) {
    return failed(turn, error, forwarded);
  }
  addUsage(turn, forwarded, answer.status, null);
  if (read.whole && read.bytes.length === 0) {
    const error = wireError(
      turn.route.wire,
      new AppError("upstream_failed", `The provider answered ${answer.status} without saying why.`, {
        status: answer.status,
      }),
    );
    headers["content-type"] = "application/json";
    return new Response(error.body, { status: answer.status, headers });
  }
  const body = read.whole
    ? (read.bytes as Uint8Array<ArrayBuffer>)
    : teeBytes(answer, read.bytes, { ended() {} });
  return new Response(body, { status: answer.status, headers });
}

/** No answer, or half of one before anything was sent on. */
function failed(turn: Turn, error: unknown, forwarded?: Forwarded): Response {
  if (!(error instanceof TransportError)) throw error;
  const left = error.kind === "aborted";
  const code = left
    ? "client_closed"
    : isTimeout(error.kind)
      ? "upstream_timeout"
      : error.kind === "policy"
        ? "url_refused"
        : "upstream_failed";
  const shown = new AppError(code, error.message, code === "url_refused" ? { status: 502 } : {});
  if (left)
    record(
      turn,
      forwarded ?? null,
      { captured: captureJson(turn.route.wire, null), left: true, cut: false },
      null,
    );
  else addUsage(turn, forwarded ?? null, shown.status, null);
  const response = wireError(turn.route.wire, shown);
  const headers = memoryHeaders(turn, forwarded ?? null, {});
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}

/** Tells the client what memory did. */
function memoryHeaders(
  turn: Turn,
  forwarded: Forwarded | null,
  headers: Record<string, string>,
): Record<string, string> {
  const { prepared } = turn;
  const reason = reasonOf(turn, forwarded);
  const injected = reason === null && prepared ? prepared.injected : 0;
  headers["x-memory-injected"] = String(injected);
  headers["x-memory-tokens"] = String(injected === 0 ? 0 : prepared!.tokens);
  if (injected === 0) headers["x-memory-reason"] = reason ?? "nothing-relevant";
  if (prepared?.receiptId) headers["x-memory-receipt"] = prepared.receiptId;
  headers["x-omniroute-session-id"] = asHeader(sessionOf(turn));
  if (headers["x-request-id"] === undefined) headers["x-request-id"] = turn.requestId;
  return headers;
}

/** A header holds Latin-1 alone; a name in another script is percent-encoded. */
const asHeader = (name: string): string =>
  /^[\x20-\x7e\xa0-\xff]*$/.test(name) ? name : encodeURIComponent(name);

function reasonOf(turn: Turn, forwarded: Forwarded | null): Reason | null {
  if (!turn.prepared || turn.prepared.blocks.length === 0) return turn.reason;
  // Every form was refused, or only the one without memory was taken.
  return forwarded && (forwarded.rejected || forwarded.form === "none") ? "rejected" : null;
}

/** Without the engine there is nothing to look a conversation up in: its name, or one derived from how it stood. */
function sessionOf(turn: Turn): string {
  const { prepared, lookup } = turn;
  if (prepared) return prepared.sessionId;
  if (lookup.named !== null) return lookup.named;
  if (lookup.chain[0] !== undefined) return `c-${lookup.chain[0]}`;
  return lookup.history ? `h-${lookup.history.full}` : turn.requestId.slice(0, 128);
}

/** The reply has ended: usage, and with memory the exchange. */
function finish(turn: Turn, forwarded: Forwarded, ended: Ended, ttftMs: number | null): void {
  const { deps } = turn;
  const reason = reasonOf(turn, forwarded);
  if (turn.prepared && reason === null && turn.prepared.injected > 0) {
    deps.log.info("memory.injection.injected", {
      count: turn.prepared.injected,
      tokens: turn.prepared.tokens,
      strategy: deps.settings().strategy,
      placement: forwarded.where,
      provider: forwarded.upstream.id,
      model: forwarded.model,
    });
  } else if (reason !== null) deps.log.debug("memory.injection.skipped", { reason });
  if (turn.route.counting) {
    addUsage(turn, forwarded, forwarded.answer.status, ttftMs);
    return;
  }
  record(turn, forwarded, ended, ttftMs);
}

function record(turn: Turn, forwarded: Forwarded | null, ended: Ended, ttftMs: number | null): void {
  const { deps, memory, prepared, conversation, lookup } = turn;
  const { captured, left, cut } = ended;
  const row = usageRow(turn, forwarded, left ? 499 : (forwarded?.answer.status ?? 502), ttftMs, captured);
  const keep = memory.owner !== null && (memory.write || prepared?.receiptId);
  if (!keep || memory.owner === null) {
    turn.usage.add(row);
    return;
  }
  countUsage(deps.metrics, [row]);
  const names = namesAfter(turn, captured);
  // An in-band error is a failure like a cut: recorded as incomplete, teaching nothing.
  const broken = cut || captured.failed;
  deps.engine.exchange
    .record({
      owner: memory.owner,
      lookup,
      sessionId: prepared?.sessionId ?? null,
      receiptId: prepared?.receiptId ?? null,
      write: memory.write,
      keep: keepsBlocks(deps.settings().injectionPlacement, conversation),
      provider: forwarded?.upstream.id ?? turn.upstream.id,
      model: forwarded?.model ?? turn.model,
      placement: forwarded && forwarded.where !== "none" ? forwarded.where : null,
      reason: prepared?.receiptId ? reasonOf(turn, forwarded) : null,
      fallbacks: forwarded?.fallbacks ?? [],
      user: (conversation.query || conversation.userText).slice(0, TEXT_LIMIT),
      assistant: captured.text,
      complete: captured.complete && !left && !broken,
      cut: broken,
      wantsTools: captured.wantsTools && captured.complete && !left && !broken,
      toolCalls: callsSoFar(conversation) + captured.toolCalls.filter(Boolean).length,
      turn: conversation.turn,
      after: captured.complete && !left && !broken ? conversation.after(captured.text) : null,
      names,
      usage: row,
    })
    .catch((error: unknown) => deps.log.error("memory.record.failed", { error }));
}

/** Tool calls of this exchange that the request itself shows. */
function callsSoFar(conversation: Conversation): number {
  const last = conversation.turns.at(-1)?.at ?? -1;
  return conversation.items.reduce((sum, item) => sum + (item.at > last ? item.calls.length : 0), 0);
}

/** Names under which the provider keeps the conversation from here. */
function namesAfter(turn: Turn, captured: Captured): string[] {
  if (turn.route.wire !== "responses") return [];
  const kept = turn.lookup.chain.filter(
    (_, index) => index > 0 || turn.body.json["previous_response_id"] === undefined,
  );
  return [...(captured.responseId === null ? [] : [namedHash("response", captured.responseId)]), ...kept];
}

function addUsage(turn: Turn, forwarded: Forwarded | null, status: number, ttftMs: number | null): void {
  turn.usage.add(usageRow(turn, forwarded, status, ttftMs, null));
}

function usageRow(
  turn: Turn,
  forwarded: Forwarded | null,
  status: number,
  ttftMs: number | null,
  captured: Captured | null,
): UsageRow {
  const upstream = forwarded?.upstream ?? turn.upstream;
  const model = forwarded?.model ?? turn.model;
  const answered = captured !== null && status < 400;
  const { usage, estimated } =
    captured === null
      ? { usage: { input: 0, output: 0, cached: 0 }, estimated: false }
      : tokensOf(captured.usage, answered || status === 499 ? turn.body.text.length / 4 : 0, captured.text);
  const injected = reasonOf(turn, forwarded) === null ? (turn.prepared?.tokens ?? 0) : 0;
  return {
    owner: turn.memory.owner,
    keyId: turn.principal.kind === "key" ? turn.principal.key.id : null,
    provider: upstream.id,
    model,
    route: turn.route.wire,
    status,
    tokensIn: Math.ceil(usage.input),
    tokensOut: usage.output,
    tokensInjected: injected,
    tokensCached: usage.cached,
    estimated,
    latencyMs: performance.now() - turn.startedAt,
    ttftMs,
    cost: costOf(upstream, model, usage),
    receiptId: turn.prepared?.receiptId ?? null,
    at: (turn.deps.now ?? Date.now)(),
  };
}
