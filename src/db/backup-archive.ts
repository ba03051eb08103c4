/**
 * The file of a backup: a tar archive of `manifest.json` (version, schema, checksum, row counts), `recollect.db` and,
 * when asked for, `secret.key`.
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from "node:fs";
import { AppError } from "../error.ts";
import { migrations } from "./migrations.ts";
import { copyBytes, tarEnd, tarEntries, tarHeader, tarPadding, type TarEntry } from "./tar.ts";

export interface Manifest {
  readonly format: "recollect-backup/1";
  /** Program that wrote it. */
  readonly version: string;
  readonly schema: number;
  readonly createdAt: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly rows: Readonly<Record<string, number>>;
  readonly secretKey: boolean;
}

export function writeArchive(
  path: string,
  manifest: Manifest,
  copy: string,
  key: Buffer | null,
  mtime: number,
): void {
  const handle = openSync(path, "wx", 0o600);
  const database = openSync(copy, "r");
  const put = (bytes: Buffer): void => {
    for (let at = 0; at < bytes.length;) at += writeSync(handle, bytes, at);
  };
  try {
    const text = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
    for (const part of [tarHeader("manifest.json", text.length, mtime), text, tarPadding(text.length)])
      put(part);
    put(tarHeader("recollect.db", manifest.bytes, mtime));
    copyBytes(database, 0, manifest.bytes, handle);
    put(tarPadding(manifest.bytes));
    if (key !== null)
      for (const part of [tarHeader("secret.key", key.length, mtime), key, tarPadding(key.length)]) put(part);
    put(tarEnd);
    fsyncSync(handle);
  } finally {
    closeSync(database);
    closeSync(handle);
  }
}

/** Reads a backup through and says what it is. Throws a sentence when any of it is not as its manifest says. */
export function verifyArchive(file: string): Manifest {
  const { manifest, database } = openArchive(file);
  const handle = openSync(file, "r");
  try {
    const hash = createHash("sha256");
    copyBytes(handle, database.at, database.size, null, (piece) => void hash.update(piece));
    if (hash.digest("hex") !== manifest.sha256)
      throw failed(`${file} is damaged: its checksum does not match.`);
  } finally {
    closeSync(handle);
  }
  return manifest;
}

/** Writes the database inside `file` to `to`, its checksum verified. */
export function unpackTo(file: string, to: string): { manifest: Manifest | null; key: Buffer | null } {
  if (isSqlite(file)) {
    for (const tail of ["", "-wal"]) if (existsSync(file + tail)) copyFileSync(file + tail, to + tail);
    chmodSync(to, 0o600);
    return { manifest: null, key: null };
  }
  const { manifest, database, key } = openArchive(file);
  const source = openSync(file, "r");
  const target = openSync(to, "wx", 0o600);
  try {
    const hash = createHash("sha256");
    copyBytes(source, database.at, database.size, target, (piece) => void hash.update(piece));
    if (hash.digest("hex") !== manifest.sha256)
      throw failed(`${file} is damaged: its checksum does not match.`);
  } finally {
    closeSync(target);
    closeSync(source);
  }
  return { manifest, key: key === null ? null : read(file, key) };
}

function openArchive(file: string): { manifest: Manifest; database: TarEntry; key: TarEntry | null } {
  let entries: TarEntry[];
  try {
    entries = tarEntries(file, statSync(file).size);
  } catch (error) {
    throw failed(`${file} is damaged or no backup: ${(error as Error).message}.`);
  }
  const find = (name: string): TarEntry | undefined => entries.find((entry) => entry.name === name);
  const [text, database] = [find("manifest.json"), find("recollect.db")];
  if (text === undefined || database === undefined || text.size > 1 << 20)
    throw failed(`${file} is no backup of Recollect.`);
  const manifest = parseManifest(read(file, text).toString("utf8"));
  if (manifest === null) throw failed(`${file} is a backup that this program cannot read.`);
  if (manifest.schema > migrations.length) throw newer(file);
  if (database.size !== manifest.bytes) throw failed(`${file} is damaged: its size does not match.`);
  return { manifest, database, key: find("secret.key") ?? null };
}

function parseManifest(text: string): Manifest | null {
  try {
    const value = JSON.parse(text) as Partial<Manifest>;
    const sound =
      value.format === "recollect-backup/1" &&
      Number.isSafeInteger(value.schema) &&
      Number.isSafeInteger(value.bytes) &&
      /^[0-9a-f]{64}$/.test(value.sha256 ?? "") &&
      typeof value.rows === "object";
    return sound ? (value as Manifest) : null;
  } catch {
    return null;
  }
}

function isSqlite(file: string): boolean {
  const handle = openSync(file, "r");
  try {
    const head = Buffer.alloc(16);
    return readSync(handle, head, 0, 16, 0) === 16 && head.toString("latin1") === "SQLite format 3\0";
  } finally {
    closeSync(handle);
  }
}

function read(file: string, entry: TarEntry): Buffer {
  const handle = openSync(file, "r");
  try {
    const pieces: Buffer[] = [];
    copyBytes(handle, entry.at, entry.size, null, (piece) => void pieces.push(Buffer.from(piece)));
    return Buffer.concat(pieces);
  } finally {
    closeSync(handle);
  }
}

export function newer(file: string): AppError {
  return failed(
    `${file} is of a newer version than this program. Install the newer program; nothing was changed.`,
  );
}

/** An error that a person may read. */
export function failed(message: string): AppError {
  return new AppError("unavailable", message);
}
