/** A thread that writes SQLite's log back into the database at `file` whenever it is told to, and empties it if asked. */
import { Database } from "bun:sqlite";

declare const self: Worker;

let db: Database | null = null;

/** How long it waits for whoever reads or writes before it gives the emptying up, in milliseconds. */
const PATIENCE_MS = 300;

self.onmessage = ({ data }: MessageEvent<{ file: string; empty: boolean }>) => {
  let emptied = false;
  try {
    db ??= open(data.file);
    db.run("PRAGMA wal_checkpoint(PASSIVE)");
    // Little is left, for which writers have to wait.
    if (data.empty)
      emptied = db.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
  } catch {
    // A disk in trouble shows at the next write as well, to somebody who is told.
  }
  self.postMessage(emptied);
};

function open(file: string): Database {
  const opened = new Database(file, { readwrite: true, create: false });
  opened.run(`PRAGMA busy_timeout = ${PATIENCE_MS}`);
  return opened;
}
