/** Callers for tests that mount routes without the server's own authentication. */
import type { Principal } from "../../src/auth.ts";
import type { ApiKey } from "../../src/api/operation.ts";

export const management: Principal = { kind: "management", via: "token" };

/** An API key with every scope and no limits, unless the fields say otherwise. */
export function keyOf(id: string, fields: Partial<ApiKey> = {}): Principal {
  const all: ApiKey = {
    id,
    name: id,
    prefix: "rk-abcd…",
    scopes: ["proxy", "read:memory", "write:memory"],
    createdAt: "2026-01-31T12:00:00.000Z",
    lastUsedAt: null,
    expiresAt: null,
    revokedAt: null,
    memory: "inherit",
    maxTokens: null,
    models: null,
    requestsPerMinute: null,
    tokensPerDay: null,
    sharedPool: false,
    userHeader: null,
    userField: null,
  };
  return { kind: "key", key: { ...all, ...fields }, ownAuthorization: false };
}
