/** The whole appliance in the executable, through its public faces. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { verifyArchive } from "../../src/db/backup-archive.ts";
import { binary, runBinary, startBinary, type Running } from "../support/binary.ts";
import { startHub, type Hub } from "../support/hub.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";

setDefaultTimeout(60_000);
let dir: string;
let dataDir: string;
let server: Running;
let hub: Hub;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "recollect-appliance-"));
  dataDir = join(dir, "data");
  hub = await startHub(testModels() ?? dir);
  server = await startBinary({ dataDir, args: ["--demo"], env: { HF_ENDPOINT: hub.endpoint } });
});
afterAll(async () => {
  await server.stop();
  await hub.close();
  rmSync(dir, { recursive: true, force: true });
});

const key = () => server.apiKey!;
const call = (path: string, init: RequestInit & { as?: string | null } = {}) =>
  fetch(server.url + path, {
    ...init,
    headers: {
      authorization: `Bearer ${init.as ?? key()}`,
      "content-type": "application/json",
      ...Object.fromEntries(new Headers(init.headers)),
    },
  });
const say = async (text: string): Promise<string> => {
  const body = JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: text }] });
  const answer = (await (await call("/v1/chat/completions", { method: "POST", body })).json()) as {
    choices: { message: { content: string } }[];
  };
  return answer.choices[0]!.message.content;
};
/** Asked again until it holds. */
const until = async <T>(ask: () => Promise<T>, holds: (value: T) => boolean): Promise<T> => {
  for (;;) {
    const value = await ask();
    if (holds(value)) return value;
    await Bun.sleep(50);
  }
};

test("what was told is recalled in a new conversation", async () => {
  expect(await say("My favourite editor is Helix.")).toBe("You said: My favourite editor is Helix.");
  const answer = await until(
    () => say("Which editor is my favourite?"),
    (text) => text.includes("I remember:"),
  );
  expect(answer).toContain("Helix");
});

const models = testModels();
test.skipIf(models === null)(
  "a model is imported beside the running server, enabled, and finds by vector",
  async () => {
    expect(await runBinary(["model", "import", join(models!, STATIC_REPO)], { dataDir })).toMatchObject({
      code: 0,
    });
    const as = server.managementToken;
    const put = await call("/api/settings/memory", {
      method: "PUT",
      as,
      body: JSON.stringify({ staticEnabled: true }),
    });
    expect(put.status).toBe(200);
    const embedded = (await (
      await call("/v1/embeddings", {
        method: "POST",
        body: JSON.stringify({ model: "local/static", input: ["a", "b"] }),
      })
    ).json()) as { data: { embedding: number[] }[] };
    expect(embedded.data.map((one) => one.embedding.length)).toEqual([256, 256]);
    for (const [dimensions, status] of [
      [64, 200],
      [0, 400],
      [257, 400],
      ["x", 400],
    ] as const) {
      const body = JSON.stringify({ model: "local/static", input: "a", dimensions });
      const answer = await call("/v1/embeddings", { method: "POST", body });
      expect([dimensions, answer.status]).toEqual([dimensions, status]);
      const text = await answer.text();
      if (status === 400) expect(text).toContain('"param":"dimensions"');
      else expect(Math.hypot(...(JSON.parse(text) as typeof embedded).data[0]!.embedding)).toBeCloseTo(1, 4);
    }
    const memory = { type: "factual", content: "Grows tomatoes on the balcony" };
    expect((await call("/api/memory", { method: "POST", body: JSON.stringify(memory) })).status).toBe(201);
    type Status = { embedding: { source: string; available: boolean }; vectorStore: { backend: string } };
    const status = await until(
      async () => (await (await call("/api/memory/engine-status", { as })).json()) as Status,
      (now) => now.embedding?.available,
    );
    expect(status.embedding.source).toBe("static");
    const find = async () =>
      await (
        await call("/api/memory/retrieve-preview", {
          method: "POST",
          body: JSON.stringify({ query: "which tomatoes do I grow", strategy: "semantic" }),
        })
      ).text();
    // Words find it at once, its vector a moment later.
    expect(await until(find, (text) => text.includes('"vecRank":1'))).toContain('"memories":[{');
  },
);

test("with the model there, nobody asked the hub", () => {
  expect(hub.requests).toEqual([]);
});

test("the Studio opens with the one-time link and brings its own assets", async () => {
  const link = /Studio +(\S+)/.exec(server.banner)![1]!;
  const signIn = await fetch(link, { redirect: "manual" });
  expect(signIn.status).toBe(303);
  const cookie = signIn.headers.get("set-cookie")!.split(";")[0]!;
  const page = await fetch(`${server.url}/dashboard/memory`, { headers: { cookie } });
  expect(page.status).toBe(200);
  const html = await page.text();
  const assets = [...html.matchAll(/(?:href|src)="(\/[^"#]+\.(?:css|js|svg)[^"]*)"/g)].map(
    (match) => match[1]!,
  );
  expect(assets.length).toBeGreaterThan(1);
  for (const path of assets) {
    const asset = await fetch(server.url + path.replaceAll("&amp;", "&"));
    expect([path, asset.status]).toEqual([path, 200]);
    expect((await asset.text()).length).toBeGreaterThan(100);
  }
  expect(html).not.toMatch(/(?:href|src)="https?:\/\//);
  expect((await fetch(link, { redirect: "manual" })).status).toBe(401);
});

test("MCP over stdio, beside the running server", async () => {
  const client = new Client({ name: "test", version: "1" });
  const env = {
    PATH: process.env["PATH"] ?? "",
    DATA_DIR: dataDir,
    RECOLLECT_API_KEY: key(),
    LOG_LEVEL: "silent",
  };
  await client.connect(new StdioClientTransport({ command: binary(), args: ["mcp"], env }));
  const { tools } = await client.listTools();
  expect(tools.map((tool) => tool.name)).toContain("omniroute_memory_search");
  const found = await client.callTool({
    name: "omniroute_memory_search",
    arguments: { query: "favourite editor" },
  });
  expect(JSON.stringify(found)).toContain("Helix");
  await client.close();
});

test("a backup is made while it serves, and opens elsewhere", async () => {
  const file = join(dir, "backup.tar");
  expect(await runBinary(["backup", file], { dataDir })).toMatchObject({ code: 0 });
  const other = join(dir, "other");
  expect(await runBinary(["restore", file], { dataDir: other })).toMatchObject({ code: 0 });
  const listed = await runBinary(["memory", "list", "--json"], { dataDir: other });
  expect(listed.stdout).toContain("Helix");
});

test("the running server gives a backup and takes it back, with threads of its own", async () => {
  const as = server.managementToken;
  const given = await call("/api/backup", { method: "POST", as });
  expect(given.status).toBe(200);
  const file = join(dir, "download.tar");
  await Bun.write(file, await given.arrayBuffer());
  expect(verifyArchive(file).rows["memories"]).toBeGreaterThan(0);
  const taken = await call("/api/restore", {
    method: "POST",
    as,
    body: await Bun.file(file).bytes(),
    headers: { "content-type": "application/x-tar" },
  });
  expect([taken.status, taken.status < 300 ? "" : await taken.text()]).toEqual([200, ""]);
  const health = async () =>
    await fetch(`${server.url}/ready`).then(
      (answer) => answer.status,
      () => 0,
    );
  await until(health, (status) => status === 200);
  expect(await (await call("/api/memory")).text()).toContain("Helix");
});

test("SIGTERM lets a stream end, refuses new ones, and exits 0", async () => {
  const upstream: Server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    let sent = 0;
    const chunk = (content: string) =>
      `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
    const timer = setInterval(() => {
      if (sent++ < 10) response.write(chunk(`${sent} `));
      else {
        clearInterval(timer);
        response.end(`${chunk("end").replace("null", '"stop"')}data: [DONE]\n\n`);
      }
    }, 100);
  });
  const port = await new Promise<number>((resolve) => {
    upstream.listen(0, "127.0.0.1", () => resolve((upstream.address() as AddressInfo).port));
  });
  await using draining = await startBinary({
    dataDir: join(dir, "drain"),
    args: ["--upstream", `http://127.0.0.1:${port}/v1`],
  });
  const response = await fetch(`${draining.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${draining.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: `127.0.0.1-${port}/m`,
      stream: true,
      messages: [{ role: "user", content: "hello" }],
    }),
  });
  expect(response.status).toBe(200);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader.read()).value!;
  const exited = draining.stop();
  for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
  expect(text).toContain('"content":"10 "');
  expect(text).toEndWith("data: [DONE]\n\n");
  expect(await exited).toBe(0);
  expect(
    await fetch(`${draining.url}/health`).then(
      () => "answered",
      () => "refused",
    ),
  ).toBe("refused");
  upstream.close();
});
