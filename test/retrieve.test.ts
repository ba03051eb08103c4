import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { writeMemorySettings } from "../src/db/settings-write.ts";
import { estimateTokens } from "../src/memory/budget.ts";
import type { MemorySettingsPatch } from "../src/memory/settings.ts";
import type { RetrieveInput } from "../src/memory/types.ts";
import { until } from "./support/appliance.ts";
import { startTestEngine, type TestEngine } from "./support/engine.ts";
import { STATIC_REPO, testModels } from "./support/models.ts";

const DAY = 86_400_000;
const models = testModels();
const withModel =
  models === null ? {} : { MEMORY_STATIC_MODEL: STATIC_REPO, MEMORY_STATIC_CACHE_DIR: models };

let box: TestEngine;
beforeEach(() => {
  box = startTestEngine({ settings: { enabled: true }, env: withModel });
});
afterEach(() => box.stop());

const add = async (content: string, more: object = {}, owner = "a") =>
  (await box.engine.memories.create({ owner, origin: "api", content, ...more })).memory;
const find = (query: string | null, more: Partial<RetrieveInput> = {}) =>
  box.engine.retrieval.retrieve({ owner: "a", query, mode: "interactive", ...more });
const texts = async (query: string | null, more: Partial<RetrieveInput> = {}) =>
  (await find(query, more)).results.map((row) => (row.kind === "memory" ? row.item.content : row.text));
const set = (patch: MemorySettingsPatch) => void writeMemorySettings(box.db, patch);
/** Makes and waits for vectors of everything stored so far. */
async function embed(): Promise<void> {
  set({ embeddingSource: "static" });
  box.start();
  await until("vectors", async () => {
    const { pending, current } = await box.engine.index.progress();
    return pending === 0 && current > 0;
  });
}

describe("words", () => {
  test("finds by inflected words of the language a memory is in", async () => {
    await add("Prefers dark roasted coffee in the mornings");
    await add("Ich arbeite mit Datenbanken in Leipzig");
    await add("Asuu Tampereella ja pitää pyöräilystä");
    expect(await texts("which coffees are roasted dark?")).toEqual([
      "Prefers dark roasted coffee in the mornings",
    ]);
    expect(await texts("Welche Datenbank nutze ich?")).toEqual(["Ich arbeite mit Datenbanken in Leipzig"]);
    expect(await texts("pyöräily Tampere")).toEqual(["Asuu Tampereella ja pitää pyöräilystä"]);
  });

  test.each([
    ["喜欢喝乌龙茶", "乌龙"],
    ["毎朝コーヒーを飲みます", "コーヒー"],
    ["ชอบกินข้าวผัดกับกุ้ง", "ข้าวผัด"],
    ["Предпочитает чёрный чай", "черный чай"],
    ["Προτιμά ελληνικό καφέ", "ελληνικο"],
    ["Uses C++ and C# at work", "C++"],
    ["يحب القهوة التركية", "القهوة"],
  ])("finds %p by %p", async (content, query) => {
    await add("Walks the dog at noon");
    await add(content);
    expect(await texts(query)).toEqual([content]);
  });

  test("a key is searched in words, metadata is not", async () => {
    await add("Yes, every Friday", { key: "pattern:team_retrospective", metadata: { category: "zeppelin" } });
    expect(await texts("when is the retrospective of the team?")).toEqual(["Yes, every Friday"]);
    expect(await texts("zeppelin")).toEqual([]);
  });

  test.each(['" OR 1', "a* NEAR(b, 2)", "text : x", "(((", "-- '; DROP TABLE memories", "^x + y - z", "\0"])(
    "%p is only words",
    async (query) => {
      await add("Keeps bees on the roof");
      expect((await find(query)).resolution.strategyUsed).toBeString();
      expect(await texts("bees roof")).toEqual(["Keeps bees on the roof"]);
    },
  );

  test("what other owners store changes neither order nor scores", async () => {
    for (let i = 0; i < 40; i++)
      await add(`Note ${i} about ${i % 3 === 0 ? "gardens" : "harbours"} and lamps`);
    await add("The garden gate has a blue lamp");
    const ask = async () =>
      (await find("blue lamp of the garden gate", { limit: 10 })).results.map(({ id, score, ftsScore }) => ({
        id,
        score,
        ftsScore,
      }));
    const before = await ask();
    for (let i = 0; i < 300; i++)
      await add("A blue lamp at a garden gate, lamp, lamp", {}, `other-${i % 20}`);
    expect(before.length).toBeGreaterThan(0);
    expect(await ask()).toEqual(before);
  });

  test("counting an access writes no index row", async () => {
    await add("Plays the cello on Sundays");
    const state = () =>
      JSON.stringify([
        box.db.query("SELECT id, hex(block) FROM memories_fts_data ORDER BY id").all(),
        box.db.query("SELECT * FROM memories_terms").all(),
        box.db.query("SELECT * FROM vec_pending").all(),
      ]);
    const before = state();
    expect(await texts("cello")).toHaveLength(1);
    await until("the access is counted", () => {
      const row = box.db.query<{ n: number }, []>("SELECT access_count AS n FROM memories").get();
      return row!.n === 1;
    });
    expect(state()).toBe(before);
  });
});

describe("the base predicate holds in every channel", () => {
  const strategies = ["recent", "semantic", "hybrid"] as const;

  test.each(strategies)("%s: expiry, retention, pin, status and session", async (strategy) => {
    await add("The harbour opens at six", { expiresAt: new Date(Date.now() + DAY).toISOString() });
    await add("The harbour closes at nine", { sessionId: "s1" });
    await add("The harbour master is called Ines", { sessionId: "s2" });
    const gone = await add("The harbour has a crane");
    await box.engine.memories.update({ owner: "a", id: gone.id, patch: { status: "archived" } });
    await add("The harbour of others", {}, "b");
    if (models !== null && strategy !== "recent") await embed();
    const all = async (more: Partial<RetrieveInput> = {}) =>
      (
        await texts("what about the harbour: opens, closes, master, crane?", { strategy, ...more })
      ).toSorted();
    expect(await all()).toEqual([
      "The harbour closes at nine",
      "The harbour master is called Ines",
      "The harbour opens at six",
    ]);
    expect(await all({ scope: "session", sessionId: "s1" })).toEqual([
      "The harbour closes at nine",
      "The harbour opens at six",
    ]);
    box.clock.offset = 2 * DAY;
    expect(await all()).toEqual(["The harbour closes at nine", "The harbour master is called Ines"]);
    box.clock.offset = 31 * DAY;
    expect(await all()).toEqual([]);
  });

  test("an owner's nearest are found however many nearer ones others have", async () => {
    if (models === null) return;
    for (let i = 0; i < 120; i++) await add(`Drinks green tea number ${i} in the morning`, {}, "b");
    await add("Likes some tea in the mornings");
    await embed();
    expect(await texts("green tea in the morning", { strategy: "semantic" })).toEqual([
      "Likes some tea in the mornings",
    ]);
    expect(await texts("green tea in the morning", { strategy: "semantic", owner: "c" })).toEqual([]);
  });

  test("the shared pool is read only when the scope is global and the key may", async () => {
    await add("The office wifi is called meadow", {}, "shared");
    expect(await texts("what is the office wifi called?")).toEqual([]);
    expect(await texts("what is the office wifi called?", { scope: "global" })).toEqual([]);
    const { results } = await find("what is the office wifi called?", { scope: "global", sharedPool: true });
    expect(results.map((row) => row.owner)).toEqual(["shared"]);
  });
});

describe("standing memories and the floor", () => {
  test("nothing relevant: only standing memories, newest first, within a quarter of the budget", async () => {
    await add("Grows tomatoes on the balcony");
    await add("Always answer in German", {
      key: "instruction:german",
      metadata: { category: "instruction" },
    });
    await add("Is called Ada", { key: "identity:name" });
    await add("Has a pinned note about ferries", { pinned: true });
    const { results, dropped } = await find("What is the boiling point of tungsten?");
    expect(results.map((row) => [row.text.slice(15), row.tier, row.score])).toEqual([
      ["Has a pinned note about ferries", "standing", null],
      ["Is called Ada", "standing", null],
      ["Always answer in German", "standing", null],
    ]);
    expect(dropped).toEqual([]);
    const small = await find("What is the boiling point of tungsten?", { maxTokens: 100 });
    expect(small.results.length).toBeLessThan(3);
    expect(small.totalTokensUsed).toBeLessThanOrEqual(100);
  });

  test("no query left: standing ones in the proxy, the newest elsewhere", async () => {
    await add("Likes old maps");
    await add("Is called Ada", { key: "identity:name" });
    expect(await texts("  ", { mode: "proxy" })).toEqual(["Is called Ada"]);
    expect(await texts(null, { mode: "proxy" })).toEqual(["Is called Ada"]);
    expect((await texts(null)).toSorted()).toEqual(["Is called Ada", "Likes old maps"]);
    expect((await find("?!")).resolution.strategyUsed).toBe("recent");
  });

  test("a result says why it stands where it does, a dropped one why it is not there", async () => {
    if (models === null) return;
    for (let i = 0; i < 30; i++) await add(`Remark ${i}: the ${["tide", "wind", "moss"][i % 3]} was low`);
    await add("Sails a wooden boat called Petrel");
    await embed();
    const { results, dropped, resolution } = await find("what is my wooden boat called?");
    expect(results[0]).toMatchObject({ tier: "hybrid-scored", ftsRank: 1, vecRank: 1, kind: "memory" });
    expect(results[0]!.ftsScore).toBeGreaterThan(0);
    expect(results[0]!.vecScore).toBeGreaterThan(0.3);
    expect(results[0]!.tokens).toBe(estimateTokens(results[0]!.text));
    expect(dropped.every((one) => one.reason.length > 0)).toBe(true);
    expect(dropped.some((one) => one.reason === "below the relevance floor")).toBe(true);
    expect(dropped.every((one) => one.id.length === 36)).toBe(true);
    expect(resolution).toMatchObject({
      embeddingSource: "static",
      vectorStore: "sqlite-vec",
      strategyUsed: "hybrid",
      rerankApplied: false,
      fallbackReason: null,
    });
    const rrf = await find("what is my wooden boat called?", { strategy: "hybrid" });
    expect(rrf.results[0]!.id).toBe(results[0]!.id);
  });

  test("rrf is Σ 1/(k + rank) over both channels, divided by the best possible", async () => {
    if (models === null) return;
    set({ fusion: "rrf" });
    await add("Sails a wooden boat called Petrel");
    await add("Painted the boat shed");
    await embed();
    const { results } = await find("wooden boat Petrel");
    for (const row of results) {
      let sum = 0;
      for (const rank of [row.ftsRank, row.vecRank]) if (rank !== null) sum += 1 / (60 + rank);
      expect(row.tier).toBe("hybrid-rrf");
      expect(row.score).toBeCloseTo(sum / (2 / 61), 10);
    }
    expect(results[0]).toMatchObject({ ftsRank: 1, vecRank: 1, score: 1 });
  });
});

describe("budget", () => {
  test("what does not fit is skipped, smaller ones after it are taken, the whole stays within the budget", async () => {
    await add(`The violin lesson: ${"violin lesson scales and arpeggios, slowly and in tune. ".repeat(60)}`);
    await add("Violin lesson on Tuesday at five");
    const found = await find("violin lesson", { maxTokens: 120 });
    expect(found.results.map((row) => row.text.slice(15))).toEqual(["Violin lesson on Tuesday at five"]);
    expect(found.totalTokensUsed).toBeLessThanOrEqual(120);
    expect(estimateTokens(found.text)).toBe(found.totalTokensUsed);
    expect(found.dropped.map((one) => one.reason)).toContain("does not fit into the budget");
  });

  test("one oversized memory is cut at a sentence, never given whole", async () => {
    await add(`The violin lesson is long. ${"It goes on with scales and arpeggios. ".repeat(100)}`);
    const found = await find("violin lesson", { maxTokens: 120 });
    expect(found.results).toHaveLength(1);
    expect(found.results[0]!.text).toEndWith(".");
    expect(found.totalTokensUsed).toBeLessThanOrEqual(120);
  });

  test("a budget of 0 gives nothing", async () => {
    await add("Is called Ada", { key: "identity:name" });
    expect(await find("Ada", { maxTokens: 0 })).toMatchObject({ results: [], text: "", totalTokensUsed: 0 });
  });

  test("near-duplicates become the newest of them; what was given is not given again", async () => {
    await add("Waters the plants on Monday");
    box.clock.offset = 60_000;
    const newer = await add("waters the plants, on Monday");
    await add("Waters the plants on Tuesday");
    const found = await find("when are the plants watered?");
    expect(found.results.map((row) => row.text.slice(15)).toSorted()).toEqual([
      "Waters the plants on Tuesday",
      "waters the plants, on Monday",
    ]);
    const again = await find("when are the plants watered?", { exclude: [newer.id] });
    expect(again.results.map((row) => row.text.slice(15))).toEqual(["Waters the plants on Tuesday"]);
  });
});

describe("the past and the deleted", () => {
  test("asOf answers with what was valid then", async () => {
    const first = Date.now();
    await add("Lives in Turku", { key: "identity:home" });
    const past = new Date(first + 1000).toISOString();
    box.clock.offset = 5000;
    await add("Lives in Oulu", { key: "identity:home" });
    expect(await texts("where do I live? home")).toEqual(["Lives in Oulu"]);
    expect(await texts("where do I live? home", { asOf: past })).toEqual(["Lives in Turku"]);
    expect(await texts("home", { asOf: new Date(first - 1000).toISOString() })).toEqual([]);
  });

  test("after a deletion no byte of it is left in the closed files", async () => {
    const secret = "xylophonequartz";
    const memory = await add(`The codeword of the club is ${secret}`);
    await add("The club meets on Thursdays");
    if (models !== null) await embed();
    expect(await texts("codeword of the club")).toHaveLength(2);
    await box.engine.memories.remove({ owner: "a", id: memory.id, source: false });
    const { dataDir } = box;
    await box.stop({ keep: true });
    const stem = secret.slice(0, 13);
    for (const file of ["recollect.db", "recollect.db-wal"]) {
      let bytes: Buffer;
      try {
        bytes = readFileSync(join(dataDir, file));
      } catch {
        continue;
      }
      expect(bytes.includes(stem)).toBe(false);
    }
    box = startTestEngine({ dataDir, env: withModel });
  });
});

describe("exchanges", () => {
  const say = async (externalId: string, lines: [string, string][], owner = "a") => {
    const session = await box.engine.conversations.createSession({ owner, externalId });
    for (const [userMessage, aiResponse] of lines)
      await box.engine.conversations.createEpisode({
        owner,
        sessionId: session.session.id,
        userMessage,
        aiResponse,
        extract: false,
      });
  };

  test("compete with memories unless the setting says no; their own memory takes their place", async () => {
    await say("s1", [["My sister Vilma keeps llamas in Lapland", "How lovely!"]]);
    const [episode] = box.db.query<{ id: number }, []>("SELECT id FROM episodes").all();
    expect((await find("who keeps llamas in Lapland?")).results.map((row) => row.kind)).toEqual(["episode"]);
    await add("Vilma keeps llamas in Lapland", { key: "identity:sister" });
    box.db.query("UPDATE memories SET episode_id = ?").run(episode!.id);
    const found = await find("who keeps llamas in Lapland?");
    expect(found.results.map((row) => row.kind)).toEqual(["memory"]);
    expect(found.dropped.map((one) => one.reason)).toContain("its memory is chosen already");
    expect((await find("llamas in Lapland", { type: "procedural" })).results).toEqual([]);
    set({ injectEpisodes: false });
    expect((await find("llamas in Lapland")).results.map((row) => row.kind)).toEqual(["memory"]);
  });

  test("a standing memory does not take the place of the rest of what was said with it", async () => {
    await say("s1", [["My name is Tove and I have a dog called Ziggy", "Hello Tove!"]]);
    const [episode] = box.db.query<{ id: number }, []>("SELECT id FROM episodes").all();
    await add("Name is Tove", { key: "identity:name", metadata: { category: "identity", slot: "name" } });
    box.db.query("UPDATE memories SET episode_id = ?").run(episode!.id);
    expect((await find("what is my dog's name?")).results.map((row) => row.kind)).toEqual([
      "memory",
      "episode",
    ]);
  });

  test("the turns beside a match come up with it, and a long reply is shown where it fits the question", async () => {
    const filler = "There are many things to say about weather in general. ".repeat(80);
    await say("s1", [
      ["We are planning the midsummer party", "Nice."],
      ["Bring the smoked herring", `${filler}The smoked herring goes well with rye. ${filler}`],
      ["And the accordion", "Of course."],
    ]);
    await say("s2", [["My bicycle has a flat tyre", "Oh no."]]);
    const { results } = await find("who brings smoked herring?");
    const first = results[0]!;
    expect(first.text).toContain("Bring the smoked herring");
    expect(first.text).toContain("The smoked herring goes well with rye.");
    expect(first.tokens).toBeLessThan(600);
    expect(results.map((row) => row.text).join()).not.toContain("bicycle");
  });
});
