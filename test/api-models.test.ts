import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startApi, type ApiServer } from "./support/api-server.ts";
import { startHub, type Hub } from "./support/hub.ts";
import { testModels } from "./support/models.ts";

const models = testModels();

describe.skipIf(models === null)("/api/models", () => {
  let hub: Hub;
  let api: ApiServer;
  beforeAll(async () => {
    hub = await startHub(models!);
    api = await startApi({ env: { HF_ENDPOINT: hub.endpoint } });
  });
  afterAll(async () => {
    await api.stop();
    await hub.close();
  });

  const events = (text: string) =>
    text
      .split("\n\n")
      .filter((part) => part.startsWith("event: "))
      .map((part) => {
        const [, event, data] = /^event: (\w+)\ndata: (.*)$/.exec(part)!;
        return { event, data: JSON.parse(data!) };
      });

  test("downloads with progress, lists and removes", async () => {
    expect((await api.management("GET", "/api/models")).json.data).toMatchObject([
      { name: "static", state: "absent", dimensions: null },
      { name: "transformers", state: "absent" },
    ]);
    const pulled = await api.management("POST", "/api/models/static/pull");
    expect(pulled.headers.get("content-type")).toBe("text/event-stream");
    const seen = events(pulled.text);
    expect(seen.at(-1)).toMatchObject({ event: "done", data: { name: "static", state: "ready" } });
    expect(seen.slice(0, -1).every(({ event }) => event === "progress")).toBe(true);
    const [model] = (await api.management("GET", "/api/models")).json.data;
    expect(model.bytes).toBe(model.totalBytes);
    expect((await api.management("DELETE", "/api/models/static")).json).toEqual({ success: true });
    expect((await api.management("DELETE", "/api/models/static")).status).toBe(404);
  });

  test("says in an event why a download failed, and what is no model", async () => {
    hub.faults.damage = true;
    const [last] = events((await api.management("POST", "/api/models/static/pull")).text).slice(-1);
    hub.faults.damage = false;
    expect(last).toMatchObject({ event: "error", data: { message: expect.any(String) } });
    expect((await api.management("POST", "/api/models/gpt/pull")).status).toBe(404);
    expect((await api.anna("POST", "/api/models/static/pull")).status).toBe(403);
  });
});
