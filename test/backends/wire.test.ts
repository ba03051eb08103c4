// What each backend sends and survives on its own wire, beyond what all have in common.
import { expect, test } from "bun:test";
import { createKnownBackend } from "../../src/backends/known.ts";
import { GenericMemoryBackend } from "../../src/backends/http.ts";
import { NotionBackend } from "../../src/backends/notion.ts";
import { richText, toProperties } from "../../src/backends/notion-page.ts";
import { ObsidianBackend } from "../../src/backends/obsidian.ts";
import { BackendError } from "../../src/backends/types.ts";
import { startFlaky } from "../support/flaky.ts";
import { startHttpBackend } from "../support/http-backend.ts";
import { startNotion } from "../support/notion.ts";
import { startObsidian } from "../support/obsidian.ts";
import { memoryOf } from "./conformance.ts";

const errorOf = async (work: Promise<unknown>): Promise<BackendError> => {
  const thrown: unknown = await work.then(
    () => null,
    (e: unknown) => e,
  );
  expect(thrown).toBeInstanceOf(BackendError);
  return thrown as BackendError;
};

test("http: paths, parameters and headers take other names, ids are encoded, base paths kept", async () => {
  const seen: string[] = [];
  const headers: (string | null)[] = [];
  const row = {
    ...memoryOf(),
    id: "a/b ä",
    createdAt: 1_767_225_600_000,
    expiresAt: "2030-01-01T01:00:00+01:00",
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const url = new URL(request.url);
      seen.push(`${request.method} ${url.pathname}${url.search}`);
      headers.push(request.headers.get("x-tenant"));
      if (url.pathname.endsWith("/find")) return Response.json([row]);
      if (url.pathname.endsWith("/all"))
        return Response.json({ data: [row], total: 1, byType: { factual: 1 } });
      return Response.json(row);
    },
  });
  const backend = new GenericMemoryBackend("brain", "Brain", {
    baseUrl: `http://127.0.0.1:${server.port}/deep/api/`,
    headers: { "x-tenant": "t1" },
    endpoints: {
      search: "/find",
      list: "/all",
      get: "/note/{noteId}",
      update: "/note/{noteId}",
      delete: "/note/{noteId}",
    },
    queryParams: { query: "q", apiKeyId: "owner", limit: "top", offset: "skip", orderBy: "sort" },
    pathParams: { id: "noteId" },
  });
  const memory = await backend.get("k1", row.id);
  expect(memory).toMatchObject({
    createdAt: "2026-01-01T00:00:00.000Z",
    expiresAt: "2030-01-01T00:00:00.000Z",
  });
  await backend.search({ query: "tea & cake", apiKeyId: "k1", limit: 3, strategy: "hybrid", maxTokens: 100 });
  await backend.list({ apiKeyId: "k1", limit: 5, offset: 10, orderBy: "updatedAt", orderDir: "asc" });
  expect(seen).toEqual([
    "GET /deep/api/note/a%2Fb%20%C3%A4",
    "GET /deep/api/find?q=tea+%26+cake&owner=k1&top=3&strategy=hybrid&maxTokens=100",
    "GET /deep/api/all?owner=k1&top=5&skip=10&sort=updatedAt&orderDir=asc",
  ]);
  expect(new Set(headers)).toEqual(new Set(["t1"]));
  await server.stop(true);
});

test("http: 404 is null or false, other failures carry their status, a redirect is not followed", async () => {
  const server = startHttpBackend({ apiKey: "secret-of-the-brain" });
  const proxy = startFlaky(server.url);
  const make = (apiKey: string, timeout = 30_000) =>
    new GenericMemoryBackend("brain", "Brain", { baseUrl: `${proxy.url}/api/v1`, apiKey, timeout });
  const backend = make("secret-of-the-brain");
  for (const [status, down] of [
    [500, true],
    [503, true],
    [429, true],
    [400, false],
    [302, false],
  ] as const) {
    proxy.fault({
      status,
      times: 1,
      body: "secret-of-the-brain in the body",
      headers: { location: "http://127.0.0.1:1/", "retry-after": "7" },
    });
    const error = await errorOf(backend.get("k1", crypto.randomUUID()));
    expect(error).toMatchObject({ status, partDown: down, retryAfterMs: 7000 });
    expect(error.message).toBe(`Brain answered with status ${status}.`);
  }
  expect(await errorOf(make("wrong").list({ apiKeyId: "k1", limit: 1, offset: 0 }))).toMatchObject({
    status: 401,
  });
  proxy.fault({ delay: 500, times: 1 });
  expect(
    (await errorOf(make("secret-of-the-brain", 20).search({ query: "x", apiKeyId: "k1", limit: 1 }))).message,
  ).toBe("Brain did not answer within 20 ms.");
  proxy.fault({ status: 200, body: "<html>", times: 1 });
  expect((await errorOf(backend.get("k1", "x"))).message).toContain("not JSON");
  await proxy.stop();
  await server.stop();
});

test("http: a row without an owner, or of another, is refused", async () => {
  const server = startHttpBackend({ apiKey: "k" });
  const backend = new GenericMemoryBackend("brain", "Brain", { baseUrl: server.url, apiKey: "k" });
  const { apiKeyId: _, ...ownerless } = memoryOf();
  server.rows.set(ownerless.id, ownerless as never);
  expect(await backend.get("k1", ownerless.id)).toBeNull();
  expect((await backend.list({ apiKeyId: null, limit: 10, offset: 0 })).data).toEqual([]);
  await server.stop();
});

test("obsidian: a person's own YAML is read, other notes are left alone, deleting is for good", async () => {
  const server = startObsidian({ apiKey: "k" });
  const backend = new ObsidianBackend("obsidian", "Obsidian", { baseUrl: server.url, apiKey: "k" });
  const memory = await backend.create(memoryOf({ content: "Drinks tea", metadata: { a: 1 } }));
  const path = `Recollect/${memory.id}.md`;
  server.files.set(
    path,
    `---\r\nid: ${memory.id}\r\napiKeyId: k1\r\ntype: nonsense\r\ntags:\r\n  - tea\r\nmetadata:\r\n  category: preference\r\npinned: true\r\ncreatedAt: 2026-05-01T10:00:00.000Z\r\n---\r\nDrinks **coffee** now\r\n`,
  );
  server.files.set("Recollect/Shopping.md", "no front matter at all, tea");
  server.files.set("Recollect/Broken.md", "---\nid: [unclosed\n---\ntea");
  server.files.set("Diary/tea.md", "---\nid: x\napiKeyId: k1\n---\ntea elsewhere");
  expect(await backend.get("k1", memory.id)).toMatchObject({
    content: "Drinks **coffee** now\r\n",
    type: "factual",
    pinned: true,
    metadata: { category: "preference" },
  });
  expect((await backend.list({ apiKeyId: "k1", limit: 10, offset: 0 })).total).toBe(1);
  const found = await backend.search({ query: "coffee or tea?", apiKeyId: "k1", limit: 5 });
  expect(found.map((f) => f.memory.id)).toEqual([memory.id]);
  await backend.delete("k1", memory.id);
  expect([...server.files.keys()].filter((f) => f.includes(memory.id))).toEqual([]);
  const wrong = new ObsidianBackend("obsidian", "Obsidian", { baseUrl: server.url, apiKey: "wrong" });
  expect(await wrong.health()).toMatchObject({ ok: false, error: "Obsidian does not accept the API key." });
  expect(await errorOf(wrong.create(memoryOf()))).toMatchObject({ status: 401 });
  await server.stop();
});

test("notion: its rate limit is waited out by all calls together", async () => {
  const server = startNotion({ apiKey: "k", budget: 6, windowMs: 700 });
  const backend = new NotionBackend("notion", "Notion", {
    baseUrl: server.url,
    apiKey: "k",
    databaseId: server.databaseId,
  });
  const rows = Array.from({ length: 14 }, () => memoryOf());
  await Promise.all(rows.map((row) => backend.create(row)));
  expect(server.pages.size).toBe(14);
  expect(server.limited).toBeGreaterThan(0);
  // Three calls at once can each be refused once a window, and no more.
  expect(server.limited).toBeLessThanOrEqual(12);
  await server.stop();
}, 20_000);

test("notion: a list goes on past the limit of results of one query", async () => {
  const server = startNotion({ apiKey: "k", resultLimit: 250 });
  const backend = new NotionBackend("notion", "Notion", {
    baseUrl: server.url,
    apiKey: "k",
    databaseId: server.databaseId,
  });
  await backend.initialize();
  const rows = Array.from({ length: 620 }, (_, i) =>
    // Some share their time, so that a window begins among them.
    memoryOf({ createdAt: new Date(Date.parse("2026-01-01") + Math.floor(i / 7) * 1000).toISOString() }),
  );
  for (const row of rows) server.seed(toProperties(row, "Name"));
  for (const orderDir of ["desc", "asc"] as const) {
    const ids: string[] = [];
    for (let offset = 0; offset < 620; offset += 200) {
      const page = await backend.list({ apiKeyId: "k1", limit: 200, offset, orderDir });
      expect(page.total).toBe(620);
      ids.push(...page.data.map((m) => m.id));
    }
    expect(new Set(ids).size).toBe(620);
  }
  await server.stop();
});

test("notion: properties are added once; one of another type is named", async () => {
  const server = startNotion({ apiKey: "k" });
  const make = () =>
    new NotionBackend("notion", "Notion", {
      baseUrl: server.url,
      apiKey: "k",
      databaseId: server.databaseId,
    });
  const backend = make();
  const memory = await backend.create(memoryOf({ content: "Drinks tea" }));
  expect(server.schema).toMatchObject({ "Memory ID": { type: "rich_text" }, Pinned: { type: "checkbox" } });
  const page = [...server.pages.values()][0]!;
  page.properties["Content"] = {
    type: "rich_text",
    rich_text: [
      { type: "text", text: { content: "Drinks coffee", link: null }, plain_text: "Drinks coffee" },
    ],
  };
  expect((await backend.get("k1", memory.id))?.content).toBe("Drinks coffee");
  await backend.delete("k1", memory.id);
  expect(page.in_trash).toBe(true);
  expect(server.requests.filter((r) => r.startsWith("PATCH /v1/data_sources"))).toHaveLength(1);
  server.schema["Status"] = { id: "x", name: "Status", type: "number" };
  expect((await errorOf(make().create(memoryOf()))).message).toBe(
    "The property Status of Notion's database is of type number; it must be select.",
  );
  const lost = new NotionBackend("notion", "Notion", {
    baseUrl: server.url,
    apiKey: "k",
    databaseId: crypto.randomUUID(),
  });
  expect((await errorOf(lost.create(memoryOf()))).message).toContain("is not shared");
  await server.stop();
});

test("notion: texts are cut at 2,000 units and never inside a character", () => {
  const text = "🙂".repeat(1500) + "x".repeat(3000);
  const pieces = richText(text).map((piece) => piece.text.content);
  expect(pieces.join("")).toBe(text);
  for (const piece of pieces) {
    expect(piece.length).toBeLessThanOrEqual(2000);
    expect(piece.isWellFormed()).toBe(true);
  }
  expect(richText("")).toEqual([]);
});

test("the two known ones are preconfigured", async () => {
  const obsidian = createKnownBackend("obsidian", { apiKey: "k" });
  const notion = createKnownBackend("notion", { apiKey: "k", databaseId: crypto.randomUUID() });
  expect([obsidian.id, obsidian.displayName, notion.id, notion.displayName]).toEqual([
    "obsidian",
    "Obsidian",
    "notion",
    "Notion",
  ]);
});
