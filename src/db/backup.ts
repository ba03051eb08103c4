/** Backup: a consistent copy of the database, made while the server runs, counted, checked and read back. */
import type { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { AppError } from "../error.ts";
import { failed, newer, verifyArchive, writeArchive, type Manifest } from "./backup-archive.ts";
import { schemaVersion } from "./migrate.ts";
import { migrations } from "./migrations.ts";
import { openDatabase } from "./open.ts";
import { copyBytes } from "./tar.ts";

export interface BackupOptions {
  readonly dataDir: string;
  /** Replaced only by a backup that was read back and found good. */
  readonly file: string;
  readonly version: string;
  /** Also the key that opens providers' secrets. Whoever has the file then has those. */
  readonly withSecretKey?: boolean;
  readonly now?: () => number;
}

/** Writes and verifies a backup of the folder's database, also while a server uses it. */
export function writeBackup(options: BackupOptions): Manifest {
  const { dataDir, file, version, withSecretKey = false, now = Date.now } = options;
  const source = join(dataDir, "recollect.db");
  if (!existsSync(source)) throw failed(`There is no database in ${dataDir}.`);
  const mark = crypto.randomUUID().slice(0, 8);
  const copy = `${file}.${mark}.db`;
  const archive = `${file}.${mark}.tmp`;
  try {
    mkdirSync(dirname(file), { recursive: true });
    const db = openDatabase(source, { readonly: true });
    try {
      db.query("VACUUM INTO ?").run(copy);
    } finally {
      db.close();
    }
    chmodSync(copy, 0o600);
    const { schema, rows } = examine(copy);
    const manifest: Manifest = {
      format: "recollect-backup/1",
      version,
      schema,
      createdAt: new Date(now()).toISOString(),
      bytes: statSync(copy).size,
      sha256: sha256Of(copy),
      rows,
      secretKey: withSecretKey && existsSync(join(dataDir, "secret.key")),
    };
    const key = manifest.secretKey ? readFileSync(join(dataDir, "secret.key")) : null;
    writeArchive(archive, manifest, copy, key, now() / 1000);
    verifyArchive(archive);
    renameSync(archive, file);
    return manifest;
  } finally {
    for (const path of [copy, archive]) rmSync(path, { force: true });
  }
}

/** Integrity, schema and row counts of a database file. */
export function examine(
  path: string,
  expected?: Readonly<Record<string, number>>,
): { schema: number; rows: Record<string, number> } {
  let db: Database;
  try {
    // Not read-only: a database in WAL mode without its -shm file could not be opened.
    db = openDatabase(path);
  } catch {
    throw failed(`${path} is damaged or no database.`);
  }
  try {
    const schema = schemaVersion(db);
    if (schema > migrations.length) throw newer(path);
    if (schema === 0) throw failed("The file is no database of Recollect.");
    const [verdict] = db.query<{ integrity_check: string }, []>("PRAGMA integrity_check(1)").all();
    if (verdict?.integrity_check !== "ok")
      throw failed(`The database is damaged: ${verdict?.integrity_check}.`);
    const rows = countRows(db);
    for (const [table, count] of Object.entries(expected ?? {})) {
      if (rows[table] !== count)
        throw failed(`The backup is damaged: ${table} has ${rows[table] ?? 0} rows instead of ${count}.`);
    }
    return { schema, rows };
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw failed(`The database is damaged: ${(error as Error).message}.`);
  } finally {
    db.close();
  }
}

/** Rows of every table of our own; indexes' inner tables are left out, since they can be rebuilt. */
export function countRows(db: Database): Record<string, number> {
  const tables = db
    .query<{ name: string }, []>(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )
    .all()
    .map(({ name }) => name);
  return Object.fromEntries(
    tables.map((name) => [
      name,
      db.query<{ n: number }, []>(`SELECT count(*) AS n FROM "${name.replaceAll('"', '""')}"`).get()!.n,
    ]),
  );
}

function sha256Of(path: string): string {
  const hash = createHash("sha256");
  const handle = openSync(path, "r");
  try {
    copyBytes(handle, 0, fstatSync(handle).size, null, (piece) => void hash.update(piece));
  } finally {
    closeSync(handle);
  }
  return hash.digest("hex");
}
