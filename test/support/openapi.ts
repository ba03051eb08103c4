/** Walks the OpenAPI document, so that tests cover a new route without being edited. */
import fc from "fast-check";
import type { Document, PathItem } from "../../src/api/document.ts";
import type { JsonSchema } from "../../src/schemas/json-schema.ts";

export type Route = { method: string; path: string; name: string; item: PathItem };

/** Every operation of the JSON face, or of another, with its method in capitals. */
export function routes(document: Document, face?: "proxy" | "mcp"): Route[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, item]) => item["x-face"] === face)
      .map(([method, item]) => ({
        method: method.toUpperCase(),
        path,
        name: `${method.toUpperCase()} ${path}`,
        item,
      })),
  );
}

/** The schema of a JSON body, null when the route takes none. */
export function bodySchema({ item }: Route): JsonSchema | null {
  return item.requestBody?.content["application/json"]?.schema ?? null;
}

/** The content type of a body that is not JSON, null when there is none. */
export function rawBodyType({ item }: Route): string | null {
  const [type] = Object.keys(item.requestBody?.content ?? {});
  return type === undefined || type === "application/json" ? null : type;
}

/** A path with its placeholders filled and a query. */
export function fill(
  path: string,
  values: Record<string, unknown>,
  query: Record<string, unknown> = {},
): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])));
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  if (pairs.length === 0) return filled;
  return `${filled}?${new URLSearchParams(pairs.map(([name, value]) => [name, plain(value)])).toString()}`;
}

function plain(value: unknown): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}

/** Names of properties whose values the caller chooses instead of the generator. */
export type Known = (name: string) => fc.Arbitrary<unknown> | null;

/** Values that a JSON schema admits. `known` may choose the values of properties by name. */
export function valid(
  schema: JsonSchema,
  document: Document | null = null,
  known: Known = () => null,
): fc.Arbitrary<unknown> {
  const inner = (part: JsonSchema) => valid(part, document, known);
  if (schema.$ref) return inner(document!.components.schemas[schema.$ref.split("/").at(-1)!]!);
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) return fc.oneof(...alternatives.map(inner));
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
  switch (schema.type) {
    case "object":
      return object(schema, document, known);
    case "array":
      return fc.array(schema.items ? inner(schema.items) : fc.jsonValue(), {
        minLength: Number(schema.minItems ?? 0),
        maxLength: Math.min(Number(schema.maxItems ?? 5), 5),
      });
    case "integer":
      return fc.integer({ min: bound(schema.minimum, -1000), max: bound(schema.maximum, 1000) });
    case "number":
      return fc.double({
        min: bound(schema.minimum, -1000),
        max: bound(schema.maximum, 1000),
        noNaN: true,
      });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "string":
      return text(schema);
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function object(schema: JsonSchema, document: Document | null, known: Known): fc.Arbitrary<unknown> {
  const properties = Object.entries(schema.properties ?? {});
  if (properties.length === 0)
    return fc.dictionary(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 });
  const shape = properties.map(
    ([name, part]) => [name, known(name) ?? valid(part, document, known)] as const,
  );
  return fc.record(Object.fromEntries(shape), { requiredKeys: schema.required ?? [] });
}

function text(schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.format === "uuid") return fc.uuid();
  if (schema.format === "date-time") {
    return fc
      .date({ min: new Date("1971-01-01"), max: new Date("2100-01-01"), noInvalidDate: true })
      .map((date) => date.toISOString());
  }
  if (typeof schema.pattern === "string" && schema.pattern !== "\\S") {
    return fc
      .stringMatching(new RegExp(schema.pattern))
      .map((value) => value.slice(0, bound(schema.maxLength, 300)));
  }
  return fc.string({
    unit: "grapheme",
    minLength: Number(schema.minLength ?? 0),
    maxLength: Math.min(Number(schema.maxLength ?? 40), 40),
  });
}

function bound(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

/** Values that nothing wants. */
export const junk = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.string({ unit: "binary", maxLength: 50 }),
  fc.constantFrom(
    "",
    "null",
    "-1",
    "1e309",
    "9007199254740993",
    "\0",
    "\ud800",
    "__proto__",
    "%",
    "' OR 1=1 --",
    "😀".repeat(50),
  ),
  fc.bigInt().map(String),
);

/** A right value with one part replaced, removed or added. */
export function nearly(value: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  return fc
    .tuple(value, fc.nat(), junk, fc.constantFrom("replace", "remove", "add"))
    .map(([whole, at, bad, how]) => {
      if (typeof whole !== "object" || whole === null) return JSON.stringify(bad);
      const copy: Record<string, unknown> = { ...whole };
      const names = Object.keys(copy);
      const name = names[at % Math.max(1, names.length)] ?? "x";
      if (how === "remove") delete copy[name];
      else copy[how === "add" ? JSON.stringify(bad).slice(0, 20) : name] = bad;
      return JSON.stringify(copy);
    });
}
