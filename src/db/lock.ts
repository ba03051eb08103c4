/** The one lock of a data folder: a second server on it must not start. */
import { Database } from "bun:sqlite";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../error.ts";

export type FolderLock = { release(): void };

/**
 * Takes the lock of `dataDir` or throws a sentence that names the holder. It is an exclusive SQLite transaction on a file
 * of its own, which the operating system ends with the process, whatever ended that.
 */
export function lockFolder(dataDir: string, note: { pid: number }): FolderLock {
  const path = join(dataDir, "server.lock");
  const info = join(dataDir, "server.json");
  const db = new Database(path, { strict: true, create: true });
  try {
    db.run("PRAGMA busy_timeout = 0");
    db.run("BEGIN EXCLUSIVE");
  } catch (cause) {
    db.close();
    throw new AppError(
      "conflict",
      `Another Recollect server${holder(info)} is running on ${dataDir}. Stop it, or give this one a folder of its own with --data-dir.`,
      { cause },
    );
  }
  writeFileSync(info, JSON.stringify(note), { mode: 0o600 });
  return {
    release() {
      rmSync(info, { force: true });
      db.run("ROLLBACK");
      db.close();
    },
  };
}

function holder(info: string): string {
  try {
    const { pid } = JSON.parse(readFileSync(info, "utf8")) as { pid?: unknown };
    return typeof pid === "number" ? ` (process ${pid})` : "";
  } catch {
    return "";
  }
}
