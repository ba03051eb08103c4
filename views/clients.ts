/** Settings to copy for each client. The key stands in the texts as `rk-…`. */
import type { ReceiptLine } from "./receipt.tsx";

export interface Connection {
  /** Origin of this box as the browser knows it, without a slash at the end. */
  origin: string;
  /** First characters of a key, or null where there is none. */
  keyPrefix: string | null;
  /** A model that will answer, as provider/model. */
  model: string;
  hasProvider: boolean;
  /** When requests are looked at from: shown again in the poll. */
  since: number;
  first: ReceiptLine | null;
}

export type ClientId =
  | "curl"
  | "python"
  | "node"
  | "openwebui"
  | "continue"
  | "claude"
  | "codex"
  | "vercel"
  | "mcp";

interface Client {
  id: ClientId;
  name: string;
  head: string;
  text: (connection: Connection) => string;
  note?: string;
}

export const clients: readonly Client[] = [
  {
    id: "curl",
    name: "curl",
    head: "Terminal",
    text: ({ origin, model }) => `export RECOLLECT_API_KEY=rk-…
curl ${origin}/v1/chat/completions \\
  -H "Authorization: Bearer $RECOLLECT_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [
       {"role": "user", "content": "I prefer tea to coffee."}]}'`,
  },
  {
    id: "python",
    name: "openai-python",
    head: "Python",
    text: ({ origin, model }) => `from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key="rk-…")
reply = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "I prefer tea to coffee."}],
)
print(reply.choices[0].message.content)`,
  },
  {
    id: "node",
    name: "openai-node",
    head: "JavaScript",
    text: ({ origin, model }) => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${origin}/v1", apiKey: "rk-…" });
const reply = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "I prefer tea to coffee." }],
});
console.log(reply.choices[0].message.content);`,
  },
  {
    id: "openwebui",
    name: "Open WebUI",
    head: "Environment of Open WebUI",
    text: ({ origin }) => `OPENAI_API_BASE_URL=${origin}/v1
OPENAI_API_KEY=rk-…
ENABLE_FORWARD_USER_INFO_HEADERS=true`,
    note: "For memories by person, set “Person by header” of the key to x-openwebui-user-id.",
  },
  {
    id: "continue",
    name: "Continue",
    head: "~/.continue/config.yaml",
    text: ({ origin, model }) => `models:
  - name: With memory
    provider: openai
    model: ${model}
    apiBase: ${origin}/v1
    apiKey: rk-…`,
  },
  {
    id: "claude",
    name: "Claude Code",
    head: "Terminal",
    text: ({ origin }) => `export ANTHROPIC_BASE_URL=${origin}
export ANTHROPIC_AUTH_TOKEN=rk-…
claude`,
    note: "The base URL is without /v1. It needs a provider that speaks Messages.",
  },
  {
    id: "codex",
    name: "Codex",
    head: "~/.codex/config.toml",
    text: ({ origin, model }) => `model = "${model}"
model_provider = "recollect"

[model_providers.recollect]
name = "Recollect"
base_url = "${origin}/v1"
env_key = "RECOLLECT_API_KEY"
wire_api = "responses"`,
    note: "It needs a provider that speaks Responses.",
  },
  {
    id: "vercel",
    name: "AI SDK",
    head: "JavaScript",
    text: ({ origin, model }) => `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

const recollect = createOpenAICompatible({
  name: "recollect",
  baseURL: "${origin}/v1",
  apiKey: "rk-…",
});
const { text } = await generateText({ model: recollect("${model}"), prompt: "I prefer tea to coffee." });`,
  },
  {
    id: "mcp",
    name: "MCP",
    head: "MCP client",
    text: ({ origin }) =>
      JSON.stringify(
        { mcpServers: { recollect: { url: `${origin}/mcp`, headers: { Authorization: "Bearer rk-…" } } } },
        null,
        2,
      ),
  },
];

export const isClient = (id: string): id is ClientId => clients.some((client) => client.id === id);

/** The key stands in the texts as `rk-…`. */
export const snippetOf = (client: Client, connection: Connection, key: string): string =>
  client.text(connection).replaceAll("rk-…", key);

/** A request in the terminal that works as it is, while the key can still be seen. */
export const curlWith = (connection: Connection, key: string): string =>
  snippetOf(clients[0]!, connection, key);
