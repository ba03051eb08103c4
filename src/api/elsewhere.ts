/** Entries of the document for the doors that are no JSON routes of this one: `/v1` in the providers' own formats, and MCP. */
import type { PathItem } from "./document.ts";

type Entry = {
  method: "get" | "post";
  path: string;
  summary: string;
  description?: string;
  /** Where the body or the answer is defined. */
  format: string;
  streams?: boolean;
};

const openai = "OpenAI's format; fields that are not known here go through as they are.";
const anthropic = "Anthropic's format; fields that are not known here go through as they are.";

const entries: Entry[] = [
  {
    method: "post",
    path: "/v1/chat/completions",
    summary: "Chat, with memory",
    description:
      "Headers: `x-omniroute-session-id`, `x-omniroute-no-memory`, `x-memory-mode`, `x-memory-max-tokens`, `x-memory-scope`. Answers carry `x-memory-injected`, `x-memory-tokens`, `x-memory-receipt`.",
    format: openai,
    streams: true,
  },
  { method: "post", path: "/v1/responses", summary: "Responses, with memory", format: openai, streams: true },
  {
    method: "post",
    path: "/v1/messages",
    summary: "Messages, with memory",
    format: anthropic,
    streams: true,
  },
  {
    method: "post",
    path: "/v1/messages/count_tokens",
    summary: "Count the tokens of a message, what would be injected included",
    format: anthropic,
  },
  {
    method: "post",
    path: "/v1/embeddings",
    summary: "Embeddings of a provider, or of `local/static` and `local/transformers`",
    format: openai,
  },
  {
    method: "post",
    path: "/v1/rerank",
    summary: "Rerank by a provider that has it",
    format: "The provider's format.",
  },
  {
    method: "get",
    path: "/v1/models",
    summary: "Models of all providers, as `provider/model`",
    format: openai,
  },
  { method: "get", path: "/v1/models/{id}", summary: "One model", format: openai },
  {
    method: "post",
    path: "/v1/{path}",
    summary: "Any other route of the default provider, untouched",
    format: "The provider's format.",
  },
];

const any = { type: "object", additionalProperties: true };

/** Paths with their methods, to be added to the document of this face's own routes. */
export function elsewhere(): Record<string, Record<string, PathItem>> {
  const paths: Record<string, Record<string, PathItem>> = {};
  for (const entry of entries) (paths[entry.path] ??= {})[entry.method] = proxied(entry);
  paths["/mcp"] = { post: mcp };
  return paths;
}

function proxied({ method, path, summary, description, format, streams }: Entry): PathItem {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);
  const body = { "application/json": { schema: any } };
  return {
    operationId: `${method}${path.replaceAll(/[^a-z]+([a-z]?)/gi, (_, letter: string) => letter.toUpperCase())}`,
    tags: ["Models and chat"],
    summary,
    ...(description ? { description } : {}),
    parameters: names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } })),
    ...(method === "post" ? { requestBody: { required: true, description: format, content: body } } : {}),
    responses: {
      "200": { description: format, content: { ...body, ...(streams ? { "text/event-stream": {} } : {}) } },
      "401": { description: "No valid credentials, in the error shape of the format." },
      "429": { description: "The key's own limit, or the provider's." },
      "502": { description: "The provider could not be reached." },
    },
    security: [{ apiKey: ["proxy"] }],
    "x-access": "proxy",
    "x-face": "proxy",
  };
}

const mcp: PathItem = {
  operationId: "postMcp",
  tags: ["MCP"],
  summary: "One JSON-RPC message of the Model Context Protocol (Streamable HTTP)",
  description: "Without sessions: every request brings its credentials. See docs/mcp.md for the tools.",
  parameters: [],
  requestBody: {
    required: true,
    description: "A JSON-RPC message.",
    content: { "application/json": { schema: any } },
  },
  responses: {
    "200": {
      description: "The answer, or a stream when there are messages before it.",
      content: { "application/json": { schema: any }, "text/event-stream": {} },
    },
    "202": { description: "A notification was taken." },
    "401": { description: "No valid credentials, as a JSON-RPC error." },
  },
  security: [{ apiKey: ["read:memory", "write:memory"] }, { management: [] }],
  "x-access": "read:memory",
  "x-face": "mcp",
};
