/** Who may call what, for every route in the OpenAPI document. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { startAppliance } from "./support/appliance.ts";
import { startApi, type ApiServer } from "./support/api-server.ts";
import { bodySchema, fill, rawBodyType, routes, valid, type Route } from "./support/openapi.ts";
import type { Document } from "../src/api/document.ts";

let api: ApiServer;
let document: Document;
beforeAll(async () => {
  api = await startApi();
  document = await api.document();
});
afterAll(() => api.stop());

const closed = () => routes(document).filter(({ item }) => !["public", "local"].includes(item["x-access"]));
const owned = () => closed().filter(({ item }) => item["x-access"] !== "management");
let address = 0;

/** A request that is right in all but its credentials, from an address of its own: wrong secrets are counted. */
async function call(secret: string | null, route: Route) {
  const schema = bodySchema(route);
  const raw = rawBodyType(route);
  const values = Object.fromEntries(
    route.item.parameters.map(({ name, schema: one }) => [name, sample(one)]),
  );
  const required = route.item.parameters.filter((one) => one.in === "query" && one.required);
  const query = Object.fromEntries(required.map(({ name }) => [name, values[name]]));
  const headers: Record<string, string> = { "x-test-address": `10.0.0.${address++}` };
  const body = raw !== null ? "{}\n" : schema ? JSON.stringify(sample(schema)) : null;
  if (body !== null) headers["content-type"] = raw ?? "application/json";
  const answer = await api.send(secret, route.method, fill(route.path, values, query), {
    headers,
    ...(body === null ? {} : { body }),
  });
  return {
    name: route.name,
    status: answer.status,
    code: answer.json?.error?.code,
    text: answer.text,
    headers: answer.headers,
  };
}

function sample(schema: Parameters<typeof valid>[0]): unknown {
  return fc.sample(valid(schema, document), { seed: 11, numRuns: 1 })[0];
}

describe("every route that needs credentials", () => {
  test("answers 401 with one and the same body to none, unknown, revoked and expired ones", async () => {
    const { keys } = api.admin;
    const revoked = keys.create({ name: "Revoked" });
    keys.revoke(revoked.key.id);
    const expired = keys.create({ name: "Expired", expiresAt: "2020-01-01T00:00:00Z" });
    const bodies = new Set<string>();
    for (const route of closed()) {
      for (const secret of [null, "rk-unknown", revoked.secret, expired.secret]) {
        const { name, status, text, headers } = await call(secret, route);
        expect([name, status, headers.get("www-authenticate")]).toEqual([name, 401, "Bearer"]);
        bodies.add(text);
      }
    }
    expect(bodies.size).toBe(1);
  });

  test("answers 403 to a key without the scope, and to any key where management is needed", async () => {
    const { keys } = api.admin;
    const bare = keys.create({ name: "Bare", scopes: ["proxy"] }).secret;
    const reader = keys.create({ name: "Reader", scopes: ["proxy", "read:memory"] }).secret;
    const writer = keys.create({ name: "Writer", scopes: ["proxy", "write:memory"] }).secret;
    for (const route of closed()) {
      const rule = route.item["x-access"];
      const refused =
        rule === "read:memory"
          ? [bare, writer]
          : rule === "write:memory"
            ? [bare, reader]
            : [api.secrets.anna];
      for (const secret of refused) {
        const { name, status, code } = await call(secret, route);
        expect([name, status, code]).toEqual([name, 403, "insufficient_scope"]);
      }
    }
  });

  test("refuses no right credentials", async () => {
    for (const route of owned()) {
      const { name, status } = await call(api.secrets.anna, route);
      expect([name, [401, 403].includes(status)]).toEqual([name, false]);
    }
  });
});

test("the doors of models, chat and MCP need credentials as well", async () => {
  const box = await startAppliance();
  const doors = [...routes(document, "proxy"), ...routes(document, "mcp")];
  expect(doors.length).toBeGreaterThan(8);
  const { secret, key } = (await box.call("POST", "/api/keys", { name: "Revoked" })).body as {
    secret: string;
    key: { id: string };
  };
  await box.call("DELETE", `/api/keys/${key.id}`);
  for (const { method, path, name } of doors) {
    for (const wrong of ["", secret]) {
      const answer = await fetch(box.url + path.replaceAll(/[{}]/g, ""), {
        method,
        headers: {
          "content-type": "application/json",
          ...(wrong ? { authorization: `Bearer ${wrong}` } : {}),
        },
        ...(method === "POST" ? { body: "{}" } : {}),
      });
      // After ten wrong ones a minute the answer is 429, which is no entry either.
      expect([name, [401, 429].includes(answer.status)]).toEqual([name, true]);
      expect(await answer.json()).toMatchObject({ error: { message: expect.any(String) } });
    }
  }
  await box.stop();
});

test("reads are asked of readers and changes of writers", () => {
  const wrong = owned().filter(({ method, path, item }) => {
    const asks =
      ["GET", "HEAD"].includes(method) || path.endsWith("/retrieve-preview") || path === "/context";
    return item["x-access"] !== (asks ? "read:memory" : "write:memory");
  });
  expect(wrong.map(({ name }) => name)).toEqual([]);
});

test("wrong credentials are refused more shortly after ten a minute; right ones never, and none do not count", async () => {
  const from = (secret: string | null) =>
    api.send(secret, "GET", "/api/memory", { headers: { "x-test-address": "192.0.2.1" } });
  for (let n = 0; n < 20; n++) expect((await from(null)).status).toBe(401);
  for (let n = 0; n < 10; n++) expect((await from("rk-wrong")).status).toBe(401);
  const more = await from("rk-wrong");
  expect([more.status, more.json.error.code]).toEqual([429, "rate_limited"]);
  expect(Number(more.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await from(api.secrets.anna)).status).toBe(200);
  expect((await from(null)).status).toBe(401);
});

test("a client whose base URL lacks /v1 is told so", async () => {
  const box = await startAppliance();
  for (const path of ["/chat/completions", "/responses", "/messages"]) {
    const { status, body } = await box.call("POST", path, {}, box.key);
    expect(status).toBe(404);
    expect(JSON.stringify(body)).toContain("the base URL of a client ends in /v1 once");
  }
  const { body } = await box.call("GET", "/nowhere");
  expect(JSON.stringify(body)).toContain('There is no GET /nowhere."');
  await box.stop();
});
