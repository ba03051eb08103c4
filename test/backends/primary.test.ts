import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startAppliance, until } from "../support/appliance.ts";
import type { Appliance } from "../support/appliance.ts";
import { openBox } from "../support/engine-box.ts";
import { startFlaky } from "../support/flaky.ts";
import type { Flaky } from "../support/flaky.ts";
import { startHttpBackend } from "../support/http-backend.ts";
import type { HttpStandIn } from "../support/http-backend.ts";
import { startObsidian } from "../support/obsidian.ts";
import { startTarget } from "../support/qdrant-target.ts";

type Row = { id: string; content: string; status: string; version: number; key: string | null };
type Body = { memory: Row; data: Row[]; total: number; error: { message: string; code: string } };

const calls = (box: Appliance, key?: string) => async (method: string, path: string, body?: unknown) => {
  const answer = await box.call(method, path, body, key ?? box.key);
  return { status: answer.status, body: answer.body as Body };
};
async function settings(box: Appliance, body: object): Promise<void> {
  const answer = await box.call("PUT", "/api/settings/memory", body);
  expect(answer).toMatchObject({ status: 200 });
}

/** Waits until no job is left. */
const settled = (box: Appliance) =>
  until(
    "the jobs to end",
    async () => ((await box.call("GET", "/api/jobs")).body as Body).total === 0,
    20_000,
  );

describe("primary over HTTP", () => {
  let server: HttpStandIn;
  let proxy: Flaky;
  let box: Appliance;
  beforeAll(async () => {
    server = startHttpBackend({ apiKey: "the-key-of-the-brain" });
    proxy = startFlaky(server.url);
    box = await startAppliance();
    await settings(box, {
      backendConfigs: {
        brain: { type: "http", baseUrl: `${proxy.url}/api/v1`, apiKey: "the-key-of-the-brain" },
      },
    });
    await settings(box, { primaryBackend: "brain" });
  });
  afterAll(async () => {
    await box.stop();
    await proxy.stop();
    await server.stop();
  });

  test("create, read, change, list and delete go to the primary", async () => {
    const call = calls(box);
    const created = await call("POST", "/api/memory", { content: "Lives in Helsinki", key: "identity:home" });
    expect(created.status).toBe(201);
    const { id } = created.body.memory;
    expect(server.rows.get(id)).toMatchObject({
      content: "Lives in Helsinki",
      apiKeyId: box.keyId,
      origin: "api",
    });
    // An upsert by key is an update of the same row there.
    const again = await call("POST", "/api/memory", { content: "Lives in Turku", key: "identity:home" });
    expect(again).toMatchObject({ status: 200, body: { created: false, memory: { id, version: 2 } } });
    expect(server.rows.get(id)?.content).toBe("Lives in Turku");
    expect(server.rows.size).toBe(1);
    const listed = await call("GET", "/api/memory");
    expect(listed.body).toMatchObject({ total: 1, data: [{ id, content: "Lives in Turku" }] });
    expect((await call("PUT", `/api/memory/${id}`, { status: "archived" })).status).toBe(200);
    expect(server.rows.get(id)?.status).toBe("archived");
    expect((await call("GET", "/api/memory")).body.data).toEqual([]);
    const history = await call("GET", `/api/memory/${id}/history`);
    expect(history.status).toBe(200);
    expect((await call("POST", `/api/memory/${id}/restore`, { version: 1 })).body.memory.content).toBe(
      "Lives in Helsinki",
    );
    expect(server.rows.get(id)?.content).toBe("Lives in Helsinki");
    expect((await call("DELETE", `/api/memory/${id}`)).status).toBe(200);
    expect(server.rows.size).toBe(0);
    expect((await call("DELETE", `/api/memory/${id}`)).status).toBe(404);
  });

  test("engine-status says how each backend is", async () => {
    const read = async () =>
      ((await box.call("GET", "/api/memory/engine-status")).body as { backend: { health: { id: string }[] } })
        .backend;
    await until("brain was asked", async () => (await read()).health.some((one) => one.id === "brain"));
    expect(await read()).toMatchObject({
      primary: "brain",
      fallbacks: [],
      health: [
        { id: "sqlite", ok: true },
        { id: "brain", displayName: "brain", ok: true, latencyMs: expect.any(Number) },
      ],
    });
  });

  test("a refused write sends nothing", async () => {
    const call = calls(box);
    const before = server.requests.length;
    expect((await call("POST", "/api/memory", { content: "   " })).status).toBe(400);
    expect(server.requests.slice(before).filter((r) => !r.startsWith("GET"))).toEqual([]);
  });

  test("what was changed over there is seen here, with history; another owner's row is not", async () => {
    const call = calls(box);
    const { id } = (await call("POST", "/api/memory", { content: "Drinks tea" })).body.memory;
    server.rows.set(id, { ...server.rows.get(id)!, content: "Drinks coffee" });
    expect((await call("GET", `/api/memory/${id}`)).body.memory.content).toBe("Drinks coffee");
    const versions = (await call("GET", `/api/memory/${id}/history`)).body.data;
    expect(versions.map((v) => v.content)).toEqual(["Drinks tea", "Drinks coffee"]);
    const row = server.rows.get(id)!;
    const theirs = { ...row, id: crypto.randomUUID(), apiKeyId: "somebody-else" };
    server.rows.set(theirs.id, theirs);
    expect((await call("GET", `/api/memory/${theirs.id}`)).status).toBe(404);
    expect(JSON.stringify((await call("GET", "/api/memory")).body)).not.toContain("somebody-else");
  });

  test("while it is down writes are 503 and store nothing; what exchanges teach arrives later", async () => {
    const call = calls(box);
    const rows = server.rows.size;
    await proxy.kill();
    const refused = await call("POST", "/api/memory", { content: "Not stored", key: "note:lost" });
    expect(refused.status).toBe(503);
    expect(refused.body.error.message).toContain("brain cannot be reached");
    expect((await call("GET", "/api/memory")).status).toBe(503);
    expect((await call("POST", "/sessions", { externalId: "s1" })).status).toBe(201);
    const said = { externalId: "s1", userMessage: "I prefer TypeScript over Java.", aiResponse: "Noted." };
    expect((await call("POST", "/episodes", said)).status).toBe(201);
    const waiting = () =>
      box.call("GET", "/api/jobs").then((a) => JSON.stringify(a.body).includes('"backend"'));
    await until("the creation waits as a job", waiting);
    proxy.revive();
    expect((await call("GET", "/api/memory?q=Not stored")).body.total).toBe(0);
    await until("it arrives", () => server.rows.size === rows + 1, 20_000);
  }, 30_000);

  test("a creation whose answer was lost is withdrawn, and stands there once when it is tried again", async () => {
    const call = calls(box);
    proxy.fault({ when: (method) => method === "POST", loseAnswer: true, times: 1 });
    const body = { content: "Collects stamps", key: "hobby" };
    const there = () => [...server.rows.values()].filter((row) => row.key === "hobby").map((row) => row.id);
    expect((await call("POST", "/api/memory", body)).status).toBe(503);
    await until("it was withdrawn", () => there().length === 0);
    const again = await call("POST", "/api/memory", body);
    expect(again.status).toBe(201);
    expect(there()).toEqual([again.body.memory.id]);
    await call("DELETE", `/api/memory/${again.body.memory.id}`);
  });

  test("importing here what was exported here brings it to the new primary, and overwrites nothing there", async () => {
    const call = calls(box);
    await settings(box, { primaryBackend: "sqlite" });
    const put = async (content: string) =>
      (await call("POST", "/api/memory", { content, key: content })).body.memory.id;
    const [moved, changed] = [await put("Plays the oboe"), await put("Plays the harp")];
    const headers = { authorization: `Bearer ${box.key}`, "content-type": "application/x-ndjson" };
    const file = await (await fetch(`${box.url}/api/memory/export?memoriesOnly=true`, { headers })).text();
    await settings(box, { primaryBackend: "brain" });
    const line = file.split("\n").find((one) => one.includes(changed))!;
    server.rows.set(changed, { ...JSON.parse(line), content: "Plays the lyre" });
    const imported = await fetch(`${box.url}/api/memory/import`, { method: "POST", headers, body: file });
    expect(imported.status).toBe(200);
    await until("the import arrived", () => server.rows.has(moved));
    await settled(box);
    expect(server.rows.get(moved)).toMatchObject({ content: "Plays the oboe", apiKeyId: box.keyId });
    expect(server.rows.get(changed)?.content).toBe("Plays the lyre");
    for (const id of [moved, changed]) await call("DELETE", `/api/memory/${id}`);
  }, 30_000);

  test("settings are validated by name, and secrets never come back", async () => {
    const call = calls(box, box.token);
    const shown = JSON.stringify((await call("GET", "/api/settings/memory")).body);
    expect(shown).not.toContain("the-key-of-the-brain");
    for (const file of readdirSync(box.dataDir).filter((one) => one.startsWith("recollect.db")))
      expect(readFileSync(join(box.dataDir, file)).includes("the-key-of-the-brain")).toBe(false);
    const { backendConfigs } = JSON.parse(shown) as { backendConfigs: object };
    // What was shown comes back and changes nothing: the primary still answers.
    expect((await call("PUT", "/api/settings/memory", { backendConfigs })).status).toBe(200);
    expect((await calls(box)("GET", "/api/memory")).status).toBe(200);
    for (const [field, body] of [
      ["primaryBackend", { primaryBackend: "nowhere" }],
      ["fallbackBackends", { fallbackBackends: ["nowhere"] }],
      [
        "backendConfigs.x.baseUrl",
        { backendConfigs: { x: { type: "http", baseUrl: "http://169.254.169.254/" } } },
      ],
      [
        "backendConfigs.x.databaseId",
        { backendConfigs: { x: { type: "notion", apiKey: "k", databaseId: "no" } } },
      ],
      [
        "backendConfigs.x.colour",
        { backendConfigs: { x: { type: "obsidian", apiKey: "k", colour: "red" } } },
      ],
      ["must be one of http, obsidian, notion, qdrant", { backendConfigs: { x: { type: "redis" } } }],
      ["backendConfigs.x.baseUrl: is required", { backendConfigs: { x: { type: "http" } } }],
      [
        "backendConfigs.sqlite",
        { backendConfigs: { sqlite: { type: "http", baseUrl: "http://127.0.0.1:1" } } },
      ],
    ] as const) {
      const answer = await call("PUT", "/api/settings/memory", body);
      expect(answer.status).toBe(400);
      expect(JSON.stringify(answer.body)).toContain(field);
    }
  });
});

test("a note edited in Obsidian is seen here; fallbacks follow updates and deletions", async () => {
  const server = startObsidian({ apiKey: "vault" });
  const box = await startAppliance();
  const call = calls(box);
  const config = { backendConfigs: { obsidian: { apiKey: "vault", baseUrl: server.url } } };
  await settings(box, { ...config, primaryBackend: "obsidian" });
  const { id } = (await call("POST", "/api/memory", { content: "Drinks tea", key: "drink" })).body.memory;
  const path = `Recollect/${id}.md`;
  server.files.set(
    path,
    server.files.get(path)!.replace("Drinks tea", "Drinks coffee").replace('key: "drink"', "key: beverage"),
  );
  expect((await call("GET", `/api/memory/${id}`)).body.memory).toMatchObject({
    content: "Drinks coffee",
    key: "beverage",
  });
  // The same vault as a fallback: creations stay in SQLite, later changes of what the vault has reach it.
  await settings(box, { primaryBackend: "sqlite", fallbackBackends: ["obsidian"] });
  await call("POST", "/api/memory", { content: "Only here" });
  await call("PUT", `/api/memory/${id}`, { content: "Drinks water" });
  await until("the note follows", () => server.files.get(path)?.endsWith("Drinks water"));
  expect([...server.files.keys()]).toEqual([path]);
  await call("DELETE", `/api/memory/${id}`);
  await until("the note goes", () => server.files.size === 0);
  await box.stop();
  await server.stop();
});

describe("appliances that share a Qdrant cluster", () => {
  const boxes: Appliance[] = [];
  afterEach(async () => {
    for (const box of boxes.splice(0)) await box.stop();
  });

  test("see each other's writes under the same owner", async () => {
    const target = await startTarget();
    const name = target.name();
    const env = {
      QDRANT_URL: target.url,
      QDRANT_COLLECTION: name,
      ...(target.apiKey === null ? {} : { QDRANT_API_KEY: target.apiKey }),
    };
    const open = async () => {
      const box = await startAppliance({ env });
      boxes.push(box);
      await settings(box, { primaryBackend: "qdrant" });
      const made = await box.call("POST", "/api/keys", { name: "team", id: "team" });
      return calls(box, (made.body as { secret: string }).secret);
    };
    const [a, b] = [await open(), await open()];
    const { id } = (await a("POST", "/api/memory", { content: "Lives in Helsinki", key: "identity:home" }))
      .body.memory;
    expect((await b("GET", `/api/memory/${id}`)).body.memory.content).toBe("Lives in Helsinki");
    // The same key from the other appliance is an update, not a second row.
    const upserted = await b("POST", "/api/memory", { content: "Lives in Turku", key: "identity:home" });
    expect(upserted).toMatchObject({ status: 200, body: { memory: { id } } });
    expect((await a("GET", "/api/memory")).body).toMatchObject({
      total: 1,
      data: [{ id, content: "Lives in Turku" }],
    });
    expect((await b("DELETE", `/api/memory/${id}`)).status).toBe(200);
    expect((await a("GET", `/api/memory/${id}`)).status).toBe(404);
    await target.proxy.kill();
    expect((await a("POST", "/api/memory", { content: "x" })).status).toBe(503);
    target.proxy.revive();
    for (const box of boxes.splice(0)) await box.stop();
    await target.stop();
  });
});

test("recall searches the primary, in its order, and gives standing memories it still has", async () => {
  const server = startHttpBackend({ apiKey: "k" });
  const proxy = startFlaky(server.url);
  const box = openBox();
  const { memories, retrieval } = box.engine;
  const brain = { type: "http", baseUrl: `${proxy.url}/api/v1`, apiKey: "k" };
  await box.settings({ backendConfigs: { brain } });
  await box.settings({ primaryBackend: "brain" });
  const owner = "k1";
  const add = async (content: string, pinned = false) =>
    (await memories.create({ owner, origin: "api", content, pinned })).memory.id;
  const recall = (query: string) => retrieval.retrieve({ owner, query, mode: "interactive" });
  const cats = await add("Keeps two cats called Misu and Musti");
  const found = await recall("What are my cats called?");
  expect(found.results[0]).toMatchObject({ id: cats, tier: "backend", kind: "memory" });
  expect(found.resolution.strategyUsed).toBe("backend");
  const pinned = await add("Answers in German", true);
  const ids = (await recall("cats")).results.map((one) => one.id);
  expect(ids.toSorted()).toEqual([cats, pinned].toSorted());
  // Made over there under an id of its own: found here under one of ours.
  server.rows.set("17", { ...server.rows.get(cats)!, id: "17", content: "The cats get salmon on Sundays" });
  const salmon = (await recall("salmon on Sundays")).results.find((one) => one.tier === "backend");
  expect(salmon?.text).toContain("salmon");
  expect(salmon?.id).toMatch(/^[0-9a-f-]{36}$/);
  expect((await memories.get({ owner, id: salmon!.id })).content).toContain("salmon");
  // Another owner's row that a careless service gives is dropped.
  server.rows.set("18", {
    ...server.rows.get(cats)!,
    id: "18",
    apiKeyId: "k2",
    content: "Salmon of somebody else",
  });
  expect((await recall("salmon")).results.every((one) => one.owner === owner)).toBe(true);
  await proxy.kill();
  const without = await recall("cats");
  expect(without.results.filter((one) => one.tier === "backend")).toEqual([]);
  expect(without.resolution.fallbackReason).toContain("brain cannot be reached");
  proxy.revive();
  const past = retrieval.retrieve({
    owner,
    query: "cats",
    mode: "interactive",
    asOf: "2026-01-01T00:00:00Z",
  });
  expect(await past.catch((e: unknown) => (e as { code: string }).code)).toBe("not_supported");
  // Deleted here while the primary was away: it is not read back before the primary has heard of it.
  await proxy.kill();
  expect((await memories.bulkDelete({ owner, selection: { ids: [cats] }, dryRun: false })).deleted).toBe(1);
  proxy.revive();
  expect(server.rows.has(cats)).toBe(true);
  const listed = await memories.list({ owner, status: "active", limit: 50, offset: 0 });
  expect(listed.data.map((m) => m.id)).not.toContain(cats);
  await until("the primary hears of it", () => !server.rows.has(cats), 25_000);
  await box.stop();
  await proxy.stop();
  await server.stop();
}, 40_000);
