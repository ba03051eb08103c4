/** Sends generated requests to every route: right ones, nearly right ones and noise. No answer may be a 500. */
import fc from "fast-check";
import type { JsonSchema } from "../../src/schemas/json-schema.ts";
import type { ApiServer } from "./api-server.ts";
import {
  bodySchema,
  fill,
  junk,
  nearly,
  rawBodyType,
  routes,
  valid,
  type Known,
  type Route,
} from "./openapi.ts";
import type { Document } from "../../src/api/document.ts";
import { fitting, type Seeded } from "./seed-owner.ts";

type Sent = { route: Route; path: string; body: string | null; type: string | null };
export type FuzzReport = { sent: number; statuses: Record<string, number>; failures: string[] };

/** Sends `count` requests with management's and the owner's credentials; `seeded` are ids that exist. */
export async function fuzzApi(
  api: ApiServer,
  count: number,
  seeded: Seeded,
  seed: number,
): Promise<FuzzReport> {
  const document = await api.document();
  const list = routes(document).filter(({ item }) => !streams(item));
  const requests = fc.oneof(...list.map((route) => request(route, document, seeded)));
  const report: FuzzReport = { sent: 0, statuses: {}, failures: [] };
  for (const sent of fc.sample(requests, { numRuns: count, seed })) {
    const secret =
      sent.route.item["x-access"] === "management" || report.sent % 3 === 0 ? api.token : api.secrets.anna;
    const answer = await api.send(secret, sent.route.method, sent.path, {
      ...(sent.body === null ? {} : { body: sent.body }),
      ...(sent.type === null ? {} : { headers: { "content-type": sent.type } }),
    });
    report.sent++;
    report.statuses[answer.status] = (report.statuses[answer.status] ?? 0) + 1;
    const shaped = answer.status < 400 || typeof answer.json?.error?.message === "string";
    if (answer.status === 500 || answer.status === 502 || !shaped) {
      report.failures.push(
        `${sent.route.method} ${sent.path} ${sent.body?.slice(0, 500)} → ${answer.status} ${answer.text.slice(0, 300)}`,
      );
    }
  }
  return report;
}

function request(route: Route, document: Document, seeded: Seeded): fc.Arbitrary<Sent> {
  const places = route.item.parameters.filter((one) => one.in === "path");
  const query = route.item.parameters.filter((one) => one.in === "query");
  const schema = bodySchema(route);
  const raw = rawBodyType(route);
  const known: Known = (name) => {
    if (name === "user") return fc.constant(undefined);
    if (name === "apiKeyId") return fc.constantFrom("anna", "anna", "anna", "anna", "anna", "bert", "nobody");
    if (name !== "id" && !name.endsWith("Id")) return null;
    const property = schema?.properties?.[name] ?? query.find((one) => one.name === name)?.schema ?? {};
    return mostly(fc.constantFrom(...fitting(property.anyOf?.[0] ?? property, seeded)));
  };
  const idOf = (one: JsonSchema) =>
    fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(...fitting(one, seeded)) },
      { weight: 1, arbitrary: fc.string({ unit: "binary", minLength: 1 }).map((id) => id.toWellFormed()) },
    );
  const path = fc
    .tuple(
      fc.record(Object.fromEntries(places.map(({ name, schema: one }) => [name, idOf(one)]))),
      fc.record(
        Object.fromEntries(
          query.map(({ name, schema: one }) => [name, mostly(known(name) ?? valid(one, document, known))]),
        ),
        { requiredKeys: [] },
      ),
      fc.oneof(
        { weight: 9, arbitrary: fc.constant(null) },
        { weight: 1, arbitrary: fc.tuple(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 })) },
      ),
    )
    .map(([values, pairs, extra]) =>
      fill(route.path, values, extra ? { ...pairs, [extra[0]]: extra[1] } : pairs),
    );
  const body = schema
    ? fc.oneof(
        { weight: 6, arbitrary: valid(schema, document, known).map((value) => JSON.stringify(value)) },
        { weight: 4, arbitrary: nearly(valid(schema, document, known)) },
        { weight: 1, arbitrary: fc.json() },
        { weight: 1, arbitrary: fc.string({ unit: "binary" }) },
      )
    : raw === null
      ? fc.constant(null)
      : lines(document, seeded);
  const type = body === null ? null : (raw ?? "application/json");
  return fc.tuple(path, body).map(([to, text]) => ({ route, path: to, body: text ?? null, type }));
}

function mostly(value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 12, arbitrary: value }, { weight: 1, arbitrary: junk });
}

/** JSON lines, of the kinds that imports take and of none. */
function lines(document: Document, seeded: Seeded): fc.Arbitrary<string> {
  const names = ["Memory", "Session", "Episode", "Entity"].filter(
    (name) => document.components.schemas[name],
  );
  const rows = names.map((name) =>
    valid({ $ref: `#/components/schemas/${name}` }, document).map((row) => ({
      kind: name.toLowerCase(),
      ...(row as object),
    })),
  );
  const line = fc.oneof(
    ...rows.map((row) => row.map((value) => JSON.stringify(value))),
    fc.constantFrom(
      '{"format":"recollect/1"}',
      `{"externalId":${JSON.stringify(seeded.names[0])},"userMessage":"hi"}`,
      "",
    ),
    fc.json(),
    fc.string(),
  );
  return fc.array(line, { maxLength: 6 }).map((all) => all.join("\n"));
}

function streams(item: Route["item"]): boolean {
  return Object.values(item.responses).some(({ content }) => content && "text/event-stream" in content);
}
