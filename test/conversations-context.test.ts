import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { startApi, type Any, type ApiServer } from "./support/api-server.ts";

// Many rows on a shared machine take their time.
setDefaultTimeout(60_000);

let api: ApiServer;
let session: number;

beforeAll(async () => {
  api = await startApi();
  await api.management("PUT", "/api/settings/memory", { retentionDays: 0 });
  session = (await api.anna("POST", "/sessions", { externalId: "boat" })).json.id;
  const said = [
    ["The sailing boat Albatross lies in the harbour of Naantali.", "A good place for a boat."],
    ["The boat Albatross needs a new mainsail before June.", "Order the mainsail in April."],
    ["Remind me to oil the garden table.", "I will."],
  ];
  for (const [userMessage, aiResponse] of said) {
    await api.anna("POST", "/episodes?extract=false", { sessionId: session, userMessage, aiResponse });
  }
  await api.anna("POST", `/sessions/${session}/summaries`, {});
  const boat = (
    await api.anna("POST", "/entities", { name: "Albatross", type: "boat", notes: "a sloop from 1974" })
  ).json.id;
  const place = (await api.anna("POST", "/entities", { name: "Naantali", type: "place" })).json.id;
  await api.anna("POST", "/relationships", { fromId: boat, toId: place, label: "is moored in" });
  await api.anna("POST", "/api/memory", { content: "Owns the sailing boat Albatross", key: "boat" });
  await api.anna("POST", "/api/memory", { content: "Prefers rye bread", key: "bread", sessionId: "kitchen" });
  await api.bert("POST", "/api/memory", { content: "Wants to steal the boat Albatross" });
});
afterAll(() => api.stop());

const context = async (body: object, as = api.anna) => (await as("POST", "/context", body)).json;
const kindsOf = (answer: Any) => new Set(answer.data.map((row: Any) => row.kind));

describe("POST /context", () => {
  test("ranks memories, exchanges, entities with their links, and summaries together", async () => {
    const answer = await context({ query: "What about the boat Albatross?" });
    expect(kindsOf(answer)).toEqual(new Set(["memory", "episode", "entity", "summary"]));
    for (const row of answer.data) {
      expect(answer.text).toContain(row.text);
      expect(row.tokens).toBeGreaterThan(0);
    }
    const entity = answer.data.find((row: Any) => row.kind === "entity" && row.item.name === "Albatross");
    expect(entity.item.relationships).toMatchObject([
      { label: "is moored in", from: "Albatross", to: "Naantali" },
    ]);
    expect(entity.text).toContain("is moored in Naantali");
    const scores = answer.data.map((row: Any) => row.score);
    expect(scores).toEqual(scores.toSorted((a: number, b: number) => b - a));
    expect(answer.text).not.toContain("steal");
    expect(answer.text).not.toContain("rye bread");
    expect(answer.totalTokensUsed).toBeLessThanOrEqual(answer.budgetMaxTokens);
  });

  test("takes the kinds, the limit and the budget that are asked for", async () => {
    const only = await context({ query: "boat Albatross", kinds: ["episode"] });
    expect(kindsOf(only)).toEqual(new Set(["episode"]));
    expect((await context({ query: "boat Albatross", limit: 1 })).data).toHaveLength(1);
    const small = await context({ query: "boat Albatross", maxTokens: 60 });
    expect(small.totalTokensUsed).toBeLessThanOrEqual(60);
    expect(small.budgetMaxTokens).toBe(60);
  });

  test("keeps to a session when asked", async () => {
    const inside = await context({ query: "rye bread", externalId: "boat" });
    expect(JSON.stringify(inside.data)).not.toContain("rye");
    expect((await context({ query: "boat Albatross", sessionId: session })).data.length).toBeGreaterThan(1);
    expect((await api.bert("POST", "/context", { query: "boat", sessionId: session })).status).toBe(404);
  });

  test("a question about nothing here gets nothing", async () => {
    const answer = await context({ query: "quantum chromodynamics lattice" });
    expect(answer).toMatchObject({ data: [], text: "", totalTokensUsed: 0 });
  });

  test.each([
    [{}, "query"],
    [{ query: " " }, "query"],
    [{ query: "x", kinds: ["planet"] }, "kinds[0]"],
    [{ query: "x", kinds: [] }, "kinds"],
    [{ query: "x", limit: 101 }, "limit"],
    [{ query: "x", maxTokens: 0 }, "maxTokens"],
    [{ query: "x", colour: 1 }, "colour"],
  ])("bad input is 400 and names the field (%#)", async (body, field) => {
    const answer = await api.anna("POST", "/context", body);
    expect([answer.status, answer.json.error.details[0].field]).toEqual([400, field]);
  });

  test("management names the owner", async () => {
    expect((await api.management("POST", "/context", { query: "boat" })).status).toBe(400);
    const answer = await context({ query: "steal the boat Albatross", apiKeyId: "bert" }, api.management);
    expect(answer.data[0].text).toContain("steal");
  });

  test("of several summaries of a session the newest is given", async () => {
    await api.anna("POST", `/sessions/${session}/summaries`, { maxTokens: 40 });
    const newest = (await api.anna("POST", `/sessions/${session}/summaries`, {})).json.id;
    const answer = await context({ query: "boat Albatross in the harbour", kinds: ["summary"] });
    expect(answer.data.map((row: Any) => row.id)).toEqual([newest]);
  });

  test("a stale summary and a deleted exchange are not given", async () => {
    const made = await api.anna("POST", "/episodes?extract=false", {
      sessionId: session,
      userMessage: "The boat Albatross has a parrot called Kapteeni.",
      aiResponse: "",
    });
    expect(JSON.stringify(await context({ query: "parrot Kapteeni on the boat" }))).toContain("Kapteeni");
    await api.anna("POST", `/sessions/${session}/summaries`, {});
    await api.anna("DELETE", `/episodes/${made.json.id}`);
    expect(JSON.stringify(await context({ query: "parrot Kapteeni on the boat" }))).not.toContain("Kapteeni");
  });
});
