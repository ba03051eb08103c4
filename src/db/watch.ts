/** Notices writes, this connection's and those of others, so that what is cached can be believed. */
import type { Database } from "bun:sqlite";

/** A value that changes whenever anything was written. */
export interface Watch {
  (): number;
  /** The next call asks SQLite, however fresh the last answer is. */
  forget(): void;
}

/** Asking SQLite costs microseconds several times a request; `forMs` believes the last answer for that long. */
export function createWatch(db: Database, forMs = 0): Watch {
  const query = db.prepare<{ data_version: number; changes: number }, []>(
    "SELECT data_version, total_changes() AS changes FROM pragma_data_version",
  );
  let version = -1;
  let changes = -1;
  let value = 0;
  let until = 0;
  const watch = () => {
    if (forMs > 0) {
      const at = performance.now();
      if (at < until) return value;
      until = at + forMs;
    }
    const now = query.get()!;
    if (now.data_version !== version || now.changes !== changes) {
      version = now.data_version;
      changes = now.changes;
      value++;
    }
    return value;
  };
  return Object.assign(watch, { forget: () => void (until = 0) });
}
