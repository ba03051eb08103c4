/** Headers that tell browsers what an answer may not be used for. */
import type { MiddlewareHandler } from "hono";

const always: [name: string, value: string][] = [
  ["X-Content-Type-Options", "nosniff"],
  ["Referrer-Policy", "no-referrer"],
  ["X-Frame-Options", "DENY"],
  ["Cross-Origin-Resource-Policy", "same-origin"],
  ["Cross-Origin-Opener-Policy", "same-origin"],
  // JSON, event streams and files load nothing; pages bring a policy of their own.
  ["Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"],
];

/** Sets them where the answer does not bring its own. Not for `/v1`, whose answers are the upstream's. */
export function securityHeaders(): MiddlewareHandler<{ Bindings: { secure: boolean } }> {
  return async (c, next) => {
    await next();
    if (c.req.path.startsWith("/v1/")) return;
    for (const [name, value] of always) if (!c.res.headers.has(name)) c.res.headers.set(name, value);
    if (c.env.secure) c.res.headers.set("Strict-Transport-Security", "max-age=31536000");
  };
}
