/** At most so many of something by one name in any window of time: requests of a key, wrong sign-ins of an address. */
import { AppError } from "./error.ts";

export type RateLimiter = {
  /** Counts one, unless `limit` were passed in the window: then the seconds until there is room, else 0. */
  take(name: string, limit: number): number;
};

/** Exact: remembers the time of each one counted, for at most `names` names (the longest unused is forgotten). */
export function createRateLimiter({ windowMs = 60_000, names = 10_000, now = Date.now } = {}): RateLimiter {
  const times = new Map<string, number[]>();
  return {
    take(name, limit) {
      const at = now();
      const known = times.get(name) ?? [];
      const fresh = known.findIndex((time) => time > at - windowMs);
      const recent = fresh === 0 ? known : fresh < 0 ? [] : known.slice(fresh);
      const wait = recent.length < limit ? 0 : (recent[recent.length - limit] ?? at) + windowMs - at;
      if (wait === 0) recent.push(at);
      times.delete(name);
      times.set(name, recent);
      if (times.size > names) times.delete(times.keys().next().value!);
      return wait === 0 ? 0 : Math.max(1, Math.ceil(wait / 1000));
    },
  };
}

/** A key's own limit: throws 429 with the seconds to wait. Without `requestsPerMinute` there is none. */
export function createKeyLimit(now = Date.now): (key: KeyLimits) => void {
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

type KeyLimits = { id: string; requestsPerMinute: number | null };
