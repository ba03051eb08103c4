/** Forwards a turn and gives the client its answer: a stream, a whole reply, the provider's error, or ours. */
import { AppError } from "../error.ts";
import { call } from "../upstream/answer.ts";
import { captureJson } from "../upstream/capture.ts";
import type { Captured } from "../upstream/capture.ts";
import { callDemo } from "../upstream/demo.ts";
import { isTimeout, TransportError } from "../upstream/errors.ts";
import { clientHeaders, hasOwnAuthorization, upstreamHeaders } from "../upstream/headers.ts";
import type { Upstream } from "../upstream/providers.ts";
import { CONTENT_TYPE } from "../upstream/sse.ts";
import { targetOf } from "../upstream/target.ts";
import { withCors } from "./edge.ts";
import { forward } from "./forward.ts";
import type { Forwarded } from "./forward.ts";
import { addUsage, finish, record } from "./record.ts";
import { teeBytes, teeEvents } from "./tee.ts";
import type { Ended } from "./tee.ts";
import { memoryHeaders } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { endpoints, wireError } from "./wire.ts";

/** A JSON reply up to this size is read whole before it goes on, so that a broken one can still become an error. */
const WHOLE_LIMIT = 1 << 20;
/** More of a long JSON reply is not captured. */
const CAPTURE_LIMIT = 8 << 20;

/** Answers one turn. Never throws for what a provider or a client does. */
export async function answerTurn(turn: Turn): Promise<Response> {
  const { deps, request, route } = turn;
  const { signal } = request;
  const { body, conversation } = turn.sending!;
  const streaming = body.json["stream"] === true && !route.counting;
  const path = `${endpoints[route.wire]}${route.counting ? "/count_tokens" : ""}${queryOf(request.url)}`;
  deps.metrics.observe("recollect_added_seconds", (performance.now() - turn.startedAt) / 1000);
  let forwarded: Forwarded;
  try {
    forwarded = await forward({
      wire: route.wire,
      body,
      conversation,
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
  } finally {
    turn.sending = null;
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
  // A wrong base URL often ends at somebody's web page: 200, and to the client an empty reply.
  if (answer.status < 300 && (answer.header("content-type") ?? "").startsWith("text/html")) {
    answer.abort();
    const said = `The provider answered with a web page, not a reply; check the base URL of ${forwarded.upstream.id}.`;
    return failed(turn, new TransportError("protocol", said), forwarded);
  }
  // An error leaves its usage alone, and counting too: a receipt that is not kept is not named.
  const kept = answer.status < 400 && !route.counting;
  const headers = withCors(memoryHeaders(turn, forwarded, clientHeaders(answer.headers), kept));
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
  const headers = withCors(memoryHeaders(turn, forwarded ?? null, {}, left));
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}
