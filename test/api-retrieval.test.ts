import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startApi, type ApiServer } from "./support/api-server.ts";
import { STATIC_REPO, testModels } from "./support/models.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
  for (const [key, content, pinned] of [
    ["a", "Keeps a zebra finch called Pip", false],
    ["b", "Drinks oolong in the evening", false],
    ["c", "Always answer in German", true],
  ] as const) {
    await api.anna("POST", "/api/memory", { key, content, pinned });
  }
});
afterAll(() => api.stop());

const preview = async (body: object) => (await api.anna("POST", "/api/memory/retrieve-preview", body)).json;
const contents = (rows: { content: string }[]) => rows.map(({ content }) => content);

describe("POST /api/memory/retrieve-preview", () => {
  test("gives what fits, standing memories, the exact text and how it was found", async () => {
    const found = await preview({ query: "zebra finch" });
    expect(contents(found.memories).toSorted()).toEqual([
      "Always answer in German",
      "Keeps a zebra finch called Pip",
    ]);
    expect(found.memories.find((row: { tier: string }) => row.tier === "fts5")).toMatchObject({
      type: "factual",
      key: "a",
      ftsRank: 1,
      vecRank: null,
      owner: "anna",
    });
    expect(found).toMatchObject({
      budgetMaxTokens: 2000,
      resolution: { strategyUsed: "keyword", rerankApplied: false },
    });
    expect(found.text).toStartWith("Memory context:");
    expect(found.text).toContain("zebra finch");
    expect(found.totalTokensUsed).toBeGreaterThan(0);
  });

  test("changes nothing, not even counters", async () => {
    const before = (await api.anna("GET", "/api/memory")).json.data;
    await preview({ query: "finch" });
    expect((await api.anna("GET", "/api/memory")).json.data).toEqual(before);
  });

  test("keeps to strategy, budget and limit, and takes exact for recent", async () => {
    const recent = await preview({ query: "finch", strategy: "exact" });
    expect(recent.resolution.strategyUsed).toBe("recent");
    expect(recent.memories).toHaveLength(3);
    expect(
      (await preview({ query: "finch", strategy: "recent", limit: 1 })).memories.length,
    ).toBeLessThanOrEqual(2);
    expect((await preview({ query: "finch", maxTokens: 30 })).totalTokensUsed).toBeLessThanOrEqual(30);
    for (const [field, value] of [
      ["query", undefined],
      ["maxTokens", 0],
      ["maxTokens", 16_001],
      ["limit", 101],
      ["strategy", "magic"],
      ["asOf", "yesterday"],
      ["colour", 1],
    ] as const) {
      expect([field, (await preview({ query: "x", [field]: value })).error.details[0].field]).toEqual([
        field,
        field,
      ]);
    }
  });

  test("needs an owner from management, and answers while memory is off", async () => {
    const answer = await api.management("POST", "/api/memory/retrieve-preview", { query: "finch" });
    expect(answer.json.error.param).toBe("apiKeyId");
    const named = await api.management("POST", "/api/memory/retrieve-preview", {
      query: "finch",
      apiKeyId: "anna",
    });
    expect(named.json.memories.length).toBeGreaterThan(0);
    expect((await api.management("GET", "/api/settings/memory")).json.enabled).toBe(false);
  });
});

test("engine-status says what works; to a key without hosts, texts and counts of others", async () => {
  const whole = (await api.management("GET", "/api/memory/engine-status")).json;
  expect(whole).toMatchObject({
    keyword: { available: true, backend: "FTS5", reason: null },
    embedding: { source: null, available: false },
    vectorStore: { backend: "none", available: false, rowCount: 3, needsReindex: 3, coverage: 0 },
    qdrant: { enabled: false, healthy: false },
    rerank: { enabled: false, available: false },
    jobs: { failed: 0 },
    backend: { primary: "sqlite", fallbacks: [] },
    quality: { extracted: 0, last7Days: { loops: 0 } },
  });
  expect(whole.vectorStore.reason).toContain("no embedding model");
  const other = (await api.bert("GET", "/api/memory/engine-status")).json;
  expect(other).toMatchObject({ vectorStore: { rowCount: 0, coverage: 1, reason: null }, quality: null });
  expect(other.embedding).toMatchObject({ reason: null, cacheStats: null });
});

test("health does a real round trip and leaves nothing behind", async () => {
  const { json } = await api.anna("GET", "/api/memory/health");
  expect(json).toMatchObject({ working: true, latencyMs: expect.any(Number) });
  expect((await api.anna("GET", "/api/memory/health")).json.checkedAt).toBe(json.checkedAt);
  const rows = api.db.query(
    "SELECT count(*) AS n FROM memories m JOIN owners o ON o.id = m.owner_id WHERE o.name LIKE '~%'",
  );
  expect(rows.get()).toEqual({ n: 0 });
});

test("reindex answers at once; force is management's; its events end when nothing can move", async () => {
  expect((await api.anna("POST", "/api/memory/reindex")).json).toEqual({ started: false, pending: 3 });
  expect((await api.bert("POST", "/api/memory/reindex")).json).toEqual({ started: false, pending: 0 });
  expect((await api.anna("POST", "/api/memory/reindex", { force: true })).status).toBe(403);
  expect((await api.management("POST", "/api/memory/reindex", { force: true })).status).toBe(200);
  const events = await api.anna("GET", "/api/memory/reindex/events");
  expect(events.text).toBe(
    'event: progress\ndata: {"done":0,"total":3}\n\nevent: done\ndata: {"done":0,"total":3}\n\n',
  );
});

test("embedding-providers names what could make vectors", async () => {
  const { json } = await api.anna("GET", "/api/memory/embedding-providers");
  expect(json.providers[0]).toMatchObject({
    provider: "local",
    hasKey: false,
    models: [{ id: "local/static", dimensions: null }, { id: "local/transformers" }],
  });
});

const models = testModels();
describe.skipIf(models === null)("with a model", () => {
  const env = { MEMORY_STATIC_CACHE_DIR: models ?? "", MEMORY_STATIC_MODEL: STATIC_REPO };

  test("reindex runs once at a time for an owner, and its events count up to the end", async () => {
    const box = await startApi({ env });
    await box.management("PUT", "/api/settings/memory", { embeddingSource: "static" });
    for (let n = 0; n < 20; n++)
      await box.anna("POST", "/api/memory", { content: `Row number ${n} of the garden` });
    expect((await box.anna("POST", "/api/memory/reindex")).json).toEqual({ started: true, pending: 20 });
    const second = await box.anna("POST", "/api/memory/reindex");
    expect([second.status, second.json.error.code]).toEqual([429, "busy"]);
    expect((await box.bert("POST", "/api/memory/reindex")).status).toBe(200);
    box.startJobs();
    const { text } = await box.anna("GET", "/api/memory/reindex/events");
    expect(text).toEndWith('event: done\ndata: {"done":20,"total":20}\n\n');
    const { vectorStore, embedding } = (await box.anna("GET", "/api/memory/engine-status")).json;
    expect(vectorStore).toMatchObject({ available: true, rowCount: 20, needsReindex: 0, coverage: 1 });
    expect(embedding).toMatchObject({ source: "static", available: true });
    expect((await box.anna("POST", "/api/memory/reindex")).json).toEqual({ started: false, pending: 0 });
    const found = await box.anna("POST", "/api/memory/retrieve-preview", { query: "row 7 in the garden" });
    expect(found.json.memories.some((row: { vecRank: number | null }) => row.vecRank !== null)).toBe(true);
    await box.stop();
  });
});
