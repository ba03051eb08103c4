/** The data folder: made for its owner alone. */
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { AppError } from "../error.ts";

/** Makes the folder (mode 0700) when it is not there; a sentence when it cannot be made or written. */
export function makeDataDir(dataDir: string): void {
  try {
    if (!existsSync(dataDir)) {
      mkdirSync(dataDir, { recursive: true, mode: 0o700 });
      chmodSync(dataDir, 0o700);
    }
    if (!statSync(dataDir).isDirectory()) throw new Error("it is a file");
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    const reason = cause instanceof Error && "code" in cause ? String(cause.code) : (cause as Error).message;
    throw new AppError(
      "unavailable",
      `The data folder ${dataDir} cannot be used (${reason}). Give one that can be written with --data-dir or DATA_DIR.`,
      { cause },
    );
  }
}

/**
 * Which file the database is. A restore puts another in its place, and whoever has the old one open goes on reading and
 * writing that. Ask before opening. Null while there is none.
 */
export function databaseFile(dataDir: string): string | null {
  const found = statSync(join(dataDir, "recollect.db"), { bigint: true, throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

const UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
/** Copies on their way in or out, by the folder they are made in: they are whole databases, with what was deleted since. */
const remains: readonly [folder: string, name: RegExp][] = [
  [".", /^restore-[0-9a-f]{8}\.db(-wal|-shm)?$/],
  ["backups", new RegExp(`^(upload|download)-${UUID}(\\..+)?$`)],
];

/** Removes what a process that was ended in the middle of a backup or restore left. The caller holds the folder's lock. */
export function removeRemains(dataDir: string): void {
  for (const [folder, name] of remains) {
    const path = join(dataDir, folder);
    if (!existsSync(path)) continue;
    for (const file of readdirSync(path)) if (name.test(file)) rmSync(join(path, file), { force: true });
  }
}
