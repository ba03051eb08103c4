import { Database } from "bun:sqlite";
import { expect, jest, spyOn, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCheckpoints } from "../src/db/checkpoints.ts";
import { openDatabase } from "../src/db/open.ts";

test("what was written reaches the database file while its connection goes on, and after the thread's end too", async () => {
  const dir = mkdtempSync(join(tmpdir(), "recollect-checkpoints-"));
  const file = join(dir, "recollect.db");
  const db = openDatabase(file);
  const checkpoints = createCheckpoints(db, file);
  /** Rows in the file alone, without its log. */
  const inFile = () => {
    copyFileSync(file, join(dir, "copy.db"));
    const copy = new Database(join(dir, "copy.db"));
    try {
      return copy.query<{ n: number }, []>("SELECT count(*) AS n FROM t").get()!.n;
    } catch {
      return 0;
    } finally {
      copy.close();
      for (const tail of ["", "-wal", "-shm"]) rmSync(join(dir, `copy.db${tail}`), { force: true });
    }
  };
  try {
    db.run("CREATE TABLE t (a TEXT)");
    checkpoints.start();
    const write = (n: number) => {
      for (let i = 0; i < n; i++) db.query("INSERT INTO t VALUES (?)").run(`row ${i}`);
    };
    write(400);
    expect(inFile()).toBe(0);
    while (inFile() < 400) await Bun.sleep(20);
    write(350);
    while (inFile() < 750) await Bun.sleep(20);
    const limit = () => db.query("PRAGMA wal_autocheckpoint").values()[0]![0];
    expect(limit()).toBe(16_000);
    checkpoints.stop();
    // Without the thread SQLite does it again.
    expect(limit()).toBe(1000);
    write(1500);
    expect(inFile()).toBeGreaterThan(750);
  } finally {
    checkpoints.stop();
    db.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

test("long work waits for the thread before the log is too long, and has it empty the log in the end", async () => {
  const dir = mkdtempSync(join(tmpdir(), "recollect-checkpoints-"));
  const file = join(dir, "recollect.db");
  const db = openDatabase(file);
  const checkpoints = createCheckpoints(db, file);
  const limit = () => db.query("PRAGMA wal_autocheckpoint").values()[0]![0];
  const log = () => db.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)").get()!.log;
  const logBytes = () => statSync(`${file}-wal`).size;
  try {
    db.run("CREATE TABLE t (a BLOB)");
    const write = () => {
      const insert = db.query("INSERT INTO t VALUES (zeroblob(8000))");
      db.transaction(() => {
        for (let i = 0; i < 2000; i++) insert.run();
      })();
    };
    expect(await checkpoints.empty()).toBe(false);
    checkpoints.start();
    // Nothing was written yet, so there is no thread; long work does not wait for it to come by itself.
    await checkpoints.pace();
    expect(limit()).toBe(48_000);
    write();
    expect(await checkpoints.empty()).toBe(true);
    expect(logBytes()).toBe(0);
    let longest = 0;
    for (let n = 0; n < 14; n++) {
      await checkpoints.pace();
      expect(limit()).toBe(48_000);
      write();
      longest = Math.max(longest, log());
    }
    expect(longest).toBeGreaterThan(16_000);
    expect(longest).toBeLessThan(48_000);
    expect(await Promise.all([checkpoints.empty(), checkpoints.empty()])).toEqual([true, true]);
    expect(logBytes()).toBe(0);
    while (limit() !== 16_000) await Bun.sleep(20);
    expect(db.query("SELECT count(*) AS n FROM t").get()).toEqual({ n: 30_000 });
    // Somebody who reads an earlier state still needs the log.
    const reader = openDatabase(file, { readonly: true });
    reader.run("BEGIN");
    reader.query("SELECT count(*) FROM t").get();
    db.run("INSERT INTO t VALUES (1)");
    expect(await checkpoints.empty()).toBe(false);
    reader.close();
    expect(await checkpoints.empty()).toBe(true);
    const last = checkpoints.empty();
    checkpoints.stop();
    expect(await last).toBe(false);
    await checkpoints.pace();
    expect(await checkpoints.empty()).toBe(false);
    expect(limit()).toBe(1000);
  } finally {
    checkpoints.stop();
    db.close();
    rmSync(dir, { recursive: true, force: true });
  }
}, 30_000);

test("rests while nothing is written, and looks as often as before once something was", () => {
  const db = new Database(":memory:");
  db.run("CREATE TABLE t (a TEXT)");
  jest.useFakeTimers();
  const timers = spyOn(globalThis, "setTimeout");
  const checkpoints = createCheckpoints(db, ":memory:");
  const waits = () => timers.mock.calls.map(([, ms]) => ms);
  try {
    checkpoints.start();
    jest.advanceTimersByTime(250 + 500 + 1000 + 1000);
    expect(waits()).toEqual([250, 500, 1000, 1000, 1000]);
    db.run("INSERT INTO t VALUES ('written during a rest')");
    jest.advanceTimersByTime(1000 + 250);
    expect(waits().slice(5)).toEqual([250, 500]);
    checkpoints.stop();
    expect(jest.getTimerCount()).toBe(0);
  } finally {
    timers.mockRestore();
    jest.useRealTimers();
    db.close();
  }
});
