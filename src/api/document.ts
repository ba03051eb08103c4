/** The OpenAPI 3.1 document, made from the operations that are mounted; the other doors are described in words. */
import { breathe } from "../memory/breathe.ts";
import type { z } from "zod";
import { errorAnswer } from "../schemas/common.ts";
import { elsewhere } from "./elsewhere.ts";
import { jsonSchema, type JsonSchema } from "../schemas/json-schema.ts";
import type { Operation } from "./operation.ts";

export type Document = {
  openapi: "3.1.0";
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, PathItem>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, object> };
};

export type Parameter = {
  name: string;
  in: "path" | "query";
  required: boolean;
  description?: string;
  style?: "form";
  explode?: boolean;
  schema: JsonSchema;
};

export type PathItem = {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Record<string, { schema?: JsonSchema }>; description?: string };
  responses: Record<string, { description: string; content?: Record<string, { schema?: JsonSchema }> }>;
  security: Record<string, string[]>[];
  /** Who may call, and whose rows: see the description of each value in docs/api.md. */
  "x-access": string;
  "x-owner"?: string;
  /** The door of routes that are described here and answered elsewhere. */
  "x-face"?: "proxy" | "mcp";
};

const ownerParameters: Parameter[] = [
  {
    name: "apiKeyId",
    in: "query",
    required: false,
    description: "The owner, for the management token; an API key can name only its own.",
    schema: { type: "string", minLength: 1, maxLength: 400 },
  },
  {
    name: "user",
    in: "query",
    required: false,
    description: "The person, for a key that serves several by `userField`.",
    schema: { type: "string", minLength: 1, maxLength: 256 },
  },
];

/** Gives way between operations: the whole takes tens of milliseconds, and streams run on this thread. */
export async function document(operations: Operation[], version: string): Promise<Document> {
  const schemas: Record<string, JsonSchema> = {};
  const paths: Document["paths"] = {};
  for (const operation of operations) {
    (paths[operation.path] ??= {})[operation.method] = pathItem(operation, schemas);
    await breathe();
  }
  Object.assign(paths, elsewhere());
  hoist(jsonSchema(errorAnswer, "output"), schemas);
  return {
    openapi: "3.1.0",
    info: {
      title: "Recollect",
      version,
      description: "Long-term memory for any OpenAI-compatible application.",
    },
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).toSorted(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "bearer",
          description: "An API key, `rk-…`. It sees its own rows only.",
        },
        management: { type: "http", scheme: "bearer", description: "The management token of the box." },
      },
    },
  };
}

function pathItem(operation: Operation, schemas: Record<string, JsonSchema>): PathItem {
  const { method, path, tag, summary, description, access, owner, params, query } = operation;
  return {
    operationId: operationId(method, path),
    tags: [tag],
    summary,
    ...(description ? { description } : {}),
    parameters: [
      ...(params ? parameters("path", hoist(jsonSchema(params), schemas)) : []),
      ...(query ? parameters("query", hoist(jsonSchema(query), schemas)) : []),
      ...(owner ? ownerParameters : []),
    ],
    ...requestBody(operation, schemas),
    responses: responses(operation, schemas),
    security: security(access),
    "x-access": access,
    ...(owner ? { "x-owner": owner } : {}),
  };
}

function parameters(place: "path" | "query", schema: JsonSchema): Parameter[] {
  const required = schema.required ?? [];
  return Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const { description, ...rest } = property;
    return {
      name,
      in: place,
      required: place === "path" || required.includes(name),
      ...(typeof description === "string" ? { description } : {}),
      // Several values are one text with commas; left unsaid, a generated client repeats the parameter.
      ...(place === "query" && property.type === "array" ? { style: "form" as const, explode: false } : {}),
      schema: rest,
    };
  });
}

function requestBody(operation: Operation, schemas: Record<string, JsonSchema>): Partial<PathItem> {
  if (operation.rawBody) {
    const { type, description } = operation.rawBody;
    return { requestBody: { required: true, description, content: { [type]: {} } } };
  }
  if (!operation.body) return {};
  const schema = hoist(jsonSchema(operation.body), schemas);
  const required = !operation.body.safeParse({}).success;
  return { requestBody: { required, content: { "application/json": { schema } } } };
}

function responses(operation: Operation, schemas: Record<string, JsonSchema>): PathItem["responses"] {
  const { answer, statuses = [], access, owner, params, body, rawBody, exclusive } = operation;
  const content = isZod(answer)
    ? { "application/json": { schema: hoist(jsonSchema(answer, "output"), schemas) } }
    : { [answer.type]: {} };
  const good = (statuses.includes(200) ? statuses : statuses.length > 0 ? statuses : [200]).map((status) => [
    String(status),
    { description: isZod(answer) ? (status === 201 ? "Created" : "OK") : answer.description, content },
  ]);
  const error = { "application/json": { schema: { $ref: "#/components/schemas/Error" } } };
  const byKey = access === "read:memory" || access === "write:memory";
  const bad: [boolean, string, string][] = [
    [true, "400", "A field is wrong; `details` names each."],
    [access !== "public", "401", "No valid credentials."],
    [access !== "public" && access !== "local", "403", "The key lacks the scope."],
    [Boolean(params ?? owner), "404", "Not there, or not yours."],
    [Boolean(body ?? rawBody), "413", "The body is too large."],
    [Boolean(body ?? rawBody), "415", "The content type is not taken."],
    [Boolean(exclusive) || byKey, "429", "One is running already, or the key's limit is reached."],
    [true, "default", "Any other error, such as 409 for a conflict or 503 while a part is down."],
  ];
  return {
    ...Object.fromEntries(good),
    ...Object.fromEntries(
      bad
        .filter(([applies]) => applies)
        .map(([, status, text]) => [status, { description: text, content: error }]),
    ),
  };
}

function security(access: Operation["access"]): Record<string, string[]>[] {
  switch (access) {
    case "public":
      return [];
    case "local":
    case "management":
      return [{ management: [] }];
    case "read:memory":
    case "write:memory":
      return [{ apiKey: [access] }, { management: [] }];
  }
}

/** `get /api/memory/{id}/history` is `getApiMemoryByIdHistory`. */
function operationId(method: string, path: string): string {
  const words = path.split(/[/\-_.]/).filter(Boolean);
  return (
    method +
    words.map((word) => capital(word.startsWith("{") ? `by${capital(word.slice(1, -1))}` : word)).join("")
  );
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Moves a schema's named parts to the document's components and points its references there. */
function hoist(schema: JsonSchema, schemas: Record<string, JsonSchema>): JsonSchema {
  const moved = JSON.parse(
    JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'),
  ) as JsonSchema;
  const { $defs = {}, ...rest } = moved;
  for (const [name, part] of Object.entries($defs)) schemas[name] = withoutId(part);
  if (typeof rest.id === "string") {
    schemas[rest.id] = withoutId(rest);
    return { $ref: `#/components/schemas/${rest.id}` };
  }
  return rest;
}

function withoutId(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => name !== "id"));
}

function isZod(answer: Operation["answer"]): answer is z.ZodType {
  return "safeParse" in answer;
}
