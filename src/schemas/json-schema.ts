/** zod schemas as JSON Schema 2020-12, which is what OpenAPI 3.1 and MCP take. */
import { z } from "zod";

export type JsonSchema = {
  type?: string;
  format?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  items?: JsonSchema;
  additionalProperties?: boolean | JsonSchema;
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  [keyword: string]: unknown;
};

/** Named schemas (`.meta({ id })`) stand under `$defs`. `output` is the side of an answer: defaults are always there. */
export function jsonSchema(schema: z.ZodType, io: "input" | "output" = "input"): JsonSchema {
  const { $schema: _, ...made } = z.toJSONSchema(schema, {
    io,
    override: ({ jsonSchema: node }) => {
      // A format says it in one word, and the bounds of a safe integer say nothing.
      if (node.format) delete node.pattern;
      if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum;
      if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum;
      if (node.propertyNames) delete node.propertyNames;
    },
  });
  return oneType(made) as JsonSchema;
}

/** The same with the schema itself at the root, where a named one would be a reference to its definition. */
export function objectSchema(
  schema: z.ZodObject,
  io: "input" | "output" = "input",
): JsonSchema & { type: "object" } {
  const { $ref, $defs = {}, ...root } = jsonSchema(schema, io);
  const name = $ref?.split("/").at(-1);
  const own =
    name === undefined
      ? root
      : Object.fromEntries(Object.entries($defs[name]!).filter(([key]) => key !== "id"));
  const others = Object.entries($defs).filter(([key]) => key !== name);
  return { ...own, type: "object", ...(others.length > 0 ? { $defs: Object.fromEntries(others) } : {}) };
}

/** A list of types is legal, but clients that know one type a schema take alternatives only. */
function oneType(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(oneType);
  if (typeof node !== "object" || node === null) return node;
  const same = Object.fromEntries(Object.entries(node).map(([name, value]) => [name, oneType(value)]));
  if (!Array.isArray(same["type"])) return same;
  const { type, description, default: value, ...rest } = same;
  return {
    ...(description === undefined ? {} : { description }),
    ...(value === undefined ? {} : { default: value }),
    anyOf: (type as string[]).map((one) => (one === "null" ? { type: one } : { ...rest, type: one })),
  };
}
