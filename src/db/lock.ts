/** The one lock of a data folder: a second server on it must not start. */
import { Database, SQLiteError } from "bun:sqlite";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../error.ts";

/** What the holder of a folder says of itself, for other processes on this machine. */
export type Holder = { pid: number; url?: string };

export type FolderLock = {
  /** Tells other processes where the server listens. */ note(holder: Holder): void;
  release(): void;
};

/**
 * Takes the lock of `dataDir` or throws a sentence that names the holder. It is an exclusive SQLite transaction on a file
 * of its own, which the operating system ends with the process, whatever ended that.
 */
export function lockFolder(dataDir: string, holder: Holder): FolderLock {
  const path = join(dataDir, "server.lock");
  const info = join(dataDir, "server.json");
  const db = new Database(path, { strict: true, create: true });
  try {
    db.run("PRAGMA busy_timeout = 0");
    db.run("BEGIN EXCLUSIVE");
  } catch (cause) {
    db.close();
    // A full disk, for one, is no other server.
    if (!(cause instanceof SQLiteError) || !cause.code?.startsWith("SQLITE_BUSY")) throw cause;
    throw new AppError(
      "conflict",
      `Another Recollect server${named(dataDir)} is running on ${dataDir}. Stop it, or give this one a folder of its own with --data-dir.`,
      { cause },
    );
  }
  const note = (said: Holder) => writeFileSync(info, JSON.stringify(said), { mode: 0o600 });
  note(holder);
  return {
    note,
    release() {
      rmSync(info, { force: true });
      db.run("ROLLBACK");
      db.close();
    },
  };
}

/** The server that holds the folder, as it noted itself; null when none did. */
export function readHolder(dataDir: string): Holder | null {
  try {
    const said = JSON.parse(readFileSync(join(dataDir, "server.json"), "utf8")) as Partial<Holder>;
    if (typeof said.pid !== "number") return null;
    return { pid: said.pid, ...(typeof said.url === "string" ? { url: said.url } : {}) };
  } catch {
    return null;
  }
}

function named(dataDir: string): string {
  const holder = readHolder(dataDir);
  return holder ? ` (process ${holder.pid})` : "";
}
