/** Who calls `/mcp`: an API key for its own owner, or management, which names one in each call. */
import { callerOwner, type Auth } from "../auth.ts";
import type { McpCaller } from "./tools.ts";

export type CallerDeps = {
  auth: Auth;
  /** Throws 429 when a key has sent too much. */
  admitKey: (key: { id: string; requestsPerMinute: number | null }) => void;
  ownerExists: (name: string) => boolean;
};

/** Throws 401, 429, or 400 `owner_required` for a key with many people behind it. Cookies do not count here. */
export function mcpCaller(
  { auth, admitKey, ownerExists }: CallerDeps,
  request: Request,
  address: string,
): McpCaller {
  const header = (name: string) => request.headers.get(name) ?? undefined;
  const principal = auth.fromHeaders(header, address);
  const owner = callerOwner(
    principal,
    { header, user: new URL(request.url).searchParams.get("user") },
    undefined,
  );
  if (principal.kind !== "key" || owner === null) return { kind: "management", ownerExists };
  admitKey(principal.key);
  return { kind: "key", owner, sharedPool: principal.key.sharedPool, scopes: principal.key.scopes };
}
