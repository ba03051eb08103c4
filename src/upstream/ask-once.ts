/** One question to a model, whole and outside of any conversation: to compare an answer with and without memory. */
import type { Wire } from "../memory/conversation.ts";
import { call } from "./answer.ts";
import { captureJson } from "./capture.ts";
import { callDemo } from "./demo.ts";
import { TransportError } from "./errors.ts";
import { upstreamHeaders } from "./headers.ts";
import type { Upstream } from "./providers.ts";
import { systemRoleOf } from "./roles.ts";
import { targetOf } from "./target.ts";
import type { Transport } from "./transport.ts";

/** `tokensIn` is what the provider counted, else null. `error` is a sentence. */
export type Reply = { text: string; tokensIn: number | null; ms: number; error?: string };

const TIMEOUTS = { connectMs: 5000, firstByteMs: 120_000, idleMs: 60_000 };
const READ_LIMIT = 4 << 20;
const MAX_TOKENS = 1024;

const paths: Record<Wire, string> = {
  chat: "chat/completions",
  responses: "responses",
  messages: "messages",
};

/** The first format that the provider speaks. */
const wireOf = (upstream: Upstream): Wire =>
  (["chat", "messages", "responses"] as const).find((wire) => upstream.wire.has(wire)) ?? "chat";

/** The request, with `block` where this model takes it; null asks without memory. */
export function bodyOf(
  upstream: Upstream,
  wire: Wire,
  model: string,
  question: string,
  block: string | null,
): object {
  const apart = block !== null && systemRoleOf(upstream, model) !== "none";
  const text = block === null || apart ? question : `${block}\n\n${question}`;
  const user = { role: "user", content: text };
  const system = apart ? [{ role: "system", content: block }] : [];
  switch (wire) {
    case "chat":
      return { model, messages: [...system, user] };
    case "messages":
      return { model, max_tokens: MAX_TOKENS, ...(apart ? { system: block } : {}), messages: [user] };
    case "responses":
      return { model, store: false, input: [...system, user] };
  }
}

/** Never throws for what the provider does; whoever leaves first (`signal`) ends it. */
export async function askOnce(
  transport: Transport,
  upstream: Upstream,
  input: { model: string; question: string; block: string | null },
  signal: AbortSignal,
): Promise<Reply> {
  const started = performance.now();
  const wire = wireOf(upstream);
  const body = Buffer.from(JSON.stringify(bodyOf(upstream, wire, input.model, input.question, input.block)));
  const elapsed = () => Math.round((performance.now() - started) * 10) / 10;
  try {
    const answer = upstream.builtin
      ? await callDemo(wire, body, false)
      : await call(transport, {
          target: targetOf(`${upstream.base}/${paths[wire]}`),
          method: "POST",
          headers: upstreamHeaders({ accept: "application/json" }, upstream, {
            messages: wire === "messages",
            ownAuthorization: false,
            json: true,
          }),
          body,
          timeouts: TIMEOUTS,
          signal,
        });
    const { bytes, whole } = await answer.read(READ_LIMIT);
    if (!whole) answer.abort();
    if (answer.status >= 300) {
      return {
        text: "",
        tokensIn: null,
        ms: elapsed(),
        error: `The provider answered with status ${answer.status}.`,
      };
    }
    const captured = captureJson(wire, parsed(bytes));
    return { text: captured.text, tokensIn: captured.usage?.input ?? null, ms: elapsed() };
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    return { text: "", tokensIn: null, ms: elapsed(), error: error.message };
  }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString()) as unknown;
  } catch {
    return null;
  }
}
