// What a Qdrant server refuses, by its status: the same list for a real one and for the stand-in, so that no test passes
// on what only the stand-in takes.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startTarget } from "../support/qdrant-target.ts";
import type { QdrantTarget } from "../support/qdrant-target.ts";

let target: QdrantTarget;
let name: string;

async function ask(method: string, path: string, body?: unknown): Promise<{ status: number; said: string }> {
  const response = await fetch(`${target.url}/collections${path}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(target.apiKey === null ? {} : { "api-key": target.apiKey }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { status } = (await response.json()) as { status: string | { error: string } };
  return { status: response.status, said: typeof status === "string" ? status : status.error };
}

const id = "00000000-0000-4000-8000-000000000001";
const absent = "00000000-0000-4000-8000-000000000099";
const cosine = { size: 4, distance: "Cosine" };

beforeAll(async () => {
  target = await startTarget();
  name = target.name();
  const made = await ask("PUT", `/${name}`, {
    vectors: { text: cosine },
    sparse_vectors: { bm25: { modifier: "idf" } },
  });
  expect(made.status).toBe(200);
  for (const [field_name, field_schema] of [
    ["word", "keyword"],
    ["number", "integer"],
  ])
    expect((await ask("PUT", `/${name}/index?wait=true`, { field_name, field_schema })).status).toBe(200);
  const points = [{ id, vector: { text: [1, 0, 0, 0] }, payload: { word: "a", number: 1 } }];
  expect((await ask("PUT", `/${name}/points?wait=true`, { points })).status).toBe(200);
});
afterAll(() => target.stop());

const upsert = (vector: unknown, at: unknown = id): [string, string, unknown] => [
  "PUT",
  "/points?wait=true",
  { points: [{ id: at, vector }] },
];
const query = (body: object): [string, string, unknown] => ["POST", "/points/query", body];
const count = (condition: unknown): [string, string, unknown] => [
  "POST",
  "/points/count",
  { filter: { must: [condition] } },
];
const text = [1, 0, 0, 0];

test.each<[string, number, string, [string, string, unknown?]]>([
  ["a name that is taken", 409, "already exists!", ["PUT", "", { vectors: cosine }]],
  ["a name with a colon", 422, "collection name", ["PUT", "%3Ax", { vectors: cosine }]],
  ["a vector that is too long", 422, "size", ["PUT", "_x", { vectors: { ...cosine, size: 65_537 } }]],
  ["an unknown distance", 400, "Format error", ["PUT", "_x", { vectors: { size: 4, distance: "cosine" } }]],
  ["a graph too poor", 422, "ef_construct", ["PATCH", "", { hnsw_config: { ef_construct: 3 } }]],
  ["a quantisation without a name", 400, "Format error", ["PATCH", "", { quantization_config: "none" }]],
  [
    "an index of no type",
    400,
    "Format error",
    ["PUT", "/index", { field_name: "q", field_schema: "string" }],
  ],
  [
    "a field that is no path",
    400,
    "Format error",
    ["PUT", "/index", { field_name: "a b", field_schema: "bool" }],
  ],
  ["a word for wait", 400, "true", ["PUT", "/index?wait=yes", { field_name: "q", field_schema: "bool" }]],
  ["no points", 400, "Empty update request", ["PUT", "/points?wait=true", { points: [] }]],
  ["an id that is no UUID", 400, "Format error", upsert({ text }, "nope")],
  ["an unnamed vector", 400, "Not existing vector name", upsert(text)],
  ["an unknown vector", 400, "Not existing vector name", upsert({ other: text })],
  ["a vector of another size", 400, "expected dim: 4, got 3 for vector 'text'", upsert({ text: [1, 0, 0] })],
  ["words as a dense vector", 400, "Conversion between", upsert({ bm25: text })],
  ["a word twice", 422, "unique", upsert({ bm25: { indices: [1, 1], values: [1, 2] } })],
  ["words without weights", 422, "same length", upsert({ bm25: { indices: [1], values: [] } })],
  [
    "a payload for no point",
    404,
    `No point with id ${absent} found`,
    ["POST", "/points/payload?wait=true", { points: [absent], payload: { word: "b" } }],
  ],
  ["a deletion of nothing named", 400, "Format error", ["POST", "/points/delete?wait=true", {}]],
  ["an unknown clause", 400, "Format error", ["POST", "/points/count", { filter: { musst: [] } }]],
  ["a match with a fraction", 400, "Format error", count({ key: "number", match: { value: 1.5 } })],
  ["a filter on no path", 400, "Format error", count({ key: "a[", match: { value: "a" } })],
  ["an order by words", 400, "No range index", ["POST", "/points/scroll", { order_by: "word" }]],
  [
    "an order with an offset",
    400,
    "Cannot use an `offset`",
    ["POST", "/points/scroll", { order_by: "number", offset: id }],
  ],
  ["a page of none", 422, "limit", ["POST", "/points/scroll", { limit: 0 }]],
  ["counts of a field without index", 400, "No appropriate index", ["POST", "/facet", { key: "other" }]],
  [
    "a vector by an unknown name",
    400,
    "Not existing vector name",
    ["POST", "/points", { ids: [id], with_vector: ["other"] }],
  ],
  ["a query of another size", 400, "expected dim: 4, got 3", query({ query: [1, 0, 0], using: "text" })],
  [
    "a query of words for a dense vector",
    400,
    "Conversion between",
    query({ query: { indices: [1], values: [1] }, using: "text" }),
  ],
  [
    "a query that names a word twice",
    422,
    "unique",
    query({ query: { indices: [1, 1], values: [1, 1] }, using: "bm25" }),
  ],
  ["a fusion of nothing", 400, "without prefetches", query({ query: { fusion: "rrf" }, prefetch: [] })],
])("%s", async (_, status, said, [method, path, body]) => {
  const answer = await ask(method, `/${name}${path}`, body);
  expect(answer.said).toContain(said);
  expect(answer.status).toBe(status);
});

test("aliases change one after the other, and what was done before a refusal stays", async () => {
  const alias = target.name();
  const create = { create_alias: { alias_name: alias, collection_name: name } };
  expect((await ask("POST", "/aliases", { actions: [create] })).status).toBe(200);
  expect((await ask("PUT", `/${alias}`, { vectors: cosine })).said).toContain("Alias with the same name");
  const lost = { create_alias: { alias_name: alias, collection_name: `${name}_lost` } };
  const drop = { delete_alias: { alias_name: alias } };
  expect((await ask("POST", "/aliases", { actions: [drop, lost] })).status).toBe(404);
  expect((await ask("GET", `/${alias}`)).status).toBe(404);
  const own = { create_alias: { alias_name: name, collection_name: name } };
  expect((await ask("POST", "/aliases", { actions: [own] })).status).toBe(409);
});
