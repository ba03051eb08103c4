import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import fc from "fast-check";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig } from "../src/config.ts";
import { enqueue } from "../src/db/jobs.ts";
import { openDatabase, transact } from "../src/db/open.ts";
import { silentLog } from "../src/log.ts";
import { openEngine } from "../src/memory/engine.ts";
import { registerFtsText } from "../src/search/lexical-tables.ts";
import { until } from "./support/appliance.ts";
import { purge, withMarks } from "../src/search/purge.ts";

/** The lexical index of memories as the engine makes it, alone in memory. */
function index() {
  const db = new Database(":memory:", { strict: true });
  db.run("CREATE TABLE memories_terms (id INTEGER PRIMARY KEY, text TEXT NOT NULL)");
  db.run(
    "CREATE VIRTUAL TABLE memories_fts USING fts5(text, content='memories_terms', content_rowid='id', tokenize='ascii')",
  );
  db.run("INSERT INTO memories_fts (memories_fts, rank) VALUES ('secure-delete', 1)");
  return {
    db,
    add: (id: number, text: string) => {
      db.query("INSERT INTO memories_terms VALUES (?, ?)").run(id, text);
      db.query("INSERT INTO memories_fts (rowid, text) VALUES (?, ?)").run(id, text);
    },
    remove: (id: number) => {
      db.query(
        "INSERT INTO memories_fts (memories_fts, rowid, text) SELECT 'delete', id, text FROM memories_terms WHERE id = ?",
      ).run(id);
      db.query("DELETE FROM memories_terms WHERE id = ?").run(id);
    },
    holds: (word: string) =>
      db
        .query<{ block: Uint8Array }, []>("SELECT block FROM memories_fts_data")
        .all()
        .some(({ block }) => Buffer.from(block).includes(word)),
    found: (word: string) =>
      db
        .query<{ rowid: number }, [string]>(
          "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rowid",
        )
        .all(word)
        .map((row) => row.rowid),
  };
}

/** Rows of a batch, words a row, and what becomes of the batch. */
const batch = fc.record({
  rows: fc.integer({ min: 1, max: 60 }),
  words: fc.integer({ min: 1, max: 120 }),
  fate: fc.constantFrom("stays", "marked", "marked", "taken out"),
});

test("whatever came before, a purge leaves no word of what was deleted, and every row that stays is found", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(batch, fc.boolean()), { minLength: 1, maxLength: 8 }), (steps) => {
      const { db, add, remove, holds, found } = index();
      const staying: number[] = [];
      let next = 1;
      for (const [{ rows, words, fate }, purging] of steps) {
        const ids = Array.from({ length: rows }, () => next++);
        transact(db, () => {
          for (const id of ids) {
            const rest = Array.from({ length: words }, (_, at) => `w${(id * 7 + at * 13) % 900}`);
            add(id, `${fate === "stays" ? "kept" : "geheimnis"} ${rest.join(" ")}`);
          }
        });
        if (fate === "stays") staying.push(...ids);
        else if (fate === "marked") transact(db, () => withMarks(db, "memories", () => ids.forEach(remove)));
        else transact(db, () => ids.forEach(remove));
        if (!purging) continue;
        for (const _ of purge(db, "memories"));
        expect(holds("geheim")).toBe(false);
      }
      for (const _ of purge(db, "memories"));
      expect(holds("geheim")).toBe(false);
      expect(found("kept")).toEqual(staying);
      expect(found("purge")).toEqual([]);
      db.run("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)");
      db.close();
    }),
    { numRuns: 25 },
  );
}, 60_000);

test("what a process that died had only marked is purged by the job it left", async () => {
  const dir = mkdtempSync(join(tmpdir(), "recollect-purge-"));
  const config = resolveConfig({ flags: {}, env: { DATA_DIR: dir } }, {});
  const first = openEngine({ config, log: silentLog, leaseName: "test" });
  const line = (at: number) =>
    JSON.stringify({ externalId: "s", userMessage: at === 0 ? "kept" : `geheimnis ${at}`, aiResponse: "" });
  const bytes = new TextEncoder().encode(Array.from({ length: 300 }, (_, at) => line(at)).join("\n"));
  await first.engine.conversations.bulk({ owner: "anna", bytes, firstLine: 1, tooLong: [], extract: false });
  await first.stop();
  const file = join(dir, "recollect.db");
  const holds = () => readFileSync(file).includes("geheim");

  // The deletions are committed, the purge is not begun.
  const db = openDatabase(file);
  registerFtsText(db);
  // One segment, so that no merge of its own takes the marks away.
  for (const _ of purge(db, "episodes"));
  transact(db, () =>
    withMarks(db, "episodes", () => db.run("DELETE FROM episodes WHERE user_message <> 'kept'")),
  );
  enqueue(
    db,
    { type: "purge", ownerId: null, payload: { index: "episodes" }, dedupe: "episodes" },
    Date.now(),
  );
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
  expect(holds()).toBe(true);

  const second = openEngine({ config, log: silentLog, leaseName: "test" });
  second.start();
  await until("the purge", async () => {
    const { queued, running } = await second.engine.jobs.counts({ owner: null });
    return queued + running === 0;
  });
  await second.stop();
  expect(holds()).toBe(false);
  rmSync(dir, { recursive: true });
}, 60_000);
