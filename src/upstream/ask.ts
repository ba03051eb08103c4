/** Calls of the engine itself to a provider (embeddings, rerank, a model that reads exchanges), under the URL policy. */
import { AppError } from "../error.ts";
import { call } from "./answer.ts";
import { TransportError } from "./errors.ts";
import { upstreamHeaders } from "./headers.ts";
import type { Providers, Upstream } from "./providers.ts";
import { targetOf } from "./target.ts";
import type { Transport } from "./transport.ts";

/** Answers that the engine reads are small: vectors, scores, a few statements. */
const LIMIT = 64 * 1024 * 1024;
const CONNECT_MS = 5000;

export function createAsk(deps: { providers: Providers; transport: Transport }) {
  const { providers, transport } = deps;

  /** An enabled provider by its id, secrets open; null when there is none, or only the built-in one. */
  function find(id: string): Upstream | null {
    return providers.active().find((one) => one.id === id && !one.builtin) ?? null;
  }

  /** `fetch` over the checked transport: resolves addresses itself, refuses metadata and link-local ones, follows no redirect. */
  async function checkedFetch(url: string, init: RequestInit): Promise<Response> {
    const body = init.body;
    if (body != null && typeof body !== "string") throw new TypeError("only text bodies are sent");
    const answer = await call(transport, {
      target: targetOf(url),
      method: init.method ?? "GET",
      headers: [...new Headers(init.headers)]
        .filter(([name]) => name !== "accept-encoding")
        .concat([["accept-encoding", "identity"]]),
      body: body == null ? null : Buffer.from(body),
      timeouts: { connectMs: CONNECT_MS, firstByteMs: 60_000, idleMs: 30_000 },
      signal: init.signal ?? new AbortController().signal,
    });
    const { bytes, whole } = await answer.read(LIMIT);
    if (!whole) {
      answer.abort();
      throw new TransportError("protocol", "The answer is larger than it may be.");
    }
    return new Response(new Uint8Array(bytes), { status: answer.status, headers: answer.headers });
  }

  /**
   * POSTs JSON to a provider's endpoint and gives the parsed answer. Throws an AppError whose sentence names the provider
   * and the status, never a body or a URL.
   */
  async function post(id: string, path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const upstream = find(id);
    if (!upstream) throw new AppError("unavailable", `There is no enabled provider ${id}.`);
    const headers = upstreamHeaders({}, upstream, {
      messages: false,
      ownAuthorization: false,
      json: true,
    });
    let response: Response;
    try {
      response = await checkedFetch(`${upstream.base}${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
        signal,
      });
    } catch (cause) {
      if (cause instanceof TransportError)
        throw new AppError("upstream_failed", `Provider ${id}: ${cause.message}`, { cause });
      throw cause;
    }
    if (!response.ok) throw new AppError("upstream_failed", `Provider ${id} answered ${response.status}.`);
    try {
      return await response.json();
    } catch (cause) {
      throw new AppError("upstream_failed", `Provider ${id} did not answer with JSON.`, { cause });
    }
  }

  return { find, fetch: checkedFetch, post };
}
