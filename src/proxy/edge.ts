/** What surrounds every answer of `/v1`: CORS, answered before authentication, and errors in the format of the route. */
import type { MiddlewareHandler } from "hono";
import type { Env } from "../auth.ts";
import { wireError, wireOf } from "./wire.ts";

const EXPOSED =
  "x-memory-injected, x-memory-tokens, x-memory-receipt, x-memory-reason, x-request-id, X-OmniRoute-Session-Id, retry-after, x-ratelimit-limit-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-requests, x-ratelimit-remaining-tokens, x-ratelimit-reset-requests, x-ratelimit-reset-tokens";

const ALLOW_ORIGIN = "access-control-allow-origin";

/** Adds what lets pages of any origin read an answer, whose header names are `names` where they are not in `headers`. */
export function withCors(
  headers: Record<string, string>,
  names: Iterable<string> = Object.keys(headers),
): Record<string, string> {
  let exposed = EXPOSED;
  for (const name of names)
    if (name.includes("-ratelimit-") && !EXPOSED.includes(name)) exposed += `, ${name}`;
  headers[ALLOW_ORIGIN] = "*";
  headers["access-control-expose-headers"] = exposed;
  return headers;
}

/** Mount on `/v1/*` before authentication. */
export function edge(): MiddlewareHandler<Env> {
  return async (c, next) => {
    if (c.req.method === "OPTIONS") {
      const asked = c.req.raw.headers.get("access-control-request-headers");
      return new Response(null, {
        status: 204,
        headers: {
          "access-control-allow-origin": "*",
          "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
          ...(asked === null ? {} : { "access-control-allow-headers": asked }),
          "access-control-max-age": "86400",
          vary: "Access-Control-Request-Headers",
        },
      });
    }
    await next();
    if (c.error) {
      const { headers } = c.res;
      c.res = undefined;
      c.res = wireError(wireOf(c.req.path), c.error);
      const allow = headers.get("allow");
      if (allow) c.res.headers.set("allow", allow);
    }
    readable(c.res);
    return undefined;
  };
}

/** The same answer, which pages of any origin may read. */
export function readable(response: Response): Response {
  const { headers } = response;
  if (!headers.has(ALLOW_ORIGIN))
    for (const [name, value] of Object.entries(withCors({}, headers.keys()))) headers.set(name, value);
  return response;
}
