/** `bun run bench:api [rows]`: lists, MCP beside REST, and export on one owner's 100,000 memories, through a real server. */
import { cpus } from "node:os";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { startAppliance } from "../support/appliance.ts";

const rows = Number(process.argv[2] ?? 100_000);
const out = (line: string) => void process.stdout.write(`${line}\n`);
const box = await startAppliance({ demo: false });
out(
  `${cpus()[0]?.model ?? "unknown processor"}, ${cpus().length} cores, Bun ${Bun.version}, ${rows} memories of one owner`,
);

const words = "coffee tea river finch engine garden violin winter letter harbour bicycle novel".split(" ");
const sentence = (n: number) =>
  `Note ${n}: likes ${words[n % 12]} with ${words[(n * 7) % 12]} near the ${words[(n * 5) % 12]} in place ${n % 997}`;
const headers = { authorization: `Bearer ${box.key}` };

let started = performance.now();
const lines = Array.from({ length: rows }, (_, n) =>
  JSON.stringify({ kind: "memory", content: sentence(n), key: `note:${n}` }),
);
const imported = await fetch(`${box.url}/api/memory/import`, {
  method: "POST",
  headers: { ...headers, "content-type": "application/x-ndjson" },
  body: lines.join("\n"),
});
const { created } = (await imported.json()) as { created: number };
report("import", created, performance.now() - started);

await measure("list, page of 50, newest", () => get("/api/memory?limit=50"));
await measure("list, page of 50, offset 50,000", () => get("/api/memory?limit=50&offset=50000"));
await measure("list, one type", () => get("/api/memory?limit=50&type=factual"));
// New rows get into the copy that `q` is looked for in some seconds later.
await Bun.sleep(2000 + rows / 20);
for (const q of ["harbour", "place 42", "nowhere", "e"])
  await measure(`list, q=${q}`, () => get(`/api/memory?limit=50&q=${encodeURIComponent(q)}`), 50);
await measure("get one", await oneMemory());

const query = (n: number) => `${words[n % 12]} ${words[(n * 5) % 12]} place ${n % 997}`;
const preview = (n: number) =>
  fetch(`${box.url}/api/memory/retrieve-preview`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ query: query(n) }),
  }).then((answer) => answer.arrayBuffer());
const search = (n: number) => ({ name: "omniroute_memory_search", arguments: { query: query(n) } });
const client = new Client(
  { name: "bench", version: "1" },
  { versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
await client.connect(
  new StreamableHTTPClientTransport(new URL("/mcp", box.url), { requestInit: { headers } }),
);
// In turns, so that both see the same machine.
const [rest, plain, viaClient] = await inTurns({
  "REST preview": preview,
  "MCP search, plain POST": (n) => rpc("tools/call", search(n)),
  "MCP search, official client": (n) => client.callTool(search(n)),
});
out(
  `MCP beyond REST, p50: ${(plain! - rest!).toFixed(2)} ms plain, ${(viaClient! - rest!).toFixed(2)} ms with the client's own work`,
);
await client.close();

Bun.gc(true);
const before = process.memoryUsage.rss();
let peak = before;
let bytes = 0;
let newlines = 0;
started = performance.now();
const exported = await fetch(`${box.url}/api/memory/export`, { headers });
for await (const chunk of exported.body as ReadableStream<Uint8Array>) {
  bytes += chunk.length;
  for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) newlines++;
  peak = Math.max(peak, process.memoryUsage.rss());
}
report("export", newlines, performance.now() - started);
out(
  `export: ${(bytes / 1e6).toFixed(0)} MB, resident memory of the whole process +${((peak - before) / 1e6).toFixed(0)} MB at most`,
);
await box.stop();
process.exit(0);

async function get(path: string): Promise<unknown> {
  const answer = await fetch(box.url + path, { headers });
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

async function oneMemory() {
  const { data } = (await get("/api/memory?limit=1")) as { data: { id: string }[] };
  return () => get(`/api/memory/${data[0]!.id}`);
}

async function rpc(method: string, params: object): Promise<unknown> {
  const answer = await fetch(`${box.url}/mcp`, {
    method: "POST",
    headers: {
      ...headers,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-11-25",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  // Clients of 2025 are answered with a stream of one event.
  const text = await answer.text();
  return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
}

type Calls = Record<string, (n: number) => Promise<unknown>>;

async function measure(name: string, call: (n: number) => Promise<unknown>, times = 200): Promise<void> {
  await inTurns({ [name]: call }, times);
}

/** Prints the percentiles of each; gives the medians. */
async function inTurns(calls: Calls, times = 200): Promise<number[]> {
  const took = Object.entries(calls).map(([name, call]) => ({ name, call, ms: [] as number[] }));
  for (let n = -Math.min(20, times); n < times; n++) {
    for (const one of took) {
      const at = performance.now();
      await one.call(n + 1000);
      if (n >= 0) one.ms.push(performance.now() - at);
    }
  }
  return took.map(({ name, ms }) => {
    const sorted = ms.toSorted((a, b) => a - b);
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
    out(`${name}: p50 ${at(0.5).toFixed(2)} ms, p95 ${at(0.95).toFixed(2)} ms`);
    return at(0.5);
  });
}

function report(name: string, count: number, ms: number): void {
  out(`${name}: ${count} in ${(ms / 1000).toFixed(1)} s, ${Math.round(count / (ms / 1000))} a second`);
}
