import { afterEach, beforeEach, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeDataDir, removeRemains } from "../src/db/folder.ts";
import { lockFolder, readHolder } from "../src/db/lock.ts";
import { migrate, schemaVersion } from "../src/db/migrate.ts";
import { migrations } from "../src/db/migrations.ts";
import { openDatabase } from "../src/db/open.ts";

let dir: string;
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), "recollect-folder-"))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test("the data folder is made for its owner alone", () => {
  makeDataDir(join(dir, "a", "b"));
  expect(statSync(join(dir, "a", "b")).mode & 0o777).toBe(0o700);
});

test("a file in the place of the folder is a sentence that names it", () => {
  writeFileSync(join(dir, "file"), "x");
  expect(() => makeDataDir(join(dir, "file"))).toThrow(/cannot be used \(it is a file\)/);
});

test("every migration of the folder is listed, in order", () => {
  const files = readdirSync(join(import.meta.dir, "../migrations")).toSorted();
  expect(migrations.map((migration) => `${migration.name}.sql`)).toEqual(files);
});

test("an upgrade copies the file first, and the copy is the database as it was", () => {
  const path = join(dir, "recollect.db");
  const db = openDatabase(path);
  migrate(db, null, migrations.slice(0, 3));
  db.run("INSERT INTO owners (name) VALUES ('anna')");
  const { from, to, copy } = migrate(db, join(dir, "backups"));
  expect([from, to]).toEqual([3, migrations.length]);
  const before = new Database(copy!, { readonly: true });
  expect(schemaVersion(before)).toBe(3);
  expect(before.query("SELECT name FROM owners").all()).toEqual([{ name: "anna" }]);
  before.close();
  expect(migrate(db, join(dir, "backups")).copy).toBeNull();
  expect(readdirSync(join(dir, "backups"))).toHaveLength(1);
  db.close();
});

test("a copy that could not be finished is no way back, and nothing is upgraded", () => {
  const path = join(dir, "recollect.db");
  let db = openDatabase(path);
  migrate(db, null, migrations.slice(0, 2));
  db.run("CREATE TABLE many (x BLOB)");
  for (let i = 0; i < 50; i++) db.run("INSERT INTO many VALUES (randomblob(4000))");
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
  const bytes = readFileSync(path);
  bytes.fill(0xff, bytes.length - 80_000);
  writeFileSync(path, bytes);
  db = openDatabase(path);
  expect(() => migrate(db, join(dir, "backups"))).toThrow();
  expect(schemaVersion(db)).toBe(2);
  db.close();
  expect(readdirSync(join(dir, "backups"))).toEqual([]);
});

test("an empty database is not copied", () => {
  const db = openDatabase(join(dir, "recollect.db"));
  expect(migrate(db, join(dir, "backups")).copy).toBeNull();
  expect(existsSync(join(dir, "backups"))).toBe(false);
  db.close();
});

test("a migration that fails leaves the database at the version before it", () => {
  const db = openDatabase(join(dir, "recollect.db"));
  const broken = [migrations[0]!, { name: "0002_broken", sql: "CREATE TABLE fine (a) STRICT; SELEKT 1;" }];
  expect(() => migrate(db, null, broken)).toThrow(/0002_broken failed/);
  expect(schemaVersion(db)).toBe(1);
  expect(db.query("SELECT 1 FROM sqlite_master WHERE name = 'fine'").get()).toBeNull();
  db.close();
});

test("a database of a newer version is refused untouched", () => {
  const path = join(dir, "recollect.db");
  const db = openDatabase(path);
  migrate(db, null);
  db.run(`PRAGMA user_version = ${migrations.length + 1}`);
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const before = readFileSync(path);
  expect(() => migrate(db, join(dir, "backups"))).toThrow(/newer version/);
  db.close();
  expect(readFileSync(path).equals(before)).toBe(true);
});

test("a second server on the folder is refused with the holder's process, and the lock is free again after release", () => {
  const lock = lockFolder(dir, { pid: 4711 });
  expect(() => lockFolder(dir, { pid: 4712 })).toThrow(/process 4711/);
  expect(readHolder(dir)).toEqual({ pid: 4711 });
  lock.release();
  lockFolder(dir, { pid: 4712 }).release();
});

test("copies that a backup or restore left when it was ended go at the next start, others stay", () => {
  const id = crypto.randomUUID();
  const left = [
    `upload-${id}`,
    `upload-${id}.check.db-wal`,
    `download-${id}.tar`,
    `download-${id}.tar.0a1b2c3d.db`,
  ];
  const mine = ["before-restore-2026.db", "download-of-mine.tar", "upload.txt"];
  mkdirSync(join(dir, "backups"));
  for (const name of [...left, ...mine]) writeFileSync(join(dir, "backups", name), "x");
  for (const name of ["restore-0a1b2c3d.db", "restore-0a1b2c3d.db-wal", "recollect.db"])
    writeFileSync(join(dir, name), "x");
  removeRemains(dir);
  expect(readdirSync(join(dir, "backups")).toSorted()).toEqual(mine);
  expect(readdirSync(dir).toSorted()).toEqual(["backups", "recollect.db"]);
});

test("a lock file that cannot be used is no other server", () => {
  const other = mkdtempSync(join(tmpdir(), "lock-"));
  writeFileSync(
    join(other, "server.lock"),
    "This is no database, and long enough to be looked at as one.".repeat(20),
  );
  expect(() => lockFolder(other, { pid: 1 })).toThrow(/not a database/);
  rmSync(other, { recursive: true });
});
