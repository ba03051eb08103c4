import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  aliasesOf,
  dimensionOf,
  infoOf,
  openCollection,
  switchAlias,
} from "../../src/search/qdrant/collections.ts";
import type { CollectionOptions } from "../../src/search/qdrant/collections.ts";
import type { Qdrant } from "../../src/search/qdrant/client.ts";
import { memoryIndexes } from "../../src/search/qdrant/points.ts";
import { startTarget, until } from "../support/qdrant-target.ts";
import type { QdrantTarget } from "../support/qdrant-target.ts";

let target: QdrantTarget;
let q: Qdrant;
beforeAll(async () => {
  target = await startTarget();
  q = await target.connect();
});
afterAll(() => target.stop());

const options = (name: string, size = 4, signature = `static:m:${size}`): CollectionOptions => ({
  name,
  shape: { vectors: { "": size }, indexes: memoryIndexes },
  signature,
  quantization: "none",
  efConstruct: null,
});
const upsert = (collection: string, vector: number[]): Promise<unknown> =>
  q.call("write", (api, init) =>
    api.upsertPoints(
      { collection_name: collection, wait: true, points: [{ id: crypto.randomUUID(), vector, payload: {} }] },
      init,
    ),
  );
const countOf = async (collection: string): Promise<number> =>
  (await q.call("search", (api, init) => api.countPoints({ collection_name: collection, exact: true }, init)))
    .count;

test("the configured name is an alias of the first version", async () => {
  const name = target.name();
  const first = await openCollection(q, options(name));
  expect(first).toEqual({ physical: `${name}__1`, old: null, aliased: true, created: true, note: null });
  expect((await aliasesOf(q)).get(name)).toBe(`${name}__1`);
  const info = await infoOf(q, name);
  expect(info && dimensionOf(info)).toBe(4);
  expect(Object.keys(info?.payload_schema ?? {}).toSorted()).toEqual(Object.keys(memoryIndexes).toSorted());
  expect(await openCollection(q, options(name))).toEqual({ ...first, created: false });
});

test("another size is built beside the old one, which stays until the switch", async () => {
  const name = target.name();
  await openCollection(q, options(name));
  await upsert(name, [1, 0, 0, 0]);
  const next = await openCollection(q, options(name, 6));
  expect(next).toMatchObject({ physical: `${name}__2`, old: `${name}__1` });
  expect(await countOf(name)).toBe(1);
  // A build that was interrupted goes on with the same collection.
  expect(await openCollection(q, options(name, 6))).toMatchObject({ physical: `${name}__2`, created: false });
  await upsert(next.physical, [1, 0, 0, 0, 0, 0]);
  await switchAlias(q, name, next.old, next.physical);
  expect((await aliasesOf(q)).get(name)).toBe(`${name}__2`);
  expect(await infoOf(q, `${name}__1`)).toBeNull();
  expect(await openCollection(q, options(name, 6))).toMatchObject({ physical: `${name}__2`, old: null });
});

test("another model of the same size is another version", async () => {
  const name = target.name();
  await openCollection(q, options(name, 4, "static:a:4"));
  expect(await openCollection(q, options(name, 4, "static:b:4"))).toMatchObject({
    physical: `${name}__2`,
    old: `${name}__1`,
  });
});

test("appliances that start in the same moment make one collection", async () => {
  const name = target.name();
  const other = await target.connect();
  // As a cluster does while the shards of a new collection come up.
  target.proxy.fault({
    when: (method, path) => method === "GET" && path === `/collections/${name}__1`,
    status: 500,
    times: 1,
  });
  const both = await Promise.all([openCollection(q, options(name)), openCollection(other, options(name))]);
  expect(both.map((one) => one.physical)).toEqual([`${name}__1`, `${name}__1`]);
  expect(both.filter((one) => one.created)).toHaveLength(1);
  target.proxy.heal();
  expect(await infoOf(q, `${name}__2`)).toBeNull();
});

test("a foreign collection is used when it fits, and else never written to", async () => {
  const name = target.name();
  await q.call("write", (api, init) =>
    api.createCollection({ collection_name: name, vectors: { size: 4, distance: "Cosine" } }, init),
  );
  const fitting = await openCollection(q, options(name));
  expect(fitting).toMatchObject({ physical: name, old: null, aliased: false, created: false });
  expect(fitting.note).toContain("another program");
  await upsert(name, [0, 1, 0, 0]);
  const before = target.proxy.seen.length;
  const beside = await openCollection(q, options(name, 6));
  expect(beside).toMatchObject({ physical: `${name}__1`, aliased: false });
  const writes = target.proxy.seen
    .slice(before)
    .filter((r) => r.method !== "GET" && r.path.startsWith(`/collections/${name}/`));
  expect(writes).toEqual([]);
  expect(await countOf(name)).toBe(1);
});

test("quantisation is set at creation and changed on an existing collection", async () => {
  const name = target.name();
  await openCollection(q, { ...options(name), quantization: "int8", efConstruct: 64 });
  const config = async (): Promise<unknown> => (await infoOf(q, name))?.config.quantization_config ?? null;
  expect(await config()).toMatchObject({ scalar: { type: "int8", always_ram: true } });
  expect((await infoOf(q, name))?.config.hnsw_config.ef_construct).toBe(64);
  await openCollection(q, { ...options(name), quantization: "binary" });
  // A cluster's nodes hear of it one after the other.
  await until(async () => Bun.deepEquals(await config(), { binary: { always_ram: true } }));
  await openCollection(q, options(name));
  await until(async () => (await config()) === null);
});
