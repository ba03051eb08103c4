import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startApi, type ApiServer } from "./support/api-server.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

describe("/api/keys", () => {
  test("shows a secret once, and a prefix ever after", async () => {
    const made = await api.management("POST", "/api/keys", { name: "Laptop", requestsPerMinute: 5 });
    expect(made.status).toBe(201);
    const { secret, key } = made.json;
    expect(secret).toMatch(/^rk-[\w-]{43}$/);
    expect(key).toMatchObject({ name: "Laptop", prefix: `${secret.slice(0, 7)}…`, requestsPerMinute: 5 });
    const list = await api.management("GET", "/api/keys");
    expect(list.json.data).toContainEqual(key);
    expect(list.text).not.toContain(secret);
  });

  test("rotates, changes and revokes at once", async () => {
    const { secret, key } = (await api.management("POST", "/api/keys", { name: "Old", id: "phone" })).json;
    expect((await api.as(secret)("GET", "/api/memory")).status).toBe(200);
    const rotated = (await api.management("POST", `/api/keys/${key.id}/rotate`)).json;
    expect((await api.as(secret)("GET", "/api/memory")).status).toBe(401);
    expect((await api.as(rotated.secret)("GET", "/api/memory")).status).toBe(200);
    await api.management("PATCH", "/api/keys/phone", { scopes: ["write:memory"] });
    expect((await api.as(rotated.secret)("GET", "/api/memory")).json.error.code).toBe("insufficient_scope");
    await api.management("PATCH", "/api/keys/phone", {
      scopes: ["read:memory"],
      expiresAt: "2020-01-01T00:00:00Z",
    });
    expect((await api.as(rotated.secret)("GET", "/api/memory")).status).toBe(401);
    expect((await api.management("DELETE", "/api/keys/phone")).json).toEqual({ success: true });
    expect((await api.management("DELETE", "/api/keys/phone")).status).toBe(404);
    expect((await api.management("POST", "/api/keys", { name: "New", id: "phone" })).status).toBe(409);
  });

  test("a revoked key leaves its rows, or takes them with it, and those of the people behind it", async () => {
    const made = (
      await api.management("POST", "/api/keys", { name: "Gone", id: "gone", userHeader: "x-user" })
    ).json;
    const as = (person: string) => (path: string, body: object) =>
      api.send(made.secret, "POST", path, {
        body: JSON.stringify(body),
        headers: { "content-type": "application/json", "x-user": person },
      });
    for (const person of ["eve", "dan"]) {
      await as(person)("/api/memory", { content: `Of ${person}`, pinned: true });
      const session = (await as(person)("/sessions", { externalId: "s" })).json;
      await as(person)("/episodes", { sessionId: session.id, userMessage: "hi", aiResponse: "ho" });
      await as(person)("/entities", { name: "Tom", type: "cat" });
    }
    const total = async (path: string, owner: string) =>
      (await api.management("GET", `${path}?apiKeyId=gone:${owner}`)).json.total;
    expect((await api.management("DELETE", "/api/keys/gone")).status).toBe(200);
    expect([await total("/api/memory", "eve"), await total("/sessions", "dan")]).toEqual([1, 1]);
    expect((await api.management("DELETE", "/api/keys/gone?memories=true")).status).toBe(200);
    for (const path of ["/api/memory", "/sessions", "/entities"]) {
      expect([path, await total(path, "eve"), await total(path, "dan")]).toEqual([path, 0, 0]);
    }
  });

  test("names every wrong field", async () => {
    const bad = await api.management("POST", "/api/keys", {
      id: "a:b",
      scopes: ["admin"],
      expiresAt: "soon",
      memory: "maybe",
      maxTokens: 16_001,
      models: "gpt",
      requestsPerMinute: 0,
      userHeader: "x y",
      secret: "mine",
    });
    const fields = bad.json.error.details.map((detail: { field: string }) => detail.field).toSorted();
    expect(fields).toEqual(
      [
        "expiresAt",
        "id",
        "maxTokens",
        "memory",
        "models",
        "name",
        "requestsPerMinute",
        "scopes[0]",
        "secret",
      ].concat(["userHeader"]),
    );
  });

  test("people are not told apart by a header of credentials", async () => {
    const made = await api.management("POST", "/api/keys", { name: "x", userHeader: "Authorization" });
    expect(made.json.error.param).toBe("userHeader");
  });

  test("a key's own limit of requests answers 429 with the seconds to wait", async () => {
    const { secret } = (await api.management("POST", "/api/keys", { name: "Slow", requestsPerMinute: 2 }))
      .json;
    const call = api.as(secret);
    expect([(await call("GET", "/api/memory")).status, (await call("GET", "/api/memory")).status]).toEqual([
      200, 200,
    ]);
    const third = await call("GET", "/api/memory");
    expect([third.status, third.json.error.code]).toEqual([429, "rate_limited"]);
    expect(Number(third.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("a key with many people behind it needs the person's name, and keeps people apart", async () => {
    const { secret, key } = (
      await api.management("POST", "/api/keys", { name: "Chat", userHeader: "x-openwebui-user-id" })
    ).json;
    const as = (person: string | null) => (method: string, path: string, body?: unknown) =>
      api.send(secret, method, path, {
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        headers: {
          "content-type": "application/json",
          ...(person === null ? {} : { "x-openwebui-user-id": person }),
        },
      });
    expect((await as(null)("GET", "/api/memory")).json.error.code).toBe("owner_required");
    const made = (await as("eve")("POST", "/api/memory", { content: "Likes figs" })).json;
    expect(made.memory.apiKeyId).toBe(`${key.id}:eve`);
    expect((await as("eve")("GET", "/api/memory")).json.total).toBe(1);
    expect((await as("dan")("GET", "/api/memory")).json.total).toBe(0);
    expect((await as("dan")("DELETE", `/api/memory/${made.id}`)).status).toBe(404);
  });
});

describe("/api/settings/memory", () => {
  test("takes any subset, answers the whole, and names what is wrong", async () => {
    const put = (body: unknown) => api.management("PUT", "/api/settings/memory", body);
    expect((await put({ maxTokens: 0, strategy: "exact" })).json).toMatchObject({
      maxTokens: 0,
      strategy: "recent",
    });
    expect((await api.management("GET", "/api/settings/memory")).json).toMatchObject({
      maxTokens: 0,
      fusion: "scored",
    });
    const bad = await put({ maxTokens: 16_001, strategy: "best", colour: 1 });
    expect(bad.json.error.details.map((detail: { field: string }) => detail.field)).toEqual([
      "maxTokens",
      "strategy",
      "colour",
    ]);
    expect((await put({ customBaseUrl: "http://127.0.0.1:9" })).json.error.param).toBe("customModelId");
    expect((await api.anna("GET", "/api/settings/memory")).status).toBe(403);
  });

  test("keeps a secret sealed, shows it masked, and takes what it showed as no change", async () => {
    const put = async (body: unknown) => (await api.management("PUT", "/api/settings/memory", body)).json;
    const secret = "sk-very-secret-0123456789";
    const endpoint = { customBaseUrl: "http://127.0.0.1:9/v1", customModelId: "m" };
    expect(await put({ ...endpoint, customApiKey: secret })).toMatchObject({ customApiKey: "sk-…6789" });
    expect(await put({ customApiKey: "sk-…6789" })).toMatchObject({ customApiKey: "sk-…6789" });
    const stored = api.db.query("SELECT group_concat(value) AS all_values FROM settings").get();
    expect(JSON.stringify(stored)).not.toContain("very-secret");
    expect(JSON.stringify(stored)).toContain("sealed:");
    expect((await put({ customApiKey: "two words" })).error.param).toBe("customApiKey");
    expect((await put({ customBaseUrl: "http://169.254.169.254/" })).error.param).toBe("customBaseUrl");
    expect(await put({ customApiKey: "" })).toMatchObject({ customApiKey: null });
  });
});

test("/docs shows every route without scripts, and the page asks for nothing but its style sheet", async () => {
  const page = await api.anonymous("GET", "/docs");
  const { paths } = await api.document();
  for (const path of Object.keys(paths)) expect(page.text).toContain(`<code>${path}</code>`);
  expect(page.text).not.toContain("<script");
  expect([...page.text.matchAll(/(?:src|href)="([^"#][^"]*)"/g)].map((match) => match[1])).toEqual([
    "/docs/docs.css",
    "/openapi.json",
  ]);
  expect((await api.anonymous("GET", "/docs/docs.css")).headers.get("content-type")).toContain("text/css");
});

test("an unknown path is 404 in the one error shape", async () => {
  const answer = await api.anonymous("GET", "/api/nothing/here");
  expect([answer.status, answer.json.error.type]).toEqual([404, "not_found_error"]);
});
