import { afterAll, beforeAll, expect, test } from "bun:test";
import { startApi, type ApiServer } from "./support/api-server.ts";

let api: ApiServer;
beforeAll(async () => {
  api = await startApi();
  const row = {
    keyId: "anna",
    provider: "p",
    route: "chat",
    status: 200,
    tokensIn: 10,
    tokensOut: 5,
    tokensInjected: 2,
    tokensCached: 1,
    estimated: false,
    latencyMs: 1,
    ttftMs: null,
    cost: 0.5,
    receiptId: null,
  };
  const at = (day: string) => Date.parse(`${day}T10:00:00Z`);
  await api.engine.exchange.addUsage({
    rows: [
      { ...row, owner: "anna", model: "a", at: at("2026-03-01") },
      { ...row, owner: "anna", model: "b", at: at("2026-03-02"), status: 502 },
      { ...row, owner: "bert", keyId: "bert", model: "a", at: at("2026-03-02") },
    ],
  });
});
afterAll(() => api.stop());

const usage = async (query: string) => (await api.management("GET", `/api/usage?${query}`)).json;

test("sums by day, owner and model, within times", async () => {
  const march = "from=2026-03-01&to=2026-04-01";
  expect((await usage(march)).data).toMatchObject([
    { day: "2026-03-02", requests: 2, errors: 1, tokensIn: 20, cost: 1 },
    { day: "2026-03-01", requests: 1, errors: 0, tokensInjected: 2, tokensCached: 1 },
  ]);
  expect((await usage(`${march}&groupBy=owner`)).data).toMatchObject([
    { owner: "anna", requests: 2 },
    { owner: "bert", requests: 1 },
  ]);
  expect((await usage(`${march}&groupBy=day,owner,model`)).data).toHaveLength(3);
  expect((await usage(`${march}&apiKeyId=bert`)).data).toMatchObject([{ requests: 1 }]);
  expect((await usage("from=2026-03-02T00:00:00Z&to=2026-03-03")).data).toMatchObject([{ requests: 2 }]);
});

test("names what is wrong", async () => {
  const wrong = async (query: string) => (await usage(query)).error.details[0].field;
  expect(await wrong("from=yesterday")).toBe("from");
  expect(await wrong("from=2026-03-02&to=2026-03-01")).toBe("from");
  expect(await wrong("groupBy=day,hour")).toBe("groupBy[1]");
  expect((await api.anna("GET", "/api/usage")).status).toBe(403);
});
