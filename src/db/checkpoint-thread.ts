/** A thread that writes SQLite's log back into the database at `file` whenever it is told to. */
import { Database } from "bun:sqlite";

declare const self: Worker;

let db: Database | null = null;

self.onmessage = ({ data }: MessageEvent<{ file: string }>) => {
  try {
    db ??= new Database(data.file, { readwrite: true, create: false });
    db.run("PRAGMA wal_checkpoint(PASSIVE)");
  } catch {
    // A disk in trouble shows at the next write as well, to somebody who is told.
  }
  self.postMessage("done");
};
