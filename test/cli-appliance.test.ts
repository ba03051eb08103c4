import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clock } from "../src/doctor/box.ts";
import type { Finding } from "../src/doctor/types.ts";
import { startHub } from "./support/hub.ts";
import { STATIC_REPO, testModels } from "./support/models.ts";

setDefaultTimeout(60_000);

let dir: string;
let dataDir: string;
let taken: Server | null = null;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "recollect-cli-"));
  dataDir = join(dir, "data");
});
afterEach(() => {
  taken?.close();
  taken = null;
  rmSync(dir, { recursive: true, force: true });
});

async function recollect(args: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../src/main.ts"), ...args], {
    env: { PATH: process.env["PATH"] ?? "", HOME: dir, DATA_DIR: dataDir, PORT: "0", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, code };
}

async function doctor(env: Record<string, string> = {}) {
  const { out, code, err } = await recollect(["doctor", "--json"], env);
  const { healthy, findings } = JSON.parse(out || `{"findings":[],"err":${JSON.stringify(err)}}`) as {
    healthy: boolean;
    findings: Finding[];
  };
  return { code, healthy, of: (check: string) => findings.find((finding) => finding.check === check) };
}

test("backup and restore from the command line", async () => {
  await recollect(["key", "create", "laptop"]);
  const file = join(dir, "copies", "today.tar");
  const made = await recollect(["backup", file]);
  expect(made).toMatchObject({ code: 0, out: expect.stringContaining("read back and found good") });
  expect(made.err).toContain("--with-secret-key");
  await recollect(["key", "create", "phone"]);

  const refused = await recollect(["restore", file]);
  expect(refused.code).toBe(1);
  expect(refused.err).toMatch(
    /^recollect: There is a database in .* Give --force to replace it; it is kept in .*\.\n$/,
  );
  const done = await recollect(["restore", file, "--force"]);
  expect(done.code).toBe(0);
  expect((await recollect(["key", "list"])).out).not.toContain("phone");
  const undo = /recollect restore (\S+) --force/.exec(done.out)?.[1];
  expect((await recollect(["restore", undo!, "--force"])).code).toBe(0);
  expect((await recollect(["key", "list"])).out).toContain("phone");

  expect((await recollect(["restore", join(dir, "nothing"), "--force"])).err).toContain("There is no file");
  expect((await recollect(["backup"])).code).toBe(2);
  expect((await recollect(["backup", file], { DATA_DIR: join(dir, "empty") })).err).toContain(
    "There is no database in",
  );
});

test("nothing is restored below a running server", async () => {
  const file = join(dir, "today.tar");
  const server = Bun.spawn([process.execPath, join(import.meta.dir, "../src/main.ts"), "serve"], {
    env: { HOME: dir, DATA_DIR: dataDir, PORT: "0" },
    stdout: "pipe",
  });
  for await (const text of server.stdout.pipeThrough(new TextDecoderStream()))
    if (text.includes("Memory")) break;
  expect((await recollect(["backup", file])).code).toBe(0);
  const { code, err } = await recollect(["restore", file, "--force"]);
  expect(code).toBe(1);
  expect(err).toContain(`Another Recollect server (process ${server.pid}) is running`);
  server.kill();
  await server.exited;
});

describe("doctor", () => {
  test("finds a fresh box well and changes nothing", async () => {
    const { code, healthy, of } = await doctor();
    expect([code, healthy]).toEqual([0, true]);
    expect(existsSync(dataDir)).toBe(false);
    expect(of("data folder")).toMatchObject({ state: "ok" });
    expect(of("model static")).toMatchObject({ state: "off" });
    await recollect(["key", "create", "laptop"]);
    const again = await doctor();
    expect(again.of("database")).toMatchObject({ state: "ok", todo: null });
    expect(again.of("sqlite-vec")).toMatchObject({ state: "ok" });
    expect(again.of("full text")).toMatchObject({ state: "ok" });
  });

  test("names who holds the port, and what to do", async () => {
    const port = await new Promise<number>((resolve) => {
      taken = createServer().listen(0, "127.0.0.1", () =>
        resolve((taken!.address() as { port: number }).port),
      );
    });
    const { code, of } = await doctor({ PORT: String(port) });
    expect(code).toBe(1);
    const finding = of("port");
    expect(finding?.state).toBe("bad");
    if (process.platform === "linux") expect(finding?.found).toContain(`(process ${process.pid})`);
    expect(finding?.todo).toContain("--port");
    const serve = await recollect(["serve"], { PORT: String(port) });
    expect(serve.code).toBe(1);
    if (process.platform === "linux") expect(serve.err).toContain(`(process ${process.pid})`);
  });

  test("a damaged database, a folder open to others, an address that is not here", async () => {
    await recollect(["key", "create", "laptop"]);
    const path = join(dataDir, "recollect.db");
    const damaged = readFileSync(path).fill(7, 4096, 30_000);
    writeFileSync(path, damaged);
    Bun.spawnSync(["chmod", "755", dataDir]);
    const { code, of } = await doctor({ HOST: "203.0.113.1" });
    expect(code).toBe(1);
    expect(of("database")).toMatchObject({
      state: "bad",
      found: expect.stringContaining("damaged"),
      todo: expect.stringContaining("recollect restore FILE --force"),
    });
    expect(of("data folder")).toMatchObject({ state: "warn", todo: expect.stringContaining("chmod 700") });
    expect(of("port")).toMatchObject({ state: "bad", todo: expect.stringContaining("127.0.0.1") });
    expect(readFileSync(path).equals(damaged)).toBe(true);
  });

  test("a clock that stands before the newest record", () => {
    const day = 86_400_000;
    expect(clock(10 * day, 10.5 * day)).toMatchObject({ state: "ok" });
    expect(clock(10 * day, null)).toMatchObject({ state: "ok" });
    expect(clock(10 * day, 12 * day)).toMatchObject({
      state: "bad",
      todo: expect.stringContaining("Set the clock"),
    });
  });

  test("keyless and reachable by others", async () => {
    const { of } = await doctor({ HOST: "0.0.0.0", REQUIRE_API_KEY: "false" });
    expect(of("port")).toMatchObject({ state: "bad", todo: expect.stringContaining("REQUIRE_API_KEY=true") });
  });

  test("plain text has a line a check, and its exit code", async () => {
    const { out, code } = await recollect(["doctor"]);
    expect(code).toBe(0);
    expect(out).toContain("All is well.");
    expect((await recollect(["doctor", "now"])).code).toBe(2);
  });
});

const models = testModels();
describe.skipIf(models === null)("models", () => {
  test("pull with progress, list, remove; import without network", async () => {
    const hub = await startHub(models!);
    const env = { HF_ENDPOINT: hub.endpoint };
    expect((await recollect(["model", "list"], env)).out).toMatch(
      /^static +absent +minishlab\/potion-base-8M\n/,
    );
    const pulled = await recollect(["model", "pull", "static"], env);
    expect(pulled).toMatchObject({
      code: 0,
      out: "static is ready: minishlab/potion-base-8M, 256 dimensions, 31.8 MB.\n",
    });
    expect(pulled.err).toMatch(/static {2}31\.8 of 31\.8 MB {2}100 %\n$/);
    const { of } = await doctor(env);
    expect(of("model static")).toMatchObject({
      state: "ok",
      found: expect.stringContaining("256 dimensions"),
    });
    const listed = JSON.parse((await recollect(["model", "list", "--json"], env)).out) as { data: object[] };
    expect(listed.data[0]).toMatchObject({ name: "static", state: "ready", dimensions: 256 });
    expect((await recollect(["model", "remove", "static"], env)).out).toBe("Removed static.\n");
    const before = hub.requests.length;
    expect((await recollect(["model", "import", join(models!, STATIC_REPO)], env)).code).toBe(0);
    expect(hub.requests.length).toBe(before);
    await hub.close();
  });

  test("a pull that cannot work says why and what else to do", async () => {
    const { code, err } = await recollect(["model", "pull", "static"], { HF_ENDPOINT: "http://127.0.0.1:9" });
    expect(code).toBe(1);
    expect(err).toEndWith("bring the files with: recollect model import DIR\n");
    expect((await recollect(["model", "pull", "gpt"])).code).toBe(2);
    expect((await recollect(["model", "import", dir])).err).toContain("There is no model in");
  });

  test("a damaged model is found", async () => {
    const folder = join(dataDir, "embeddings/minishlab/potion-base-8M");
    mkdirSync(folder, { recursive: true });
    for (const file of readdirSync(join(models!, STATIC_REPO))) {
      writeFileSync(join(folder, file), readFileSync(join(models!, STATIC_REPO, file)).subarray(0, 5000));
    }
    const { code, of } = await doctor();
    expect(code).toBe(1);
    expect(of("model static")).toMatchObject({
      state: "bad",
      todo: "recollect model remove static, then recollect model pull static",
    });
  });
});

test("a unit is shown from source, and installed only from the executable", async () => {
  const shown = await recollect(["service", "install", "--print", "--user", "--port", "8080"]);
  expect(shown.code).toBe(0);
  expect(shown.out).toContain("Environment=PORT=8080\n");
  const refused = await recollect(["service", "install"]);
  expect(refused.code).toBe(2);
  expect(refused.err).toContain("bun run build");
});
