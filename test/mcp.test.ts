/** The MCP server as the official client sees it, over HTTP and over stdio. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Client, StreamableHTTPClientTransport, type CallToolResult } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldHttpTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport as OldStdioTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { join } from "node:path";
import { startAppliance, type Appliance } from "./support/appliance.ts";

// Clients that start a process of their own take their time on a shared machine.
setDefaultTimeout(30_000);

let box: Appliance;
beforeAll(async () => {
  box = await startAppliance();
});
afterAll(() => box.stop());

/** What both generations of the client do alike; their types differ in details that no test needs. */
type Connection = {
  client: Pick<Client, "getServerVersion" | "getInstructions" | "listTools" | "callTool">;
  close: () => Promise<void>;
};
type Connect = (secret: string, headers?: Record<string, string>) => Promise<Connection>;

const info = { name: "test", version: "1" };
const modern = { versionNegotiation: { mode: { pin: "2026-07-28" } } } as const;
const url = () => new URL("/mcp", box.url);
const init = (secret: string, headers = {}) => ({
  requestInit: { headers: { authorization: `Bearer ${secret}`, ...headers } },
});
const command = (secret: string) => ({
  command: process.execPath,
  args: [join(import.meta.dir, "../src/main.ts"), "mcp"],
  env: {
    PATH: process.env["PATH"] ?? "",
    DATA_DIR: box.dataDir,
    RECOLLECT_API_KEY: secret,
    LOG_LEVEL: "silent",
  },
});

const overHttp: Connect = async (secret, headers) => {
  const client = new Client(info, modern);
  await client.connect(new StreamableHTTPClientTransport(url(), init(secret, headers)));
  return { client, close: () => client.close() };
};
const overStdio: Connect = async (secret) => {
  const client = new Client(info, modern);
  await client.connect(new StdioClientTransport(command(secret)));
  return { client, close: () => client.close() };
};
const oldOverHttp: Connect = async (secret, headers) => {
  const client = new OldClient(info);
  const transport = new OldHttpTransport(url(), init(secret, headers));
  await client.connect(transport as Parameters<OldClient["connect"]>[0]);
  return alike(client);
};
const oldOverStdio: Connect = async (secret) => {
  const client = new OldClient(info);
  await client.connect(new OldStdioTransport(command(secret)));
  return alike(client);
};

function alike(client: OldClient): Connection {
  const same = {
    getServerVersion: () => client.getServerVersion(),
    getInstructions: () => client.getInstructions(),
    listTools: () => client.listTools(),
    callTool: (params: { name: string }, options?: object) => client.callTool(params, undefined, options),
  };
  return { client: same as unknown as Connection["client"], close: () => client.close() };
}

async function newKey(fields: object): Promise<{ secret: string; id: string }> {
  const { body } = await box.call("POST", "/api/keys", { name: "MCP", ...fields });
  const { secret, key } = body as { secret: string; key: { id: string } };
  return { secret, id: key.id };
}

async function call({ client }: Connection, name: string, args: object = {}) {
  const result = (await client.callTool({ name, arguments: { ...args } })) as CallToolResult;
  const [first] = result.content;
  const text = first?.type === "text" ? first.text : "";
  if (result.isError !== true) expect(JSON.parse(text)).toEqual(result.structuredContent);
  // oxlint-disable-next-line typescript/no-explicit-any
  return { error: result.isError === true, text, data: result.structuredContent as any };
}

for (const [how, connect] of [
  ["2026-07-28 over Streamable HTTP", overHttp],
  ["2026-07-28 over stdio", overStdio],
  ["2025-11-25 over Streamable HTTP", oldOverHttp],
  ["2025-11-25 over stdio", oldOverStdio],
] as const) {
  describe(how, () => {
    let it: Connection;
    beforeAll(async () => {
      it = await connect((await newKey({})).secret);
    });
    afterAll(() => it.close());

    test("introduces itself and lists its tools with schemas", async () => {
      expect(it.client.getServerVersion()).toMatchObject({ name: "recollect", title: "Recollect" });
      expect(it.client.getInstructions()).toContain("memory");
      const { tools } = await it.client.listTools();
      expect(tools.map(({ name }) => name).toSorted()).toEqual([
        "omniroute_memory_add",
        "omniroute_memory_clear",
        "omniroute_memory_context",
        "omniroute_memory_delete",
        "omniroute_memory_search",
        "omniroute_memory_update",
      ]);
      for (const tool of tools) {
        expect(tool.inputSchema).toMatchObject({ type: "object", additionalProperties: false });
        expect(tool.outputSchema?.type).toBe("object");
        expect(tool.description!.length).toBeGreaterThan(20);
      }
    });

    test("adds, updates by key, corrects and deletes", async () => {
      const args = { type: "factual", key: "preference:tea", content: "Prefers green tea" };
      const added = await call(it, "omniroute_memory_add", args);
      expect(added.data).toMatchObject({
        created: true,
        memory: { content: "Prefers green tea", origin: "mcp" },
      });
      const again = await call(it, "omniroute_memory_add", { ...args, content: "Prefers oolong" });
      expect(again.data).toMatchObject({ created: false, memory: { id: added.data.memory.id } });
      const { id } = added.data.memory;
      const changed = await call(it, "omniroute_memory_update", { id, content: "Prefers white tea" });
      expect(changed.data.memory.content).toBe("Prefers white tea");
      expect((await call(it, "omniroute_memory_delete", { id })).data).toEqual({ success: true });
      const gone = await call(it, "omniroute_memory_delete", { id });
      expect(gone).toMatchObject({ error: true, text: "There is no such memory." });
    });

    test("searches best first, narrows by type before ranking, and gives the newest without a query", async () => {
      const mine = await connect((await newKey({})).secret);
      for (const [type, key, content] of [
        ["factual", "a:1", "Keeps a zebra finch called Pip"],
        ["procedural", "a:2", "Feed the zebra finch at noon"],
        ["factual", "a:3", "Drinks oolong in the evening"],
      ]) {
        await call(mine, "omniroute_memory_add", { type, key, content });
      }
      const contents = (data: { memories: { content: string }[] }) =>
        data.memories.map(({ content }) => content);
      const all = (await call(mine, "omniroute_memory_search", { query: "zebra finch" })).data;
      expect(contents(all).toSorted()).toEqual([
        "Feed the zebra finch at noon",
        "Keeps a zebra finch called Pip",
      ]);
      expect(all).toMatchObject({ count: 2, episodes: [], resolution: { strategyUsed: "keyword" } });
      expect(all.memories[0]).toMatchObject({ tier: "fts5", ftsRank: 1 });
      const one = (await call(mine, "omniroute_memory_search", { query: "zebra finch", type: "procedural" }))
        .data;
      expect(contents(one)).toEqual(["Feed the zebra finch at noon"]);
      const context = (
        await call(mine, "omniroute_memory_context", { query: "zebra finch", kinds: ["memory"] })
      ).data;
      expect(context.data.map(({ kind }: { kind: string }) => kind)).toEqual(["memory", "memory"]);
      expect(context.text).toStartWith("Memory context:");
      const newest = (await call(mine, "omniroute_memory_search", { limit: 2 })).data;
      expect(contents(newest)).toEqual(["Drinks oolong in the evening", "Feed the zebra finch at noon"]);
      await mine.close();
    });

    test("says what to do about wrong input, in one sentence", async () => {
      const wrong = await call(it, "omniroute_memory_add", {
        type: "fact",
        key: "",
        content: 5,
        colour: "red",
      });
      expect(wrong.error).toBe(true);
      for (const part of [
        "type: must be one of factual",
        "key: must",
        "content: must be a text",
        "colour: There is no",
      ]) {
        expect(wrong.text).toContain(part);
      }
      expect((await call(it, "omniroute_memory_update", { id: crypto.randomUUID() })).text).toContain(
        "at least one field",
      );
      expect(call(it, "omniroute_memory_explode")).rejects.toThrow("no tool");
    });

    test("clears all matches in pages, says how far it is, and spares what is pinned", async () => {
      const { secret } = await newKey({});
      const mine = await connect(secret);
      const lines = Array.from({ length: 1234 }, (_, n) =>
        JSON.stringify({ kind: "memory", content: `Line ${n}` }),
      );
      await fetch(`${box.url}/api/memory/import`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/x-ndjson" },
        body: lines.join("\n"),
      });
      await box.call("POST", "/api/memory", { content: "Stays", pinned: true }, secret);
      const seen: number[] = [];
      const result = await mine.client.callTool(
        { name: "omniroute_memory_clear", arguments: {} },
        { onprogress: ({ progress, total }) => void seen.push(progress, total ?? 0) },
      );
      expect(result.structuredContent).toEqual({ deletedCount: 1234 });
      expect(seen).toEqual([500, 1234, 1000, 1234]);
      const left = (await box.call("GET", "/api/memory", undefined, secret)).body;
      expect(left).toMatchObject({ total: 1, data: [{ content: "Stays" }] });
      await mine.close();
    });

    test("lists and runs only what the key's scopes reach", async () => {
      const mine = await connect((await newKey({ scopes: ["read:memory"] })).secret);
      const { tools } = await mine.client.listTools();
      expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
      const refused = await call(mine, "omniroute_memory_clear");
      expect(refused).toMatchObject({
        error: true,
        text: expect.stringContaining("lacks the scope write:memory"),
      });
      await mine.close();
    });

    test("reaches no row of another owner, by id or by name", async () => {
      const other = await newKey({});
      const { body } = await box.call("POST", "/api/memory", { content: "Secret of another" }, other.secret);
      const { id } = body as { id: string };
      const { tools } = await it.client.listTools();
      for (const { name, inputSchema } of tools) {
        const args = sample(inputSchema.properties ?? {}, inputSchema.required ?? [], id);
        const foreign = await call(it, name, args);
        expect([name, foreign.text]).toEqual([name, expect.not.stringContaining("Secret of another")]);
        const named = await call(it, name, { ...args, apiKeyId: other.id });
        expect([name, named.text]).toEqual([name, "There is no such owner."]);
      }
      const kept = await box.call("GET", `/api/memory/${id}`, undefined, other.secret);
      expect(kept.body).toMatchObject({ memory: { content: "Secret of another", version: 1 } });
    });

    test("ends for a key that is revoked", async () => {
      const { secret, id } = await newKey({});
      const mine = await connect(secret);
      await box.call("DELETE", `/api/keys/${id}`);
      const answer = await call(mine, "omniroute_memory_clear").catch((error: Error) => ({
        error: true,
        text: error.message,
      }));
      expect(answer).toMatchObject({
        error: true,
        text: expect.stringMatching(/revoked|valid API key|Connection closed/),
      });
      await mine.close();
    });
  });
}

describe("/mcp", () => {
  const send = (init: RequestInit, headers: Record<string, string> = {}) =>
    fetch(`${box.url}/mcp`, {
      method: "POST",
      ...init,
      headers: {
        authorization: `Bearer ${box.key}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
    });
  const ping = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });

  test("answers errors in the shape of JSON-RPC with the status of HTTP", async () => {
    for (const [status, init, headers] of [
      [401, { body: ping }, { authorization: "" }],
      [401, { body: ping }, { authorization: "Bearer rk-wrong" }],
      [403, { body: ping }, { origin: "http://evil.example" }],
      [405, { method: "GET" }, {}],
      [405, { method: "DELETE" }, {}],
      [400, { body: "{" }, {}],
      [400, { body: "[".repeat(1000) }, {}],
      [400, { body: '{"jsonrpc":"1.0"}' }, {}],
      [413, { body: `"${"x".repeat(2 ** 20)}"` }, {}],
      [415, { body: ping }, { "content-type": "text/plain" }],
      [406, { body: ping }, { accept: "application/json" }],
    ] as const) {
      const answer = await send(init, headers);
      expect(answer.status).toBe(status);
      expect(await answer.json()).toMatchObject({
        jsonrpc: "2.0",
        error: { message: expect.any(String) },
        id: null,
      });
      if (status === 401) expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      if (status === 405) expect(answer.headers.get("allow")).toBe("POST");
    }
  });

  test("takes pages of its own origin and clients that send none", async () => {
    expect((await send({ body: ping })).status).toBe(200);
    expect((await send({ body: ping }, { origin: box.url })).status).toBe(200);
  });

  test("answers clients that take anything, as curl does", async () => {
    const search = { name: "omniroute_memory_search", arguments: {} };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: search });
    const answer = await send({ body }, { accept: "*/*" });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('"structuredContent"');
  });

  test("management names the owner; a ranked read or a write without one says so", async () => {
    const it = await overHttp(box.token);
    const add = { type: "factual", key: "k", content: "Of management" };
    expect((await call(it, "omniroute_memory_add", add)).text).toContain("apiKeyId: name the owner");
    expect((await call(it, "omniroute_memory_add", { ...add, apiKeyId: "nobody" })).text).toBe(
      "There is no such owner.",
    );
    const added = await call(it, "omniroute_memory_add", { ...add, apiKeyId: box.keyId });
    expect(added.data.memory.apiKeyId).toBe(box.keyId);
    await it.close();
  });

  test("a key with many people behind it needs the person's name", async () => {
    const { secret, id } = await newKey({ userHeader: "x-user" });
    expect(oldOverHttp(secret)).rejects.toThrow("serves many people");
    const it = await overHttp(secret, { "x-user": "eve" });
    const added = await call(it, "omniroute_memory_add", { type: "factual", key: "k", content: "Of Eve" });
    expect(added.data.memory.apiKeyId).toBe(`${id}:eve`);
    await it.close();
  });
});

test("the inspector's command line lists and calls the tools", async () => {
  const inspector = join(
    import.meta.dir,
    "../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
  );
  const inspect = async (...args: string[]) => {
    const given = [
      inspector,
      "--cli",
      url().href,
      "--transport",
      "http",
      "--header",
      `Authorization: Bearer ${box.key}`,
    ];
    const child = Bun.spawn([process.execPath, ...given, ...args], { stdout: "pipe", stderr: "inherit" });
    return JSON.parse(await new Response(child.stdout).text());
  };
  const { tools } = await inspect("--method", "tools/list");
  expect(tools).toHaveLength(6);
  const args = ["type=factual", "key=k:inspector", "content=Seen by the inspector"];
  const call = ["--method", "tools/call", "--tool-name", "omniroute_memory_add", "--tool-arg"];
  const { structuredContent } = await inspect(...call, ...args);
  expect(structuredContent).toMatchObject({ created: true, memory: { content: "Seen by the inspector" } });
}, 30_000);

test("recollect mcp answers what was piped into it, although nothing follows", async () => {
  const { command: program, args, env } = command(box.key);
  const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: info };
  const add = { type: "factual", key: "piped", content: "Pipes its messages" };
  const messages = [
    { id: 1, method: "initialize", params: hello },
    { method: "notifications/initialized" },
    { id: 2, method: "tools/call", params: { name: "omniroute_memory_add", arguments: add } },
  ];
  const lines = messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("");
  const piped = Bun.spawn([program, ...args], { env, stdin: Buffer.from(lines), stderr: "inherit" });
  const answers = (await new Response(piped.stdout).text()).trim().split("\n");
  expect(await piped.exited).toBe(0);
  expect(answers.map((line) => (JSON.parse(line) as { id: number }).id)).toEqual([1, 2]);
  expect(answers[1]).toContain("Pipes its messages");
});

test("recollect mcp refuses a key that is not there, revoked or unclear, in one sentence", async () => {
  const run = async (env: Record<string, string>, ...args: string[]) => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "../src/main.ts"), "mcp", ...args], {
      env: { PATH: process.env["PATH"] ?? "", DATA_DIR: box.dataDir, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    expect(out).toBe("");
    expect(err.trim().split("\n")).toHaveLength(1);
    return { err, code };
  };
  expect(await run({ RECOLLECT_API_KEY: "rk-wrong" })).toMatchObject({
    code: 1,
    err: expect.stringContaining("no key of this"),
  });
  expect(await run({}, "--key", "nobody")).toMatchObject({
    code: 1,
    err: expect.stringContaining("no key nobody"),
  });
  await newKey({});
  expect(await run({})).toMatchObject({ code: 2, err: expect.stringContaining("say which with --key") });
  expect(await run({}, "--key", box.keyId, "--user", "eve")).toMatchObject({ code: 2 });
});

test("over stdio what is said after a restore is in the restored database", async () => {
  const backup = await fetch(`${box.url}/api/backup`, {
    method: "POST",
    headers: { authorization: `Bearer ${box.token}` },
  });
  const connection = await overStdio(box.key);
  const add = (key: string) =>
    call(connection, "omniroute_memory_add", { type: "factual", key, content: `Said ${key}` });
  await add("k:before");
  const headers = { authorization: `Bearer ${box.token}`, "content-type": "application/x-tar" };
  const body = await backup.blob();
  expect((await fetch(`${box.url}/api/restore`, { method: "POST", headers, body })).status).toBe(200);
  await add("k:after");
  const list = JSON.stringify((await box.call("GET", "/api/memory?limit=200", undefined, box.key)).body);
  expect([list.includes("Said k:before"), list.includes("Said k:after")]).toEqual([false, true]);
  await connection.close();
});

/** Arguments that a tool takes, with a foreign id wherever one fits. */
function sample(properties: object, required: string[], id: string): Record<string, unknown> {
  const values: Record<string, unknown> = {
    id,
    type: "factual",
    key: "preference:x",
    content: "Mine",
    query: "secret of another",
  };
  const wanted = Object.keys(properties).filter((name) => required.includes(name) || name === "content");
  return Object.fromEntries(wanted.map((name) => [name, values[name]]));
}
