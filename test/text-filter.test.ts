/** The copy of texts that `q` and other filters are answered from: always the same result as reading the rows. */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  countMemories,
  listMemories,
  registerFold,
  type MemoryFilter,
  type Page,
} from "../src/db/memory-list.ts";
import { insertMemory, type NewMemory } from "../src/db/memories.ts";
import { migrate } from "../src/db/migrate.ts";
import { getMeta, setMeta } from "../src/db/meta.ts";
import { ensureOwner } from "../src/db/owners.ts";
import { openDatabase, transact } from "../src/db/open.ts";
import { memoryOrigins, memoryStatuses, memoryTypes } from "../src/memory/types.ts";
import { registerFtsText } from "../src/search/lexical-tables.ts";
import { fillTexts, wantsFilling } from "../src/search/texts/fill.ts";
import { createTextFinder } from "../src/search/texts/find.ts";
import { clearTexts, ensureTexts } from "../src/search/texts/tables.ts";
import { until } from "./support/appliance.ts";
import { startTestEngine } from "./support/engine.ts";

const owners = ["anna", "bert", "carl"];

function open() {
  const db = new Database(":memory:", { strict: true });
  db.run("PRAGMA foreign_keys = ON");
  migrate(db, null);
  registerFold(db);
  ensureTexts(db);
  for (const owner of owners) ensureOwner(db, owner);
  return db;
}

let clock = 1_700_000_000_000;
function add(db: Database, ownerId: number, more: Partial<NewMemory> & { content: string }): number {
  const at = more.createdAt ?? clock++;
  return insertMemory(db, {
    id: crypto.randomUUID(),
    ownerId,
    sessionId: null,
    type: "factual",
    key: null,
    metadata: {},
    origin: "api",
    status: "active",
    pinned: false,
    standing: false,
    byHand: false,
    episodeId: null,
    tokens: more.content.length,
    createdAt: at,
    updatedAt: at,
    confirmedAt: at,
    expiresAt: null,
    ...more,
  });
}

const fill = (db: Database) => {
  for (const _step of fillTexts(db));
};

/** What reading the rows gives. */
function plain(db: Database, filter: MemoryFilter, page: Page) {
  return { counts: countMemories(db, filter), seqs: listMemories(db, filter, page).map((row) => row.seq) };
}

const pieces = [
  "the ",
  "The",
  "HARBOUR",
  "Ö",
  "o\u0308",
  "Straße",
  "STRASSE",
  "ﬁn",
  "é",
  "e\u0301",
  "ı",
  "İ",
  "I\u0307",
  "K", // Kelvin sign
  "ſ",
  "%",
  "_",
  "\\",
  '"',
  "*",
  "'",
  "’",
  "=\u0338",
  "😀",
  "👩‍👩‍👧",
  "東京",
  "京都に住む",
  "서울",
  "ﾊﾝｶｸ",
  "ハ\u3099",
  "Ｆｕｌｌ",
  "\u200b",
  "\u00ad",
  "مرحبا",
  "ไทย",
  "й",
  "ά",
  "\n",
  " ",
  "12",
  "a".repeat(900),
];
const words = fc
  .array(fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: "grapheme", maxLength: 4 })), {
    maxLength: 9,
  })
  .map((parts) => parts.join("").toWellFormed().replaceAll("\0", ""));
const content = words.map((text) => text || "x");

const number = fc.nat(1000);
const acts = {
  add: 8,
  edit: 4,
  status: 1,
  type: 1,
  owner: 2,
  pin: 1,
  delete: 2,
  deleteMany: 1,
  fill: 3,
  ask: 8,
} as const;
const step = fc.record({
  act: fc.oneof(
    ...(Object.keys(acts) as (keyof typeof acts)[]).map((act) => ({
      weight: acts[act],
      arbitrary: fc.constant(act),
    })),
  ),
  which: number,
  n: number,
  cut: number,
  content,
  other: fc.option(words),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A part of a stored text, or a text of its own. */
function questionOf(db: Database, { other, cut, which, n }: Step): string {
  const texts = db
    .query<{ content: string; key: string | null }, []>("SELECT content, key FROM memories")
    .all();
  const text = texts[which % Math.max(1, texts.length)];
  if (text === undefined || n % 3 === 0) return other ?? "";
  const source = Array.from((n % 5 === 0 ? text.key : null) ?? text.content);
  const from = cut % Math.max(1, source.length);
  return source.slice(from, from + 1 + (n % 6)).join("");
}

describe("whatever is stored, changed, moved and deleted", () => {
  test("the copy gives the rows, the counts and the page that the rows give", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) => {
        const db = open();
        const { find } = createTextFinder(db, { fewRows: -1 });
        let asked = 0;
        for (const [at, one] of steps.entries()) {
          const seqs = db.query<{ seq: number }, []>("SELECT seq FROM memories ORDER BY seq").all();
          const seq = seqs[one.which % Math.max(1, seqs.length)]?.seq ?? 0;
          const set = (sql: string, ...values: (string | number | null)[]) =>
            db.query(`UPDATE OR IGNORE memories SET ${sql} WHERE seq = ?`).run(...values, seq);
          if (one.act === "add") {
            const of = { type: memoryTypes[one.n % 4]!, origin: memoryOrigins[one.n % 6]! };
            // The same time for some, and some older than those before.
            const createdAt = clock - (one.n % 4) * 1000;
            clock += one.n % 3;
            const key = one.other === null ? null : `${one.other} ${at}`;
            add(db, 1 + (one.n % 3), { ...of, content: one.content, key, createdAt });
          } else if (one.act === "edit")
            set("content = ?, updated_at = ?", one.content, clock - (one.n % 4) * 500);
          else if (one.act === "status") set("status = ?", memoryStatuses[one.n % 4]!);
          else if (one.act === "type") set("type = ?, tokens = ?", memoryTypes[one.n % 4]!, one.n);
          else if (one.act === "owner") set("owner_id = ?", 1 + (one.n % 3));
          else if (one.act === "pin") set("pinned = ?", one.n % 2);
          else if (one.act === "delete") db.query("DELETE FROM memories WHERE seq = ?").run(seq);
          else if (one.act === "deleteMany")
            db.query("DELETE FROM memories WHERE seq % 5 = ? AND seq > ?").run(one.n % 5, seq);
          else if (one.act === "fill") {
            const steps = fillTexts(db);
            for (let n = one.n % 4; n >= 0 && steps.next().done !== true; n--);
          } else {
            const q = questionOf(db, one);
            const filter: MemoryFilter = {
              ownerId: one.n % 4 === 0 ? null : 1 + (one.n % 3),
              ...(one.n % 2 === 0 ? { status: "active" } : {}),
              ...(one.n % 7 === 0 ? { type: memoryTypes[one.n % 4] } : {}),
              ...(one.n % 11 === 0 ? { origin: memoryOrigins[one.n % 6] } : {}),
              ...(one.n % 13 === 0 ? { pinned: true } : {}),
              ...(one.n % 17 === 0 ? { olderThan: clock - 2000 } : {}),
              q,
            };
            const order = one.n % 5 === 0 ? "asc" : "desc";
            const sort = one.cut % 3 === 0 ? "updatedAt" : "createdAt";
            const page = { limit: 1 + (one.n % 7), offset: one.cut % 9, sort, order } as const;
            const found = find(filter, page);
            // Before anything is in a block the rows themselves are asked.
            if (found === null) continue;
            asked++;
            expect({ counts: found.counts, seqs: found.seqs }).toEqual(plain(db, filter, page));
          }
        }
        db.close();
        return asked >= 0;
      }),
      { numRuns: 150 },
    );
  }, 120_000);

  test("texts of every length and script are found by each of their parts", () => {
    const db = open();
    for (let n = 0; n < 400; n++)
      add(db, 1, { content: `${pieces[n % pieces.length]}${n} and more`, key: `k:${n}` });
    add(db, 1, { content: `begin ${"ü".repeat(20_000)} end` });
    fill(db);
    expect(db.query("SELECT count(*) AS n FROM memory_texts WHERE stamp > 0").get()).toEqual({ n: 2 });
    const { find } = createTextFinder(db);
    for (const q of [
      "",
      "\u200b",
      "morek:",
      "k:7é",
      ...pieces,
      ...pieces.map((piece) => `${piece}1`),
      "京",
      "京都",
      "u".repeat(999),
    ]) {
      const filter: MemoryFilter = { ownerId: 1, q };
      const page = { limit: 50, offset: 3, sort: "createdAt", order: "desc" } as const;
      const found = createTextFinder(db, { fewRows: 0 }).find(filter, page)!;
      expect([q, found.counts, found.seqs]).toEqual([q, ...Object.values(plain(db, filter, page))] as never);
    }
    // An owner with few rows has them read.
    expect(find({ ownerId: 1, q: "京" }, "all")).toBeNull();
    db.close();
  });
});

test("a page of every status is the page of all rows in the order of creation", () => {
  const db = open();
  for (let n = 0; n < 200; n++)
    add(db, 1 + (n % 2), {
      content: `note ${n}`,
      status: memoryStatuses[(n * 7) % 4]!,
      type: memoryTypes[n % 3]!,
      createdAt: clock - (n % 20) * 100,
    });
  for (const order of ["asc", "desc"] as const) {
    for (const [ownerId, offset, more] of [
      [null, 0, {}],
      [1, 7, {}],
      [2, 90, { type: "factual" }],
      [null, 60, { type: "semantic" }],
    ] as const) {
      const filter: MemoryFilter = { ownerId, ...more };
      const rows = listMemories(db, filter, { limit: 25, offset, sort: "createdAt", order });
      const all = db
        .query<{ seq: number }, (string | number | null)[]>(
          `SELECT seq FROM memories WHERE (?1 IS NULL OR owner_id = ?1) AND (?2 IS NULL OR type = ?2)
           ORDER BY created_at ${order}, seq ${order}`,
        )
        .all(ownerId, filter.type ?? null);
      expect(rows.map((row) => row.seq)).toEqual(all.slice(offset, offset + 25).map((row) => row.seq));
    }
  }
  db.close();
});

describe("the copy follows the rows", () => {
  test("new rows wait, then fill the last block; changed ones are put in place; deleted ones empty theirs at once", () => {
    const db = open();
    const seqs = Array.from({ length: 1100 }, (_, n) => add(db, 1 + (n % 2), { content: `note ${n} tea` }));
    expect(wantsFilling(db)).toBe("now");
    fill(db);
    expect(wantsFilling(db)).toBeNull();
    const texts = () =>
      db
        .query<{ owner_id: number; text: Uint8Array | null }, []>(
          "SELECT owner_id, text FROM memory_texts ORDER BY owner_id, first",
        )
        .all();
    const held = (text: string) => texts().some((block) => Buffer.from(block.text ?? []).includes(text));
    expect(held("note 7 ")).toBe(true);

    db.query("UPDATE memories SET content = 'coffee' WHERE seq = ?").run(seqs[7]!);
    const { find } = createTextFinder(db, { fewRows: 0 });
    expect(find({ ownerId: 2, q: "coffee" }, "all")?.seqs).toEqual([seqs[7]!]);
    expect(find({ ownerId: 2, q: "note 7 " }, "all")?.seqs).toEqual([]);
    expect(wantsFilling(db)).toBe("later");
    for (const _step of fillTexts(db, "changes"));
    expect(wantsFilling(db)).toBeNull();
    expect(held("note 7 ")).toBe(false);
    expect(held("coffee")).toBe(true);

    const before = texts().filter((block) => block.text === null).length;
    db.query("DELETE FROM memories WHERE seq = ?").run(seqs[7]!);
    expect(held("coffee")).toBe(false);
    expect(texts().filter((block) => block.text === null).length).toBe(before + 1);
    expect(find({ ownerId: 2, q: "note 9 " }, "all")?.counts.total).toBe(1);
    fill(db);
    expect(texts().every((block) => block.text !== null)).toBe(true);

    add(db, 1, { content: "later" });
    expect(find({ ownerId: 1, q: "later" }, "all")?.counts.total).toBe(1);
    const blocks = texts().length;
    fill(db);
    expect(texts().length).toBe(blocks);
    expect(held("later")).toBe(true);

    // Moving everything from one owner to the other leaves no block of the first.
    db.run("UPDATE memories SET owner_id = 1 WHERE owner_id = 2");
    expect(find({ ownerId: 1, q: "note" }, "all")?.counts.total).toBe(1099);
    fill(db);
    expect(texts().every((block) => block.owner_id === 1)).toBe(true);
    expect(find({ ownerId: 1, q: "note" }, "all")?.counts.total).toBe(1099);
    db.run("DELETE FROM memories");
    fill(db);
    expect(texts()).toEqual([]);
    db.close();
  });

  test("a version of another program, or a cleared copy, is made anew", () => {
    const db = open();
    for (let n = 0; n < 600; n++) add(db, 1, { content: `note ${n}` });
    fill(db);
    const blocks = () => db.query<{ n: number }, []>("SELECT count(*) AS n FROM memory_texts").get()!.n;
    const { find } = createTextFinder(db);
    expect(blocks()).toBe(1);
    ensureTexts(db);
    expect(blocks()).toBe(1);
    setMeta(db, "texts_version", "0 unicode 1");
    ensureTexts(db);
    expect(blocks()).toBe(0);
    fill(db);
    expect(find({ ownerId: 1, q: "note 59" }, "all")?.counts.total).toBe(11);
    clearTexts(db);
    expect([blocks(), getMeta(db, "texts_sealed")]).toEqual([0, 0]);
    fill(db);
    expect(find({ ownerId: 1, q: "note 59" }, "all")?.counts.total).toBe(11);
    db.close();
  });

  test("a damaged block is not believed", () => {
    const db = open();
    for (let n = 0; n < 600; n++) add(db, 1, { content: `note ${n}` });
    fill(db);
    const reported: number[] = [];
    const { find } = createTextFinder(db, { damaged: () => reported.push(1) });
    db.run("UPDATE memory_texts SET text = substr(text, 1, 100), stamp = 7");
    expect(find({ ownerId: 1, q: "note 59" }, "all")).toBeNull();
    db.run("UPDATE memory_texts SET columns = substr(columns, 1, 100), stamp = 8");
    expect(find({ ownerId: 1, q: "note 59" }, "all")).toBeNull();
    expect(reported.length).toBe(2);
    db.close();
  });

  test("a filling that ends in the middle goes on where it was", () => {
    const db = open();
    transact(db, () => {
      for (let n = 0; n < 3000; n++) add(db, 1 + (n % 3), { content: `note ${n} of many` });
    });
    const { find } = createTextFinder(db);
    for (let rounds = 0; wantsFilling(db) !== null; rounds++) {
      expect(rounds).toBeLessThan(10);
      // One transaction, and the process is gone.
      fillTexts(db).next();
      const found = find({ ownerId: null, q: "of many" }, "all");
      if (found !== null) expect(found.counts.total).toBe(3000);
    }
    fill(db);
    expect(find({ ownerId: null, q: "of many" }, "all")?.counts.total).toBe(3000);
    db.close();
  });
});

describe("in the engine", () => {
  const box = startTestEngine();
  const { memories } = box.engine;
  registerFold(box.db);
  const owner = "anna";
  const lines = Array.from({ length: 3000 }, (_, n) =>
    JSON.stringify({
      kind: "memory",
      content: `Note ${n} about ${["tea", "harbours", "violins"][n % 3]}`,
      key: `note:${n}`,
    }),
  );
  afterAll(() => box.stop());

  test("lists, their pages and their statistics come from the copy, and no statement reads all rows", async () => {
    const bytes = new TextEncoder().encode(lines.join("\n"));
    ensureOwner(box.db, owner);
    const { id } = await box.engine.data.importBegin({ owner });
    await box.engine.data.importLines({ id, owner, bytes, firstLine: 1, tooLong: [] });
    await box.engine.data.importEnd({ id });
    const asked = { owner, status: "active", q: "HARBOUR", limit: 20, offset: 40 } as const;
    const before = await memories.list(asked);
    expect(before.total).toBe(1000);
    fill(box.db);
    const statements = spyOn(Database.prototype, "query");
    for (const more of [
      {},
      { owner: null },
      { order: "asc" },
      { type: "factual" },
      { sort: "updatedAt" },
      { sort: "lastAccessedAt" },
      { sort: "updatedAt", q: "", owner: null },
      { q: "gh" },
      { q: "É" },
      { q: "É", status: undefined },
      { q: "", owner: null, status: undefined },
      { q: "", owner: null, type: "factual", offset: 2900 },
      { q: "", owner: null, sessionId: "none" },
    ] as const) {
      const { stats, data } = await memories.list({ ...asked, ...more } as Parameters<
        typeof memories.list
      >[0]);
      const total = "sessionId" in more ? 0 : "q" in more ? { gh: 0, É: 3000, "": 3000 }[more.q] : 1000;
      expect([more, stats.total, data.length]).toEqual([more, total, total === 0 ? 0 : 20]);
    }
    const used = [...new Set(statements.mock.calls.map(([sql]) => sql))];
    statements.mockRestore();
    expect(await memories.list(asked)).toEqual(before);
    expect(used.some((sql) => sql.includes("memory_texts"))).toBe(true);
    for (const sql of used.filter((sql) => sql.includes("FROM memories m"))) {
      const explain = box.db.prepare<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`);
      const plan = explain.all();
      explain.finalize();
      expect([sql, plan.map((line) => line.detail).filter((line) => /^SCAN m\b/.test(line))]).toEqual([
        sql,
        [],
      ]);
    }
  });

  test("a bulk deletion by `q` takes the matches alone, and nothing of them is in the file", async () => {
    await memories.create({ owner, origin: "api", content: "Pinned harbours stay", pinned: true });
    const selection = { q: "harbours" };
    expect(await memories.bulkDelete({ owner, selection, dryRun: true })).toMatchObject({ matched: 1000 });
    expect(await memories.bulkDelete({ owner, selection, dryRun: false, limit: 300 })).toMatchObject({
      deleted: 300,
    });
    expect(await memories.bulkDelete({ owner, selection, dryRun: false })).toMatchObject({ deleted: 700 });
    expect((await memories.list({ owner, q: "harbours", limit: 5, offset: 0 })).total).toBe(1);
    fill(box.db);
    expect((await memories.list({ owner, q: "harbours", limit: 5, offset: 0 })).total).toBe(1);
    expect((await memories.list({ owner, q: "about", limit: 5, offset: 0 })).total).toBe(2000);
    box.db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const file = readFileSync(join(box.dataDir, "recollect.db")).toString("latin1").toLowerCase();
    expect(file).not.toContain("about harbours");
  });

  test("a memory deleted for good is not left in a block, before the block is filled again", async () => {
    const [one] = (await memories.list({ owner, q: "note 6 about", limit: 1, offset: 0 })).data;
    const { memory } = await memories.update({
      owner,
      id: one!.id,
      patch: { content: "Secretly loves zithers" },
    });
    fill(box.db);
    await memories.update({ owner, id: memory.id, patch: { content: "Loves something else" } });
    await memories.remove({ owner, id: memory.id });
    box.db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const file = readFileSync(join(box.dataDir, "recollect.db")).toString("latin1").toLowerCase();
    expect(file).not.toContain("zithers");
  });

  test("another process may write meanwhile, even one that knows nothing of the copy", async () => {
    const other = openDatabase(join(box.dataDir, "recollect.db"));
    for (const trigger of ["insert", "update", "delete"]) other.run(`DROP TRIGGER memories_terms_${trigger}`);
    expect((await memories.list({ owner, q: "note 30 about", limit: 5, offset: 0 })).total).toBe(1);
    other.run("UPDATE memories SET content = 'Changed elsewhere' WHERE content LIKE 'Note 30 about%'");
    other.run("DELETE FROM memories WHERE content LIKE 'Note 33 about%'");
    other.close();
    for (const [q, total] of [
      ["note 30 about", 0],
      ["note 33 about", 0],
      ["changed elsewhere", 1],
    ] as const) {
      expect([q, (await memories.list({ owner, q, limit: 5, offset: 0 })).total]).toEqual([q, total]);
    }
  });
});

test("a folder without the copy opens at once and gets it behind; `reindex --force` makes it anew", async () => {
  const first = startTestEngine();
  const owner = ensureOwner(first.db, "anna");
  for (const trigger of ["update", "delete"]) first.db.run(`DROP TRIGGER memory_texts_${trigger}`);
  for (const table of ["memory_texts", "memory_texts_loose"]) first.db.run(`DROP TABLE ${table}`);
  first.db.run("DELETE FROM meta WHERE name LIKE 'texts_%'");
  registerFtsText(first.db);
  transact(first.db, () => {
    for (let n = 0; n < 1100; n++) add(first.db, owner, { content: `note ${n} of an old folder` });
  });
  await first.stop({ keep: true });

  const box = startTestEngine({ dataDir: first.dataDir });
  const total = async () =>
    (await box.engine.memories.list({ owner: "anna", q: "OLD folder", limit: 1, offset: 0 })).total;
  const stamps = () =>
    box.db
      .query<{ stamp: number }, []>("SELECT stamp FROM memory_texts")
      .all()
      .map(({ stamp }) => stamp);
  try {
    expect([await total(), stamps()]).toEqual([1100, []]);
    box.start();
    await until("the copy", async () => stamps().length > 0);
    expect(await total()).toBe(1100);
    const before = stamps();
    await box.engine.index.start({ force: true });
    await until(
      "another copy",
      async () => stamps().length > 0 && !stamps().some((one) => before.includes(one)),
    );
    expect(await total()).toBe(1100);
  } finally {
    await box.stop();
  }
}, 20_000);

test("a process that is killed while it writes and fills leaves a copy that tells the truth", async () => {
  const box = startTestEngine();
  await box.stop({ keep: true });
  const file = join(box.dataDir, "recollect.db");
  const script = `
    const { openDatabase, transact } = await import(${JSON.stringify(join(import.meta.dir, "../src/db/open.ts"))});
    const { fillTexts } = await import(${JSON.stringify(join(import.meta.dir, "../src/search/texts/fill.ts"))});
    const db = openDatabase(${JSON.stringify(file)});
    for (const trigger of ["insert", "update", "delete"]) db.run("DROP TRIGGER IF EXISTS memories_terms_" + trigger);
    db.run("INSERT OR IGNORE INTO owners (name) VALUES ('anna')");
    for (let n = 0; ; n++) {
      transact(db, () => {
        for (let i = 0; i < 100; i++)
          db.query("INSERT INTO memories (id, owner_id, type, content, origin, tokens, created_at, updated_at, confirmed_at) VALUES (?, 1, 'factual', ?, 'api', 5, ?, 1, 1)")
            .run(crypto.randomUUID(), "note " + n + " and " + i, n);
        db.query("UPDATE memories SET content = content || ' changed' WHERE seq % 37 = ?").run(n % 37);
        db.query("DELETE FROM memories WHERE seq % 41 = ?").run(n % 41);
      });
      for (const _ of fillTexts(db)) process.stdout.write(".");
    }`;
  try {
    for (const dots of [1, 6, 13]) {
      const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
      let seen = 0;
      for await (const chunk of child.stdout) if ((seen += chunk.length) >= dots) break;
      child.kill("SIGKILL");
      await child.exited;
      const db = openDatabase(file);
      registerFold(db);
      const { find } = createTextFinder(db, { fewRows: 0 });
      for (const q of ["note 1", "changed", "7"]) {
        const found = find({ ownerId: 1, q }, "counts");
        expect([q, found?.counts]).toEqual([q, countMemories(db, { ownerId: 1, q })]);
      }
      expect(db.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
      db.close();
    }
  } finally {
    rmSync(box.dataDir, { recursive: true, force: true });
  }
}, 30_000);
