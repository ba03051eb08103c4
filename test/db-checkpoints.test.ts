import { Database } from "bun:sqlite";
import { expect, jest, spyOn, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
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

test("long work waits for the thread before the log is too long, and at its end all is in the file", async () => {
  const dir = mkdtempSync(join(tmpdir(), "recollect-checkpoints-"));
  const file = join(dir, "recollect.db");
  const db = openDatabase(file);
  const checkpoints = createCheckpoints(db, file);
  const number = (sql: string) => db.query(sql).values()[0]!.at(-1);
  const limit = () => db.query("PRAGMA wal_autocheckpoint").values()[0]![0];
  const log = () => db.query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(NOOP)").get()!;
  try {
    db.run("CREATE TABLE t (a BLOB)");
    const write = () => {
      const insert = db.query("INSERT INTO t VALUES (zeroblob(8000))");
      db.transaction(() => {
        for (let i = 0; i < 2000; i++) insert.run();
      })();
    };
    // Before it is started, and after it has ended, nobody waits for it.
    await checkpoints.settle();
    checkpoints.start();
    write();
    await checkpoints.settle();
    expect(limit()).toBe(16_000);
    expect(log().checkpointed).toBe(log().log);
    let longest = 0;
    for (let n = 0; n < 12; n++) {
      await checkpoints.pace();
      expect(limit()).toBe(40_000);
      write();
      longest = Math.max(longest, log().log);
    }
    expect(longest).toBeGreaterThan(16_000);
    expect(longest).toBeLessThan(40_000);
    await Promise.all([checkpoints.settle(), checkpoints.settle()]);
    expect(log().checkpointed).toBe(log().log);
    expect(limit()).toBe(16_000);
    expect(number("SELECT count(*) FROM t")).toBe(26_000);
    const last = checkpoints.settle();
    checkpoints.stop();
    await last;
    await checkpoints.pace();
    await checkpoints.settle();
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
