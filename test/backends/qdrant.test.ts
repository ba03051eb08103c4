import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { QdrantBackend } from "../../src/backends/qdrant.ts";
import { openStatic } from "../../src/embed/static.ts";
import type { Embedder } from "../../src/embed/types.ts";
import type { Qdrant } from "../../src/search/qdrant/client.ts";
import { aliasesOf } from "../../src/search/qdrant/collections.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { startTarget } from "../support/qdrant-target.ts";
import type { QdrantTarget } from "../support/qdrant-target.ts";
import { memoryOf } from "./conformance.ts";

const models = testModels();
const run = test.skipIf(models === null);
let target: QdrantTarget;
let q: Qdrant;
let model: Embedder;
beforeAll(async () => {
  target = await startTarget();
  q = await target.connect();
  if (models !== null) model = await openStatic(join(models, STATIC_REPO), "test");
});
afterAll(() => target.stop());

const cutTo = (size: number): Embedder => ({
  ...model,
  dimensions: size,
  signature: `static:cut:${size}`,
  windows: (text) => model.windows(text),
  embed: async (texts) => (await model.embed(texts)).map((v) => v.slice(0, size)),
  close: async () => {},
});

function appliance(
  collection: string,
  boxId: string,
  client = q,
): { backend: QdrantBackend; use(embedder: Embedder): void } {
  let embedder = model;
  const backend = new QdrantBackend("qdrant", "Qdrant", {
    connect: async () => client,
    embedder: async () => embedder,
    collection,
    quantization: "int8",
    efConstruct: null,
    boxId,
  });
  return {
    backend,
    use(next) {
      embedder = next;
    },
  };
}
const found = async (backend: QdrantBackend, query: string): Promise<string[]> =>
  (await backend.search({ query, apiKeyId: "k1", limit: 5 })).map((f) => f.memory.content);

run("another model is built from the points themselves, and nothing is lost meanwhile", async () => {
  const name = target.name();
  const a = appliance(name, "a");
  const b = appliance(name, "b");
  const kept = await a.backend.create(memoryOf({ content: "Drinks oolong tea every morning" }));
  const gone = await a.backend.create(memoryOf({ content: "Lives in Helsinki" }));
  a.use(cutTo(64));
  expect(await found(a.backend, "oolong tea")).toEqual([kept.content]);
  // Written and deleted while the new collection stands beside the old one.
  const late = await a.backend.create(memoryOf({ content: "Plays the cello" }));
  expect(await a.backend.delete("k1", gone.id)).toBe(true);
  expect(await b.backend.get("k1", late.id)).toEqual(late);
  expect(await a.backend.migrate()).toBe(true);
  expect((await aliasesOf(q)).get(name)).toBe(`${name}__2`);
  expect((await a.backend.list({ apiKeyId: "k1", limit: 10, offset: 0 })).data).toEqual([late, kept]);
  expect((await found(a.backend, "Which instrument, the cello?"))[0]).toBe(late.content);
  expect(await a.backend.migrate()).toBe(false);
});

run("dense and words are fused by the server: a paraphrase and a rare word are both found", async () => {
  const { backend } = appliance(target.name(), "a");
  await backend.create(memoryOf({ content: "Prefers dark colour schemes in every editor" }));
  await backend.create(memoryOf({ content: "The invoice number is QX-7741" }));
  for (let i = 0; i < 20; i++)
    await backend.create(memoryOf({ content: `Note ${i} about gardening and roses` }));
  const before = target.proxy.seen.length;
  expect((await found(backend, "QX-7741"))[0]).toContain("QX-7741");
  expect((await found(backend, "dark theme of the editor"))[0]).toContain("dark colour schemes");
  const queries = target.proxy.seen.slice(before).filter((r) => r.path.includes("/points/query"));
  expect(queries).toHaveLength(2);
});

run("an update of one field does not undo another appliance's update of another", async () => {
  const name = target.name();
  const a = appliance(name, "a").backend;
  const b = appliance(name, "b").backend;
  const memory = await a.create(memoryOf());
  await Promise.all([
    a.update("k1", memory.id, { pinned: true }),
    b.update("k1", memory.id, { metadata: { seen: "b" } }),
  ]);
  expect(await a.get("k1", memory.id)).toMatchObject({ pinned: true, metadata: { seen: "b" } });
});

run("an update of what another appliance deletes meanwhile changes nothing", async () => {
  const name = target.name();
  const memory = await appliance(name, "a").backend.create(memoryOf());
  let calls: number | null = null;
  const racing: Qdrant = {
    ...q,
    async call(kind, ask, signal) {
      // The first call reads the point, the second changes it.
      if (calls !== null && ++calls === 2)
        await q.call("write", (api, init) =>
          api.deletePoints({ collection_name: name, wait: true, points: [memory.id] }, init),
        );
      return q.call(kind, ask, signal);
    },
  };
  const late = appliance(name, "b", racing).backend;
  await late.initialize();
  calls = 0;
  expect(await late.update("k1", memory.id, { pinned: true })).toBe(false);
  expect(await late.get("k1", memory.id)).toBeNull();
});

run("a collection that was made beforehand, with shards of its own, is used", async () => {
  const name = target.name();
  const physical = `${name}__1`;
  await target.direct.call("write", (api, init) =>
    api.createCollection(
      {
        collection_name: physical,
        vectors: { text: { size: model.dimensions, distance: "Cosine" } },
        sparse_vectors: { bm25: { modifier: "idf" } },
        shard_number: 2,
      },
      init,
    ),
  );
  const actions = [{ create_alias: { alias_name: name, collection_name: physical } }];
  await target.direct.call("write", (api, init) => api.updateAliases({ actions }, init));
  const { backend } = appliance(name, "a");
  await backend.create(memoryOf({ content: "Drinks tea" }));
  expect(await found(backend, "tea")).toEqual(["Drinks tea"]);
  expect((await aliasesOf(q)).get(name)).toBe(physical);
});
