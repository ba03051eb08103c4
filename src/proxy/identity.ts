/** What a request says about itself: who, which session, how much memory (1-product: Identity). */
import { ownerOf } from "../auth.ts";
import type { Principal } from "../auth.ts";
import { invalid } from "../error.ts";
import type { JsonBody } from "../memory/conversation.ts";
import { isObject } from "../memory/conversation.ts";
import type { MemorySettings } from "../memory/settings.ts";
import { scopes } from "../memory/types.ts";
import type { Scope } from "../memory/types.ts";
import type { HeaderMap } from "../upstream/headers.ts";

const SESSION_HEADERS = [
  "x-omniroute-session-id",
  "x-session-id",
  "session-id",
  "session_id",
  "x-omniroute-session",
  "x-openwebui-chat-id",
  "x-claude-code-session-id",
  "x-codex-session-id",
];

/** A name that may be used: trimmed, 1–128 printable characters. */
function usable(value: unknown): string | null {
  if (typeof value !== "string") return null;
  const name = value.trim();
  return name.length >= 1 && name.length <= 128 && /^[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}]+$/u.test(name)
    ? name
    : null;
}

/** The session as the client names it, or null. */
export function namedSession(headers: HeaderMap, body: JsonBody): string | null {
  for (const name of SESSION_HEADERS) {
    const id = usable(headers[name]);
    if (id !== null) return id;
  }
  const { metadata } = body;
  return usable(isObject(metadata) ? metadata["session_id"] : null) ?? usable(body["prompt_cache_key"]);
}

export type Reason =
  | "off"
  | "opt-out"
  | "no-owner"
  | "nothing-relevant"
  | "housekeeping"
  | "deadline"
  | "rejected";

export interface MemoryAccess {
  owner: string | null;
  read: boolean;
  write: boolean;
  /** Why `read` is false. */
  reason: Reason | null;
  maxTokens: number;
  scope: Scope;
  sharedPool: boolean;
}

/** Who the memories belong to and what may be done with them: settings, key, scopes, headers. 400 for a bad header. */
export function memoryAccess(
  principal: Principal,
  headers: HeaderMap,
  body: JsonBody,
  settings: MemorySettings,
): MemoryAccess {
  const asked = readHeaders(headers, settings);
  const access: MemoryAccess = {
    owner: null,
    read: false,
    write: false,
    reason: "no-owner",
    maxTokens: asked.maxTokens,
    scope: asked.scope,
    sharedPool: false,
  };
  if (!settings.enabled) return { ...access, reason: "off" };
  if (asked.mode === "none") return { ...access, reason: "opt-out" };
  if (principal.kind !== "key") return access;
  const { key } = principal;
  if (key.memory === "off") return { ...access, reason: "off" };
  const owner = ownerOf(key, {
    header: (name) => headers[name.toLowerCase()],
    user: key.userField === null ? null : memberAt(body, key.userField),
  });
  if (owner === null) return access;
  const maxTokens = Math.min(asked.maxTokens, key.maxTokens ?? asked.maxTokens);
  const mayRead = key.scopes.includes("read:memory") && maxTokens > 0;
  const wantsRead = asked.mode === "read" || asked.mode === "read-write";
  const wantsWrite = asked.mode === "write" || asked.mode === "read-write";
  return {
    owner,
    read: mayRead && wantsRead,
    write: key.scopes.includes("write:memory") && wantsWrite,
    reason: mayRead ? (wantsRead ? null : "opt-out") : "off",
    maxTokens,
    scope: asked.scope,
    sharedPool: key.sharedPool,
  };
}

/** The text at a dotted path of the body: `user`, `metadata.user_id`. */
function memberAt(body: JsonBody, path: string): string | null {
  let value: unknown = body[path];
  if (value === undefined) {
    value = body;
    for (const name of path.split(".")) value = isObject(value) ? value[name] : undefined;
  }
  return typeof value === "string" ? value : null;
}

type Mode = "none" | "read" | "write" | "read-write";

function readHeaders(
  headers: HeaderMap,
  settings: MemorySettings,
): { mode: Mode; maxTokens: number; scope: Scope } {
  const given = headers["x-memory-mode"]?.trim().toLowerCase();
  const modes: Record<string, Mode> = {
    off: "none",
    read: "read",
    write: "write",
    "read-write": "read-write",
  };
  if (given !== undefined && !Object.hasOwn(modes, given))
    throw invalid("x-memory-mode", "must be off, read, write or read-write");
  const optedOut = /^(?:true|1|yes)$/i.test(headers["x-omniroute-no-memory"]?.trim() ?? "");
  const budget = headers["x-memory-max-tokens"]?.trim();
  if (budget !== undefined && !/^\d{1,9}$/.test(budget))
    throw invalid("x-memory-max-tokens", "must be a whole number from 0");
  const scope = headers["x-memory-scope"]?.trim();
  if (scope !== undefined && !scopes.includes(scope as Scope))
    throw invalid("x-memory-scope", `must be ${scopes.join(", ")}`);
  const width = (one: Scope) => scopes.indexOf(one);
  return {
    mode: optedOut ? "none" : given === undefined ? "read-write" : modes[given]!,
    maxTokens: Math.min(settings.maxTokens, budget === undefined ? settings.maxTokens : Number(budget)),
    scope:
      scope !== undefined && width(scope as Scope) < width(settings.scope)
        ? (scope as Scope)
        : settings.scope,
  };
}
