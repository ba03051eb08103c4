import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../src/db/open.ts";
import { createWatch } from "../src/db/watch.ts";

const folder = mkdtempSync(join(tmpdir(), "recollect-watch-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a watch sees every write, or the last answer until it is told to forget", () => {
  const db = openDatabase(join(folder, "a.db"));
  const other = openDatabase(join(folder, "a.db"));
  const exact = createWatch(db);
  const lasting = createWatch(db, 60_000);
  db.run("CREATE TABLE t (n)");
  let before = exact();
  let believed = lasting();
  for (const from of [db, other, db, other]) {
    expect([exact(), lasting()]).toEqual([before, believed]);
    from.run("INSERT INTO t VALUES (1)");
    expect(exact()).not.toBe(before);
    expect(lasting()).toBe(believed);
    lasting.forget();
    expect(lasting()).not.toBe(believed);
    before = exact();
    believed = lasting();
  }
  other.close();
  db.close();
});
