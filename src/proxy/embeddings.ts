/** POST `/v1/embeddings` and `/v1/rerank`: to a provider, or to the local models. */
import type { Context } from "hono";
import type { Env } from "../auth.ts";
import { invalid } from "../error.ts";
import { isObject } from "../memory/conversation.ts";
import type { JsonBody } from "../memory/conversation.ts";
import { estimateTokens } from "../memory/budget.ts";
import { call } from "../upstream/answer.ts";
import { isTimeout, TransportError } from "../upstream/errors.ts";
import { clientHeaders, hasOwnAuthorization, headerMap, upstreamHeaders } from "../upstream/headers.ts";
import { targetOf } from "../upstream/target.ts";
import type { Upstream } from "../upstream/providers.ts";
import { AppError } from "../error.ts";
import { admit, checkModel } from "./access.ts";
import { costOf } from "./account.ts";
import type { createUsageBuffer } from "./account.ts";
import { readBody, stringMember } from "./body.ts";
import type { ParsedBody } from "./body.ts";
import type { ProxyDeps } from "./deps.ts";
import { relay } from "./passthrough.ts";
import { replaceMembers } from "./splice.ts";
import { wireError } from "./wire.ts";

type Usage = ReturnType<typeof createUsageBuffer>;
const REPLY_LIMIT = 256 << 20;
const MAX_INPUTS = 2048;

export function rerankRoute(deps: ProxyDeps, usage: Usage) {
  return async (c: Context<Env>): Promise<Response> => {
    const principal = c.get("principal");
    admit(principal, deps);
    const body = await readBody(c.req.raw);
    const name = stringMember(body.json, "model");
    const { upstream, model } = await deps.models.route(name, null);
    checkModel(principal, name, upstream.id, model);
    return relay(deps, usage, c, {
      upstream,
      path: "/rerank",
      body: withModel(body, model),
      route: "rerank",
      model,
    });
  };
}

const withModel = (body: ParsedBody, model: string, more: Record<string, string> = {}): Buffer =>
  Buffer.from(
    replaceMembers(body.text, {
      ...(body.json["model"] === model ? {} : { model: JSON.stringify(model) }),
      ...more,
    }),
  );

export function embeddingsRoute(deps: ProxyDeps, usage: Usage) {
  return async (c: Context<Env>): Promise<Response> => {
    const principal = c.get("principal");
    admit(principal, deps);
    const started = performance.now();
    const body = await readBody(c.req.raw);
    const name = stringMember(body.json, "model");
    const format = formatOf(body.json);
    const local = /^local\/(static|transformers)$/.exec(name);
    const account = (upstream: Upstream | null, model: string, status: number, tokens: number) =>
      usage.add({
        owner: null,
        keyId: principal.kind === "key" ? principal.key.id : null,
        provider: upstream?.id ?? "local",
        model,
        route: "embeddings",
        status,
        tokensIn: tokens,
        tokensOut: 0,
        tokensInjected: 0,
        tokensCached: 0,
        estimated: upstream === null,
        latencyMs: performance.now() - started,
        ttftMs: null,
        cost:
          upstream && status < 400 ? costOf(upstream, model, { input: tokens, output: 0, cached: 0 }) : null,
        receiptId: null,
        at: (deps.now ?? Date.now)(),
      });
    if (local) {
      checkModel(principal, name, "local", local[1]!);
      const texts = inputsOf(body.json);
      const source = local[1] as "static" | "transformers";
      const answer = await localEmbeddings(deps, name, source, texts, format, body.json["dimensions"]);
      account(null, local[1]!, 200, answer.usage.prompt_tokens);
      return c.json(answer);
    }
    const { upstream, model } = await deps.models.route(name, null);
    checkModel(principal, name, upstream.id, model);
    if (upstream.builtin)
      throw new AppError("model_not_found", "The demo provider has no embedding models.", { param: "model" });
    try {
      const answer = await call(deps.transport, {
        target: targetOf(`${upstream.base}/embeddings`),
        method: "POST",
        headers: upstreamHeaders(headerMap(c.req.raw), upstream, {
          messages: false,
          ownAuthorization: hasOwnAuthorization(headerMap(c.req.raw)),
          json: true,
        }),
        body: withModel(body, model),
        timeouts: upstream.timeouts,
        signal: c.req.raw.signal,
      });
      const { bytes, whole } = await answer.read(REPLY_LIMIT);
      if (!whole) answer.abort();
      const headers = clientHeaders(answer.headers);
      if (answer.status >= 400 && bytes.length === 0) {
        account(upstream, model, answer.status, 0);
        const error = new AppError(
          "upstream_failed",
          `The provider answered ${answer.status} without saying why.`,
          { status: answer.status },
        );
        return wireError("chat", error);
      }
      const reply = answer.status < 400 ? asAsked(bytes, format) : { bytes, tokens: 0 };
      account(upstream, model, answer.status, reply.tokens);
      return new Response(reply.bytes as Uint8Array<ArrayBuffer>, { status: answer.status, headers });
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      const left = error.kind === "aborted";
      const shown = new AppError(
        left ? "client_closed" : isTimeout(error.kind) ? "upstream_timeout" : "upstream_failed",
        error.message,
      );
      account(upstream, model, shown.status, 0);
      return wireError("chat", shown);
    }
  };
}

type Format = "float" | "base64";

function formatOf(body: JsonBody): Format {
  const format = body["encoding_format"] ?? "float";
  if (format !== "float" && format !== "base64") throw invalid("encoding_format", "must be float or base64");
  return format;
}

/** Texts of a local request. Token arrays belong to a tokeniser that we do not know. */
function inputsOf(body: JsonBody): string[] {
  const { input } = body;
  const texts = typeof input === "string" ? [input] : input;
  if (!Array.isArray(texts) || texts.length === 0)
    throw invalid("input", "must be a string or an array of strings");
  if (texts.length > MAX_INPUTS) throw invalid("input", `must have at most ${MAX_INPUTS} texts`);
  for (const [at, text] of (texts as unknown[]).entries()) {
    if (typeof text !== "string" || text === "") throw invalid(`input.${at}`, "must be a non-empty string");
  }
  return texts as string[];
}

async function localEmbeddings(
  deps: ProxyDeps,
  name: string,
  source: "static" | "transformers",
  texts: string[],
  format: Format,
  dimensions: unknown,
) {
  if (!deps.embedLocal) throw notDownloaded(source);
  const made = await deps.embedLocal({ source, texts });
  const vectors =
    dimensions === undefined ? made.vectors : made.vectors.map((one) => shorten(one, dimensions));
  const tokens = texts.reduce((sum, text) => sum + estimateTokens(text), 0);
  return {
    object: "list" as const,
    data: vectors.map((vector, index) => ({
      object: "embedding" as const,
      index,
      embedding:
        format === "base64" ? Buffer.from(new Float32Array(vector).buffer).toString("base64") : vector,
    })),
    model: name,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

/** The first numbers of a vector, at unit length again. Throws 400 when it has not so many. */
function shorten(vector: number[], dimensions: unknown): number[] {
  if (!Number.isInteger(dimensions) || (dimensions as number) < 1 || (dimensions as number) > vector.length) {
    throw invalid("dimensions", `must be a whole number from 1 to ${vector.length}`);
  }
  const kept = vector.slice(0, dimensions as number);
  const length = Math.hypot(...kept);
  return length === 0 ? kept : kept.map((value) => value / length);
}

/** 503 with the command that helps. */
export function notDownloaded(source: string): AppError {
  return new AppError(
    "model_not_downloaded",
    `The local model ${source} is not there yet; run \`recollect model pull ${source}\`.`,
    {
      param: "model",
    },
  );
}

/** The reply with its vectors in the asked form, whatever the provider sent; untouched when they are in it already. */
function asAsked(bytes: Buffer, format: Format): { bytes: Buffer; tokens: number } {
  let reply: unknown;
  try {
    reply = JSON.parse(bytes.toString());
  } catch {
    return { bytes, tokens: 0 };
  }
  if (!isObject(reply)) return { bytes, tokens: 0 };
  const { usage, data } = reply;
  const tokens = isObject(usage) && typeof usage["prompt_tokens"] === "number" ? usage["prompt_tokens"] : 0;
  if (!Array.isArray(data)) return { bytes, tokens };
  let changed = false;
  const rows = (data as unknown[]).map((row) => {
    if (!isObject(row)) return row;
    const { embedding } = row;
    if (format === "base64" && Array.isArray(embedding)) {
      changed = true;
      return {
        ...row,
        embedding: Buffer.from(new Float32Array(embedding as number[]).buffer).toString("base64"),
      };
    }
    if (format === "float" && typeof embedding === "string") {
      changed = true;
      const raw = Buffer.from(embedding, "base64");
      return {
        ...row,
        embedding: [...new Float32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.length))],
      };
    }
    return row;
  });
  return { bytes: changed ? Buffer.from(JSON.stringify({ ...reply, data: rows })) : bytes, tokens };
}
