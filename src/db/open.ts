/** Opens the one SQLite file. Every connection of every process goes through here, so the pragmas are the same everywhere. */
import { Database } from "bun:sqlite";

/** How long a connection waits for another's write transaction, in milliseconds. Transactions here are short. */
const BUSY_MS = 5000;

/**
 * Opens `path` (created when missing unless `readonly`). WAL so that readers never wait for the writer;
 * `secure_delete` because a deleted memory must not be found in the file.
 */
export function openDatabase(path: string, options: { readonly?: boolean } = {}): Database {
  // Bun keeps 20 statements by default and compiles every further one anew on each call.
  Database.MAX_QUERY_CACHE_SIZE = 1000;
  const db = options.readonly
    ? new Database(path, { strict: true, readonly: true })
    : new Database(path, { strict: true, readwrite: true, create: true });
  db.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
  if (!options.readonly) db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = NORMAL");
  db.run("PRAGMA foreign_keys = ON");
  db.run("PRAGMA secure_delete = ON");
  db.run("PRAGMA cache_size = -16000");
  db.run("PRAGMA temp_store = MEMORY");
  return db;
}

/** Runs `work` in one immediate transaction. `work` must be synchronous: an async function would commit at its first await. */
export function transact<T>(db: Database, work: () => T): T {
  return db.inTransaction ? work() : db.transaction(work).immediate();
}

/** How long a log is tried that somebody else is just writing back, and how often, in milliseconds. */
const PATIENCE_MS = 300;
const TRY_MS = 5;

/**
 * Writes the log back into the database and empties it, so that nothing deleted is left in either. SQLite waits for
 * readers, but not for another connection's checkpoint. False: it could not be done now, and a later one does it.
 */
export function emptyLog(db: Database): boolean {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    if (db.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy !== 1) return true;
    if (performance.now() > until) return false;
    Bun.sleepSync(TRY_MS);
  }
}
