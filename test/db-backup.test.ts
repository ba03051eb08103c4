import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAdmin } from "../src/admin.ts";
import { verifyArchive } from "../src/db/backup-archive.ts";
import { writeBackup } from "../src/db/backup.ts";
import { createKey, listKeys } from "../src/db/keys.ts";
import { getMeta, setMeta } from "../src/db/meta.ts";
import { migrate, schemaVersion } from "../src/db/migrate.ts";
import { migrations } from "../src/db/migrations.ts";
import { openDatabase } from "../src/db/open.ts";
import { restoreBackup } from "../src/db/restore.ts";
import { openSeal } from "../src/seal.ts";

let dir: string;
let box: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "backup-"));
  box = join(dir, "box");
  file = join(dir, "copy.tar");
  fill(box, ["laptop", "phone"]);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A data folder with keys of these names. */
function fill(dataDir: string, names: string[], list = migrations): void {
  if (!existsSync(dataDir)) Bun.spawnSync(["mkdir", "-p", dataDir]);
  const db = openDatabase(join(dataDir, "recollect.db"));
  migrate(db, null, list);
  for (const name of names) createKey(db, { name });
  db.close();
  openSeal(dataDir);
}

function keysIn(dataDir: string): string[] {
  const db = openDatabase(join(dataDir, "recollect.db"));
  const names = listKeys(db).map((key) => key.name).toSorted(); // prettier-ignore
  db.close();
  return names;
}

const backup = (more = {}) => writeBackup({ dataDir: box, file, version: "1.2.3", ...more });
const reason = (run: () => unknown): string => {
  try {
    run();
    return "it worked";
  } catch (error) {
    return (error as Error).message;
  }
};

test("a backup says what it holds, and comes back elsewhere", () => {
  const manifest = backup();
  expect(manifest).toMatchObject({
    format: "recollect-backup/1",
    version: "1.2.3",
    schema: migrations.length,
    secretKey: false,
  });
  expect(manifest.rows["api_keys"]).toBe(2);
  expect(verifyArchive(file)).toEqual(manifest);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(dir).toSorted()).toEqual(["box", "copy.tar"]);

  const other = join(dir, "other");
  fill(other, []);
  rmSync(join(other, "recollect.db"));
  expect(restoreBackup({ dataDir: other, file })).toMatchObject({ kept: null, secretKey: "here", manifest });
  expect(keysIn(other)).toEqual(["laptop", "phone"]);
});

test("any tar program reads it", () => {
  backup({ withSecretKey: true });
  const listed = Bun.spawnSync(["tar", "-tvf", file]).stdout.toString();
  expect(listed.match(/(manifest\.json|recollect\.db|secret\.key)$/gm)).toEqual([
    "manifest.json",
    "recollect.db",
    "secret.key",
  ]);
  Bun.spawnSync(["tar", "-xf", file, "-C", dir]);
  expect(JSON.parse(readFileSync(join(dir, "manifest.json"), "utf8"))).toEqual(verifyArchive(file));
  expect(readFileSync(join(dir, "secret.key")).equals(readFileSync(join(box, "secret.key")))).toBe(true);
});

test("it is made while others write, and holds one moment", () => {
  const writer = openDatabase(join(box, "recollect.db"));
  writer.run("BEGIN IMMEDIATE");
  createKey(writer, { name: "not yet" });
  const manifest = backup();
  writer.run("COMMIT");
  writer.close();
  expect(manifest.rows["api_keys"]).toBe(2);
});

test("restore refuses to replace without force, keeps what was there, and undoes itself with one command", () => {
  backup();
  fill(box, ["tablet"]);
  expect(reason(() => restoreBackup({ dataDir: box, file }))).toContain("Give --force to replace it");
  expect(keysIn(box)).toEqual(["laptop", "phone", "tablet"]);
  const { kept } = restoreBackup({ dataDir: box, file, force: true });
  expect(keysIn(box)).toEqual(["laptop", "phone"]);
  restoreBackup({ dataDir: box, file: kept!, force: true });
  expect(keysIn(box)).toEqual(["laptop", "phone", "tablet"]);
  expect(readdirSync(box).filter((name) => name.startsWith("restore-"))).toEqual([]);
});

test("the secret key comes along only when asked for", () => {
  const sealed = openSeal(box).seal("sk-provider");
  backup({ withSecretKey: true });
  const other = join(dir, "other");
  fill(other, []);
  expect(openSeal(other).open(sealed)).toBeNull();
  expect(restoreBackup({ dataDir: other, file, force: true }).secretKey).toBe("restored");
  expect(openSeal(other).open(sealed)).toBe("sk-provider");
  expect(readdirSync(join(other, "backups")).some((name) => name.endsWith(".secret.key"))).toBe(true);
  backup();
  rmSync(join(other, "secret.key"));
  expect(restoreBackup({ dataDir: other, file, force: true }).secretKey).toBe("missing");
});

test("what Qdrant was told is compared once more after a restore", () => {
  const state = { physical: "m__1", old: null, signature: "s", complete: true, cursor: 9, done: 9 };
  const db = openDatabase(join(box, "recollect.db"));
  setMeta(db, "qdrant:m", JSON.stringify(state));
  db.close();
  backup();
  restoreBackup({ dataDir: box, file, force: true });
  const after = openDatabase(join(box, "recollect.db"));
  expect(JSON.parse(String(getMeta(after, "qdrant:m")))).toEqual({
    ...state,
    complete: false,
    cursor: 0,
    done: 0,
  });
  after.close();
});

test("a key that stands alone in the folder is kept beside the one that is restored", () => {
  backup({ withSecretKey: true });
  const other = join(dir, "alone");
  mkdirSync(other);
  openSeal(other);
  const before = readFileSync(join(other, "secret.key"));
  expect(restoreBackup({ dataDir: other, file }).secretKey).toBe("restored");
  const [kept] = readdirSync(join(other, "backups"));
  expect(readFileSync(join(other, "backups", kept!)).equals(before)).toBe(true);
});

test("saving what was shown while secret.key is away keeps the secrets for when it is back", () => {
  const db = openDatabase(join(box, "recollect.db"));
  const brain = { type: "http", baseUrl: "http://127.0.0.1:9" } as const;
  const first = createAdmin({ db, seal: openSeal(box) });
  first.settings.write({ backendConfigs: { brain: { ...brain, apiKey: "bk-0123456789abcdef" } } });
  const shown = first.settings.read().backendConfigs;
  renameSync(join(box, "secret.key"), join(dir, "away.key"));
  const without = createAdmin({ db, seal: openSeal(box) });
  without.settings.write({ backendConfigs: without.settings.read().backendConfigs });
  renameSync(join(dir, "away.key"), join(box, "secret.key"));
  expect(createAdmin({ db, seal: openSeal(box) }).settings.read().backendConfigs).toEqual(shown);
  db.close();
});

test("a backup of an older version is brought up to date", () => {
  const old = join(dir, "old");
  fill(old, ["ancient"], migrations.slice(0, 2));
  writeBackup({ dataDir: old, file, version: "0.0.1" });
  const other = join(dir, "other");
  fill(other, []);
  expect(restoreBackup({ dataDir: other, file, force: true }).schema).toEqual({
    from: 2,
    to: migrations.length,
  });
  expect(keysIn(other)).toEqual(["ancient"]);
});

test("a newer one is refused, untouched", () => {
  const db = openDatabase(join(box, "recollect.db"));
  db.run(`PRAGMA user_version = ${migrations.length + 1}`);
  db.close();
  copyFileSync(join(box, "recollect.db"), join(dir, "newer.db"));
  const other = join(dir, "other");
  fill(other, ["mine"]);
  expect(reason(() => restoreBackup({ dataDir: other, file: join(dir, "newer.db"), force: true }))).toContain(
    "newer version",
  );
  expect(keysIn(other)).toEqual(["mine"]);
});

test("every kind of damage is found before anything is replaced", () => {
  backup();
  const good = readFileSync(file);
  const other = join(dir, "other");
  fill(other, ["mine"]);
  const before = readFileSync(join(other, "recollect.db"));
  const flipped = Buffer.from(good);
  flipped[good.length >> 1]! ^= 1;
  const damages: [content: Buffer, sentence: RegExp][] = [
    [Buffer.alloc(0), /damaged or no backup: the file is cut off/],
    [good.subarray(0, 700), /cut off/],
    [good.subarray(0, good.length - 9000), /cut off/],
    [flipped, /checksum does not match/],
    [Buffer.from("SQLite format 3\0 and then nonsense".padEnd(5000, "x")), /damaged/],
    [Buffer.from("a letter to a friend".padEnd(2048, " ")), /damaged or no backup/],
    [Buffer.concat([good.subarray(0, 100), Buffer.from("zzz"), good.subarray(103)]), /damaged/],
  ];
  for (const [content, sentence] of damages) {
    writeFileSync(file, content);
    expect(reason(() => restoreBackup({ dataDir: other, file, force: true }))).toMatch(sentence);
    expect(readFileSync(join(other, "recollect.db")).equals(before)).toBe(true);
  }
  expect(readdirSync(other).filter((name) => name.startsWith("restore-"))).toEqual([]);
  expect(reason(() => restoreBackup({ dataDir: other, file: join(dir, "nothing"), force: true }))).toContain(
    "There is no file",
  );
});

test("a database of something else is refused", () => {
  const foreign = join(dir, "foreign.db");
  const db = new Database(foreign);
  db.run("CREATE TABLE t (x)");
  db.close();
  expect(reason(() => restoreBackup({ dataDir: join(dir, "box"), file: foreign, force: true }))).toContain(
    "no database of Recollect",
  );
});

test("a damaged database is kept beside the restored one", () => {
  backup();
  writeFileSync(join(box, "recollect.db"), "not a database any more");
  const { kept } = restoreBackup({ dataDir: box, file, force: true });
  expect(readFileSync(kept!, "utf8")).toBe("not a database any more");
  expect(keysIn(box)).toEqual(["laptop", "phone"]);
});

test("a backup of a damaged database fails and leaves the last good one", () => {
  backup();
  const good = readFileSync(file);
  writeFileSync(join(box, "recollect.db"), readFileSync(join(box, "recollect.db")).fill(7, 4096, 20_000));
  expect(reason(() => backup())).not.toBe("it worked");
  expect(readFileSync(file).equals(good)).toBe(true);
  expect(readdirSync(dir).toSorted()).toEqual(["box", "copy.tar"]);
});

test("the copy made before an upgrade is restored like a backup", () => {
  const old = join(dir, "old");
  fill(old, ["ancient"], migrations.slice(0, -1));
  const db = openDatabase(join(old, "recollect.db"));
  const { copy } = migrate(db, join(old, "backups"));
  createKey(db, { name: "after" });
  db.close();
  const { schema } = restoreBackup({ dataDir: old, file: copy!, force: true });
  expect(schema.from).toBe(migrations.length - 1);
  expect(keysIn(old)).toEqual(["ancient"]);
  const again = openDatabase(join(old, "recollect.db"));
  expect(schemaVersion(again)).toBe(migrations.length);
  again.close();
});
