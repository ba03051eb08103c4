/** No route gives one owner anything of another. Generated from the OpenAPI document: a new route is covered by itself. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { startApi, type Any, type ApiServer } from "./support/api-server.ts";
import { bodySchema, fill, rawBodyType, routes, valid, type Known, type Route } from "./support/openapi.ts";
import { CANARY, fitting, rowsOf, seedOwner, type Seeded } from "./support/seed-owner.ts";
import { traceStatements, type Trace } from "./support/trace.ts";
import type { Document } from "../src/api/document.ts";
import { tools } from "../src/mcp/tools.ts";
import { objectSchema, type JsonSchema } from "../src/schemas/json-schema.ts";

let trace: Trace;
let api: ApiServer;
let document: Document;
/** Routes on rows of an owner, and those of them that a key may call. */
let ownable: Route[];
let owned: Route[];
let anna: Seeded;
/** What a key without rows is answered before anybody has any. */
let alone: Map<string, string>;

beforeAll(async () => {
  trace = traceStatements();
  api = await startApi();
  document = await api.document();
  ownable = routes(document).filter(({ item }) => item["x-owner"] !== undefined);
  owned = ownable.filter(({ item }) => item["x-access"] !== "management");
  alone = await readAll();
  anna = await seedOwner(api, api.anna, "anna");
});
afterAll(async () => {
  await api.stop();
  trace.stop();
});

test("the document names the owner rule of every route that a key may call", () => {
  const unbound = routes(document).filter(
    ({ item }) => item["x-access"].endsWith(":memory") && item["x-owner"] === undefined,
  );
  expect(unbound.map(({ name }) => name).filter((name) => !withoutRows.includes(name))).toEqual([]);
  expect(owned.length).toBeGreaterThan(30);
});

/** Routes for keys that touch no rows of any owner. */
const withoutRows = ["GET /api/memory/health", "GET /api/memory/embedding-providers"];

test("what others store changes no list, count or status of a key without rows", async () => {
  for (const [name, before] of alone) expect([name, (await readAll()).get(name)]).toEqual([name, before]);
});

describe("with the key of another", () => {
  test("no route shows or changes a row", async () => {
    const before = rowsOf(api.db, "anna");
    for (const route of owned) {
      for (const foreign of pathValues(route, anna)) {
        for (const body of bodies(route, anna)) {
          const answer = await send(api.secrets.bert, route, foreign, body);
          expect([route.name, answer.text]).toEqual([route.name, expect.not.stringContaining(CANARY)]);
        }
      }
    }
    expect(rowsOf(api.db, "anna")).toEqual(before);
  });

  test("an id of another is answered as one that was never given", async () => {
    const { secret } = api.admin.keys.create({ name: "Dora" });
    for (const route of owned) {
      if (!route.path.includes("{")) continue;
      for (const foreign of pathValues(route, anna)) {
        for (const body of bodies(route, anna)) {
          const answer = await send(secret, route, foreign, body);
          const unknown = await send(secret, route, pathValues(route, nothing)[0]!, body);
          const shown = [route.name, answer.status, answer.text];
          expect(shown).toEqual([route.name, unknown.status, unknown.text]);
          if (answer.status !== 400)
            expect(shown.slice(0, 2)).toEqual([route.name, emptyList(answer) ? 200 : 404]);
        }
      }
    }
  });

  test("naming the other as owner is 404, as for an owner that is not there", async () => {
    const before = rowsOf(api.db, "anna");
    for (const route of owned) {
      const [values = {}] = pathValues(route, anna);
      const [body] = bodies(route, anna);
      const answers = [];
      for (const apiKeyId of ["anna", "nobody-at-all"]) {
        const { status, text } = await send(api.secrets.bert, route, values, body, { apiKeyId });
        answers.push({ status, text });
      }
      expect([route.name, answers[0]]).toEqual([route.name, answers[1]]);
      expect([route.name, [400, 404]]).toEqual([route.name, expect.arrayContaining([answers[0]!.status])]);
    }
    expect(rowsOf(api.db, "anna")).toEqual(before);
  });
});

describe("what is asked of the database is the same for an id of another and for one that was never given", () => {
  /** As many ids as another has, of nobody. */
  const nobodys = (): Seeded => ({
    uuids: anna.uuids.map(() => crypto.randomUUID()),
    numbers: anna.numbers.map((_, at) => 999_000_000 + at),
    names: anna.names.map((_, at) => `no-such-chat-${at}`),
  });

  /** One statement and its number of rows a line. Each call has a key of its own, so that none finds what one before it left. */
  async function stepsOf(call: (key: { id: string; secret: string }) => Promise<unknown>): Promise<string[]> {
    const { key, secret } = api.admin.keys.create({ name: "Eve" });
    return (await trace.during(() => call({ id: key.id, secret }))).steps;
  }

  test("on every route", async () => {
    let compared = 0;
    for (const route of owned) {
      const calls = (seeded: Seeded) =>
        queries(route, seeded).flatMap((query) =>
          pathValues(route, seeded).flatMap((values) =>
            bodies(route, seeded).map((body) => ({ values, body, query })),
          ),
        );
      const [warm, others, unknown] = [nobodys(), anna, nobodys()].map(calls);
      for (const [at, call] of others!.entries()) {
        // Nothing of another is named, so nothing can differ.
        if (JSON.stringify(call) === JSON.stringify(unknown![at])) continue;
        const steps: string[][] = [];
        for (const { values, body, query } of [warm![at]!, call, unknown![at]!])
          steps.push(await stepsOf(({ secret }) => send(secret, route, values, body, query)));
        expect([route.name, call, steps[1]]).toEqual([route.name, call, steps[2]]);
        expect(steps[1]!.length).toBeGreaterThan(0);
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(100);
  });

  test("in every tool of MCP", async () => {
    for (const tool of tools) {
      const schema = objectSchema(tool.input) as JsonSchema;
      const inputs = (seeded: Seeded, owner: string) =>
        ["id", "apiKeyId"].flatMap((named) =>
          fc.sample(
            valid(schema, null, (name) => {
              if (name === "id") return fc.constantFrom(...seeded.uuids);
              return name === "apiKeyId" ? fc.constant(named === name ? owner : undefined) : null;
            }),
            { seed: 7, numRuns: 4 },
          ),
        );
      const [warm, others, unknown] = [
        inputs(nobodys(), "nobody"),
        inputs(anna, "anna"),
        inputs(nobodys(), "nobody"),
      ];
      for (const [at, input] of others.entries()) {
        const steps: string[][] = [];
        for (const one of [warm[at], input, unknown[at]])
          steps.push(await stepsOf(({ id }) => runTool(tool, id, one)));
        expect([tool.name, input, steps[1]]).toEqual([tool.name, input, steps[2]]);
      }
    }
  });

  /** Runs a tool for the owner of a key; what it throws is an answer too. */
  async function runTool(tool: (typeof tools)[number], owner: string, input: unknown): Promise<void> {
    const parsed = tool.input.safeParse(JSON.parse(JSON.stringify(input)));
    if (!parsed.success) return;
    const run = {
      engine: api.engine,
      caller: { kind: "key", owner, sharedPool: false, scopes: [tool.scope] },
      progress: async () => {},
      signal: new AbortController().signal,
    } as const;
    await Promise.try(() => tool.run(parsed.data, run)).catch(() => null);
  }
});

test("management with another owner's name gets nothing of this one either", async () => {
  const before = rowsOf(api.db, "anna");
  for (const route of ownable) {
    for (const foreign of pathValues(route, anna)) {
      for (const body of bodies(route, anna)) {
        const answer = await send(api.token, route, foreign, body, { apiKeyId: "bert" });
        expect([route.name, answer.text]).toEqual([route.name, expect.not.stringContaining(CANARY)]);
      }
    }
  }
  expect(rowsOf(api.db, "anna")).toEqual(before);
});

const nothing: Seeded = { uuids: [crypto.randomUUID()], numbers: [999_999_999], names: ["no-such-chat"] };

/** Answers of all reads without a path, as a key without rows sees them; times and the shared cache left out. */
async function readAll(): Promise<Map<string, string>> {
  const { secret } = api.admin.keys.create({ name: "Carl" });
  const answers = new Map<string, string>();
  for (const route of owned) {
    if (route.method !== "GET" || route.path.includes("{") || stream(route)) continue;
    const { status, text } = await send(secret, route, {}, undefined);
    answers.set(
      route.name,
      `${status} ${text.replaceAll(/"(cacheStats|hitRate|latencyMs)":(\{[^}]*\}|[^,}]*)/g, "")}`,
    );
  }
  return answers;
}

function stream({ item }: Route): boolean {
  return Object.keys(item.responses["200"]?.content ?? {}).includes("text/event-stream");
}

function send(
  secret: string,
  route: Route,
  values: Record<string, unknown>,
  body: unknown,
  query: object = {},
) {
  const required = route.item.parameters.filter((one) => one.in === "query" && one.required);
  const more = Object.fromEntries(
    required.map(({ name, schema }) => [name, name === "q" ? CANARY.slice(0, 5) : sample(schema)]),
  );
  const raw = rawBodyType(route);
  const path = fill(route.path, values, { ...more, ...query });
  if (raw !== null)
    return api.send(secret, route.method, path, { body: "{}\n", headers: { "content-type": raw } });
  return api.as(secret)(route.method, path, body);
}

function emptyList({ status, json }: { status: number; json: Any }): boolean {
  return status === 200 && json?.total === 0 && json.data.length === 0;
}

/** Queries that name nothing, and each id that a query may name. */
function queries({ item }: Route, seeded: Seeded): Record<string, unknown>[] {
  const ids = item.parameters.filter(({ in: place, name }) => place === "query" && /(^i|I)d$/.test(name));
  return [
    {},
    ...ids.map(({ name, schema }) => ({
      [name]: name === "apiKeyId" ? (seeded === anna ? "anna" : "nobody-at-all") : fitting(schema, seeded)[0],
    })),
  ];
}

/** The placeholders of a path with every id of an owner that fits. */
function pathValues({ item }: Route, seeded: Seeded): Record<string, unknown>[] {
  const places = item.parameters.filter((one) => one.in === "path");
  return places.reduce<Record<string, unknown>[]>(
    (sets, { name, schema }) =>
      sets.flatMap((set) => fitting(schema, seeded).map((value) => ({ ...set, [name]: value }))),
    [{}],
  );
}

/** Some bodies that the route takes, with ids of the owner wherever an id fits. */
function bodies(route: Route, seeded: Seeded): unknown[] {
  const schema = bodySchema(route);
  if (!schema) return [undefined];
  const known: Known = (name) => {
    if (name === "apiKeyId") return fc.constant(undefined);
    if (name === "ids") return fc.constant(seeded.uuids);
    if (name === "externalId") return fc.constantFrom(...seeded.names);
    if (name === "query" || name === "q") return fc.constant(CANARY.slice(0, 9));
    if (!name.endsWith("Id")) return null;
    const property = schema.properties?.[name];
    return property ? fc.constantFrom(...fitting(property.anyOf?.[0] ?? property, seeded)) : null;
  };
  return fc.sample(valid(schema, document, known), { seed: 7, numRuns: 4 });
}

function sample(schema: JsonSchema): unknown {
  return fc.sample(valid(schema, document), { seed: 7, numRuns: 1 })[0];
}
