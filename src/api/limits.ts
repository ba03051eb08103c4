/** A key's own limit of requests a minute. */
import { AppError } from "../error.ts";
import { createRateLimiter } from "../limit.ts";
import type { ApiKey } from "./operation.ts";

/** Throws 429 with the seconds to wait. Without `requestsPerMinute` there is no limit. */
export function createKeyLimit(now = Date.now): (key: ApiKey) => void {
  const limiter = createRateLimiter({ now });
  return ({ id, requestsPerMinute }) => {
    if (requestsPerMinute === null) return;
    const retryAfter = limiter.take(id, requestsPerMinute);
    if (retryAfter > 0) {
      throw new AppError("rate_limited", `This key may send ${requestsPerMinute} requests a minute.`, {
        retryAfter,
      });
    }
  };
}
