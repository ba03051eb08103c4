import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../src/db/migrate.ts";
import { openDatabase } from "../src/db/open.ts";
import { ensureOwner } from "../src/db/owners.ts";
import { createCohesion, neighbourShare } from "../src/search/cohesion.ts";
import { dateFit, namedDate } from "../src/search/dates.ts";
import { excerpt } from "../src/search/excerpt.ts";
import { ensureLexical } from "../src/search/lexical-tables.ts";
import { countsOf } from "../src/search/lexical-counts.ts";
import { lexicalCandidates, lexicalScores, weigh } from "../src/search/lexical.ts";
import { createSight } from "../src/search/sight.ts";
import { rankKind } from "../src/search/rank.ts";
import { queryTerms } from "../src/search/tokens.ts";
import { asymmetry, episodeWeights, saturationFor } from "../src/search/weights.ts";

let dir: string;
let db: Database;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "recollect-ranking-"));
  db = openDatabase(join(dir, "recollect.db"));
  migrate(db, join(dir, "backups"));
  ensureLexical(db);
});
afterEach(() => {
  db.close();
  rmSync(dir, { recursive: true, force: true });
});

type Said = [user: string, reply: string];

function say(session: string, turns: Said[], owner = "a", at = Date.UTC(2024, 4, 1)): number[] {
  const ownerId = ensureOwner(db, owner);
  const { id } = db
    .query<{ id: number }, [number, string]>(
      "INSERT INTO sessions (owner_id, external_id, created_at, updated_at) VALUES (?, ?, 1, 1) RETURNING id",
    )
    .get(ownerId, session)!;
  return turns.map(
    ([user, reply], n) =>
      db
        .query<{ id: number }, [number, number, string, string, number, number]>(
          `INSERT INTO episodes (session_id, owner_id, user_message, ai_response, token_count, stored_at, created_at)
           VALUES (?, ?, ?, ?, 1, ?, ?) RETURNING id`,
        )
        .get(id, ownerId, user, reply, Date.now(), at + n * 1000)!.id,
  );
}

function rank(query: string, options: { fts5?: boolean; owner?: string; session?: string } = {}) {
  const owner = ensureOwner(db, options.owner ?? "a");
  return rankKind(
    {
      db,
      fts5: options.fts5 ?? true,
      words: null,
      vectors: null,
      topK: 20,
      rrfK: 60,
      cohesion: createCohesion(db),
    },
    { terms: queryTerms(owner, query), vector: null, date: namedDate(query) },
    {
      kind: "episode",
      predicate: { owner, session: options.session ?? null, retentionDays: 0, now: Date.now() },
      limit: 20,
      fusion: "scored",
      strategy: "hybrid",
    },
  );
}
const ids = (query: string, options = {}) => rank(query, options).candidates.map((one) => one.id);

describe("what is seen in the rows chooses the weights", () => {
  const long = "one could say a great many things about this matter and its history ".repeat(12);

  test("long answers to short questions: the user's words decide", () => {
    const asked = say(
      "s",
      Array.from({ length: 30 }, (_, n): Said => [`question number ${n} about topic${n % 7}`, long]),
    );
    const told = say("t", [["my parrot is called Bruno", "A fine name."]]);
    const answered = say("u", [["tell me something", `${long} parrot parrot parrot called names ${long}`]]);
    const shape = countsOf(db, "episode", ensureOwner(db, "a")).shape;
    expect(asymmetry(shape)).toBe(1);
    expect(episodeWeights(shape, "none", { near: 1, far: 1 })).toMatchObject({ said: 1, near: 0, far: 0 });
    const order = ids("what is my parrot called?");
    expect(order[0]).toBe(told[0]!);
    expect(order.indexOf(answered[0]!)).toBeGreaterThan(0);
    expect(asked).toHaveLength(30);
  });

  test("people talking, or one side alone: both sides count alike", () => {
    say(
      "s",
      Array.from({ length: 30 }, (_, n): Said => [
        `we went to place${n} and saw it`,
        `and then to street${n} with you`,
      ]),
    );
    expect(asymmetry(countsOf(db, "episode", ensureOwner(db, "a")).shape)).toBe(0);
    say(
      "s",
      Array.from({ length: 30 }, (_, n): Said => [`we went to place${n} and saw it`, ""]),
      "b",
    );
    expect(asymmetry(countsOf(db, "episode", ensureOwner(db, "b")).shape)).toBe(0);
  });

  test("neighbours count as far as neighbouring turns speak of the same things", () => {
    const topics = [
      "garden tulips",
      "engine piston",
      "violin strings",
      "harbour ferry",
      "bread oven",
      "winter skiing",
    ];
    const connected = topics.flatMap((topic, n) =>
      Array.from({ length: 20 }, (_, i): Said => [`word${n * 50 + i} ${topic} other${i * 7 + n}`, ""]),
    );
    say("s", connected);
    const scattered = connected.map((_, i) => connected[(i * 37) % connected.length]!);
    say("s", scattered, "b");
    const cohesion = createCohesion(db);
    const share = (owner: string) => neighbourShare(cohesion(ensureOwner(db, owner), 120));
    expect(share("a")).toEqual({ near: 1, far: 1 });
    expect(share("b").near).toBeLessThan(0.2);
  });

  test("short rows want little normalisation by length, long ones the textbook's", () => {
    expect(saturationFor(15)).toEqual({ k1: 0.8, b: 0.3 });
    const { k1, b } = saturationFor(400);
    expect([k1, b]).toEqual([expect.closeTo(1.2, 10), 0.75]);
  });
});

describe("conversations", () => {
  test("the turn that answers stands right behind the one that asks, though no word of it matches", () => {
    const talk: Said[] = Array.from({ length: 24 }, (_, n): Said => [
      `plain remark ${n} about item${n} and item${n + 1}`,
      "",
    ]);
    const turns = say("s", [
      ...talk.slice(0, 12),
      ["Which instrument does your daughter play?", ""],
      ["The bassoon, since last spring.", ""],
      ...talk.slice(12),
    ]);
    expect(ids("what instrument does the daughter play?").slice(0, 2)).toEqual([turns[12]!, turns[13]!]);
  });

  test("a session predicate and recall hold for neighbours too", () => {
    const one = say("s1", [
      ["the bassoon lesson", ""],
      ["is on Friday", ""],
    ]);
    const two = say("s2", [
      ["the bassoon concert", ""],
      ["is in June", ""],
    ]);
    expect(new Set(ids("bassoon", { session: "s1" }))).toEqual(new Set(one));
    db.query("UPDATE episodes SET recall = 0 WHERE id IN (?, ?)").run(two[1]!, one[0]!);
    expect(ids("bassoon")).toEqual([two[0]!]);
  });

  test("a date in the question finds what was said then", () => {
    const may = say("may", [["dinner at the lake", ""]], "a", Date.UTC(2023, 4, 8, 12));
    const june = say("june", [["dinner at the lake", ""]], "a", Date.UTC(2023, 5, 20, 12));
    expect(ids("what about dinner at the lake on 20 June 2023?")[0]).toBe(june[0]!);
    expect(ids("what about dinner at the lake in May 2023?")[0]).toBe(may[0]!);
    // No word of it matches; the day alone brings it.
    expect(ids("what happened on 8 May, 2023?")[0]).toBe(may[0]!);
  });
});

test.each([
  ["What did Ann do on 3 June, 2023?", { year: 2023, month: 5, day: 3 }],
  ["on May 5th", { year: null, month: 4, day: 5 }],
  ["What happened in May?", { year: null, month: 4, day: null }],
  ["Was habe ich im März 2024 gesagt?", { year: 2024, month: 2, day: null }],
  ["qu'ai-je dit le 1er mars 2022", { year: 2022, month: 2, day: 1 }],
  ["Mitä tein toukokuussa?", { year: null, month: 4, day: null }],
  ["我 2023年5月8日 做了什么", { year: 2023, month: 4, day: 8 }],
  ["meeting of 2023-05-08", { year: 2023, month: 4, day: 8 }],
  ["am 8.5.2023", { year: 2023, month: 4, day: 8 }],
  ["in 2022", { year: 2022, month: null, day: null }],
  ["May I ask?", null],
  ["we march on", null],
  ["version 2023.4 of it", null],
  ["room 1999a", null],
])("the date in %p", (text, date) => {
  expect(namedDate(text)).toEqual(date);
});

test("a date fits best on its day and fades over the days around it", () => {
  const date = namedDate("8 May 2023")!;
  const on = (day: number) => dateFit(date, Date.UTC(2023, 4, day, 12));
  expect(on(8)).toBe(1);
  expect(on(10)).toBeLessThan(1);
  expect(on(10)).toBeGreaterThan(on(20));
  expect(on(10)).toBeGreaterThan(on(6));
  expect(dateFit(date, Date.UTC(2024, 4, 8))).toBeLessThan(0.01);
});

describe("the lexical index", () => {
  test("BM25 is the textbook's, over the owner's own rows", () => {
    say("s", [
      ["red apple", ""],
      ["red red car", ""],
      ["green door", ""],
    ]);
    const owner = ensureOwner(db, "a");
    const tables = { db, fts5: true, words: null };
    const query = weigh(tables, "episode", owner, queryTerms(owner, "red apple"))!;
    const sight = createSight(db, "episode", { owner, session: null, retentionDays: 0, now: Date.now() });
    // What short rows are measured with.
    const [k1, b] = [0.8, 0.3];
    const found = lexicalCandidates(tables, query, sight, 10);
    const scores = lexicalScores(db, query, found);
    const mean = 7 / 3;
    // With few rows idf counts as if there were 200.
    const idf = (n: number) => Math.log(1 + (200 - n + 0.5) / (n + 0.5));
    const part = (n: number, tf: number, length: number) =>
      (idf(n) * tf * (k1 + 1)) / (tf + k1 * (1 - b + (b * length) / mean));
    const values = [...scores.values()].map((one) => one.whole).toSorted((x, y) => y - x);
    expect(values).toHaveLength(2);
    expect(values[0]).toBeCloseTo(part(2, 1, 2) + part(1, 1, 2), 10);
    expect(values[1]).toBeCloseTo(part(2, 2, 3), 10);
  });

  test("without FTS5 every row is read, with the same answer", () => {
    for (let n = 0; n < 60; n++)
      say(`s${n}`, [[`note ${n} on the ${["lamp", "boat", "hill"][n % 3]!} of ${n % 7}`, "well said"]]);
    const view = (fts5: boolean) =>
      rank("lamp of 3", { fts5 }).candidates.map(({ id, score, ftsRank }) => [id, score, ftsRank]);
    expect(view(true).length).toBeGreaterThan(3);
    expect(view(false)).toEqual(view(true));
  });

  test("a word in nearly every row neither hides nor slows the rare one; with common ones alone the newest rows are searched", () => {
    db.transaction(() => {
      for (let n = 0; n < 2500; n++)
        say(`s${n}`, [[`common daily entry ${n === 77 ? "pelican" : `x${n}`}`, ""]]);
    })();
    const owner = ensureOwner(db, "a");
    const tables = { db, fts5: true, words: null };
    const query = (text: string) => weigh(tables, "episode", owner, queryTerms(owner, text))!;
    expect(query("common daily pelican").search.map((term) => term.rows)).toEqual([1]);
    expect(rank("common daily pelican").candidates[0]!.ftsRank).toBe(1);
    expect(query("common daily entry").search).toHaveLength(2);
    expect(rank("common daily entry").candidates.length).toBeGreaterThan(0);
  });

  test("the index is whole after any change, and is made anew for another version of the tokens", () => {
    const [first] = say("s", [
      ["red apple", "indeed"],
      ["green door", ""],
    ]);
    db.query("UPDATE episodes SET user_message = 'blue apple' WHERE id = ?").run(first!);
    db.query("DELETE FROM episodes WHERE user_message = 'green door'").run();
    const check = () => db.run("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)");
    check();
    expect(ids("green")).toEqual([]);
    expect(ids("blue")).toEqual([first!]);
    const before = db.query("SELECT * FROM episodes_terms").all();
    db.run("UPDATE meta SET value = '0' WHERE name = 'lexical_version'");
    ensureLexical(db);
    check();
    expect(db.query("SELECT * FROM episodes_terms").all()).toEqual(before);
    expect(ids("blue")).toEqual([first!]);
  });
});

test("an excerpt is the run of sentences that holds the question's words", () => {
  const terms = queryTerms(1, "smoked herring");
  const filler = "The weather was fair. ".repeat(30);
  const text = `${filler}We ate smoked herring. It was salty. ${filler}`;
  const cut = excerpt(text, terms, 40);
  expect(cut).toContain("We ate smoked herring. It was salty.");
  expect(cut.startsWith("…") && cut.endsWith("…")).toBe(true);
  expect(cut.length).toBeLessThan(200);
  expect(excerpt("Short.", terms, 40)).toBe("Short.");
});
