/** What stands before every Studio route: headers, the origin of a change, who may come in. */
import { createMiddleware } from "hono/factory";
import type { Env, Principal } from "../auth.ts";
import { AppError } from "../error.ts";
import { isPart } from "./context.tsx";

/** No inline script or style, nothing from another host, no framing. */
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** Headers of every page and part. `same-origin` for the referrer: `no-referrer` would turn Origin into null. */
export const pageHeaders = createMiddleware<Env>(async (c, next) => {
  await next();
  const set = (name: string, value: string) => {
    if (!c.res.headers.has(name)) c.res.headers.set(name, value);
  };
  set("Content-Security-Policy", CSP);
  set("Referrer-Policy", "same-origin");
  set("X-Content-Type-Options", "nosniff");
  set("X-Frame-Options", "DENY");
  set("Cross-Origin-Opener-Policy", "same-origin");
  set("Cross-Origin-Resource-Policy", "same-origin");
  set("Permissions-Policy", "camera=(), microphone=(), geolocation=()");
  set("Cache-Control", "no-store");
  set("Vary", "HX-Request, HX-Request-Type");
});

/**
 * Throws 403 unless a change comes from one of our own pages. A cookie is sent by the browser whoever asks, so, unlike
 * on the API, a request that says nothing about where it comes from is refused too.
 */
export function requireOwnPage(request: Request): void {
  const site = request.headers.get("sec-fetch-site");
  const origin = request.headers.get("origin");
  const fromHere =
    site !== null
      ? site === "same-origin"
      : origin !== null && URL.canParse(origin) && new URL(origin).host === request.headers.get("host");
  if (!fromHere)
    throw new AppError(
      "forbidden_origin",
      "This did not come from a page of the Studio. Nothing was changed.",
    );
}

/** Changes come from our own pages; a Bearer token proves intent by itself. */
export const ownPagesOnly = createMiddleware<Env>(async (c, next) => {
  const safe = c.req.method === "GET" || c.req.method === "HEAD";
  const principal = c.get("principal");
  const byToken = principal.kind === "management" && principal.via === "token";
  if (!safe && !byToken) requireOwnPage(c.req.raw);
  await next();
});

export const mayEnter = (principal: Principal): boolean => principal.kind === "management";

/** Management alone. Anybody else is shown the way in, and comes back afterwards to the page asked for. */
export const signedIn = createMiddleware<Env>(async (c, next) => {
  const principal = c.get("principal");
  if (mayEnter(principal)) return next();
  if (principal.kind === "key") {
    throw new AppError(
      "insufficient_scope",
      "An API key does not open the Studio. Sign in with the management token.",
    );
  }
  const url = new URL(c.req.url);
  const asked = c.req.method === "GET" && !isPart(c) ? url.pathname + url.search : "";
  const to = `/sign-in${asked && asked !== "/dashboard/memory" ? `?next=${encodeURIComponent(asked)}` : ""}`;
  if (isPart(c)) {
    c.header("HX-Redirect", to);
    return c.body(null, 401);
  }
  return c.redirect(to, 303);
});

/** A path of the Studio, or its first page: nobody is sent elsewhere after signing in. */
export function safeNext(next: string | undefined): string {
  return next !== undefined && /^\/dashboard(?:[/?][^\\\s]*)?$/.test(next) ? next : "/dashboard/memory";
}
