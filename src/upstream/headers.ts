/** Which headers cross: an allow-list towards the provider, everything but the connection's own back to the client. */
import type { Upstream } from "./providers.ts";

type Pairs = [name: string, value: string][];
/** Names in lower case. */
export type HeaderMap = Record<string, string | undefined>;

/** Our key came in a header of its own, so `Authorization` and `x-api-key` are the client's, for the provider. */
export function hasOwnAuthorization(headers: HeaderMap): boolean {
  return headers["x-recollect-key"] !== undefined;
}

/** The headers of a request as a plain object: one call instead of one for each name. */
export function headerMap(request: Request): HeaderMap {
  return request.headers.toJSON() as HeaderMap;
}

const FORWARDED = new Set([
  "accept",
  "content-type",
  "user-agent",
  "anthropic-version",
  "anthropic-beta",
  "x-request-id",
  "idempotency-key",
]);

/**
 * Headers for one attempt. The provider's own win over the client's; its key goes out the way its formats want it; the
 * client's `authorization` only where the provider passes it through. Ours never leaves.
 */
export function upstreamHeaders(
  client: HeaderMap,
  upstream: Upstream,
  options: { messages: boolean; ownAuthorization: boolean; json: boolean },
): Pairs {
  const out = new Map<string, string>();
  for (const name in client) {
    const value = client[name];
    if (value !== undefined && (FORWARDED.has(name) || name.startsWith("openai-"))) out.set(name, value);
  }
  if (options.json) out.set("content-type", "application/json");
  // Bytes are forwarded as they come, so none of them may be compressed.
  out.set("accept-encoding", "identity");
  if (options.messages && !out.has("anthropic-version")) out.set("anthropic-version", "2023-06-01");
  const own = upstream.passthroughAuth && options.ownAuthorization;
  const { authorization, "x-api-key": xApiKey } = own ? client : {};
  if (authorization !== undefined) out.set("authorization", authorization);
  else if (xApiKey !== undefined) out.set("x-api-key", xApiKey);
  else if (upstream.apiKey !== null) {
    if (options.messages) out.set("x-api-key", upstream.apiKey);
    else out.set("authorization", `Bearer ${upstream.apiKey}`);
  }
  for (const [name, value] of Object.entries(upstream.headers)) out.set(name.toLowerCase(), value);
  return [...out].filter(([, value]) => isPrintable(value));
}

// A value with a line break could start a header of its own.
const isPrintable = (value: string): boolean => !/[\r\n\0]/.test(value);

/** Belong to one connection (RFC 9110 7.6.1), or are ours to say. */
const DROPPED = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "content-length",
  "set-cookie",
  "alt-svc",
  "date",
  "strict-transport-security",
]);

/** The provider's headers as the client gets them. A name that comes twice keeps its values, joined. */
export function clientHeaders(answer: Pairs): Record<string, string> {
  const named = connectionNames(answer);
  const out: Record<string, string> = {};
  for (const [name, value] of answer) {
    if (
      DROPPED.has(name) ||
      named?.includes(name) ||
      name.startsWith("access-control-") ||
      name.startsWith("x-memory-")
    )
      continue;
    if (!TOKEN.test(name) || !isPrintable(value)) continue;
    out[name] = name in out ? `${out[name]}, ${value}` : value;
  }
  return out;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

/** Headers that the provider ties to its connection. */
function connectionNames(answer: Pairs): string[] | null {
  const values = answer.filter(([name]) => name === "connection");
  if (values.length === 0) return null;
  return values.flatMap(([, value]) => value.toLowerCase().split(",")).map((name) => name.trim());
}
