/** Restore: a backup, or a plain database such as the copy made before an upgrade, in the place of the one that is there. */
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { failed, unpackTo, type Manifest } from "./backup-archive.ts";
import { examine } from "./backup.ts";
import { migrate } from "./migrate.ts";
import { migrations } from "./migrations.ts";
import { refillMirrors } from "./mirror.ts";
import { emptyLog, openDatabase } from "./open.ts";

export interface RestoreOptions {
  readonly dataDir: string;
  readonly file: string;
  /** Replace a database that is there. It is kept in `backups/`. */
  readonly force?: boolean;
  readonly now?: () => number;
}

export interface Restored {
  /** Null for a plain database. */
  readonly manifest: Manifest | null;
  readonly rows: Readonly<Record<string, number>>;
  readonly schema: { readonly from: number; readonly to: number };
  /** Where the database that was there before is now. */
  readonly kept: string | null;
  /** Providers' secrets can be opened again: `restored` from the backup, `here` already, `missing`. */
  readonly secretKey: "restored" | "here" | "missing";
}

/** Puts a backup in the place of the folder's database. The caller holds the folder's lock. Nothing changes when it fails. */
export function restoreBackup({ dataDir, file, force = false, now = Date.now }: RestoreOptions): Restored {
  const target = join(dataDir, "recollect.db");
  if (!existsSync(file)) throw failed(`There is no file ${file}.`);
  if (existsSync(target) && !force) {
    throw failed(
      `There is a database in ${dataDir}. Give --force to replace it; it is kept in ${join(dataDir, "backups")}.`,
    );
  }
  const stamp = new Date(now()).toISOString().replaceAll(/[:.]/g, "-");
  const incoming = join(dataDir, `restore-${crypto.randomUUID().slice(0, 8)}.db`);
  try {
    const { manifest, key } = unpackTo(file, incoming);
    const { rows, schema } = examine(incoming, manifest?.rows);
    const db = openDatabase(incoming);
    try {
      migrate(db, null);
      refillMirrors(db);
      emptyLog(db);
    } finally {
      db.close();
    }
    flush(incoming);
    const kept = existsSync(target) ? keep(dataDir, stamp) : null;
    for (const tail of ["-wal", "-shm"]) rmSync(target + tail, { force: true });
    renameSync(incoming, target);
    const secretKey = placeKey(dataDir, key, stamp);
    return { manifest, rows, schema: { from: schema, to: migrations.length }, kept, secretKey };
  } finally {
    for (const tail of ["", "-wal", "-shm"]) rmSync(incoming + tail, { force: true });
  }
}

/** Keeps the database of the folder under another name; the one in place stays until it is replaced in one step. */
function keep(dataDir: string, stamp: string): string {
  const target = join(dataDir, "recollect.db");
  const folder = join(dataDir, "backups");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const kept = join(folder, `before-restore-${stamp}.db`);
  try {
    const db = openDatabase(target);
    try {
      emptyLog(db);
    } finally {
      db.close();
    }
  } catch {
    // Damaged: it is kept as it is, with its log.
  }
  for (const tail of ["", "-wal"]) {
    if (!existsSync(target + tail)) continue;
    try {
      linkSync(target + tail, kept + tail);
    } catch {
      copyFileSync(target + tail, kept + tail);
    }
  }
  return kept;
}

function placeKey(dataDir: string, key: Buffer | null, stamp: string): Restored["secretKey"] {
  const path = join(dataDir, "secret.key");
  const here = existsSync(path);
  if (key === null) return here ? "here" : "missing";
  if (here && readFileSync(path).equals(key)) return "here";
  if (here) {
    mkdirSync(join(dataDir, "backups"), { recursive: true, mode: 0o700 });
    copyFileSync(path, join(dataDir, "backups", `before-restore-${stamp}.secret.key`));
  }
  writeFileSync(`${path}.tmp`, key, { mode: 0o600, flush: true });
  renameSync(`${path}.tmp`, path);
  return "restored";
}

function flush(path: string): void {
  const handle = openSync(path, "r+");
  fsyncSync(handle);
  closeSync(handle);
}
