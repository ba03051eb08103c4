import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { binary, hostileFolder, runBinary, startBinary, wasFooled } from "../support/binary.ts";

setDefaultTimeout(60_000);

const as = (secret: string | null) => ({ authorization: `Bearer ${secret}` });

describe("the executable, alone in a hostile folder", () => {
  let folder: string;
  let dataDir: string;
  let command: string[];
  beforeAll(() => {
    folder = hostileFolder();
    dataDir = mkdtempSync(join(tmpdir(), "recollect-data-"));
    command = [join(folder, "recollect")];
  });
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
    rmSync(dataDir, { recursive: true, force: true });
  });

  test("starts on an empty folder, answers, and ends on SIGTERM without a word", async () => {
    const before = readdirSync(folder).toSorted();
    await using server = await startBinary({ command, cwd: folder, dataDir, args: ["--demo"] });
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const get = (path: string, key?: string | null) =>
      fetch(server.url + path, key ? { headers: { authorization: `Bearer ${key}` } } : {});
    expect(await (await get("/health")).json()).toMatchObject({ status: "ok" });
    expect(await (await get("/openapi.json")).json()).toMatchObject({ openapi: expect.any(String) });
    expect((await get("/api/memory")).status).toBe(401);
    expect((await get("/api/memory", server.apiKey)).status).toBe(200);
    expect((await get("/api/memory", server.managementToken)).status).toBe(200);
    expect(await server.stop()).toBe(0);
    expect(server.stderr()).not.toMatch(/error|warn/i);
    expect(readdirSync(folder).toSorted()).toEqual(before);
    expect(wasFooled(folder)).toBe(false);
  });

  test("has its pages, its schemas, its threads and both doors of MCP inside", async () => {
    const own = mkdtempSync(join(tmpdir(), "recollect-inside-"));
    await using server = await startBinary({ command, cwd: folder, dataDir: own });
    const docs = await fetch(`${server.url}/docs`);
    expect(await docs.text()).toContain("/docs/docs.css");
    expect((await fetch(`${server.url}/docs/docs.css`)).status).toBe(200);

    const add = { type: "factual", key: "k", content: "Told over HTTP" };
    const http = new Client({ name: "test", version: "1" });
    await http.connect(
      new StreamableHTTPClientTransport(new URL("/mcp", server.url), {
        requestInit: { headers: as(server.apiKey) },
      }),
    );
    await http.callTool({ name: "omniroute_memory_add", arguments: add });
    await http.close();
    const stdio = new Client({ name: "test", version: "1" });
    await stdio.connect(
      new StdioClientTransport({
        command: command[0]!,
        args: ["mcp"],
        cwd: folder,
        env: { DATA_DIR: own, RECOLLECT_API_KEY: server.apiKey! },
      }),
    );
    const found = await stdio.callTool({ name: "omniroute_memory_search", arguments: { query: "told" } });
    expect(found.structuredContent).toMatchObject({ memories: [{ content: "Told over HTTP" }] });
    await stdio.close();

    const management = as(server.managementToken);
    const backup = await fetch(`${server.url}/api/backup`, { method: "POST", headers: management });
    const restored = await fetch(`${server.url}/api/restore`, {
      method: "POST",
      headers: { ...management, "content-type": "application/x-tar" },
      body: await backup.bytes(),
    });
    expect(await restored.json()).toMatchObject({ success: true, rows: { memories: 1 } });
    expect((await fetch(`${server.url}/api/memory`, { headers: as(server.apiKey) })).status).toBe(200);
    expect(await server.stop()).toBe(0);
    expect(wasFooled(folder)).toBe(false);
    rmSync(own, { recursive: true, force: true });
  });

  test("writes SQLite's log back in a thread of its own", async () => {
    const own = mkdtempSync(join(tmpdir(), "recollect-log-"));
    await using server = await startBinary({ command, cwd: folder, dataDir: own, args: ["--demo"] });
    /** Pages of the log, and how many of them are in the database by now: https://sqlite.org/walformat.html, 2.1. */
    const log = () => {
      const index = readFileSync(join(own, "recollect.db-shm"));
      return { pages: index.readUInt32LE(16), written: index.readUInt32LE(96) };
    };
    // SQLite's own way is to wait for 1000 pages.
    const writtenBack = () => log().written > 0 && log().pages < 1000;
    for (let n = 0; !writtenBack() && log().pages < 600; n++) {
      const body = JSON.stringify({ type: "factual", key: `fact:${n}`, content: `Fact number ${n}` });
      const headers = { ...as(server.apiKey), "content-type": "application/json" };
      expect((await fetch(`${server.url}/api/memory`, { method: "POST", headers, body })).status).toBe(201);
    }
    const end = performance.now() + 20_000;
    while (!writtenBack() && performance.now() < end) await Bun.sleep(20);
    expect(writtenBack()).toBe(true);
    expect(await server.stop()).toBe(0);
    rmSync(own, { recursive: true, force: true });
  });

  test("has all ten languages inside, each loaded when it is first heard", async () => {
    const own = mkdtempSync(join(tmpdir(), "recollect-languages-"));
    await using server = await startBinary({ command, cwd: folder, dataDir: own, args: ["--demo"] });
    const authorization = `Bearer ${server.apiKey}`;
    const heard: Record<string, string> = {
      "I'm a beekeeper": "Is a beekeeper",
      "Ich mag keinen Lärm": "Mag nicht: Lärm",
      "Je n'aime pas le bruit": "N'aime pas le bruit",
      "Vivo en Málaga": "Vive en Málaga",
      "Eu nunca como peixe": "Hábito: nunca como peixe",
      "Ho scelto Django": "Ha scelto Django",
      "Ik haat lawaai": "Houdt niet van lawaai",
      "Tykkään saunasta": "Pitää: saunasta",
      我叫陈静: "名字：陈静",
      寿司が好きです: "好み：寿司",
    };
    for (const content of Object.keys(heard)) {
      const answer = await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content }] }),
      });
      expect(answer.status).toBe(200);
      await answer.text();
    }
    const contents = async () => {
      const list = await fetch(`${server.url}/api/memory?limit=50`, { headers: { authorization } });
      const { data } = (await list.json()) as { data: { content: string }[] };
      return data.map((row) => row.content);
    };
    const end = performance.now() + 20_000;
    while ((await contents()).length < 10 && performance.now() < end) await Bun.sleep(20);
    expect((await contents()).toSorted()).toEqual(Object.values(heard).toSorted());
    expect(await server.stop()).toBe(0);
    rmSync(own, { recursive: true, force: true });
  });

  test("starts again on the same folder, with its keys and without new ones", async () => {
    await using server = await startBinary({ command, cwd: folder, dataDir });
    expect([server.apiKey, server.managementToken]).toEqual([null, null]);
    expect(await server.stop()).toBe(0);
    expect(existsSync(join(dataDir, "recollect.db"))).toBe(true);
  });

  test("verbs, bad calls and bad configuration have their exit codes", async () => {
    const at = { command, cwd: folder, dataDir };
    expect(await runBinary(["version"], at)).toMatchObject({ code: 0, stderr: "" });
    expect((await runBinary(["help"], at)).stdout).toContain("recollect");
    expect(await runBinary(["nonsense"], at)).toMatchObject({ code: 2, stdout: "" });
    const bad = await runBinary(["serve"], { ...at, env: { PORT: "eighty", MEMORY_RRF_K: "-1" } });
    expect(bad.code).toBe(78);
    expect(bad.stderr).toContain("PORT");
    expect(bad.stderr).toContain("MEMORY_RRF_K");
    expect(wasFooled(folder)).toBe(false);
  });

  test("a second server on the folder ends with a sentence that names the first", async () => {
    await using server = await startBinary({ command, cwd: folder, dataDir });
    const second = await runBinary(["serve", "--port", "0"], { command, cwd: folder, dataDir });
    expect(second.code).toBe(1);
    expect(second.stderr).toMatch(
      new RegExp(`^recollect: Another Recollect server \\(process ${server.pid}\\) is running on .*\\.\n$`),
    );
    expect(await server.stop()).toBe(0);
  });
});

// With RECOLLECT_BINARY that is the build of this commit, which `bun run check` has just made.
test("a build says nothing of the machine it was made on, and is the same each time", () => {
  const root = join(import.meta.dir, "../..");
  const first = readFileSync(binary());
  expect(first.indexOf(root)).toBe(-1);
  const out = mkdtempSync(join(tmpdir(), "recollect-again-"));
  const { exitCode } = Bun.spawnSync([process.execPath, "build.ts", "--out", out], { cwd: root });
  expect(exitCode).toBe(0);
  const second = readFileSync(join(out, "recollect"));
  expect(Bun.SHA256.hash(second, "hex")).toBe(Bun.SHA256.hash(first, "hex"));
  expect(readFileSync(join(out, "SHA256SUMS"), "utf8")).toContain(
    `${Bun.SHA256.hash(second, "hex")}  recollect\n`,
  );
  rmSync(out, { recursive: true, force: true });
}, 600_000);

test("a build takes the place of an executable that runs", async () => {
  const out = mkdtempSync(join(tmpdir(), "recollect-out-"));
  copyFileSync(process.execPath, join(out, "recollect"));
  const running = Bun.spawn([join(out, "recollect"), "-e", "await Bun.stdin.text()"], { stdin: "pipe" });
  const build = Bun.spawn([process.execPath, "build.ts", "--out", out], {
    cwd: join(import.meta.dir, "../.."),
    stderr: "pipe",
  });
  expect(await new Response(build.stderr).text()).toBe("");
  expect(await build.exited).toBe(0);
  const { stdout } = Bun.spawnSync([join(out, "recollect"), "version"]);
  expect(stdout.toString()).toStartWith("recollect ");
  running.kill();
  await running.exited;
  rmSync(out, { recursive: true });
});
