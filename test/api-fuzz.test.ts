import { afterAll, beforeAll, expect, test } from "bun:test";
import { startApi, type ApiServer } from "./support/api-server.ts";
import { fuzzApi } from "./support/fuzz-api.ts";
import { seedOwner } from "./support/seed-owner.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

test("2,000 generated requests find no 500, and every answer is what the document says", async () => {
  const seeded = await seedOwner(api, api.anna, "anna");
  const report = await fuzzApi(api, 2000, seeded, 42);
  expect([...new Set(api.errors.map(String))]).toEqual([]);
  expect(report.failures).toEqual([]);
  // Enough of them are right, or nothing was tried.
  expect(report.statuses[200]).toBeGreaterThan(200);
  expect(report.statuses[400]).toBeGreaterThan(200);
}, 60_000);
