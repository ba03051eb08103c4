/** Who is calling: an API key, management, or nobody; and on whose memories they may act. */
import type { Database } from "bun:sqlite";
import { createMiddleware } from "hono/factory";
import { getCookie } from "hono/cookie";
import type { Config } from "./config.ts";
import { endSession, isSession, isToken } from "./db/access.ts";
import { keyBySecret } from "./db/keys.ts";
import type { ApiKey, KeyScope } from "./db/keys.ts";
import { AppError, invalid } from "./error.ts";
import { createRateLimiter } from "./limit.ts";
import { createWatch } from "./db/watch.ts";
import type { Watch } from "./db/watch.ts";

export type Principal =
  | { kind: "management"; via: "token" | "cookie" }
  /** `ownAuthorization`: the key came in `x-recollect-key`, so `Authorization` is the caller's own, for the provider. */
  | { kind: "key"; key: ApiKey; ownAuthorization: boolean }
  | { kind: "anonymous" };

/** What `app.fetch(request, env)` is given beside the request. */
export type Env = {
  Bindings: { address: string; secure: boolean };
  Variables: { principal: Principal };
};

export const STUDIO_COOKIE = "recollect_session";

/** Wrong secrets an address may send in a minute. Right ones are never refused. */
const WRONG_A_MINUTE = 10;

export type Auth = ReturnType<typeof createAuth>;

export function createAuth(deps: { db: Database; config: Config; watch?: Watch; now?: () => number }) {
  const { db, config } = deps;
  const now = deps.now ?? Date.now;
  const wrong = createRateLimiter({ now });
  const keys = keyCache(db, deps.watch ?? createWatch(db));
  const used = new Map<string, number>();

  /** Counts a wrong secret of an address and throws 401, or 429 when there were too many. */
  function refuse(address: string): never {
    const wait = wrong.take(address, WRONG_A_MINUTE);
    if (wait > 0)
      throw new AppError("rate_limited", "Too many wrong credentials from this address.", {
        retryAfter: wait,
      });
    throw unauthorized();
  }

  function fromSecret(secret: string, ownAuthorization: boolean, address: string): Principal {
    const key = keys(secret);
    if (key) {
      const at = now();
      const ended = key.revokedAt !== null || (key.expiresAt !== null && Date.parse(key.expiresAt) <= at);
      if (ended) refuse(address);
      used.set(key.id, at);
      return { kind: "key", key, ownAuthorization };
    }
    if (isToken(db, config.RECOLLECT_MANAGEMENT_TOKEN, secret)) return { kind: "management", via: "token" };
    return refuse(address);
  }

  return {
    /** The caller by headers alone. A secret that is presented and not known is 401, whatever the route. */
    fromHeaders(header: (name: string) => string | undefined, address: string): Principal {
      const own = header("x-recollect-key");
      if (own) return fromSecret(own.trim(), true, address);
      const authorization = header("authorization");
      const bearer = authorization === undefined ? undefined : /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
      if (bearer) return fromSecret(bearer, false, address);
      if (authorization) refuse(address);
      const xApiKey = header("x-api-key");
      if (xApiKey) return fromSecret(xApiKey.trim(), false, address);
      return { kind: "anonymous" };
    },
    /** Whether this is the management token; a wrong one counts against the address. */
    checkToken(secret: string, address: string): void {
      if (!isToken(db, config.RECOLLECT_MANAGEMENT_TOKEN, secret)) refuse(address);
    },
    /** Counts a wrong sign-in link. */
    refuse,
    isSession: (secret: string) => isSession(db, secret, now()),
    endSession: (secret: string) => endSession(db, secret),
    /** Keys used since the last call, for `lastUsedAt`. */
    takeUsed(): Map<string, number> {
      const taken = new Map(used);
      used.clear();
      return taken;
    },
  };
}

/** Sets `principal`, and refuses nobody who presents nothing: the routes say what they need. */
export function identify(auth: Auth) {
  return createMiddleware<Env>(async (c, next) => {
    let principal = auth.fromHeaders((name) => c.req.header(name), c.env.address);
    if (principal.kind === "anonymous") {
      const cookie = getCookie(c, STUDIO_COOKIE);
      if (cookie && auth.isSession(cookie)) principal = { kind: "management", via: "cookie" };
    }
    c.set("principal", principal);
    await next();
  });
}

export function unauthorized(): AppError {
  return new AppError("invalid_api_key", "Send a valid API key as a Bearer token.");
}

/** 403 for a route that only the person who runs the box may call, 401 without credentials. */
export function requireManagement(principal: Principal): void {
  if (principal.kind === "anonymous") throw unauthorized();
  if (principal.kind === "key") {
    throw new AppError("insufficient_scope", "This needs the management token; an API key cannot do it.");
  }
}

/** 401 without credentials, 403 for a key that lacks the scope. Management has every scope. */
export function requireScope(principal: Principal, scope: KeyScope): void {
  if (principal.kind === "anonymous") throw unauthorized();
  if (principal.kind === "key" && !principal.key.scopes.includes(scope)) {
    throw new AppError("insufficient_scope", `This API key lacks the scope ${scope}.`);
  }
}

/** The person behind a shared key, as the request names it. */
export type PersonHint = { header: (name: string) => string | undefined; user: string | null | undefined };

/**
 * The owner a key acts for: its id, or `keyId:person` for a key with many people behind it (null when the request names
 * nobody: then there is no memory).
 */
export function ownerOf(key: ApiKey, hint: PersonHint): string | null {
  if (key.userHeader === null && key.userField === null) return key.id;
  const person = (key.userHeader === null ? hint.user : hint.header(key.userHeader))?.trim();
  if (!person || person.length > 256 || /[\x00-\x1f\x7f]/.test(person)) return null;
  return `${key.id}:${person}`;
}

/**
 * The owner of a call on `/api`, `/mcp` or a conversation route. A key acts for itself alone: a foreign `apiKeyId` is as
 * unknown as one that is not there (the caller answers 404). Management gives the owner it names, or null for all.
 */
export function callerOwner(
  principal: Principal,
  hint: PersonHint,
  apiKeyId: string | undefined,
): string | null {
  if (principal.kind === "anonymous") throw unauthorized();
  if (principal.kind === "management") return apiKeyId ?? null;
  const owner = ownerOf(principal.key, hint);
  if (owner === null) {
    const how =
      principal.key.userHeader === null
        ? "the query parameter user"
        : `the header ${principal.key.userHeader}`;
    throw new AppError("owner_required", `This key serves many people; name the person with ${how}.`);
  }
  if (apiKeyId !== undefined && apiKeyId !== owner)
    throw new AppError("not_found", "There is no such owner.");
  return owner;
}

/** For ranked reads and writes, which management must aim at one owner. */
export function requireOwner(owner: string | null): string {
  if (owner === null) throw invalid("apiKeyId", "is required with the management token");
  return owner;
}

/** Keys by secret, read through a cache that any write to the database empties. */
function keyCache(db: Database, watch: Watch): (secret: string) => ApiKey | null {
  const cached = new Map<string, ApiKey | null>();
  let seen = -1;
  return (secret) => {
    const current = watch();
    if (current !== seen || cached.size > 1000) {
      seen = current;
      cached.clear();
    }
    const id = Bun.CryptoHasher.hash("sha256", secret, "base64");
    let key = cached.get(id);
    if (key === undefined) cached.set(id, (key = keyBySecret(db, secret)));
    return key;
  };
}
