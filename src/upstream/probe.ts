/** One real call to a provider, to say whether it works and what fails. */
import { isObject } from "../memory/conversation.ts";
import { call } from "./answer.ts";
import { TransportError } from "./errors.ts";
import { upstreamHeaders } from "./headers.ts";
import type { Upstream } from "./providers.ts";
import { targetOf } from "./target.ts";
import type { Transport } from "./transport.ts";

export type Probe = { ok: boolean; latencyMs: number; model?: string; error?: string };

const TIMEOUTS = { connectMs: 5000, firstByteMs: 30_000, idleMs: 10_000 };
const READ_LIMIT = 1 << 20;

type Reply = { status: number; body: unknown };

/**
 * Asks for the list of models; where there is none, for one token of the first model that is named in `models`. The
 * error is a sentence without keys, addresses or the provider's own words.
 */
export async function probe(transport: Transport, upstream: Upstream, signal: AbortSignal): Promise<Probe> {
  const started = performance.now();
  const timed = (result: Omit<Probe, "latencyMs">): Probe => ({
    ...result,
    latencyMs: Math.round((performance.now() - started) * 10) / 10,
  });
  const [named] = upstream.models ?? [];
  if (upstream.builtin) return timed({ ok: true, ...(named ? { model: named } : {}) });
  try {
    const list = await ask(transport, upstream, "GET", "models", null, signal);
    if (list.status === 401 || list.status === 403)
      return timed({ ok: false, error: refusal(list.status, upstream) });
    const models = list.status < 300 ? modelsOf(list.body) : null;
    if (models !== null && !named) return timed({ ok: true, ...(models[0] ? { model: models[0] } : {}) });
    if (!named) {
      return timed({
        ok: false,
        error: `It gave no list of models (${list.status}); check the base URL, or name a model in the field models.`,
      });
    }
    return timed({ ...(await askOneToken(transport, upstream, named, signal)), model: named });
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    return timed({ ok: false, error: error.message });
  }
}

async function askOneToken(
  transport: Transport,
  upstream: Upstream,
  model: string,
  signal: AbortSignal,
): Promise<{ ok: boolean; error?: string }> {
  const messages = !upstream.wire.has("chat") && upstream.wire.has("messages");
  const responses = !upstream.wire.has("chat") && !messages;
  const body = responses
    ? { model, input: "hi", max_output_tokens: 16 }
    : { model, max_tokens: 1, messages: [{ role: "user", content: "hi" }] };
  const path = responses ? "responses" : messages ? "messages" : "chat/completions";
  const { status } = await ask(transport, upstream, "POST", path, body, signal);
  return status < 300 ? { ok: true } : { ok: false, error: refusal(status, upstream) };
}

function refusal(status: number, { apiKey, headers }: Upstream): string {
  if (status === 401 || status === 403)
    return apiKey === null && Object.keys(headers).length === 0
      ? `It wants a key (${status}); enter one.`
      : `It refused the key (${status}).`;
  if (status === 404) return "There is nothing at this address (404); check the base URL and the model.";
  if (status === 429) return "It answers, but allows no more requests now (429).";
  return `It answered with status ${status}.`;
}

async function ask(
  transport: Transport,
  upstream: Upstream,
  method: "GET" | "POST",
  path: string,
  body: object | null,
  signal: AbortSignal,
): Promise<Reply> {
  const answer = await call(transport, {
    target: targetOf(`${upstream.base}/${path}`),
    method,
    headers: upstreamHeaders({ accept: "application/json" }, upstream, {
      messages: upstream.wire.has("messages") && !upstream.wire.has("chat"),
      ownAuthorization: false,
      json: body !== null,
    }),
    body: body === null ? null : Buffer.from(JSON.stringify(body)),
    timeouts: TIMEOUTS,
    signal: AbortSignal.any([signal, AbortSignal.timeout(60_000)]),
  });
  const { bytes, whole } = await answer.read(READ_LIMIT);
  if (!whole) answer.abort();
  return { status: answer.status, body: parsed(bytes) };
}

/** Names in a list as servers write it; null for what is no list. */
function modelsOf(body: unknown): string[] | null {
  const list = Array.isArray(body)
    ? (body as unknown[])
    : isObject(body)
      ? (body["data"] ?? body["models"])
      : null;
  if (!Array.isArray(list)) return null;
  return (list as unknown[]).flatMap((one) => {
    const id = isObject(one) ? (one["id"] ?? one["name"]) : undefined;
    return typeof id === "string" && id !== "" ? [id] : [];
  });
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString()) as unknown;
  } catch {
    return null;
  }
}
