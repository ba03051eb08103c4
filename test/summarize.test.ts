import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig } from "../src/config.ts";
import { openEngine } from "../src/memory/engine.ts";
import { gist } from "../src/memory/summarize.ts";

const DAY = 86_400_000;
const silent = { debug() {}, info() {}, warn() {}, error() {} };
let dir: string;
let clock = Date.parse("2026-01-01T00:00:00Z");
let opened: ReturnType<typeof openEngine>;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "recollect-summarize-"));
  const config = resolveConfig({ flags: {}, env: { DATA_DIR: dir } }, {});
  opened = openEngine({ config, log: silent, leaseName: "test", now: () => clock });
});
afterAll(async () => {
  await opened.stop();
  rmSync(dir, { recursive: true, force: true });
});

const long =
  "The office moved to the harbour. It has two floors. The lease runs until 2031. Parking costs extra. The coffee is good.";

async function add(
  owner: string,
  content: string,
  more: { key?: string; pinned?: boolean; sessionId?: string } = {},
) {
  return (await opened.engine.memories.create({ owner, origin: "api", content, ...more })).memory;
}

const defaults = { mode: "age", olderThanDays: 30, maxTokens: 4000, dryRun: false } as const;

describe("summarize by age", () => {
  test("archives old memories into one summary of the owner, links them, and gives them back in one call", async () => {
    const { memories } = opened.engine;
    const old = await add("anna", long, { key: "office" });
    const other = await add("anna", "Prefers tea");
    const pinned = await add("anna", "Never forget the anniversary", { pinned: true });
    const theirs = await add("bert", "Prefers coffee");
    clock += 40 * DAY;
    const fresh = await add("anna", "Bought a bicycle");

    const dry = await memories.summarize({ owner: "anna", ...defaults, dryRun: true });
    expect(dry).toMatchObject({ candidateCount: 2, archivedCount: 0, summaryId: null, dryRun: true });
    expect(dry.candidates.map((one) => one.id).toSorted()).toEqual([old.id, other.id].toSorted());
    expect(dry.tokensSaved).toBeGreaterThan(0);
    expect((await memories.get({ owner: "anna", id: old.id })).status).toBe("active");

    const done = await memories.summarize({ owner: "anna", ...defaults });
    expect(done).toMatchObject({ candidateCount: 2, archivedCount: 2, dryRun: false });
    const summary = await memories.get({ owner: "anna", id: done.summaryId! });
    expect(summary).toMatchObject({ type: "semantic", origin: "summary", status: "active" });
    expect(summary.content.split("\n")).toEqual([
      "[factual] office: The office moved to the harbour. It has two floors. The lease runs until 2031.",
      "[factual] Prefers tea",
    ]);
    expect(await memories.get({ owner: "anna", id: old.id })).toMatchObject({
      status: "archived",
      supersededBy: summary.id,
      content: long,
    });
    for (const [owner, id] of [
      ["anna", pinned.id],
      ["anna", fresh.id],
      ["bert", theirs.id],
    ] as const) {
      expect((await memories.get({ owner, id })).status).toBe("active");
    }
    // Nothing is left to do, and later the summary is not summed up again.
    expect((await memories.summarize({ owner: "anna", ...defaults })).archivedCount).toBe(0);
    clock += 40 * DAY;
    expect((await memories.summarize({ owner: "anna", ...defaults, dryRun: true })).candidates).toMatchObject(
      [{ id: fresh.id }],
    );

    const back = await memories.restoreOriginals({ owner: "anna", id: summary.id });
    expect(back).toMatchObject({ restored: 2, held: [], memory: { status: "archived" } });
    expect(await memories.get({ owner: "anna", id: old.id })).toMatchObject({
      status: "active",
      supersededBy: null,
      content: long,
    });
    const foreign = memories.restoreOriginals({ owner: "bert", id: summary.id });
    expect(await foreign.catch((error: Error) => error.message)).toContain("no such");
  });

  test("an original whose key is taken by now stays archived and is named", async () => {
    const { memories } = opened.engine;
    const old = await add("carl", "The desk is by the window", { key: "desk" });
    clock += 40 * DAY;
    const { summaryId } = await memories.summarize({ owner: "carl", ...defaults });
    await add("carl", "The desk is by the door", { key: "desk" });
    expect(await memories.restoreOriginals({ owner: "carl", id: summaryId! })).toMatchObject({
      restored: 0,
      held: [old.id],
    });
  });

  test("without an owner it runs owner by owner", async () => {
    const { memories } = opened.engine;
    await add("dora", "Collects stamps");
    await add("emil", "Collects coins");
    clock += 40 * DAY;
    await memories.summarize({ owner: null, ...defaults });
    for (const [owner, mine, other] of [
      ["dora", "stamps", "coins"],
      ["emil", "coins", "stamps"],
    ] as const) {
      const list = await memories.list({ owner, status: "active", limit: 50, offset: 0 });
      const text = list.data.map((one) => one.content).join("\n");
      expect(text).toContain(mine);
      expect(text).not.toContain(other);
    }
  });
});

describe("summarize to a budget", () => {
  test("cuts what is older than the budget to three sentences and keeps the whole in history", async () => {
    const { memories } = opened.engine;
    const first = await add("gina", long);
    clock += 1000;
    const second = await add("gina", `Newest. ${long}`);
    const budget = {
      owner: "gina",
      mode: "budget",
      olderThanDays: 30,
      maxTokens: 40,
      dryRun: false,
    } as const;
    expect((await memories.summarize({ ...budget, dryRun: true })).candidates.map((one) => one.id)).toEqual([
      first.id,
    ]);
    const done = await memories.summarize(budget);
    expect(done).toMatchObject({ candidateCount: 1, archivedCount: 0, summaryId: null });
    expect(done.tokensSaved).toBeGreaterThan(0);
    expect((await memories.get({ owner: "gina", id: second.id })).content).toBe(`Newest. ${long}`);
    const cut = await memories.get({ owner: "gina", id: first.id });
    expect(cut.content).toBe(
      "The office moved to the harbour. It has two floors. The lease runs until 2031.",
    );
    expect(cut.confirmedAt).toBe(first.confirmedAt);
    const [before] = await memories.history({ owner: "gina", id: first.id });
    expect(before).toMatchObject({ content: long, cause: "summarize" });
    // A second run finds nothing more to cut.
    expect((await memories.summarize(budget)).candidateCount).toBe(0);
  });

  test("a session narrows it", async () => {
    const { memories } = opened.engine;
    const inside = await add("hugo", long, { sessionId: "s1" });
    const outside = await add("hugo", `Other. ${long}`, { sessionId: "s2" });
    await memories.summarize({ owner: "hugo", ...defaults, mode: "budget", maxTokens: 1, sessionId: "s1" });
    expect((await memories.get({ owner: "hugo", id: inside.id })).content).not.toBe(long);
    expect((await memories.get({ owner: "hugo", id: outside.id })).content).toBe(`Other. ${long}`);
  });
});

test.each([
  ["One. Two. Three. Four.", "One. Two. Three."],
  ["One. Two. Three.", "One. Two. Three."],
  ["No end", "No end"],
  ["Costs 3.8 euros. Dr. Who came. Third one! Fourth?", "Costs 3.8 euros. Dr. Who came. Third one!"],
  ["一。二。三。四。", "一。二。三。"],
])("gist of %s", (text, expected) => {
  expect(gist(text)).toBe(expected);
});
