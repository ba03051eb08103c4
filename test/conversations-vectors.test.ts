import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { startAppliance, until, type Appliance } from "./support/appliance.ts";
import { STATIC_REPO, testModels } from "./support/models.ts";

// Many rows on a shared machine take their time.
setDefaultTimeout(60_000);

const models = testModels();

type Row = {
  id: number;
  tier: string;
  vecRank: number | null;
  vecScore: number | null;
  ftsRank: number | null;
};
type Body = { id: number; data: Row[]; total: number; working: boolean; resolution: Record<string, unknown> };

/** The whole appliance with its engine thread and a real embedding model. */
describe.skipIf(models === null)("with a model", () => {
  let appliance: Appliance;

  beforeAll(async () => {
    appliance = await startAppliance({
      env: { MEMORY_STATIC_CACHE_DIR: models!, MEMORY_STATIC_MODEL: STATIC_REPO },
    });
    await appliance.call("PUT", "/api/settings/memory", { embeddingSource: "static", retentionDays: 0 });
  });
  afterAll(() => appliance.stop());

  const call = async (method: string, path: string, body?: unknown) =>
    (await appliance.call(method, path, body, appliance.key)).body as Body;
  const search = (query: string, mode: string) =>
    call("GET", `/episodes/search?mode=${mode}&q=${encodeURIComponent(query)}`);

  test("exchanges, entities and summaries are found by meaning seconds after they were stored", async () => {
    const session = await call("POST", "/sessions", { externalId: "garden" });
    const episode = await call("POST", "/episodes", {
      sessionId: session.id,
      userMessage: "My physician prescribed pills against high blood pressure.",
      aiResponse: "Take them every morning.",
    });
    await call("POST", "/episodes", {
      sessionId: session.id,
      userMessage: "The car needs new tyres.",
      aiResponse: "",
    });
    await call("POST", "/entities", {
      name: "Doctor Sorsa",
      type: "person",
      notes: "cardiologist at the hospital",
    });
    await call("POST", `/sessions/${session.id}/summaries`, {});

    const found = await until("the vector of the exchange", async () => {
      const answer = await search("medicine from the doctor", "semantic");
      return answer.data[0]?.vecRank === 1 ? answer : null;
    });
    expect(found.data[0]).toMatchObject({ id: episode.id, tier: "vector", ftsRank: null });
    expect(found.data[0]!.vecScore).toBeGreaterThan(0.2);
    expect(found.resolution).toMatchObject({ embeddingSource: "static", fallbackReason: null });

    const hybrid = await search("what did the physician prescribe", "hybrid");
    expect(hybrid.data[0]).toMatchObject({ id: episode.id, ftsRank: 1, vecRank: 1 });
    expect(hybrid.data[0]!.tier).toStartWith("hybrid");
    const keyword = await search("what did the physician prescribe", "keyword");
    expect(keyword.data[0]).toMatchObject({ id: episode.id, tier: "fts5", vecRank: null });

    await until("the vector of the entity", async () => {
      const answer = await call("GET", "/entities/search?q=heart%20specialist%20in%20the%20clinic");
      return answer.data[0]?.vecRank === 1;
    });
  });

  test("a deleted exchange is not found by its meaning either", async () => {
    const session = await call("POST", "/sessions", { externalId: "gone" });
    const episode = await call("POST", "/episodes", {
      sessionId: session.id,
      userMessage: "Our kitten sleeps in the laundry basket.",
      aiResponse: "",
    });
    const best = async () => (await search("where does the young cat rest", "semantic")).data;
    await until("its vector", async () => (await best()).some((row) => row.id === episode.id));
    await call("DELETE", `/sessions/${session.id}`);
    expect((await best()).map((row) => row.id)).not.toContain(episode.id);
  });

  test("the health check goes through the vectors as well", async () => {
    expect(await call("GET", "/api/memory/health")).toMatchObject({ working: true });
  });
});
