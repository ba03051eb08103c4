/** Notices writes: this connection's and those of others, so that what is cached is never older than a turn of the event loop. */
import type { Database } from "bun:sqlite";

/** A value that changes whenever anything was written. Asked of SQLite once a turn, since it costs microseconds. */
export type Watch = () => number;

export function createWatch(db: Database): Watch {
  const query = db.prepare<{ data_version: number; changes: number }, []>(
    "SELECT data_version, total_changes() AS changes FROM pragma_data_version",
  );
  let version = -1;
  let changes = -1;
  let value = 0;
  let asked = false;
  const again = () => {
    asked = false;
  };
  return () => {
    if (asked) return value;
    asked = true;
    setImmediate(again);
    const now = query.get()!;
    if (now.data_version !== version || now.changes !== changes) {
      version = now.data_version;
      changes = now.changes;
      value++;
    }
    return value;
  };
}
