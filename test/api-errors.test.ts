/** One error shape on every route, whatever is wrong. Generated from the OpenAPI document. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startApi, type Answer, type ApiServer } from "./support/api-server.ts";
import { bodySchema, fill, routes, type Route } from "./support/openapi.ts";
import type { Document } from "../src/api/document.ts";
import { errorTable } from "../src/error.ts";

let api: ApiServer;
let document: Document;
beforeAll(async () => {
  api = await startApi();
  document = await api.document();
});
afterAll(() => api.stop());

const types = new Set(Object.values(errorTable).map(([, type]) => type));

/** The shape that every client of `/v1` parses, plus `details`, and nothing besides. */
function expectError(name: string, answer: Answer, status: number): void {
  expect([name, answer.status, answer.headers.get("content-type")]).toEqual([
    name,
    status,
    "application/json",
  ]);
  expect(Object.keys(answer.json)).toEqual(["error"]);
  const { message, type, code, param, details } = answer.json.error;
  expect(Object.keys(answer.json.error)).toEqual(["message", "type", "code", "param", "details"]);
  expect([name, typeof message, types.has(type), code in errorTable]).toEqual([name, "string", true, true]);
  expect(message.length).toBeGreaterThan(5);
  expect(param === null || typeof param === "string").toBe(true);
  for (const detail of details) expect(Object.keys(detail)).toEqual(["field", "message"]);
}

/** A path whose ids exist nowhere. */
function path({ item, path }: Route, query = {}): string {
  const value = (format: unknown, pattern: unknown) =>
    format === "uuid" ? crypto.randomUUID() : typeof pattern === "string" ? "999999999" : "nothing";
  const places = item.parameters.filter((one) => one.in === "path");
  return fill(
    path,
    Object.fromEntries(places.map(({ name, schema }) => [name, value(schema.format, schema.pattern)])),
    query,
  );
}

const withBody = () => routes(document).filter((route) => bodySchema(route) !== null);
const send = (route: Route, body: BodyInit, type = "application/json") =>
  api.send(api.token, route.method, path(route, { apiKeyId: "anna" }), {
    body,
    headers: { "content-type": type },
  });

test("broken, too deep, too large and foreign bodies", async () => {
  for (const route of withBody()) {
    expectError(route.name, await send(route, "{"), 400);
    expectError(route.name, await send(route, "null"), 400);
    expectError(route.name, await send(route, new Uint8Array([0x22, 0xff, 0x22])), 400);
    expectError(route.name, await send(route, "[".repeat(5000)), 400);
    expectError(route.name, await send(route, "{}", "text/plain"), 415);
    expectError(route.name, await send(route, "{}", "application/x-www-form-urlencoded"), 415);
  }
});

test("a compressed body is refused by name, since nothing here is decoded", async () => {
  for (const route of routes(document).filter(({ item }) => item.requestBody !== undefined)) {
    const [type] = Object.keys(route.item.requestBody!.content);
    const answer = await api.send(api.token, route.method, path(route, { apiKeyId: "anna" }), {
      body: Bun.gzipSync("{}"),
      headers: { "content-type": type!, "content-encoding": "gzip" },
    });
    expectError(route.name, answer, 415);
    expect(answer.json.error.code).toBe("unsupported_encoding");
  }
});

test("a body above the limit is refused while it is read, with a length and without", async () => {
  for (const route of withBody()) {
    const large = `{"content":"${"x".repeat(17 * 1024 * 1024)}"}`;
    expectError(route.name, await send(route, large), 413);
  }
  const [route] = withBody();
  const chunk = new TextEncoder().encode("x".repeat(64 * 1024));
  let sent = 0;
  const endless = new ReadableStream({ pull: (controller) => (sent++, controller.enqueue(chunk)) });
  expectError("endless", await send(route!, endless), 413);
  expect(sent).toBeLessThan(2000);
});

test("fields that are not there, in body and query", async () => {
  for (const route of withBody()) {
    const answer = await send(route, '{"noSuchField":1}');
    expectError(route.name, answer, 400);
    const fields = answer.json.error.details.map((detail: { field: string }) => detail.field);
    expect([route.name, fields]).toEqual([route.name, expect.arrayContaining(["noSuchField"])]);
  }
  for (const route of routes(document)) {
    if (route.item["x-access"] === "public") continue;
    const init = bodySchema(route) ? { body: "{}", headers: { "content-type": "application/json" } } : {};
    const answer = await api.send(
      api.token,
      route.method,
      path(route, { noSuchField: 1, apiKeyId: "anna" }),
      init,
    );
    expectError(route.name, answer, 400);
  }
});

test("methods that are not there answer 405 with those that are", async () => {
  for (const [pattern, methods] of Object.entries(document.paths)) {
    const [known] = Object.entries(methods);
    if (known![1]["x-face"] !== undefined) continue;
    const route = { method: "", path: pattern, name: pattern, item: known![1] };
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
      if (method.toLowerCase() in methods) continue;
      const answer = await api.send(api.token, method, path(route));
      expectError(`${method} ${pattern}`, answer, 405);
      const allowed = (answer.headers.get("allow") ?? "").split(", ");
      expect(allowed).toEqual(expect.arrayContaining(Object.keys(methods).map((name) => name.toUpperCase())));
    }
  }
});

test("paths that are not there, near and far", async () => {
  for (const unknown of [
    "/api",
    "/api/",
    "/api/memory/",
    "/api/memory//",
    "/api/nothing",
    "/sessions/1/nothing",
    "/api/memory/%00",
  ]) {
    expectError(unknown, await api.send(api.token, "GET", unknown), 404);
  }
});
