// Tier 2 through the calls of a whole engine: enabling fills, recall uses it, its loss costs nothing.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { until } from "../support/appliance.ts";
import { openBox } from "../support/engine-box.ts";
import type { EngineBox } from "../support/engine-box.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { startTarget } from "../support/qdrant-target.ts";
import type { QdrantTarget } from "../support/qdrant-target.ts";

const models = testModels();
const run = test.skipIf(models === null);
let target: QdrantTarget;
let box: EngineBox;
let name: string;

beforeAll(async () => {
  target = await startTarget();
  name = target.name();
  if (models === null) return;
  box = openBox({ MEMORY_STATIC_CACHE_DIR: models, MEMORY_STATIC_MODEL: STATIC_REPO });
  await box.settings({ embeddingSource: "static" });
});
afterAll(async () => {
  await box?.stop();
  await target.stop();
});

const preview = async (query: string) => {
  const { results, resolution } = await box.engine.retrieval.retrieve({
    owner: "k1",
    query,
    mode: "interactive",
  });
  return { memories: results, resolution };
};
const add = async (content: string): Promise<string> =>
  (await box.engine.memories.create({ owner: "k1", origin: "api", content })).memory.id;
const countThere = async (): Promise<number> =>
  (
    await target.direct.call("search", (api, init) =>
      api.countPoints({ collection_name: name, exact: true }, init),
    )
  ).count;

run("enabling fills in what is there, and recall then comes from Qdrant", async () => {
  const tea = await add("Drinks oolong tea every morning");
  await add("Lives in Helsinki");
  await until("vectors", async () => (await preview("oolong tea")).memories[0]?.tier === "hybrid-scored");
  const { apiKey } = target;
  await box.engine.qdrant.write({
    patch: { enabled: true, host: target.url, collection: name, ...(apiKey === null ? {} : { apiKey }) },
  });
  const found = await until("Qdrant answers", async () => {
    const answer = await preview("oolong tea");
    return answer.resolution.vectorStore === "qdrant" && answer.resolution.fallbackReason === null
      ? answer
      : null;
  });
  expect(found.memories[0]).toMatchObject({ id: tea, tier: "hybrid-scored", vecRank: 1 });
  expect(await countThere()).toBe(2);
  expect(await box.engine.qdrant.health()).toMatchObject({
    ok: true,
    dimension: 256,
  });
});

run("exchanges and entities are mirrored under ids of this box", async () => {
  const { conversations, retrieval } = box.engine;
  await conversations.createSession({ owner: "k1", externalId: "chat-1" });
  const { episode } = await conversations.createEpisode({
    owner: "k1",
    externalId: "chat-1",
    userMessage: "Which mooring lines did we order for the sloop?",
    aiResponse: "Two of 14 mm polyester.",
    extract: false,
  });
  await conversations.upsertEntity({ owner: "k1", name: "Sloop", type: "boat" });
  const scroll = async (collection: string) =>
    (
      await target.direct.call("search", (api, init) =>
        api.scrollPoints(
          { collection_name: collection, limit: 10, with_payload: true, with_vector: true },
          init,
        ),
      )
    ).points;
  const point = await until("the exchange", async () => (await scroll(`${name}_episodes`))[0]);
  expect(point.payload).toMatchObject({
    kind: "episode",
    rowId: episode.id,
    apiKeyId: "k1",
    sessionId: "chat-1",
  });
  expect(Object.keys(point.vector ?? {}).toSorted()).toEqual(["text", "user"]);
  await until("the entity", async () => (await scroll(`${name}_entities`)).length === 1);
  const found = await until("Qdrant answers for exchanges", async () => {
    const answer = await retrieval.retrieve({
      owner: "k1",
      query: "mooring lines",
      kinds: ["episode"],
      mode: "interactive",
    });
    return answer.resolution.vectorStore === "qdrant" && answer.results[0]?.vecRank === 1 ? answer : null;
  });
  expect(found.results[0]?.id).toBe(String(episode.id));
  const searched = await conversations.searchEpisodes({
    owner: "k1",
    query: "mooring lines",
    limit: 5,
    mode: "semantic",
  });
  expect(searched).toMatchObject({
    data: [{ id: episode.id, tier: "qdrant" }],
    resolution: { vectorStore: "qdrant" },
  });
  const meant = await retrieval.retrieve({
    owner: "k1",
    query: "oolong tea",
    strategy: "semantic",
    mode: "interactive",
  });
  expect(meant.results[0]).toMatchObject({ kind: "memory", tier: "qdrant" });
  await conversations.deleteEpisode({ owner: "k1", id: episode.id });
  await until("it goes there too", async () => (await scroll(`${name}_episodes`)).length === 0);
});

run("rows that come to another owner are found under that one there", async () => {
  const { conversations, memories, owners } = box.engine;
  const { memory } = await memories.create({ owner: "k2", origin: "api", content: "Sails on Sundays" });
  await conversations.upsertEntity({ owner: "k2", name: "Ketch", type: "boat" });
  const ownersOf = async (collection: string) =>
    (
      await target.direct.call("search", (api, init) =>
        api.scrollPoints({ collection_name: collection, limit: 50, with_payload: true }, init),
      )
    ).points.map((p) => p.payload?.["apiKeyId"]);
  await until(
    "both points",
    async () => (await ownersOf(name)).includes("k2") && (await ownersOf(`${name}_entities`)).includes("k2"),
  );
  await owners.merge({ from: "k2", to: "k1" });
  await until(
    "both moved",
    async () =>
      !(await ownersOf(name)).includes("k2") && !(await ownersOf(`${name}_entities`)).includes("k2"),
  );
  await memories.remove({ owner: "k1", id: memory.id });
});

run(
  "when it is lost recall goes on from sqlite-vec and says so; afterwards everything is there",
  async () => {
    await target.proxy.kill();
    const during = await add("Plays the cello on Thursdays");
    const answer = await until("the vector made here", async () => {
      const one = await preview("cello");
      return one.memories[0]?.id === during && one.memories[0].vecRank === 1 ? one : null;
    });
    expect(answer.resolution).toMatchObject({
      vectorStore: "sqlite-vec",
      fallbackReason: expect.stringContaining("Qdrant"),
    });
    target.proxy.revive();
    // The breaker asks again every 15 s.
    await until("the outbox", async () => (await box.engine.qdrant.status()).pending === 0, 30_000);
    expect(await countThere()).toBe(3);
  },
  40_000,
);

run("deleting is proved there too", async () => {
  const id = await add("Collects stamps");
  const { proof } = await box.engine.memories.remove({ owner: "k1", id, proof: true });
  expect(proof).toMatchObject({ row: 0, fts: 0, vectors: 0, qdrant: "confirmed" });
});
