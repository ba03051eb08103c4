import { Database } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig } from "../src/config.ts";
import { enqueue } from "../src/db/jobs.ts";
import { migrate } from "../src/db/migrate.ts";
import { openDatabase, transact } from "../src/db/open.ts";
import { silentLog } from "../src/log.ts";
import { openEngine } from "../src/memory/engine.ts";
import { breathe } from "../src/memory/breathe.ts";
import { createJobs } from "../src/memory/jobs.ts";
import { createPurge } from "../src/memory/purge.ts";
import { ensureLexical, registerFtsText } from "../src/search/lexical-tables.ts";
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

test("what is marked while a merge is under way has a merge of its own", async () => {
  const dir = mkdtempSync(join(tmpdir(), "recollect-purge-"));
  const db = openDatabase(join(dir, "recollect.db"));
  migrate(db, join(dir, "backups"));
  ensureLexical(db);
  db.run("INSERT INTO owners (name) VALUES ('anna')");
  db.run("INSERT INTO sessions (owner_id, external_id, created_at, updated_at) VALUES (1, 's', 1, 1)");
  const add = db.query(
    "INSERT INTO episodes (session_id, owner_id, user_message, ai_response, token_count, stored_at, created_at) VALUES (1, 1, ?, '', 1, 1, 1)",
  );
  transact(db, () => {
    for (let n = 0; n < 6000; n++) {
      const rest = Array.from({ length: 40 }, (_, at) => `w${(n * 7 + at * 131) % 9000}`).join(" ");
      add.run(`${n < 3 ? `geheimnis${n}` : "kept"} ${rest}`);
    }
  });
  for (const _ of purge(db, "episodes"));
  const jobs = createJobs({ db, log: silentLog, now: Date.now, leaseName: "test" });
  let rests = 0;
  const rest = async () => void rests++;
  const one = createPurge({ db, jobs, now: Date.now, checkpoints: { pace: rest, empty: async () => false } });
  const remove = (n: number) =>
    transact(db, () =>
      one.marking(["episodes"], () =>
        db.query("DELETE FROM episodes WHERE user_message LIKE ?").run(`geheimnis${n} %`),
      ),
    );
  const holds = (n: number) =>
    readdirSync(dir).some((name) => readFileSync(join(dir, name)).includes(`geheimnis${n}`));
  // A slow machine: every step of a merge takes a slice.
  let clock = 0;
  const slow = spyOn(performance, "now").mockImplementation(() => (clock += 100));
  try {
    remove(0);
    const first = one.finish(["episodes"]);
    while (rests === 0) await breathe();
    remove(1);
    const second = one.finish(["episodes"]);
    remove(2);
    await first;
    expect(holds(0)).toBe(false);
    await second;
    expect(holds(1)).toBe(false);
    await one.finish(["episodes"]);
    expect(holds(2)).toBe(false);
    expect(db.query("SELECT count(*) AS n FROM jobs").get()).toEqual({ n: 0 });
    db.run("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)");
  } finally {
    slow.mockRestore();
    db.close();
    rmSync(dir, { recursive: true });
  }
}, 60_000);

test("a process that is killed in the middle of a deletion leaves no word of it to the next", async () => {
  const dir = mkdtempSync(join(tmpdir(), "recollect-purge-"));
  const source = (path: string) => JSON.stringify(join(import.meta.dir, "../src", path));
  const script = `
    const { openEngine } = await import(${source("memory/engine.ts")});
    const { resolveConfig } = await import(${source("config.ts")});
    const { silentLog } = await import(${source("log.ts")});
    const config = resolveConfig({ flags: {}, env: { DATA_DIR: ${JSON.stringify(dir)} } }, {});
    const { engine, start } = openEngine({ config, log: silentLog, leaseName: "test", ownThread: true });
    start();
    const lines = Array.from({ length: 3000 }, (_, at) =>
      JSON.stringify({ externalId: "s", userMessage: "geheim" + at + "x of the day", aiResponse: "answer" + at + "x" }));
    const bytes = new TextEncoder().encode(lines.join("\\n"));
    await engine.conversations.bulk({ owner: "anna", bytes, firstLine: 1, tooLong: [], extract: false });
    const { data: [session] } = await engine.conversations.listSessions({ owner: "anna", limit: 1, offset: 0 });
    const left = async () => (await engine.conversations.listEpisodes({ owner: "anna", sessionId: session.id, limit: 1, offset: 0 })).total;
    void engine.conversations.deleteSession({ owner: "anna", id: session.id, memories: false });
    while ((await left()) > 2000) await new Promise(setImmediate);
    process.kill(process.pid, "SIGKILL");`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "inherit", stderr: "inherit" });
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");

  // The job it left is for later.
  const db = openDatabase(join(dir, "recollect.db"));
  expect(db.run("UPDATE jobs SET run_at = 0 WHERE type = 'purge'").changes).toBe(1);
  const config = resolveConfig({ flags: {}, env: { DATA_DIR: dir } }, {});
  const next = openEngine({ config, log: silentLog, leaseName: "test" });
  const { conversations } = next.engine;
  try {
    next.start();
    await until("the purge", () => db.query("SELECT 1 FROM jobs WHERE type = 'purge'").get() === null);
    const text = readdirSync(dir)
      .filter((name) => name.startsWith("recollect.db"))
      .map((name) => readFileSync(join(dir, name), "latin1"))
      .join("");
    const inFile = new Set([...text.matchAll(/(?:geheim|answer)(\d+)x/g)].map(([, at]) => Number(at)));
    const there = db
      .query<{ user_message: string }, []>("SELECT user_message FROM episodes")
      .all()
      .map((row) => Number(/\d+/.exec(row.user_message)![0]));
    expect(there.length).toBeGreaterThan(0);
    expect(there.length).toBeLessThanOrEqual(2000);
    expect([...inFile].toSorted((a, b) => a - b)).toEqual(there);
    expect(db.query("SELECT v FROM episodes_fts_config WHERE k = 'secure-delete'").values()).toEqual([[1]]);
    const { data } = await conversations.listSessions({ owner: "anna", limit: 1, offset: 0 });
    await conversations.deleteSession({ owner: "anna", id: data[0]!.id, memories: false });
    await until("the words are in no file", () =>
      readdirSync(dir)
        .filter((one) => one.startsWith("recollect.db"))
        .every((name) => !/geheim|answer\d/.test(readFileSync(join(dir, name), "latin1"))),
    );
  } finally {
    db.close();
    await next.stop();
    rmSync(dir, { recursive: true });
  }
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
