/** Every other route of `/v1`: forwarded untouched, streaming both ways, nothing buffered. */
import type { Context } from "hono";
import type { Env } from "../auth.ts";
import { AppError } from "../error.ts";
import { call } from "../upstream/answer.ts";
import type { Answer } from "../upstream/answer.ts";
import { isTimeout, TransportError } from "../upstream/errors.ts";
import { clientHeaders, hasOwnAuthorization, headerMap, upstreamHeaders } from "../upstream/headers.ts";
import type { Upstream } from "../upstream/providers.ts";
import { CONTENT_TYPE } from "../upstream/sse.ts";
import { targetOf } from "../upstream/target.ts";
import { admit } from "./access.ts";
import type { createUsageBuffer } from "./account.ts";
import type { ProxyDeps } from "./deps.ts";
import { teeBytes } from "./tee.ts";
import { wireError } from "./wire.ts";

type Usage = ReturnType<typeof createUsageBuffer>;

export const OUR_ROUTES =
  "POST /v1/chat/completions, POST /v1/responses, POST /v1/messages, POST /v1/messages/count_tokens, POST /v1/embeddings, POST /v1/rerank, GET /v1/models, GET /v1/models/{id}";

/** What to do about `/v1` twice, or not at all. */
export const BASE_URL =
  "the base URL of a client ends in /v1 once, as in http://127.0.0.1:20128/v1 (for Anthropic's own SDK, which adds it, before /v1).";

/** Sends the request on to the default provider as it is; without one 404 that names the routes there are. */
export function passthroughRoute(deps: ProxyDeps, usage: Usage) {
  return async (c: Context<Env>): Promise<Response> => {
    admit(c.get("principal"), deps);
    const { pathname, search } = new URL(c.req.url);
    // To the provider it would be as unknown, and memory would be left out without a word.
    if (pathname.startsWith("/v1/v1/"))
      throw new AppError("not_found", `There is no ${c.req.method} ${pathname}: ${BASE_URL}`);
    const active = deps.providers.active().filter((one) => !one.builtin);
    const upstream = active.find((one) => one.isDefault) ?? (active.length === 1 ? active[0] : undefined);
    if (!upstream)
      throw new AppError("not_found", `There is no ${c.req.method} ${pathname}. There are: ${OUR_ROUTES}.`);
    return relay(deps, usage, c, { upstream, path: pathname.slice("/v1".length) + search });
  };
}

/** Forwards one request with its body as a stream. */
export async function relay(
  deps: ProxyDeps,
  usage: Usage,
  c: Context<Env>,
  to: { upstream: Upstream; path: string; body?: Buffer; route?: string; model?: string },
): Promise<Response> {
  const started = performance.now();
  const request = c.req.raw;
  const principal = c.get("principal");
  const done = (status: number) =>
    usage.add({
      owner: null,
      keyId: principal.kind === "key" ? principal.key.id : null,
      provider: to.upstream.id,
      model: to.model ?? null,
      route: to.route ?? "other",
      status,
      tokensIn: 0,
      tokensOut: 0,
      tokensInjected: 0,
      tokensCached: 0,
      estimated: false,
      latencyMs: performance.now() - started,
      ttftMs: null,
      cost: null,
      receiptId: null,
      at: (deps.now ?? Date.now)(),
    });
  const length = request.headers.get("content-length");
  let answer: Answer;
  try {
    answer = await call(deps.transport, {
      target: targetOf(to.upstream.base + to.path),
      method: request.method,
      headers: [
        ...upstreamHeaders(headerMap(request), to.upstream, {
          messages: to.path.startsWith("/messages"),
          ownAuthorization: hasOwnAuthorization(headerMap(request)),
          json: to.body !== undefined,
        }),
        ...kept(request.headers, to.body === undefined),
      ],
      body:
        to.body ??
        (request.method === "GET" || request.method === "HEAD" ? null : (request.body ?? Buffer.alloc(0))),
      bodyLength: length === null ? undefined : Number(length),
      timeouts: to.upstream.timeouts,
      signal: c.req.raw.signal,
    });
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    const left = error.kind === "aborted";
    const code = left ? "client_closed" : isTimeout(error.kind) ? "upstream_timeout" : "upstream_failed";
    const shown = new AppError(code, error.message);
    done(shown.status);
    return wireError("chat", shown);
  }
  const headers = clientHeaders(answer.headers);
  const size = answer.header("content-length");
  if (size !== null) headers["content-length"] = size;
  if ((answer.header("content-type") ?? "").includes(CONTENT_TYPE)) {
    headers["cache-control"] = "no-cache, no-transform";
    headers["x-accel-buffering"] = "no";
  }
  if (request.method === "HEAD" || answer.status === 204 || answer.status === 304) {
    done(answer.status);
    return new Response(null, { status: answer.status, headers });
  }
  const body = teeBytes(answer, Buffer.alloc(0), {
    ended: ({ left, cut }) => done(left ? 499 : cut ? 502 : answer.status),
  });
  return new Response(body, { status: answer.status, headers });
}

/** What describes a body that goes on as it is, and what asks for a part of one. */
function kept(headers: Headers, untouched: boolean): [string, string][] {
  const names = untouched ? ["content-encoding", "range", "if-none-match", "if-range"] : [];
  return names.flatMap((name): [string, string][] => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value]];
  });
}
