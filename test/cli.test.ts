import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "./support/cli.ts";
import { startAppliance } from "./support/appliance.ts";

let dir: string;
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), "recollect-cli-"))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const recollect = (args: string[], env?: Record<string, string>) => runCli(dir, args, env);

test("usage errors are one sentence on stderr and exit code 2", async () => {
  for (const args of [
    ["nonsense"],
    ["key"],
    ["key", "create"],
    ["serve", "--nope"],
    ["key", "create", "x", "--scope", "root"],
    ["memory", "list", "--limit", "0"],
  ]) {
    const { out, err, code } = await recollect(args);
    expect([code, out]).toEqual([2, ""]);
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(err).toStartWith("recollect: ");
  }
  expect(existsSync(join(dir, "data"))).toBe(false);
});

test("bad configuration lists every problem and exits 78", async () => {
  const { err, code } = await recollect(["serve"], { PORT: "no", LOG_LEVEL: "loud" });
  expect(code).toBe(78);
  expect(err.trim().split("\n")).toEqual([
    'recollect: PORT is "no"; allowed: a whole number from 0 to 65535.',
    'recollect: LOG_LEVEL is "loud"; allowed: debug, info, warn, error, silent.',
  ]);
});

test("what the machine cannot listen with is named, with what is allowed", async () => {
  const pem = join(dir, "no.pem");
  writeFileSync(pem, "no certificate\n");
  const serve = (env: Record<string, string>) => recollect(["serve", "--port", "0"], env);
  for (const host of ["192.0.2.1", "nonsense"]) {
    const { code, err } = await serve({ HOST: host });
    expect(code).toBe(1);
    expect(err).toStartWith(
      `recollect: HOST is "${host}", which is no address of this machine. Use 127.0.0.1`,
    );
  }
  for (const [env, sentence] of [
    [
      { TLS_CERT: "/nowhere.pem", TLS_KEY: pem },
      'TLS_CERT is "/nowhere.pem", which cannot be read (ENOENT).',
    ],
    [
      { TLS_CERT: pem, TLS_KEY: pem },
      "TLS_CERT and TLS_KEY must be a certificate and its private key in PEM (",
    ],
    [
      { TRUST_PROXY: "10.0.0.0/8" },
      'TRUST_PROXY is "10.0.0.0/8"; allowed: IP addresses, separated by commas',
    ],
  ] as const) {
    const { code, err } = await serve(env);
    expect([code, err]).toEqual([78, expect.stringContaining(sentence)]);
  }
});

test("keys are made, listed without their secret, rotated and revoked", async () => {
  const made = await recollect(["key", "create", "laptop", "--id", "laptop", "--scope", "proxy,read:memory"]);
  expect(made.out).toMatch(/^rk-[\w-]{43}\n$/);
  const list = await recollect(["key", "list"]);
  expect(list.out).toContain("laptop");
  expect(list.out).toContain("proxy,read:memory");
  expect(list.out).not.toContain(made.out.trim());
  const rotated = await recollect(["key", "rotate", "laptop"]);
  expect(rotated.out).not.toBe(made.out);
  expect((await recollect(["key", "revoke", "laptop"])).code).toBe(0);
  const again = await recollect(["key", "revoke", "laptop"]);
  expect([again.code, again.err]).toEqual([1, "recollect: There is no such key.\n"]);
  expect((await recollect(["key", "create", "x", "--id", "laptop"])).code).toBe(1);
});

test("memories are added, listed and deleted beside a running server", async () => {
  const dataDir = join(dir, "data");
  const box = await startAppliance({ dataDir });
  try {
    const added = await recollect(["memory", "add", "Prefers rye bread", "--name", "bread"]);
    expect(added.code).toBe(0);
    const id = added.out.trim();
    const listed = await recollect(["memory", "list", "--json"]);
    expect((JSON.parse(listed.out) as { data: { id: string }[] }).data.map((memory) => memory.id)).toEqual([
      id,
    ]);
    const seen = await box.server.thread.engine.memories.get({ owner: box.keyId, id });
    expect(seen.content).toBe("Prefers rye bread");
    expect((await recollect(["memory", "delete", id, "--proof"])).out).toContain('"row": 0');
    expect((await recollect(["memory", "delete", id])).code).toBe(1);
    const second = await recollect(["serve", "--port", "0"]);
    expect(second.code).toBe(1);
    expect(second.err).toMatch(/^recollect: Another Recollect server \(process \d+\) is running on .*\n$/);
  } finally {
    await box.stop({ keep: true });
  }
});

test("config set is shown with its source, and a secret is never stored", async () => {
  expect((await recollect(["config", "set", "MEMORY_RRF_K", "10"])).code).toBe(0);
  const shown = JSON.parse((await recollect(["config", "show", "--json"])).out) as {
    name: string;
    value: unknown;
    source: string;
  }[];
  expect(shown.find((row) => row.name === "MEMORY_RRF_K")).toMatchObject({ value: 10, source: "stored" });
  expect((await recollect(["config", "set", "HF_TOKEN", "x"])).code).toBe(2);
  expect((await recollect(["config", "set", "PORT", "x"])).code).toBe(78);
});

test("a folder that cannot be written is a sentence and exit code 1", async () => {
  chmodSync(dir, 0o500);
  const asRoot = process.getuid?.() === 0;
  const target = asRoot ? "/proc/recollect" : join(dir, "x");
  const { code, err } = await recollect(["key", "list", "--data-dir", target]);
  chmodSync(dir, 0o700);
  expect(code).toBe(1);
  expect(err).toContain("Give one that can be written");
});

test("help, version and completions", async () => {
  expect((await recollect(["help"])).out).toContain("recollect [serve]");
  expect((await recollect(["--version"])).out).toMatch(/^recollect \d+\.\d+\.\d+\n$/);
  expect((await recollect(["help", "key"])).out).toContain("key create NAME");
  for (const shell of ["bash", "zsh", "fish"])
    expect((await recollect(["completion", shell])).out).toContain("serve");
  expect((await recollect(["completion", "tcsh"])).code).toBe(2);
});

async function startDemo() {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "../src/main.ts"), "serve", "--port", "0", "--demo"],
    {
      env: { PATH: process.env["PATH"] ?? "", HOME: dir, DATA_DIR: join(dir, "data") },
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  let banner = "";
  const reader = child.stdout.getReader();
  while (!banner.includes("Which editor is my favourite?")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`ended early: ${banner}`);
    banner += new TextDecoder().decode(value);
  }
  return { child, banner };
}

test("serve prints what is shown once, answers, ends on SIGTERM, and keeps its folder private", async () => {
  const { child, banner } = await startDemo();
  const url = /API +(http:\S+)\/v1/.exec(banner)![1]!;
  expect(banner).toMatch(/API key +rk-\S+/);
  expect(banner).toMatch(/Management +rm-\S+/);
  expect((await fetch(`${url}/health`)).status).toBe(200);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  expect(statSync(join(dir, "data")).mode & 0o777).toBe(0o700);
  expect(existsSync(join(dir, "data", "server.json"))).toBe(false);
});

test("the demo's commands work as printed when it is started again, too", async () => {
  const first = await startDemo();
  first.child.kill("SIGTERM");
  await first.child.exited;
  const { child, banner } = await startDemo();
  const url = /API +(http:\S+)\/v1/.exec(banner)![1]!;
  const make = /^ {2}(export RECOLLECT_API_KEY=.*)$/m.exec(banner)![1]!;
  const header = / -H ("Authorization: [^"]*")/.exec(banner)![1]!;
  const shell = Bun.spawnSync(["sh", "-c", `${make}; printf %s ${header}`], {
    env: { PATH: process.env["PATH"] ?? "", HOME: dir },
  });
  const authorization = shell.stdout.toString().replace("Authorization: ", "");
  expect(authorization).toMatch(/^Bearer rk-/);
  expect((await fetch(`${url}/v1/models`, { headers: { authorization } })).status).toBe(200);
  child.kill("SIGTERM");
  await child.exited;
});
