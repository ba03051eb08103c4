import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startApi, type ApiServer } from "./support/api-server.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const add = async (body: object) => (await api.anna("POST", "/api/memory", body)).json;

describe("POST /api/memory", () => {
  test("creates, and updates the active memory of the same key", async () => {
    const made = await api.anna("POST", "/api/memory", {
      key: "preference:editor",
      content: "Prefers Helix",
      type: "episodic",
      metadata: { a: 1 },
    });
    expect(made.status).toBe(201);
    expect(made.json).toMatchObject({ success: true, created: true, id: made.json.memory.id });
    const again = await api.anna("POST", "/api/memory", {
      key: "preference:editor",
      content: "Prefers Zed",
      metadata: { b: 2 },
    });
    expect(again.status).toBe(200);
    expect(again.json).toMatchObject({
      created: false,
      id: made.json.id,
      memory: {
        content: "Prefers Zed",
        type: "episodic",
        metadata: { a: 1, b: 2 },
        origin: "api",
        version: 2,
      },
    });
  });

  test("names every wrong field and stores nothing", async () => {
    const before = (await api.anna("GET", "/api/memory")).json.total;
    const bad = await api.anna("POST", "/api/memory", {
      content: "",
      key: "k".repeat(201),
      type: "fact",
      metadata: { big: "x".repeat(16_384) },
      expiresAt: "tomorrow",
      pinned: "yes",
      colour: "red",
    });
    expect(bad.status).toBe(400);
    expect(bad.json.error.details.map((detail: { field: string }) => detail.field).toSorted()).toEqual(
      ["colour", "content", "expiresAt", "key", "metadata", "pinned", "type"].toSorted(),
    );
    expect((await api.anna("GET", "/api/memory")).json.total).toBe(before);
  });

  test("takes no content or key of which nothing can be seen", async () => {
    const hidden = "\u200b\u2060\ufeff";
    const put = async (fields: object) => (await api.anna("POST", "/api/memory", fields)).json.error?.param;
    expect(await put({ content: hidden })).toBe("content");
    expect(await put({ content: "Can be seen", key: hidden })).toBe("key");
  });

  test("takes no time whose year in UTC has not four digits, since it could not be read back", async () => {
    const put = async (expiresAt: string) =>
      (await api.anna("POST", "/api/memory", { content: "Until the end of time.", expiresAt })).json;
    for (const edge of ["9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00+14:00"]) {
      expect((await put(edge)).error).toMatchObject({ param: "expiresAt" });
    }
    const made = await put("9999-12-31T23:59:59+14:00");
    expect(made.memory.expiresAt).toBe("9999-12-31T09:59:59.000Z");
    await api.anna("DELETE", `/api/memory/${made.id}`);
  });

  test("counts characters, so that an emoji is one", async () => {
    const put = async (content: string, key: string) =>
      (await api.anna("POST", "/api/memory", { content, key })).status;
    expect(await put("🙂".repeat(32_768), "🙂".repeat(200))).toBe(201);
    expect(await put("🙂".repeat(32_769), "k")).toBe(400);
    expect(await put("x", "🙂".repeat(201))).toBe(400);
  });

  test("asks management for an owner that is known", async () => {
    expect((await api.management("POST", "/api/memory", { content: "x y" })).json.error.param).toBe(
      "apiKeyId",
    );
    expect((await api.management("POST", "/api/memory", { content: "x y", apiKeyId: "nobody" })).status).toBe(
      404,
    );
    const made = await api.management("POST", "/api/memory", { content: "x y", apiKeyId: "bert" });
    expect(made.json.memory.apiKeyId).toBe("bert");
    expect((await api.anna("GET", `/api/memory/${made.json.id}`)).status).toBe(404);
  });
});

describe("GET /api/memory", () => {
  test("pages by page or offset, and offset wins", async () => {
    for (let n = 0; n < 5; n++) await add({ content: `Page ${n}`, sessionId: "paging" });
    const list = async (query: string) =>
      (await api.anna("GET", `/api/memory?sessionId=paging&${query}`)).json;
    const first = await list("limit=2");
    expect(first).toMatchObject({ total: 5, page: 1, limit: 2, totalPages: 3 });
    expect(first.data.map((row: { content: string }) => row.content)).toEqual(["Page 4", "Page 3"]);
    expect((await list("limit=2&page=3")).data).toHaveLength(1);
    expect(await list("limit=2&page=1&offset=4")).toMatchObject({ page: 3, data: [{ content: "Page 0" }] });
    expect((await list("limit=2&order=asc")).data[0].content).toBe("Page 0");
    expect(first.stats).toMatchObject({ total: 5, byType: { factual: 5, semantic: 0 } });
    for (const bad of [
      "limit=0",
      "limit=201",
      "page=0",
      "offset=-1",
      "limit=1.5",
      "sort=id",
      "status=gone",
      "x=1",
    ]) {
      expect([bad, (await api.anna("GET", `/api/memory?${bad}`)).status]).toEqual([bad, 400]);
    }
  });

  test("finds q in content and key, wildcards literally, case folded", async () => {
    await add({ content: "Gives 100% of _effort_", key: "Goal:Ärger" });
    const total = async (q: string) =>
      (await api.anna("GET", `/api/memory?q=${encodeURIComponent(q)}`)).json.total;
    expect([await total("100%"), await total("_EFFORT_"), await total("goal:ärger")]).toEqual([1, 1, 1]);
    expect([await total("1%0"), await total("%"), await total("g_ves")]).toEqual([0, 1, 0]);
  });
});

describe("one memory", () => {
  test("is changed, keeps its history and is restored", async () => {
    const { id } = await add({ content: "First", metadata: { a: 1 } });
    const changed = await api.anna("PUT", `/api/memory/${id}`, { content: "Second", metadata: { b: 2 } });
    expect(changed.json).toMatchObject({ success: true, memory: { content: "Second", metadata: { b: 2 } } });
    const history = (await api.anna("GET", `/api/memory/${id}/history`)).json;
    expect(history).toMatchObject({ total: 2, data: [{ version: 1, content: "First" }, { version: 2 }] });
    const restored = await api.anna("POST", `/api/memory/${id}/restore`, { version: 1 });
    expect(restored.json.memory).toMatchObject({ content: "First", version: 3 });
    expect((await api.anna("POST", `/api/memory/${id}/restore`, { version: 99 })).status).toBe(400);
    expect((await api.anna("PUT", `/api/memory/${id}`, { status: "pending" })).status).toBe(400);
    expect((await api.anna("PUT", `/api/memory/${id}`, { apiKeyId: "bert" })).status).toBe(400);
  });

  test("is archived and brought back; a key that another holds is 409", async () => {
    const one = await add({ content: "One", key: "k:1" });
    const two = await add({ content: "Two", key: "k:2" });
    const taken = await api.anna("PUT", `/api/memory/${two.id}`, { key: "k:1" });
    expect([taken.status, taken.json.error.type]).toEqual([409, "conflict_error"]);
    await api.anna("PUT", `/api/memory/${one.id}`, { status: "archived" });
    expect((await api.anna("PUT", `/api/memory/${two.id}`, { key: "k:1" })).status).toBe(200);
    expect((await api.anna("PUT", `/api/memory/${one.id}`, { status: "active" })).status).toBe(409);
  });

  test("is deleted once, with proof", async () => {
    const { id } = await add({ content: "Gone soon" });
    const gone = await api.anna("DELETE", `/api/memory/${id}?proof=true`);
    expect(gone.json).toEqual({
      success: true,
      proof: { row: 0, history: 0, fts: 0, vectors: 0, receipts: 0, blocks: 0, episodes: 0, qdrant: "off" },
    });
    expect((await api.anna("DELETE", `/api/memory/${id}`)).status).toBe(404);
    expect((await api.anna("GET", "/api/memory/not-a-uuid")).status).toBe(404);
  });

  test("is found by its id in capitals, and asked for by HEAD", async () => {
    const { id } = await add({ content: "Shouted at" });
    expect((await api.anna("GET", `/api/memory/${id.toUpperCase()}`)).json.memory.id).toBe(id);
    const head = await api.anna("HEAD", `/api/memory/${id}`);
    expect([head.status, head.text]).toEqual([200, ""]);
  });
});

describe("POST /api/memory/bulk-delete", () => {
  test("counts first, then deletes by filter or ids", async () => {
    for (let n = 0; n < 3; n++) await add({ content: `Bulk ${n}`, sessionId: "bulk" });
    const pinned = await add({ content: "Bulk pinned", sessionId: "bulk", pinned: true });
    const bulk = async (body: object) => (await api.anna("POST", "/api/memory/bulk-delete", body)).json;
    expect(await bulk({ sessionId: "bulk", dryRun: true })).toEqual({ matched: 3, deleted: 0, dryRun: true });
    expect(await bulk({ sessionId: "bulk" })).toEqual({ matched: 3, deleted: 3, dryRun: false });
    expect(await bulk({ ids: [pinned.id] })).toEqual({ matched: 1, deleted: 1, dryRun: false });
    expect((await api.anna("POST", "/api/memory/bulk-delete", {})).status).toBe(400);
    expect((await api.anna("POST", "/api/memory/bulk-delete", { ids: ["x"] })).json.error.param).toBe(
      "ids[0]",
    );
    expect(
      (await api.management("POST", "/api/memory/bulk-delete", { type: "factual" })).json.error.param,
    ).toBe("apiKeyId");
  });
});
