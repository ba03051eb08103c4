import { afterEach, beforeEach, expect, test } from "bun:test";
import { AppError } from "../src/error.ts";
import { startTestEngine } from "./support/engine.ts";
import type { TestEngine } from "./support/engine.ts";

let box: TestEngine;
beforeEach(() => (box = startTestEngine()));
afterEach(() => box.stop());

const create = (
  content: string,
  more: { key?: string; owner?: string; metadata?: { [name: string]: string } } = {},
) => box.engine.memories.create({ owner: "anna", origin: "api", content, ...more });

async function code(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
  return "none";
}

test("creating with the key of an active memory updates it in place and keeps the old content as history", async () => {
  const first = await create("Prefers tea", { key: "preference:drink", metadata: { a: "1", b: "1" } });
  const second = await create("Prefers coffee", { key: "preference:drink", metadata: { b: "2" } });
  expect(first.created).toBe(true);
  expect(second.created).toBe(false);
  expect(second.memory.id).toBe(first.memory.id);
  expect(second.memory.createdAt).toBe(first.memory.createdAt);
  expect(second.memory.metadata).toEqual({ a: "1", b: "2" });
  const history = await box.engine.memories.history({ owner: "anna", id: first.memory.id });
  expect(history.map((version) => [version.version, version.content, version.cause])).toEqual([
    [1, "Prefers tea", "upsert"],
    [2, "Prefers coffee", "current"],
  ]);
});

test("what had expired holds again when it is said again, and keeps a time that is still to come", async () => {
  const made = (key: string, expiresAt?: string) =>
    box.engine.memories.create({
      owner: "anna",
      origin: "api",
      content: `Parks on ${expiresAt}`,
      key,
      ...(expiresAt === undefined ? {} : { expiresAt }),
    });
  await made("over", "2020-01-01T00:00:00Z");
  await made("open", "2999-01-01T00:00:00Z");
  expect((await made("over")).memory.expiresAt).toBeNull();
  expect((await made("open")).memory.expiresAt).toBe("2999-01-01T00:00:00.000Z");
});

test("without a key it always inserts, and one owner's key is free for another", async () => {
  await create("Likes rain");
  await create("Likes rain");
  await create("Prefers tea", { key: "drink" });
  const other = await create("Prefers milk", { key: "drink", owner: "bert" });
  expect(other.created).toBe(true);
  const { total } = await box.engine.memories.list({ owner: "anna", limit: 50, offset: 0 });
  expect(total).toBe(3);
});

test("any version can be restored, and what was current becomes history", async () => {
  const { memory } = await create("Lives in Oslo", { key: "identity:home" });
  await create("Lives in Turku", { key: "identity:home" });
  const restored = await box.engine.memories.restore({ owner: "anna", id: memory.id, version: 1 });
  expect(restored.content).toBe("Lives in Oslo");
  expect(restored.version).toBe(3);
  const history = await box.engine.memories.history({ owner: "anna", id: memory.id });
  expect(history.map((version) => version.content)).toEqual([
    "Lives in Oslo",
    "Lives in Turku",
    "Lives in Oslo",
  ]);
  expect(await code(box.engine.memories.restore({ owner: "anna", id: memory.id, version: 9 }))).toBe(
    "invalid_request",
  );
});

test("archive can be undone, unless another active memory took the key meanwhile", async () => {
  const { memory } = await create("Lives in Oslo", { key: "identity:home" });
  await box.engine.memories.update({ owner: "anna", id: memory.id, patch: { status: "archived" } });
  const back = await box.engine.memories.update({
    owner: "anna",
    id: memory.id,
    patch: { status: "active" },
  });
  expect(back.memory.status).toBe("active");
  await box.engine.memories.update({ owner: "anna", id: memory.id, patch: { status: "archived" } });
  await create("Lives in Turku", { key: "identity:home" });
  expect(
    await code(box.engine.memories.update({ owner: "anna", id: memory.id, patch: { status: "active" } })),
  ).toBe("conflict");
  expect((await box.engine.memories.get({ owner: "anna", id: memory.id })).status).toBe("archived");
});

test("a key that another memory holds is refused on edit, and nothing changes", async () => {
  await create("Prefers tea", { key: "drink" });
  const { memory } = await create("Prefers rye", { key: "bread" });
  expect(
    await code(
      box.engine.memories.update({ owner: "anna", id: memory.id, patch: { key: "drink", content: "x y z" } }),
    ),
  ).toBe("conflict");
  const same = await box.engine.memories.get({ owner: "anna", id: memory.id });
  expect([same.key, same.content, same.version]).toEqual(["bread", "Prefers rye", 1]);
});

test("another owner's id is as unknown as one that is not there, for every call", async () => {
  const { memory } = await create("Private to Anna");
  const foreign = { owner: "bert", id: memory.id };
  const memories = box.engine.memories;
  for (const call of [
    memories.get(foreign),
    memories.update({ ...foreign, patch: { content: "taken over" } }),
    memories.remove(foreign),
    memories.history(foreign),
    memories.restore({ ...foreign, version: 1 }),
    memories.approve(foreign),
    memories.reject(foreign),
  ]) {
    expect(await code(call)).toBe("not_found");
  }
  expect(
    (await memories.bulkDelete({ owner: "bert", selection: { ids: [memory.id] }, dryRun: false })).matched,
  ).toBe(0);
  expect((await memories.get({ owner: "anna", id: memory.id })).content).toBe("Private to Anna");
});

test("bulk delete walks past any page size, spares pinned ones, and a dry run deletes nothing", async () => {
  for (let i = 0; i < 450; i++) await create(`Note number ${i}`);
  const pinned = await box.engine.memories.create({
    owner: "anna",
    origin: "api",
    content: "Keep this",
    pinned: true,
  });
  const filter = { owner: "anna", selection: { type: "factual" as const } };
  expect(await box.engine.memories.bulkDelete({ ...filter, dryRun: true })).toEqual({
    matched: 450,
    deleted: 0,
    dryRun: true,
  });
  expect(await box.engine.memories.bulkDelete({ ...filter, dryRun: false })).toEqual({
    matched: 450,
    deleted: 450,
    dryRun: false,
  });
  const left = await box.engine.memories.list({ owner: "anna", limit: 50, offset: 0 });
  expect(left.data.map((memory) => memory.id)).toEqual([pinned.memory.id]);
});

test("q takes wildcards literally and folds case; statistics follow the filters", async () => {
  await create("Saves 100% of receipts");
  await create("Saves 100 of receipts");
  await create("Asuu ÄÄNEKOSKELLA", { key: "identity:home" });
  const find = async (q: string) =>
    (await box.engine.memories.list({ owner: "anna", q, limit: 50, offset: 0 })).data.length;
  expect(await find("100%")).toBe(1);
  expect(await find("_00")).toBe(0);
  expect(await find("äänekoskella")).toBe(1);
  expect(await find("IDENTITY:home")).toBe(1);
  const { stats } = await box.engine.memories.list({ owner: "anna", q: "receipts", limit: 1, offset: 0 });
  expect([stats.total, stats.byType.factual]).toEqual([2, 2]);
});

test("counters agree with the rows after every kind of change", async () => {
  const { memory } = await create("Prefers tea", { key: "drink" });
  await create("Prefers a very long pot of coffee", { key: "drink" });
  await create("Plain note");
  await box.engine.memories.update({ owner: "anna", id: memory.id, patch: { type: "procedural" } });
  await box.engine.memories.update({ owner: "anna", id: memory.id, patch: { status: "archived" } });
  const counted = box.db
    .query(
      "SELECT owner_id, status, type, origin, n, tokens FROM memory_counts WHERE n <> 0 ORDER BY 1, 2, 3, 4",
    )
    .all();
  const real = box.db
    .query(
      "SELECT owner_id, status, type, origin, count(*) AS n, sum(tokens) AS tokens FROM memories GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
    )
    .all();
  expect(counted).toEqual(real);
});

test("contents at the limits: 32,768 characters pass, one more is refused by name, and nothing is stored", async () => {
  await create("x".repeat(32_768));
  expect(await code(create("x".repeat(32_769)))).toBe("invalid_request");
  expect(await code(create(" \u0000 "))).toBe("invalid_request");
  expect(await code(create("fine", { key: "k".repeat(201) }))).toBe("invalid_request");
  expect(await code(create("fine", { metadata: { big: "m".repeat(17_000) } }))).toBe("invalid_request");
  expect((await box.engine.memories.list({ owner: "anna", limit: 50, offset: 0 })).total).toBe(1);
});
