import { describe, expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Hono } from "hono";
import { z } from "zod";
import { document } from "../src/api/document.ts";
import type { Env, Principal } from "../src/auth.ts";
import { mount } from "../src/api/mount.ts";
import { created, operation, type ApiKey, type Operation } from "../src/api/operation.ts";
import { errorResponse } from "../src/respond.ts";
import { startApi } from "./support/api-server.ts";
import { keyOf, management } from "./support/principal.ts";
import { listOf, text, time } from "../src/schemas/common.ts";

const thing = z.strictObject({ id: z.int(), name: z.string(), at: time }).meta({ id: "Thing" });
const at = "2026-01-31T12:00:00.000Z";

const operations = [
  operation({
    method: "get",
    path: "/api/things/{id}",
    tag: "Things",
    summary: "Get one thing",
    access: "read:memory",
    owner: "span",
    params: z.strictObject({ id: z.coerce.number().int() }),
    answer: z.strictObject({ thing, owner: z.string().nullable() }),
    handle: ({ params, owner }) => ({ thing: { id: params.id, name: "n", at }, owner }),
  }),
  operation({
    method: "get",
    path: "/api/things/count",
    tag: "Things",
    summary: "List things",
    access: "read:memory",
    owner: "span",
    query: z.strictObject({
      limit: z.int().min(1).max(200).default(50),
      pinned: z.boolean().optional(),
      kinds: z.array(z.enum(["a", "b"])).optional(),
    }),
    answer: listOf(thing),
    handle: ({ query }) => ({
      data: [],
      total: query.limit + (query.pinned ? 1000 : 0) + (query.kinds?.length ?? 0),
    }),
  }),
  operation({
    method: "post",
    path: "/api/things",
    tag: "Things",
    summary: "Make a thing",
    access: "write:memory",
    owner: "one",
    query: z.strictObject({ dry: z.boolean().default(false) }),
    body: z.strictObject({
      name: text({ max: 5 }),
      size: z.int().max(9).default(1),
    }),
    answer: z.strictObject({ thing, owner: z.string().nullable() }),
    statuses: [201],
    handle: ({ body, owner }) => created({ thing: { id: body.size, name: body.name, at }, owner }),
  }),
  operation({
    method: "post",
    path: "/api/slow",
    tag: "Things",
    summary: "Run alone",
    access: "management",
    exclusive: "slow",
    answer: { type: "text/plain", description: "one word" },
    handle: ({ request }) => new Response(request.headers.get("x-hold") ? new ReadableStream() : "done"),
  }),
];

function app(principal: Principal = management, list: Operation[] = operations) {
  const hono = new Hono<Env>();
  hono.onError((thrown) => errorResponse(thrown));
  hono.use(async (c, next) => {
    c.set("principal", principal);
    await next();
  });
  mount(hono, list, { ownerExists: (name) => name === "k1", admitKey: () => {}, checkAnswers: true });
  return hono;
}

const key = (fields: Partial<ApiKey> = {}) => keyOf("k2", fields);

async function errorOf(response: Response | Promise<Response>) {
  const answer = await response;
  const body = (await answer.json()) as {
    error: { code: string; details: { field: string; message: string }[] };
  };
  return {
    status: answer.status,
    code: body.error.code,
    fields: body.error.details.map((detail) => detail.field),
  };
}

function post(path: string, body: string, type = "application/json") {
  return new Request(`http://box${path}`, { method: "POST", body, headers: { "content-type": type } });
}

describe("an operation", () => {
  test("reads query values as the types of its schema, and names each that is wrong", async () => {
    const good = await app().request("/api/things/count?limit=7&pinned=true&kinds=a,b");
    expect(await good.json()).toEqual({ data: [], total: 1009 });
    const repeated = await app().request("/api/things/count?kinds=a&limit=7&pinned=true&kinds=b");
    expect(await repeated.json()).toEqual({ data: [], total: 1009 });
    const bad = await errorOf(app().request("/api/things/count?limit=7x&pinned=yes&kinds=a,c&no=1&no=2"));
    expect(bad).toEqual({
      status: 400,
      code: "invalid_request",
      fields: ["no", "limit", "pinned", "kinds[1]"],
    });
  });

  test("reports the fields of query and body in one answer", async () => {
    const sent = post("/api/things?dry=maybe&apiKeyId=k1", '{"size":10,"name":"","colour":1}');
    expect((await errorOf(app().request(sent))).fields).toEqual(["dry", "name", "size", "colour"]);
  });

  test("counts characters, not UTF-16 units, and refuses NUL, halves of characters and blanks", async () => {
    const name = (value: string) =>
      app().request(post("/api/things?apiKeyId=k1", JSON.stringify({ name: value })));
    expect((await name("🙂🙂🙂🙂🙂")).status).toBe(201);
    for (const bad of ["🙂🙂🙂🙂🙂🙂", "a\0", "\ud83d", "   "])
      expect((await errorOf(name(bad))).fields).toEqual(["name"]);
  });

  test("refuses what is no JSON by content type, size, depth and syntax", async () => {
    const send = (body: string, type?: string) =>
      errorOf(app().request(post("/api/things?apiKeyId=k1", body, type)));
    expect(await send("{}", "text/plain")).toMatchObject({ status: 415, code: "unsupported_media_type" });
    expect(await send("{")).toMatchObject({ status: 400, code: "invalid_json" });
    expect(await send("[".repeat(100_000))).toMatchObject({ status: 400, code: "invalid_json" });
    expect(await send(JSON.stringify({ name: "x".repeat(2 ** 20) }))).toMatchObject({ status: 413 });
    expect(await send('"[[["')).toMatchObject({ status: 400, code: "invalid_request" });
  });

  test("answers 405 with Allow, a literal path before a placeholder", async () => {
    const answer = await app().request("/api/things/count", { method: "DELETE" });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
    const options = await app().request("/api/things", { method: "OPTIONS" });
    expect([options.status, options.headers.get("allow")]).toEqual([204, "POST, OPTIONS"]);
  });

  test("binds management to the owner it names, and asks for one where there must be one", async () => {
    const send = (path: string, body: object) =>
      app().request(post(path, JSON.stringify({ name: "n", ...body })));
    expect(await (await send("/api/things", { apiKeyId: "k1" })).json()).toMatchObject({ owner: "k1" });
    expect(await (await send("/api/things?apiKeyId=k1", {})).json()).toMatchObject({ owner: "k1" });
    expect(await errorOf(send("/api/things", {}))).toMatchObject({ status: 400, fields: ["apiKeyId"] });
    expect(await errorOf(send("/api/things", { apiKeyId: "k9" }))).toMatchObject({ status: 404 });
    expect(await errorOf(send("/api/things?apiKeyId=k9", { apiKeyId: "k1" }))).toMatchObject({ status: 400 });
    expect(await (await app().request("/api/things/1")).json()).toMatchObject({ owner: null });
  });

  test("binds an API key to its own owner", async () => {
    const person = app(key({ userField: "user" }));
    expect(await (await person.request("/api/things/1?user=ann")).json()).toMatchObject({ owner: "k2:ann" });
    expect(await errorOf(person.request("/api/things/1?user=ann&apiKeyId=k1"))).toMatchObject({
      status: 404,
    });
    expect(await errorOf(person.request("/api/things/1?user=ann&apiKeyId=k2"))).toMatchObject({
      status: 404,
    });
    expect(await errorOf(person.request("/api/things/1"))).toMatchObject({
      status: 400,
      code: "owner_required",
    });
    expect(await (await app(key()).request("/api/things/1?apiKeyId=k2")).json()).toMatchObject({
      owner: "k2",
    });
  });

  test("asks for credentials, then for the scope", async () => {
    const as = (principal: Principal) => errorOf(app(principal).request("/api/things/1"));
    expect(await as({ kind: "anonymous" })).toMatchObject({ status: 401, code: "invalid_api_key" });
    expect(await as(key({ scopes: ["write:memory"] }))).toMatchObject({
      status: 403,
      code: "insufficient_scope",
    });
    const slow = await errorOf(app(key()).request("/api/slow", { method: "POST" }));
    expect(slow).toMatchObject({ status: 403, code: "insufficient_scope" });
  });

  test("takes a cookie from its own pages alone", async () => {
    const hono = app({ kind: "management", via: "cookie" });
    const from = async (headers: Record<string, string>) =>
      (await hono.request("http://box/api/things/1", { headers: { host: "box", ...headers } })).status;
    expect(await from({ "sec-fetch-site": "same-origin", origin: "http://box" })).toBe(200);
    expect(await from({ "sec-fetch-site": "cross-site" })).toBe(403);
    expect(await from({ origin: "http://evil" })).toBe(403);
    expect(await from({ origin: "null" })).toBe(403);
  });

  test("runs alone where it must, until its stream has ended or was left", async () => {
    const hono = app();
    const held = await hono.request("/api/slow", { method: "POST", headers: { "x-hold": "1" } });
    expect(await errorOf(hono.request("/api/slow", { method: "POST" }))).toMatchObject({
      status: 429,
      code: "busy",
    });
    await held.body!.cancel();
    expect(await (await hono.request("/api/slow", { method: "POST" })).text()).toBe("done");
    expect((await hono.request("/api/slow", { method: "POST" })).status).toBe(200);
  });

  test("asked for by HEAD, a stream is made for nobody and holds up no other", async () => {
    let left = 0;
    const stream = operation({
      method: "get",
      path: "/api/stream",
      tag: "Things",
      summary: "Stream",
      access: "public",
      exclusive: "stream",
      answer: { type: "text/plain", description: "words" },
      handle: () => new Response(new ReadableStream({ cancel: () => void left++ }, { highWaterMark: 0 })),
    });
    const hono = app(undefined, [stream]);
    expect((await hono.request("/api/stream", { method: "HEAD" })).status).toBe(200);
    expect(left).toBe(1);
    const next = await hono.request("/api/stream");
    expect(next.status).toBe(200);
    await next.body!.cancel();
  });

  test("answers as its schema says, or the check fails", async () => {
    const wrong = operation({
      method: "get",
      path: "/api/wrong",
      tag: "Things",
      summary: "Lie",
      access: "public",
      answer: z.strictObject({ n: z.int() }),
      handle: () => ({ n: 1.5 }),
    });
    expect((await app(undefined, [wrong]).request("/api/wrong")).status).toBe(500);
  });
});

test("the whole document is valid OpenAPI 3.1, and every operation has an id of its own", async () => {
  const api = await startApi();
  const made = await api.document();
  await api.stop();
  const validator = new Validator();
  const result = await validator.validate(
    structuredClone(made) as unknown as Parameters<Validator["validate"]>[0],
  );
  expect([result.valid, result.errors]).toEqual([true, undefined]);
  expect(validator.version).toBe("3.1");
  const ids = Object.values(made.paths).flatMap((methods) =>
    Object.values(methods).map((item) => item.operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
});

test("the document holds every operation with its parameters, bodies and named schemas", async () => {
  const made = await document(operations, "1.2.3");
  expect(Object.keys(made.paths).slice(0, 4)).toEqual([
    "/api/things/{id}",
    "/api/things/count",
    "/api/things",
    "/api/slow",
  ]);
  const list = made.paths["/api/things/count"]!["get"]!;
  expect(list.parameters.map(({ name, required }) => [name, required])).toEqual([
    ["limit", false],
    ["pinned", false],
    ["kinds", false],
    ["apiKeyId", false],
    ["user", false],
  ]);
  // Clients that were made from the document write `kinds=a,b`.
  expect(list.parameters[2]).toMatchObject({ style: "form", explode: false, schema: { type: "array" } });
  const body = made.paths["/api/things"]!["post"]!.requestBody!;
  expect(body.content["application/json"]!.schema).toMatchObject({
    required: ["name"],
    properties: { name: { type: "string", minLength: 1, maxLength: 5 }, size: { maximum: 9, default: 1 } },
    additionalProperties: false,
  });
  // A key's own limit holds on every route that a key may call; what a route alone can answer is an Error as well.
  expect(Object.keys(list.responses)).toEqual(["200", "400", "401", "403", "404", "429", "default"]);
  expect(list.responses["default"]!.content).toEqual({
    "application/json": { schema: { $ref: "#/components/schemas/Error" } },
  });
  expect(made.components.schemas["Thing"]).toMatchObject({ properties: { id: { type: "integer" } } });
  expect(JSON.stringify(made)).not.toContain("$defs");
});
