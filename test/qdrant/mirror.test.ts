import { afterAll, afterEach, beforeAll, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "bun:sqlite";
import { createMirror } from "../../src/backends/mirror/mirror.ts";
import type { Mirror } from "../../src/backends/mirror/mirror.ts";
import { createOperations } from "../../src/backends/mirror/operations.ts";
import type { QdrantConnection } from "../../src/backends/mirror/settings.ts";
import { memorySource } from "../../src/backends/mirror/source.ts";
import { fillHandler, outboxHandler, upsert } from "../../src/backends/mirror/work.ts";
import { boxId } from "../../src/db/meta.ts";
import { migrate } from "../../src/db/migrate.ts";
import { openDatabase, transact } from "../../src/db/open.ts";
import { ensureOwner } from "../../src/db/owners.ts";
import { openStatic } from "../../src/embed/static.ts";
import type { Embedder } from "../../src/embed/types.ts";
import { silentLog } from "../../src/log.ts";
import { createJobs } from "../../src/memory/jobs.ts";
import type { Jobs } from "../../src/memory/jobs.ts";
import { createStore } from "../../src/memory/store.ts";
import type { Store } from "../../src/memory/store.ts";
import { aliasesOf } from "../../src/search/qdrant/collections.ts";
import type { StoredPoint } from "../../src/search/qdrant/client.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { startTarget, until } from "../support/qdrant-target.ts";
import type { QdrantTarget } from "../support/qdrant-target.ts";

const models = testModels();
const run = test.skipIf(models === null);

type Box = {
  db: Database;
  jobs: Jobs;
  store: Store;
  mirror: Mirror;
  ops: ReturnType<typeof createOperations>;
  connection: QdrantConnection;
  embedder: Embedder;
  put(content: string, key?: string | null): string;
  settled(): Promise<void>;
  /** The same without waiting for the back-off of what failed. */
  retried(): Promise<void>;
  stop(): Promise<void>;
};

let target: QdrantTarget;
let embedder: Embedder;
const boxes: Box[] = [];
beforeAll(async () => {
  target = await startTarget();
  if (models !== null) embedder = await openStatic(join(models, STATIC_REPO), "test");
});
afterEach(async () => {
  target.proxy.heal();
  for (const box of boxes.splice(0)) await box.stop();
});
afterAll(() => target.stop());

/** The same vectors under another signature, cut to a size: another model, as far as indexes know. */
function otherModel(size: number): Embedder {
  return {
    ...embedder,
    dimensions: size,
    signature: `static:other:${size}`,
    windows: (text) => embedder.windows(text),
    embed: async (texts) => (await embedder.embed(texts)).map((v) => v.slice(0, size)),
    close: async () => {},
  };
}

function openBox(
  name: string,
  options: { enabled?: boolean; dir?: string; idle?: boolean; searchTimeoutMs?: number } = {},
): Box {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "mirror-"));
  const db = openDatabase(join(dir, "recollect.db"));
  migrate(db, null);
  const now = Date.now;
  const jobs = createJobs({ db, log: silentLog, now, leaseName: "test" });
  const connection: QdrantConnection = {
    enabled: options.enabled ?? true,
    host: target.url,
    port: 6333,
    collection: name,
    embeddingModel: null,
    quantization: "none",
    url: target.url,
    apiKey: target.apiKey,
    efConstruct: null,
  };
  const box = { embedder } as Box;
  const mirror = createMirror({
    db,
    log: silentLog,
    now,
    jobs,
    boxId: boxId(db),
    connection: () => connection,
    retentionDays: () => 30,
    embedder: async () => box.embedder,
    sources: [memorySource(db, boxId(db))],
    probeEveryMs: 20,
    searchTimeoutMs: options.searchTimeoutMs ?? 4000,
  });
  jobs.handle("qdrant", outboxHandler(mirror, "test"), { tries: Infinity });
  jobs.handle("qdrant-fill", fillHandler(mirror), { tries: Infinity });
  const store = createStore({
    db,
    now,
    hooks: {
      changed: (_, row) => mirror.touch("memory", row.id),
      confirmed: (_, row) => mirror.touch("memory", row.id),
      removed: (_, row) => mirror.touch("memory", row.id),
      dropEpisode() {},
    },
  });
  const ownerId = ensureOwner(db, "k1");
  if (!options.idle) jobs.start();
  mirror.check();
  Object.assign(box, {
    db,
    jobs,
    store,
    mirror,
    ops: createOperations(mirror),
    connection,
    put: (content: string, key: string | null = null) =>
      transact(db, () => store.put({ ownerId, key, content, metadata: {}, origin: "api" })).row.id,
    settled: () => until(() => mirror.pending() === 0),
    retried: () =>
      until(() => {
        db.run("UPDATE jobs SET run_at = 0 WHERE state = 'queued'");
        jobs.wake();
        return mirror.pending() === 0;
      }),
    async stop() {
      await jobs.stop();
      await mirror.disconnect();
      db.close();
      if (options.dir === undefined) rmSync(dir, { recursive: true });
    },
  } satisfies Omit<Box, "embedder">);
  boxes.push(box);
  return box;
}

const rowOf = (box: Box, id: string) =>
  box.db
    .query<{ seq: number; owner_id: number }, [string]>("SELECT seq, owner_id FROM memories WHERE id = ?")
    .get(id)!;
async function points(collection: string): Promise<StoredPoint[]> {
  const { points: found } = await target.direct.call("search", (api, init) =>
    api.scrollPoints({ collection_name: collection, limit: 1000, with_payload: true }, init),
  );
  return found;
}
async function search(box: Box, text: string, owner = "k1"): Promise<string[] | string> {
  const [vector] = await box.embedder.embed([text]);
  const answer = await box.mirror.search({
    owner,
    session: null,
    retentionDays: 30,
    now: Date.now(),
    kind: "memory",
    text,
    vector: vector!,
    signature: box.embedder.signature,
    limit: 3,
  });
  return "hits" in answer ? answer.hits.map((h) => h.pointId) : answer.reason;
}

run("what was there before is filled in, and changes follow in the outbox", async () => {
  const box = openBox(target.name(), { enabled: false });
  const before = box.put("Prefers TypeScript over plain JavaScript", "preference:typescript");
  expect(box.mirror.pending()).toBe(0);
  box.connection.enabled = true;
  expect(box.mirror.pending()).toBe(1);
  expect((await box.ops.status()).error).toContain("0 of 1 rows of kind memory");
  box.mirror.changed();
  await box.settled();
  expect(await box.ops.status()).toMatchObject({ enabled: true, pending: 0 });
  expect((await points(box.connection.collection)).map((p) => p.id)).toEqual([before]);
  const added = box.put("Lives in Helsinki", "identity:home");
  await box.settled();
  expect((await search(box, "Where is home? Helsinki?"))[0]).toBe(added);
  expect(await search(box, "Helsinki", "k2")).toEqual([]);
  const [point] = (await points(box.connection.collection)).filter((p) => p.id === added);
  expect(point?.payload).toMatchObject({
    kind: "omniroute_memory",
    memoryId: added,
    apiKeyId: "k1",
    sessionId: null,
    type: "factual",
    key: "identity:home",
    content: "Lives in Helsinki",
    metadata: {},
    expiresAtUnix: null,
    boxId: boxId(box.db),
  });
  // An update, an archive and a deletion reach the point too.
  box.put("Lives in Turku", "identity:home");
  await box.settled();
  expect((await points(box.connection.collection)).find((p) => p.id === added)?.payload?.["content"]).toBe(
    "Lives in Turku",
  );
  const { seq, owner_id } = rowOf(box, before);
  const { memoryBySeq } = await import("../../src/db/memories.ts");
  transact(box.db, () => box.store.setStatus(memoryBySeq(box.db, owner_id, seq)!, "archived", "archive"));
  await box.settled();
  expect((await points(box.connection.collection)).map((p) => p.id)).toEqual([added]);
  transact(box.db, () => box.store.purge(memoryBySeq(box.db, owner_id, rowOf(box, added).seq)!));
  expect(await box.ops.proof(added)).toBe("confirmed");
  expect(await points(box.connection.collection)).toEqual([]);
});

test("pages and rows by id are read by their keys, not by way of all active rows", () => {
  const dir = mkdtempSync(join(tmpdir(), "mirror-"));
  const db = openDatabase(join(dir, "recollect.db"));
  migrate(db, null);
  const asked = spyOn(db, "query");
  const source = memorySource(db, "box");
  source.page(0, 10);
  source.load([{ pointId: "x", row: null }]);
  const queries = asked.mock.calls.map(([sql]) => sql);
  asked.mockRestore();
  expect(queries).toHaveLength(2);
  for (const sql of queries) {
    const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`).all();
    expect(plan.map((line) => line.detail).join("\n")).not.toMatch(/status=|TEMP B-TREE|SCAN m\b/);
  }
  db.close();
  rmSync(dir, { recursive: true });
});

run("the outbox and the fill that ask at once get one collection", async () => {
  const box = openBox(target.name(), { idle: true });
  const q = (await box.mirror.connect())!;
  const ask = () => box.mirror.open(q, box.mirror.sourceOf("memory")!, embedder);
  const [one, other] = await Promise.all([ask(), ask()]);
  expect(other).toBe(one);
});

run("an outage under load loses nothing and is said in words", async () => {
  const box = openBox(target.name());
  box.put("The first one");
  await box.settled();
  await target.proxy.kill();
  const ids = Array.from({ length: 300 }, (_, i) => box.put(`Fact number ${i} about topic ${i % 7}`));
  expect(await search(box, "topic")).toContain("cannot be reached");
  expect(await box.ops.status()).toMatchObject({ enabled: true, healthy: false });
  await until(
    () =>
      box.db.query<{ n: number }, []>("SELECT count(*) AS n FROM jobs WHERE last_error IS NOT NULL").get()!
        .n > 0,
  );
  expect(
    box.db.query<{ n: number }, []>("SELECT count(*) AS n FROM jobs WHERE state = 'failed'").get()!.n,
  ).toBe(0);
  target.proxy.revive();
  await box.retried();
  expect((await points(box.connection.collection)).length).toBe(ids.length + 1);
});

run("a batch whose answer was lost is written again and stands once", async () => {
  const box = openBox(target.name());
  await box.settled();
  target.proxy.fault({ when: (m, p) => m === "PUT" && p.endsWith("/points"), loseAnswer: true, times: 1 });
  transact(box.db, () => {
    for (let i = 0; i < 20; i++) box.put(`Half-written ${i}`);
  });
  await until(
    () =>
      box.db.query<{ n: number }, []>("SELECT count(*) AS n FROM jobs WHERE last_error IS NOT NULL").get()!
        .n > 0,
  );
  await box.retried();
  expect((await points(box.connection.collection)).length).toBe(20);
});

run("full storage (507, 500) and a wrong key pause the outbox", async () => {
  const box = openBox(target.name());
  await box.settled();
  for (const status of [507, 500, 401]) {
    target.proxy.fault({ when: (m, p) => m === "PUT" && p.endsWith("/points"), status });
    box.put(`Written while ${status}`);
    await until(
      () =>
        box.db
          .query<{ n: number }, [string]>("SELECT count(*) AS n FROM jobs WHERE last_error LIKE ?")
          .get(`%${status}%`)!.n > 0,
    );
    expect(box.db.query<{ attempts: number }, []>("SELECT attempts FROM jobs").get()!.attempts).toBe(0);
    target.proxy.heal();
    await box.retried();
  }
  expect((await points(box.connection.collection)).length).toBe(3);
});

run("a slow server costs a search its deadline, and the reason is given", async () => {
  const box = openBox(target.name(), { searchTimeoutMs: 200 });
  box.put("Drinks oolong tea");
  await box.settled();
  target.proxy.fault({ when: (_, p) => p.endsWith("/points/query"), delay: 5000, times: 1 });
  expect(await search(box, "tea")).toContain("did not answer within 200 ms");
  expect(await search(box, "tea")).toHaveLength(1);
});

run("another model is built beside, then the alias moves and the old collection goes", async () => {
  const name = target.name();
  const box = openBox(name);
  for (let i = 0; i < 30; i++) box.put(`Fact ${i}`);
  await box.settled();
  expect((await aliasesOf(target.direct)).get(name)).toBe(`${name}__1`);
  box.embedder = otherModel(64);
  expect(await search(box, "Fact")).toContain("being filled");
  await box.settled();
  expect((await aliasesOf(target.direct)).get(name)).toBe(`${name}__2`);
  expect((await points(name)).length).toBe(30);
  expect(await search(box, "Fact 3")).toHaveLength(3);
});

run("reconcile finds and repairs missing, stale and orphaned points", async () => {
  const name = target.name();
  const box = openBox(name);
  const ids = Array.from({ length: 12 }, (_, i) => box.put(`Fact ${i}`));
  await box.settled();
  const orphan = crypto.randomUUID();
  const write = (work: Parameters<typeof target.direct.call>[1]) => target.direct.call("write", work);
  await write((api, init) =>
    api.deletePoints({ collection_name: name, wait: true, points: ids.slice(0, 2) }, init),
  );
  await write((api, init) =>
    api.setPayload(
      { collection_name: name, wait: true, points: [ids[5]!], payload: { content: "altered" } },
      init,
    ),
  );
  const payload = { kind: "omniroute_memory", memoryId: orphan, apiKeyId: "k1", content: "nobody's" };
  const elsewhere = { ...payload, memoryId: "x", boxId: "another appliance" };
  const vector = Array.from((await box.embedder.embed(["x"]))[0]!);
  await write((api, init) =>
    api.upsertPoints(
      {
        collection_name: name,
        wait: true,
        points: [
          { id: orphan, vector, payload },
          { id: crypto.randomUUID(), vector, payload: elsewhere },
        ],
      },
      init,
    ),
  );
  expect(await box.ops.reconcile({ dryRun: true })).toEqual({
    missing: 2,
    stale: 1,
    orphaned: 1,
    repaired: 0,
  });
  expect(await box.ops.reconcile({ dryRun: false })).toEqual({
    missing: 2,
    stale: 1,
    orphaned: 1,
    repaired: 4,
  });
  expect(await box.ops.reconcile({ dryRun: true })).toEqual({
    missing: 0,
    stale: 0,
    orphaned: 0,
    repaired: 0,
  });
  // Points of another appliance on the same server are left alone.
  expect((await points(name)).length).toBe(13);
});

run("reconcile makes a collection that somebody dropped anew", async () => {
  const name = target.name();
  const box = openBox(name);
  for (let i = 0; i < 5; i++) box.put(`Fact ${i}`);
  await box.settled();
  await target.direct.call("write", (api, init) =>
    api.deleteCollection({ collection_name: `${name}__1` }, init),
  );
  expect(await box.ops.reconcile({ dryRun: false })).toMatchObject({ missing: 5, repaired: 5 });
  await box.settled();
  expect((await points(name)).length).toBe(5);
});

run("expired and outdated points are filtered out of searches, counted and cleaned up", async () => {
  const name = target.name();
  const box = openBox(name);
  const [old, expired, pinned, fresh] = ["old", "expired", "pinned", "fresh"].map((w) =>
    box.put(`A ${w} tea`),
  );
  const past = Date.now() - 40 * 86_400_000;
  box.db.query("UPDATE memories SET confirmed_at = ? WHERE id IN (?, ?)").run(past, old!, pinned!);
  box.db.query("UPDATE memories SET pinned = 1 WHERE id = ?").run(pinned!);
  box.db.query("UPDATE memories SET expires_at = ? WHERE id = ?").run(Date.now() - 1000, expired!);
  await box.settled();
  await box.ops.reconcile({ dryRun: false });
  expect((await points(name)).length).toBe(4);
  expect(((await search(box, "tea")) as string[]).toSorted()).toEqual([pinned!, fresh!].toSorted());
  expect(await box.ops.cleanup()).toEqual({ ok: true, deletedCount: 2, retentionDays: 30 });
  expect((await points(name)).map((p) => String(p.id)).toSorted()).toEqual([pinned!, fresh!].toSorted());
});

run("a collection that somebody dropped is made and filled again", async () => {
  const name = target.name();
  const box = openBox(name);
  for (let i = 0; i < 5; i++) box.put(`Fact ${i}`);
  await box.settled();
  await target.direct.call("write", (api, init) =>
    api.deleteCollection({ collection_name: `${name}__1` }, init),
  );
  expect(await search(box, "Fact")).toContain("does not have");
  await box.settled();
  expect((await points(name)).length).toBe(5);
});

run("health makes a real search; the search test shows payloads", async () => {
  const box = openBox(target.name());
  const id = box.put("Drinks oolong tea");
  await box.settled();
  expect(await box.ops.health()).toEqual({
    ok: true,
    latencyMs: expect.any(Number),
    collection: box.connection.collection,
    dimension: 256,
  });
  const found = await box.ops.searchTest({ query: "tea", topK: 5 });
  expect(found).toMatchObject({ ok: true, results: [{ id, payload: { content: "Drinks oolong tea" } }] });
  const { embedder: usable } = box;
  box.embedder = null as never;
  expect(await box.ops.health()).toMatchObject({ ok: false, error: expect.stringContaining("no model") });
  box.embedder = usable;
  box.connection.url = null;
  expect(await box.ops.health()).toEqual({ ok: false, latencyMs: 0, error: "not_configured" });
});

run("what a crash left in the outbox is done by the next process, once", async () => {
  const name = target.name();
  const dir = mkdtempSync(join(tmpdir(), "mirror-"));
  const first = openBox(name, { dir, idle: true });
  const ids = Array.from({ length: 10 }, (_, i) => first.put(`Fact ${i}`));
  // One job was being worked on when the process ended.
  first.db.run(
    "UPDATE jobs SET state = 'running', lease_by = 'test', lease_until = 9e15 WHERE id = (SELECT min(id) FROM jobs)",
  );
  await boxes.pop()!.stop();
  const second = openBox(name, { dir });
  await second.settled();
  expect((await points(name)).map((p) => String(p.id)).toSorted()).toEqual(ids.toSorted());
  await boxes.pop()!.stop();
  rmSync(dir, { recursive: true });
});

run("a session's search sees its own rows and those without one", async () => {
  const box = openBox(target.name());
  const put = (content: string, sessionId: string | null) =>
    transact(box.db, () =>
      box.store.put({ ownerId: 1, key: null, content, metadata: {}, origin: "api", sessionId }),
    ).row.id;
  const mine = put("Tea in this session", "s1");
  const open = put("Tea without a session", null);
  put("Tea in another session", "s2");
  await box.settled();
  const [vector] = await embedder.embed(["tea"]);
  const answer = await box.mirror.search({
    owner: "k1",
    session: "s1",
    retentionDays: 30,
    now: Date.now(),
    kind: "memory",
    text: "tea",
    vector: vector!,
    signature: embedder.signature,
    limit: 10,
  });
  expect("hits" in answer && answer.hits.map((h) => h.pointId).toSorted()).toEqual([mine, open].toSorted());
});

run("a collection of another shape under the name is left alone, and the status says so", async () => {
  const name = target.name();
  await target.direct.call("write", (api, init) =>
    api.createCollection({ collection_name: name, vectors: { size: 3, distance: "Dot" } }, init),
  );
  const box = openBox(name);
  const id = box.put("Drinks oolong tea");
  await box.settled();
  expect(await search(box, "oolong tea")).toEqual([id]);
  expect((await points(name)).length).toBe(0);
  expect((await points(`${name}__1`)).length).toBe(1);
  expect((await box.ops.status()).error).toContain("is left alone");
});

run("a row that the server refuses holds up no other", async () => {
  const box = openBox(target.name(), { enabled: false });
  const bad = box.put("This one is refused");
  for (let i = 0; i < 20; i++) box.put(`Fact ${i}`);
  // Refused as the server refuses what it cannot read: with the whole request it came in.
  const refuse = { status: 400, body: '{"status":{"error":"Format error in JSON body"},"time":0}' };
  target.proxy.fault({
    ...refuse,
    when: (m, p, body) => m === "PUT" && p.endsWith("/points") && body.includes(bad),
  });
  box.connection.enabled = true;
  box.mirror.changed();
  await until(() => box.mirror.filled("memory")?.complete === true);
  expect((await points(box.connection.collection)).length).toBe(20);
  target.proxy.heal();
  await box.retried();
  expect((await points(box.connection.collection)).length).toBe(21);
});

test("points of long texts go in requests that a server takes", async () => {
  const name = target.name();
  await target.direct.call("write", (api, init) =>
    api.createCollection({ collection_name: name, vectors: { size: 4, distance: "Cosine" } }, init),
  );
  const quick: Embedder = {
    source: "static",
    model: "quick",
    dimensions: 4,
    signature: "static:quick:4",
    windows: (text) => [text],
    embed: async (texts) => texts.map(() => new Float32Array([1, 0, 0, 0])),
    close: async () => {},
  };
  const content = "長い文章。".repeat(6500);
  const rows = Array.from({ length: 400 }, (_, cursor) => ({
    pointId: crypto.randomUUID(),
    cursor,
    texts: { "": content },
    payload: { content },
  }));
  const before = target.proxy.seen.length;
  await upsert(await target.connect(), name, quick, rows);
  expect((await points(name)).length).toBe(400);
  expect(target.proxy.seen.slice(before).filter((r) => r.method === "PUT").length).toBeGreaterThan(1);
}, 30_000);
