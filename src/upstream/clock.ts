/** One timer for the deadlines of all requests, since two a request would cost more than the requests' own work. */

/** Looked at on every tick; times are `performance.now()`. */
export interface Watched {
  check(now: number): void;
}

const TICK_MS = 20;

export interface Clock {
  add(one: Watched): void;
  remove(one: Watched): void;
}

export function createClock(): Clock {
  const watched = new Set<Watched>();
  let timer: ReturnType<typeof setInterval> | null = null;
  const tick = () => {
    const now = performance.now();
    for (const one of watched) one.check(now);
    if (watched.size > 0 || !timer) return;
    clearInterval(timer);
    timer = null;
  };
  return {
    add(one) {
      watched.add(one);
      timer ??= setInterval(tick, TICK_MS);
    },
    remove: (one) => void watched.delete(one),
  };
}
