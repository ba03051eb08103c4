/** Brings a database to the version of this program: forward only, one transaction a migration, a copy of the file first. */
import type { Database } from "bun:sqlite";
import { chmodSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../error.ts";
import { transact } from "./open.ts";
import { migrations as all } from "./migrations.ts";

export type Migrated = { from: number; to: number; copy: string | null };

/**
 * Applies what is missing. Before the first migration of an upgrade (never on an empty database) the file is copied to
 * `backupDir`. A database of a newer version is refused before anything is written.
 */
export function migrate(
  db: Database,
  backupDir: string | null,
  migrations: readonly { name: string; sql: string }[] = all,
): Migrated {
  const from = schemaVersion(db);
  if (from > migrations.length) {
    throw new AppError(
      "unavailable",
      `The database is of a newer version (${from}) than this program knows (${migrations.length}). Install the newer program; nothing was changed.`,
    );
  }
  if (from === migrations.length) return { from, to: from, copy: null };
  const copy = from > 0 && backupDir ? copyBefore(db, from, backupDir) : null;
  for (let version = from; version < migrations.length; version++) {
    const { name, sql } = migrations[version]!;
    transact(db, () => {
      // Another process may have migrated while this one waited for the lock.
      if (schemaVersion(db) > version) return;
      try {
        db.run(sql);
      } catch (cause) {
        throw new AppError("unavailable", `Migration ${name} failed; the database is as it was before it.`, {
          cause,
        });
      }
      db.run(`PRAGMA user_version = ${version + 1}`);
    });
  }
  return { from, to: migrations.length, copy };
}

export function schemaVersion(db: Database): number {
  return db.query<{ user_version: number }, []>("PRAGMA user_version").get()!.user_version;
}

function copyBefore(db: Database, version: number, dir: string): string {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, "-");
  const path = join(dir, `before-upgrade-from-v${version}-${stamp}.db`);
  // Under its name it is whole: what a full disk or a crash cut short must not pass for the way back.
  const part = `${path}.part`;
  try {
    db.query("VACUUM INTO ?").run(part);
    chmodSync(part, 0o600);
    renameSync(part, path);
  } finally {
    rmSync(part, { force: true });
  }
  return path;
}
