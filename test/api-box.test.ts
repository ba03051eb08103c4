import { afterAll, beforeAll, expect, test } from "bun:test";
import { startApi, type ApiServer } from "./support/api-server.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const from = (address: string, secret: string | null, path: string) =>
  api.send(secret, "GET", path, { headers: { "x-test-address": address } });

test("/health says no more than that it lives", async () => {
  const { status, json } = await api.anonymous("GET", "/health");
  expect([status, Object.keys(json)]).toEqual([200, ["status", "version", "uptimeSeconds"]]);
});

test("/ready and /metrics are for this machine or the token", async () => {
  for (const path of ["/ready", "/metrics"]) {
    expect((await from("127.0.0.1", null, path)).status).toBe(200);
    expect((await from("192.0.2.7", null, path)).status).toBe(401);
    expect((await from("192.0.2.7", api.secrets.anna, path)).status).toBe(403);
    expect((await from("192.0.2.7", api.token, path)).status).toBe(200);
    const passedOn = { "x-test-address": "127.0.0.1", "x-forwarded-for": "192.0.2.7" };
    expect((await api.send(null, "GET", path, { headers: passedOn })).status).toBe(401);
  }
});

test("/metrics counts requests by route, and memories by status, in the text format", async () => {
  const { id } = (await api.anna("POST", "/api/memory", { content: "Counts sheep" })).json;
  await api.anna("GET", `/api/memory/${id}`);
  const { text, headers } = await api.anonymous("GET", "/metrics");
  expect(headers.get("content-type")).toStartWith("text/plain; version=0.0.4");
  expect(text).toContain('recollect_requests_total{route="/api/memory/:id",status="200"} 1\n');
  expect(text).toContain('recollect_memories{status="active"} 1\n');
  expect(text).toContain('recollect_jobs{state="failed"} 0\n');
  expect(text).not.toContain(id);
  for (const line of text.trimEnd().split("\n"))
    expect(line).toMatch(/^(# (HELP|TYPE) \S+ .+|[a-z_]+(\{.*\})? \S+)$/);
});

test("a job that was set aside is listed with its reason and tried again once", async () => {
  api.db
    .query(
      "INSERT INTO jobs (type, owner_id, state, payload, attempts, last_error, run_at, created_at) SELECT 'extract', id, 'failed', '{}', 5, 'no such model', 0, 0 FROM owners WHERE name = 'anna'",
    )
    .run();
  const list = (await api.management("GET", "/api/jobs?state=failed")).json;
  expect(list).toMatchObject({
    total: 1,
    data: [{ type: "extract", state: "failed", apiKeyId: "anna", attempts: 5, lastError: "no such model" }],
  });
  const retried = await api.management("POST", `/api/jobs/${list.data[0].id}/retry`);
  expect(retried.json.job).toMatchObject({ state: "queued" });
  expect((await api.management("POST", `/api/jobs/${list.data[0].id}/retry`)).status).toBe(404);
  expect((await api.management("POST", "/api/jobs/0/retry")).status).toBe(404);
  expect((await api.management("GET", "/api/jobs?state=lost")).json.error.param).toBe("state");
});
