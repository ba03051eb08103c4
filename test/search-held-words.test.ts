import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import type { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../src/db/migrate.ts";
import { openDatabase } from "../src/db/open.ts";
import { ensureOwner } from "../src/db/owners.ts";
import { createHeldWords, type HeldWords } from "../src/search/held-words.ts";
import { ensureLexical, registerFtsText } from "../src/search/lexical-tables.ts";
import { lexicalCandidates, lexicalScores, weigh, type LexicalSource } from "../src/search/lexical.ts";
import { createPlaces, type Place } from "../src/search/neighbours.ts";
import { visibleOf } from "../src/search/predicate.ts";
import { createSight } from "../src/search/sight.ts";
import { queryTerms } from "../src/search/tokens.ts";
import type { Predicate } from "../src/search/types.ts";

// Thousands of rows on a shared machine take their time.
setDefaultTimeout(60_000);

let dir: string;
let db: Database;
let held: HeldWords;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "recollect-held-"));
  db = openDatabase(join(dir, "recollect.db"));
  migrate(db, join(dir, "backups"));
  ensureLexical(db);
  held = createHeldWords(db);
});
afterEach(() => {
  db.close();
  rmSync(dir, { recursive: true, force: true });
});

let state = 7;
const random = (n: number) => {
  state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
  return Math.floor((state / 2 ** 31) * n);
};
const vocabulary =
  "apple basalt copper running quickly Häuser pferde naïve 東京都 snow x1 red green blue".split(" ");
const text = (most: number) =>
  Array.from({ length: random(most) }, () => vocabulary[random(vocabulary.length)]).join(" ");
const from = (words: HeldWords | null): LexicalSource => ({ db, fts5: true, words });

function session(owner: number, name = "s"): number {
  return db
    .query<{ id: number }, [number, string]>(
      `INSERT INTO sessions (owner_id, external_id, created_at, updated_at) VALUES (?, ?, 1, 1)
       ON CONFLICT DO UPDATE SET updated_at = 1 RETURNING id`,
    )
    .get(owner, name)!.id;
}

const DAY = 86_400_000;
let time = 0;

function say(on: Database, owner: number, user: string, reply: string): number {
  time = (time % 7) + 1;
  const id = session(owner, time > 4 ? "t" : "s");
  return on
    .query<{ id: number }, [number, number, string, string, number, number]>(
      `INSERT INTO episodes (session_id, owner_id, user_message, ai_response, token_count, stored_at, created_at)
       VALUES (?, ?, ?, ?, 1, ?, ?) RETURNING id`,
    )
    .get(id, owner, user, reply, time * DAY, time)!.id;
}

/** What memory says of a query must be what the tables say. */
function compare(owner: number, query: string, inMemory = true): void {
  const terms = queryTerms(owner, query);
  const sight = createSight(db, "episode", { owner, session: null, retentionDays: 0, now: Date.now() });
  const ours = weigh(from(held), "episode", owner, terms);
  const theirs = weigh(from(null), "episode", owner, terms);
  expect(ours === null).toBe(theirs === null);
  if (ours === null || theirs === null) return;
  expect(ours.held !== null).toBe(inMemory);
  expect(ours.terms).toEqual(theirs.terms);
  const all = db
    .query<[number], [number]>("SELECT id FROM episodes WHERE owner_id = ?")
    .values(owner)
    .map(([id]) => id as number);
  const scores = lexicalScores(db, ours, all);
  expect(scores).toEqual(lexicalScores(db, theirs, all));
  // FTS5 ranks by its own k1 and b.
  if (!inMemory) return;
  const { words } = ours.held!;
  const byId = (places: Place[]) => places.toSorted((a, b) => a.id - b.id);
  const [there, here] = [createPlaces(db, null), createPlaces(db, words)];
  const places = byId(there.of(all));
  expect(byId(here.of(all))).toEqual(places);
  expect(places.map(({ id }) => id)).toEqual([...words.slotOf.keys()].toSorted((a, b) => a - b));
  for (const place of places.slice(-3))
    expect(byId(here.around([place]))).toEqual(byId(there.around([place])));
  for (const predicate of predicates(owner))
    expect(createSight(db, "episode", predicate, words).of(everything())).toEqual(
      visibleOf(db, "episode", predicate, everything()),
    );
  const order = [...scores].toSorted((a, b) => b[1].whole - a[1].whole || b[0] - a[0]).slice(0, 10);
  const best = lexicalCandidates(from(held), ours, sight, 10);
  // Equal scores may come in any order where sums are rounded.
  expect(best.map((id) => scores.get(id)!.whole.toFixed(4))).toEqual(
    order.map(([, score]) => score.whole.toFixed(4)),
  );
  const said = lexicalCandidates(from(held), ours, sight, 1, "said")[0];
  const highest = Math.max(0, ...[...scores.values()].map((one) => one.said));
  expect((said === undefined ? 0 : scores.get(said)!.said).toFixed(4)).toBe(highest.toFixed(4));
}

/** Every exchange of every owner. */
function everything(): number[] {
  return (db.query("SELECT id FROM episodes").values() as [number][]).map(([id]) => id);
}

function predicates(owner: number): Predicate[] {
  const all: Predicate = { owner, session: null, retentionDays: 0, now: Date.now() };
  return [
    all,
    { ...all, session: "s" },
    { ...all, session: "nobody's" },
    { ...all, before: 3 },
    { ...all, session: "t", before: 5 },
    // Rows are stored at 1, two, three days and so on.
    { ...all, retentionDays: 1, now: 3 * DAY },
    { ...all, retentionDays: 2, session: "t", now: 6 * DAY },
  ];
}

test("what is held says what the tables say, whatever happens to the rows", () => {
  const [a, b] = [ensureOwner(db, "a"), ensureOwner(db, "b")];
  const ids: number[] = [];
  for (let step = 0; step < 700; step++) {
    const owner = random(4) === 0 ? b : a;
    const what = random(10);
    const id = ids[random(ids.length)];
    if (what < 5 || id === undefined) ids.push(say(db, owner, text(12), text(20)));
    else if (what < 7) db.query("UPDATE episodes SET user_message = ? WHERE id = ?").run(text(9), id);
    else if (what === 7) db.query("UPDATE episodes SET recall = 1 - recall WHERE id = ?").run(id);
    else if (what === 8) db.query("DELETE FROM episodes WHERE id = ?").run(id);
    else if (step % 50 === 9) db.run("UPDATE sessions SET pinned = 1 - pinned WHERE external_id = 's'");
    else {
      const undo = db.transaction(() => {
        db.query("UPDATE episodes SET ai_response = ? WHERE id = ?").run(text(9), id);
        say(db, owner, "snow", "never stored");
        db.query("DELETE FROM episodes WHERE id = ?").run(ids[0]!);
        throw new Error("undone");
      });
      expect(undo).toThrow("undone");
    }
    if (step % 5 === 0) compare(step % 2 === 0 ? a : b, text(6));
  }
});

test("what another connection writes is seen", () => {
  const owner = ensureOwner(db, "a");
  say(db, owner, "red apple", "yes");
  compare(owner, "red apple");
  const other = openDatabase(join(dir, "recollect.db"));
  try {
    registerFtsText(other);
    say(other, owner, "red snow", "no");
    // Not in memory at first: the counts disagree. Then read anew.
    compare(owner, "red snow", false);
    compare(owner, "red snow");
    other.run("DELETE FROM episodes WHERE user_message = 'red snow'");
    compare(owner, "red snow", false);
    compare(owner, "red snow");
  } finally {
    other.close();
  }
});

test("many rows are read in slices while the tables answer; what changes meanwhile is not lost", async () => {
  const owner = ensureOwner(db, "a");
  const ids = db.transaction(() => Array.from({ length: 2500 }, () => say(db, owner, text(8), text(8))))();
  compare(owner, "red apple", false);
  db.query("DELETE FROM episodes WHERE id = ?").run(ids[2]!);
  db.query("UPDATE episodes SET user_message = 'purple' WHERE id = ?").run(ids[3]!);
  db.query("UPDATE episodes SET user_message = 'purple' WHERE id = ?").run(ids[2400]!);
  say(db, owner, "purple apple", "");
  const terms = queryTerms(owner, "purple apple");
  while (weigh(from(held), "episode", owner, terms)!.held === null) await Bun.sleep(1);
  compare(owner, "purple apple");
  // More changes at once than are caught up with in one go.
  db.run("UPDATE episodes SET ai_response = ai_response || ' purple' WHERE id % 3 = 0");
  compare(owner, "purple apple", false);
  while (weigh(from(held), "episode", owner, terms)!.held === null) await Bun.sleep(1);
  for (let n = 0; n < 20; n++) compare(owner, text(6));
  // Rows that come one by one and go again: as many as make further segments and have the index made anew.
  for (let n = 0; n < 1500; n++) {
    const id = say(db, owner, text(8), "purple");
    if (n % 2 === 0) db.query("DELETE FROM episodes WHERE id = ?").run(id);
    weigh(from(held), "episode", owner, terms);
  }
  while (weigh(from(held), "episode", owner, terms)!.held === null) await Bun.sleep(1);
  compare(owner, "purple snow");
});

test("rows that may not be seen make room for others", () => {
  const owner = ensureOwner(db, "a");
  db.transaction(() => {
    for (let n = 0; n < 200; n++) say(db, owner, "red red red", "");
  })();
  const elsewhere = session(owner, "other");
  const mine = say(db, owner, "a red thing and many further words", "");
  db.query("UPDATE episodes SET session_id = ? WHERE id = ?").run(elsewhere, mine);
  const query = weigh(from(held), "episode", owner, queryTerms(owner, "red"))!;
  expect(query.held).not.toBeNull();
  const sight = createSight(db, "episode", { owner, session: "other", retentionDays: 0, now: Date.now() });
  expect(lexicalCandidates(from(held), query, sight, 5)).toEqual([mine]);
});

test("without FTS5 the user's words find candidates of their own", () => {
  const owner = ensureOwner(db, "a");
  const replied = say(db, owner, "something else", "red red red");
  const asked = say(db, owner, "a red thing", "and many further words that have no colour at all");
  const scan: LexicalSource = { db, fts5: false, words: null };
  const query = weigh(scan, "episode", owner, queryTerms(owner, "red"))!;
  const sight = createSight(db, "episode", { owner, session: null, retentionDays: 0, now: Date.now() });
  expect(lexicalCandidates(scan, query, sight, 5)).toEqual([replied, asked]);
  expect(lexicalCandidates(scan, query, sight, 5, "said")).toEqual([asked]);
});

test("words that most rows hold change neither which rows are best nor what they score", async () => {
  const owner = ensureOwner(db, "a");
  const words = Array.from({ length: 400 }, (_, n) => `w${n}x`);
  /** About as in speech: the n-th word comes up 1/n as often as the first. */
  const some = (most: number) =>
    Array.from(
      { length: 1 + random(most) },
      () => words[Math.floor(words.length ** (random(1000) / 1000)) - 1],
    ).join(" ");
  const ids = db.transaction(() => Array.from({ length: 3000 }, () => say(db, owner, some(9), some(30))))();
  const asked = (query: string) => weigh(from(held), "episode", owner, queryTerms(owner, query))!;
  while (asked("w1x").held === null) await Bun.sleep(1);
  const sight = createSight(db, "episode", { owner, session: null, retentionDays: 0, now: Date.now() });
  for (let n = 0; n < 200; n++) {
    const query = asked(some(8));
    const scores = lexicalScores(db, query, ids);
    for (const side of ["whole", "said"] as const) {
      const order = [...scores.values()].map((one) => one[side]).toSorted((a, b) => b - a);
      const best = lexicalCandidates(from(held), query, sight, 10, side);
      expect(best.map((id) => scores.get(id)![side].toFixed(3))).toEqual(
        order
          .slice(0, 10)
          .filter((score) => score > 0)
          .map((score) => score.toFixed(3)),
      );
    }
  }
});
