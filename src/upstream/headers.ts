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
  const fixed = ownHeaders(upstream);
  const out: Pairs = [];
  const put = (name: string, value: string): void => {
    if (!fixed?.has(name) && isPrintable(value)) out.push([name, value]);
  };
  for (const name in client) {
    const value = client[name];
    if (value === undefined || (options.json && name === "content-type")) continue;
    if (FORWARDED.has(name) || name.startsWith("openai-")) put(name, value);
  }
  if (options.json) put("content-type", "application/json");
  // Bytes are forwarded as they come, so none of them may be compressed.
  put("accept-encoding", "identity");
  if (options.messages && client["anthropic-version"] === undefined) put("anthropic-version", "2023-06-01");
  const own = upstream.passthroughAuth && options.ownAuthorization;
  const { authorization, "x-api-key": xApiKey } = own ? client : NONE;
  if (authorization !== undefined) put("authorization", authorization);
  else if (xApiKey !== undefined) put("x-api-key", xApiKey);
  else if (upstream.apiKey !== null) {
    if (options.messages) put("x-api-key", upstream.apiKey);
    else put("authorization", `Bearer ${upstream.apiKey}`);
  }
  if (fixed) for (const [name, value] of fixed) if (isPrintable(value)) out.push([name, value]);
  return out;
}

const NONE: HeaderMap = {};

/** The provider's own headers, names in lower case; null when it has none. */
function ownHeaders({ headers }: Upstream): Map<string, string> | null {
  const names = Object.keys(headers);
  return names.length === 0 ? null : new Map(names.map((name) => [name.toLowerCase(), headers[name]!]));
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
    if (!crosses(name) || named?.includes(name) || !isPrintable(value)) continue;
    out[name] = Object.hasOwn(out, name) ? `${out[name]}, ${value}` : value;
  }
  return out;
}

/** Providers send the same names again and again. */
const judged = new Map<string, boolean>();
const MOST_JUDGED = 1000;

function crosses(name: string): boolean {
  let verdict = judged.get(name);
  if (verdict === undefined) {
    verdict =
      !DROPPED.has(name) &&
      !name.startsWith("access-control-") &&
      !name.startsWith("x-memory-") &&
      TOKEN.test(name);
    if (judged.size >= MOST_JUDGED) judged.clear();
    judged.set(name, verdict);
  }
  return verdict;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

/** Headers that the provider ties to its connection. */
function connectionNames(answer: Pairs): string[] | null {
  const values = answer.filter(([name]) => name === "connection");
  if (values.length === 0) return null;
  return values.flatMap(([, value]) => value.toLowerCase().split(",")).map((name) => name.trim());
}
