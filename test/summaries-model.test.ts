import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startApi, type ApiServer } from "./support/api-server.ts";
import { startUpstream, type MockUpstream, type Plan } from "./support/upstream.ts";

let api: ApiServer;
let upstream: MockUpstream;
let plan: Plan | string;
/** What happens while the model writes. */
let meanwhile: (() => Promise<unknown>) | null = null;
let session: number;

beforeAll(async () => {
  upstream = await startUpstream({
    async reply() {
      await meanwhile?.();
      meanwhile = null;
      return plan;
    },
  });
  api = await startApi();
  const added = await api.management("POST", "/api/providers", { id: "box", baseUrl: upstream.url });
  expect(added.status).toBe(201);
  await api.management("PUT", "/api/settings/memory", { extractionModel: "box/scribe" });
  session = (await api.anna("POST", "/sessions", { externalId: "plan" })).json.id;
  for (const userMessage of [
    "The kitchen will be painted in lime green by Friday.",
    "The painter charges 300 euros for the kitchen.",
    "We agreed that the ceiling of the kitchen stays white.",
  ]) {
    const body = { sessionId: session, userMessage, aiResponse: "Understood." };
    await api.anna("POST", "/episodes?extract=false", body);
  }
});
afterAll(async () => {
  await api.stop();
  upstream.close();
});

const sumUp = () => api.anna("POST", `/sessions/${session}/summaries`, {});

describe("summaries by extractionModel", () => {
  test("the model's words are taken, free of secrets; it is asked with the text as data", async () => {
    plan = "The kitchen becomes lime green for 300 euros. Password: hunter2secret9";
    const made = await sumUp();
    expect(made.status).toBe(201);
    expect(made.json.text).toContain("becomes lime green");
    expect(made.json.text).not.toContain("hunter2secret9");
    const asked = upstream.seen.at(-1)!;
    expect(asked.refused).toBeNull();
    expect(asked.body).toMatchObject({ model: "scribe", messages: [{ role: "system" }, { role: "user" }] });
    expect(JSON.stringify(asked.body)).toContain("ceiling of the kitchen stays white");
  });

  test("an exchange that is deleted while the model writes is in no summary", async () => {
    const body = { sessionId: session, userMessage: "The hatch leads to the violet cellar.", aiResponse: "" };
    const { id } = (await api.anna("POST", "/episodes?extract=false", body)).json;
    plan = "The kitchen becomes lime green.";
    meanwhile = () => api.anna("DELETE", `/episodes/${id}`);
    const before = upstream.seen.length;
    const made = await sumUp();
    expect([made.status, made.json.stale, made.json.lastEpisodeId < id]).toEqual([201, false, true]);
    const asked = upstream.seen
      .slice(before)
      .map((one) => JSON.stringify(one.body).includes("violet cellar"));
    expect(asked).toEqual([true, false]);
  });

  test.each<[string, Plan | string]>([
    ["is down", { status: 500, body: { error: { message: "no" } } }],
    ["answers nothing", ""],
    ["answers nonsense", { status: 200, body: { hello: 1 } }],
  ])("when it %s, the session's own sentences are taken", async (_, answer) => {
    plan = answer;
    const made = await sumUp();
    expect(made.status).toBe(201);
    expect(made.json.text).toContain("User: ");
  });

  test("beyond the tokens of the day it is not asked", async () => {
    await api.management("PUT", "/api/settings/memory", { extractionDailyTokens: 10 });
    const before = upstream.seen.length;
    expect((await sumUp()).json.text).toContain("User: ");
    expect(upstream.seen.length).toBe(before);
    await api.management("PUT", "/api/settings/memory", { extractionDailyTokens: 200_000 });
  });

  test("memories that are compacted get its wording as well, and keep the whole in history", async () => {
    plan = "Short wording.";
    const long =
      "The garden has a pond. It is deep. Frogs live there. Herons come in spring. The net is blue.";
    const { id } = (await api.anna("POST", "/api/memory", { content: long })).json;
    const body = { mode: "budget", maxTokens: 0 };
    expect((await api.anna("POST", "/api/memory/summarize", body)).json.candidateCount).toBe(1);
    expect((await api.anna("GET", `/api/memory/${id}`)).json.memory.content).toBe("Short wording.");
    expect((await api.anna("GET", `/api/memory/${id}/history`)).text).toContain("Herons come in spring");
  });
});
