/** Notices changes of keys, providers and settings, this connection's and those of others, so that what is cached can be believed. */
import type { Database, Statement } from "bun:sqlite";

/** A value that changes whenever one of them was written. */
export interface Watch {
  (): number;
  /** The next call asks SQLite, however fresh the last answer is. */
  forget(): void;
}

/** Asking SQLite costs microseconds several times a request; `forMs` believes the last answer for that long. */
export function createWatch(db: Database, forMs = 0): Watch {
  let query: Statement<{ n: number }, []> | null = null;
  let value = 0;
  let until = 0;
  const watch = () => {
    if (forMs > 0) {
      const at = performance.now();
      if (at < until) return value;
      until = at + forMs;
    }
    query ??= db.prepare<{ n: number }, []>("SELECT n FROM config_version");
    value = query.get()!.n;
    return value;
  };
  return Object.assign(watch, { forget: () => void (until = 0) });
}
