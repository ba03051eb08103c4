/** Who may use `/v1`, before anything is parsed. */
import type { Principal } from "../auth.ts";
import { requireScope, unauthorized } from "../auth.ts";
import { AppError } from "../error.ts";
import type { ProxyDeps } from "./deps.ts";

const DAY_MS = 86_400_000;

/** 401 without credentials unless keyless requests are let through, 403 without the scope, 429 above a limit of the key. */
export function admit(principal: Principal, deps: ProxyDeps): void {
  if (principal.kind === "anonymous") {
    if (deps.config.REQUIRE_API_KEY) throw unauthorized();
    return;
  }
  // The Studio's cookie is for the Studio's pages; a page elsewhere must not spend tokens with it.
  if (principal.kind === "management" && principal.via === "cookie") throw unauthorized();
  requireScope(principal, "proxy");
  if (principal.kind !== "key") return;
  const { key } = principal;
  deps.admitKey(key);
  if (key.tokensPerDay === null) return;
  const now = (deps.now ?? Date.now)();
  const midnight = now - (now % DAY_MS);
  if (deps.tokensSince(key.id, midnight) < key.tokensPerDay) return;
  throw new AppError("rate_limited", `This API key has used its ${key.tokensPerDay} tokens of today (UTC).`, {
    retryAfter: Math.ceil((midnight + DAY_MS - now) / 1000),
  });
}

/** 403 when the key has an allow-list and the model is not on it, by either of its names. */
export function checkModel(principal: Principal, asked: string, provider: string, model: string): void {
  const allowed = principal.kind === "key" ? principal.key.models : null;
  if (
    allowed === null ||
    allowed.includes(asked) ||
    allowed.includes(`${provider}/${model}`) ||
    allowed.includes(model)
  )
    return;
  throw new AppError("model_not_allowed", "This API key may not use this model.", {
    param: "model",
    details: [{ field: "model", message: "is not on the key's list" }],
  });
}
