import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { startApi, type ApiServer } from "./support/api-server.ts";
import { startUpstream, type MockUpstream } from "./support/upstream.ts";

let api: ApiServer;
const upstreams: MockUpstream[] = [];
beforeAll(async () => {
  api = await startApi();
});
afterEach(() => {
  for (const upstream of upstreams.splice(0)) upstream.close();
});
afterAll(() => api.stop());

async function upstream(options: Parameters<typeof startUpstream>[0] = {}) {
  const made = await startUpstream(options);
  upstreams.push(made);
  return made;
}

const KEY = "sk-upstream-secret-0123456789";

describe("/api/providers", () => {
  test("adds, shows without secrets, changes a part and removes", async () => {
    const made = await api.management("POST", "/api/providers", {
      id: "one",
      baseUrl: "http://127.0.0.1:11434/v1/",
      apiKey: KEY,
      headers: { "x-team": "a-very-secret-header-value" },
    });
    expect(made.status).toBe(201);
    expect(made.json.provider).toMatchObject({
      resolvedUrl: "http://127.0.0.1:11434/v1",
      apiKeyMasked: "sk-…6789",
      wire: ["chat"],
      default: true,
      enabled: true,
    });
    const list = await api.management("GET", "/api/providers");
    expect(list.text).not.toContain(KEY);
    expect(list.text).not.toContain("a-very-secret-header-value");
    const changed = await api.management("PUT", "/api/providers/one", {
      systemRole: "none",
      apiKey: "sk-…6789",
    });
    expect(changed.json.provider).toMatchObject({ systemRole: "none", apiKeyMasked: "sk-…6789" });
    expect(
      (await api.management("POST", "/api/providers", { id: "one", baseUrl: "http://x.example" })).status,
    ).toBe(409);
    await api.management("POST", "/api/providers", {
      id: "two",
      baseUrl: "http://x.example",
      fallbacks: ["one"],
    });
    expect((await api.management("DELETE", "/api/providers/one")).status).toBe(409);
    expect((await api.management("DELETE", "/api/providers/two")).json).toEqual({ success: true });
    expect((await api.management("DELETE", "/api/providers/one")).json).toEqual({ success: true });
    expect((await api.management("DELETE", "/api/providers/one")).status).toBe(404);
  });

  test("refuses addresses that nobody should call, and names every wrong field", async () => {
    for (const baseUrl of [
      "http://169.254.169.254/v1",
      "file:///etc/passwd",
      "http://a:b@c.example",
      "http://[fe80::1]",
    ]) {
      const answer = await api.management("POST", "/api/providers", { id: "bad", baseUrl });
      expect([baseUrl, answer.status, answer.json.error.code]).toEqual([baseUrl, 400, "url_refused"]);
    }
    const wrong = await api.management("POST", "/api/providers", {
      id: "Bad Id",
      baseUrl: 5,
      wire: ["smtp"],
      timeouts: { connectMs: 0 },
      headers: { host: "x" },
      colour: 1,
    });
    expect(wrong.json.error.details.map((detail: { field: string }) => detail.field).toSorted()).toEqual(
      ["baseUrl", "colour", "headers.host", "id", "timeouts.connectMs", "wire[0]"].toSorted(),
    );
    expect((await api.management("GET", "/api/providers")).json.total).toBe(0);
  });
});

describe("POST /api/providers/{id}/test", () => {
  async function tested(fields: object) {
    await api.management("POST", "/api/providers", { id: "t", ...fields });
    const answer = await api.management("POST", "/api/providers/t/test");
    await api.management("DELETE", "/api/providers/t");
    expect(answer.status).toBe(200);
    return answer.json;
  }

  test("makes one real call and names a model", async () => {
    const server = await upstream({ key: KEY, models: [{ id: "gpt-9" }] });
    expect(await tested({ baseUrl: server.url, apiKey: KEY })).toMatchObject({
      ok: true,
      model: "gpt-9",
    });
  });

  test("asks for one token where there is no list of models", async () => {
    const server = await upstream({ models: null });
    expect(await tested({ baseUrl: server.url, models: ["my-model"] })).toMatchObject({
      ok: true,
      model: "my-model",
    });
    expect(server.seen.at(-1)!.body).toMatchObject({ model: "my-model", max_tokens: 1 });
    expect((await tested({ baseUrl: server.url })).error).toContain("models");
  });

  test("says in a sentence what failed, without the key or the provider's words", async () => {
    const server = await upstream({ key: KEY });
    const refused = await tested({ baseUrl: server.url, apiKey: `${KEY}-wrong` });
    expect(refused).toMatchObject({ ok: false, error: "It refused the key (401)." });
    expect(await tested({ baseUrl: server.url })).toMatchObject({
      ok: false,
      error: "It wants a key (401); enter one.",
    });
    const gone = await tested({ baseUrl: "http://127.0.0.1:1" });
    expect(gone.ok).toBe(false);
    expect(gone.error).toBeString();
    expect((await api.management("POST", "/api/providers/nobody/test")).status).toBe(404);
  });
});
