import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startAppliance } from "../support/appliance.ts";
import type { Appliance } from "../support/appliance.ts";
import { startQdrant } from "../support/qdrant.ts";
import type { QdrantStandIn } from "../support/qdrant.ts";

let server: QdrantStandIn;
let box: Appliance;
beforeAll(async () => {
  server = startQdrant({ apiKey: "a-secret-of-the-vector-store" });
  box = await startAppliance({ env: { QDRANT_COLLECTION: "from_env" } });
});
afterAll(async () => {
  await box.stop();
  await server.stop();
});

const path = "/api/settings/qdrant";
const defaults = {
  enabled: false,
  host: "",
  port: 6333,
  collection: "from_env",
  embeddingModel: null,
  quantization: "none",
  hasApiKey: false,
  apiKeyMasked: null,
};
const selector = async (): Promise<unknown> =>
  ((await box.call("GET", "/api/settings/memory")).body as { vectorStore: unknown }).vectorStore;

test("the environment gives first values, and nothing is enabled by itself", async () => {
  expect((await box.call("GET", path)).body).toEqual(defaults);
  expect((await box.call("GET", `${path}/health`)).body).toEqual({
    ok: false,
    latencyMs: 0,
    error: "not_configured",
  });
  expect((await box.call("GET", path, undefined, box.key)).status).toBe(403);
});

test.each([
  ["host", { host: "ftp://x" }],
  ["host", { enabled: true }],
  ["port", { port: 0 }],
  ["collection", { collection: "a b" }],
  ["embeddingModel", { embeddingModel: "nonsense" }],
  ["quantization", { quantization: "int4" }],
  ["vectorSize", { vectorSize: 4 }],
])("a bad %s is named and nothing is stored", async (field, body) => {
  const answer = await box.call("PUT", path, body);
  expect(answer.status).toBe(400);
  expect(JSON.stringify(answer.body)).toContain(field);
  expect((await box.call("GET", path)).body).toEqual(defaults);
});

test("enabling moves the engine's selector with it, and back to auto", async () => {
  const on = await box.call("PUT", path, {
    enabled: true,
    host: server.url,
    apiKey: "a-secret-of-the-vector-store",
    quantization: "int8",
  });
  expect(on.body).toMatchObject({ enabled: true, host: server.url, quantization: "int8", hasApiKey: true });
  expect(JSON.stringify(on.body)).not.toContain("secret-of");
  for (const file of readdirSync(box.dataDir).filter((one) => one.startsWith("recollect.db")))
    expect(readFileSync(join(box.dataDir, file)).includes("a-secret-of")).toBe(false);
  expect(await selector()).toBe("qdrant");
  await box.call("PUT", "/api/settings/memory", { vectorStore: "sqlite-vec" });
  expect((await box.call("GET", path)).body).toMatchObject({ enabled: false });
  await box.call("PUT", path, { enabled: true });
  await box.call("PUT", path, { enabled: false });
  expect(await selector()).toBe("auto");
});

test("the key is write-only: what is shown changes nothing, an empty text removes it", async () => {
  const { apiKeyMasked } = (await box.call("GET", path)).body as { apiKeyMasked: string };
  await box.call("PUT", path, { apiKey: apiKeyMasked, host: server.url });
  // The stored key still opens the server.
  expect((await box.call("GET", `${path}/health`)).body).toMatchObject({
    ok: false,
    error: expect.stringContaining("no collection"),
  });
  expect((await box.call("PUT", path, { apiKey: "" })).body).toMatchObject({
    hasApiKey: false,
    apiKeyMasked: null,
  });
  expect((await box.call("GET", `${path}/health`)).body).toMatchObject({
    ok: false,
    error: expect.stringContaining("401"),
  });
});

test("search and cleanup answer in words when there is nothing to ask", async () => {
  expect((await box.call("POST", `${path}/search`, { query: "tea", topK: 21 })).status).toBe(400);
  expect((await box.call("POST", `${path}/search`, { query: "tea" })).body).toMatchObject({
    ok: false,
    results: [],
    error: expect.any(String),
  });
  expect((await box.call("POST", `${path}/cleanup`)).body).toEqual({
    ok: true,
    deletedCount: 0,
    retentionDays: 30,
  });
  expect((await box.call("POST", `${path}/reconcile`, { dryRun: true })).status).toBe(409);
  expect((await box.call("GET", `${path}/embedding-models`)).body).toEqual({ models: expect.any(Array) });
});
