/** A circuit breaker: after some failures in a row nothing is asked any more until a probe succeeds. */

export type BreakerChange = { open: boolean; reason: string | null };

export type Breaker = {
  readonly open: boolean;
  /** The last failure while open, in one sentence. */
  readonly reason: string | null;
  succeeded(): void;
  failed(reason: string): void;
  /** Ends the probing. */
  stop(): void;
};

export type BreakerOptions = {
  /** Rejects while the other side is still down. */
  probe: () => Promise<unknown>;
  onChange?: (change: BreakerChange) => void;
  /** A call worked after at least one that did not. */
  onRecovered?: () => void;
  /** Failures in a row that open it. */
  failures?: number;
  /** Milliseconds between probes while open. */
  probeEveryMs?: number;
};

/** Opens after 5 failures, probes every 15 s. */
export function createBreaker(options: BreakerOptions): Breaker {
  const { probe, onChange, onRecovered, failures = 5, probeEveryMs = 15_000 } = options;
  let inARow = 0;
  let reason: string | null = null;
  let timer: ReturnType<typeof setInterval> | null = null;
  let probing = false;

  const stop = (): void => {
    if (timer) clearInterval(timer);
    timer = null;
  };
  const close = (): void => {
    const failed = inARow > 0;
    inARow = 0;
    reason = null;
    if (timer) {
      stop();
      onChange?.({ open: false, reason: null });
    }
    if (failed) onRecovered?.();
  };
  const tick = async (): Promise<void> => {
    if (probing) return;
    probing = true;
    try {
      await probe();
      close();
    } catch {
      // Still down; the next tick asks again.
    } finally {
      probing = false;
    }
  };

  return {
    get open() {
      return timer !== null;
    },
    get reason() {
      return timer === null ? null : reason;
    },
    succeeded: close,
    failed(sentence) {
      reason = sentence;
      inARow++;
      if (inARow < failures || timer) return;
      timer = setInterval(() => void tick(), probeEveryMs);
      timer.unref?.();
      onChange?.({ open: true, reason });
    },
    stop,
  };
}
