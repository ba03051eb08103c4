/**
 * `bun run bench:proxy [--quick] [--streams=N --seconds=N] [--only=json,stream,many,throughput,memory,recall]`: what the proxy adds, beside a direct
 * call and @portkey-ai/gateway in the same run. Added = percentile through us minus percentile direct. RECOLLECT_BINARY
 * measures a build instead of the sources.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { openDatabase } from "../../src/db/open.ts";
import { writeMemorySettings } from "../../src/db/settings-write.ts";
import { openSeal } from "../../src/seal.ts";
import { createProviders } from "../../src/upstream/providers.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { percentile, runJson, runStreams } from "./proxy-client.ts";
import type { Target } from "./proxy-client.ts";

const quick = process.argv.includes("--quick");
const only = process.argv
  .find((arg) => arg.startsWith("--only="))
  ?.slice(7)
  .split(",");
const wanted = (part: string) => !only || only.includes(part);
const numberFlag = (name: string) => {
  const value = process.argv.find((arg) => arg.startsWith(`--${name}=`))?.split("=")[1];
  return value === undefined ? undefined : Number(value);
};
const root = join(import.meta.dir, "../..");
const children: Subprocess[] = [];
const folders: string[] = [];
const wires = { chat: "/v1/chat/completions", responses: "/v1/responses", messages: "/v1/messages" } as const;
type Wire = keyof typeof wires;
const MEMORIES = quick ? 1000 : 10_000;

const print = (name: string, value: string, goal = "") =>
  process.stdout.write(`${name.padEnd(58)} ${value.padEnd(34)} ${goal ? `goal ${goal}` : ""}\n`);
const ms = (value: number) => (Math.abs(value) < 10 ? value.toFixed(3) : value.toFixed(1));

async function firstLine(child: Subprocess<"ignore", "pipe", "inherit">): Promise<string> {
  children.push(child);
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error("a process of the benchmark ended");
    text += new TextDecoder().decode(value);
  }
  void (async () => {
    while (!(await reader.read()).done);
  })();
  return text;
}

const mock = async (...args: string[]) =>
  Number(
    await firstLine(
      Bun.spawn([process.execPath, join(import.meta.dir, "proxy-mock.ts"), ...args], {
        stdin: "ignore",
        stdout: "pipe",
        stderr: "inherit",
      }),
    ),
  );

async function reachable(url: string): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    try {
      await fetch(url);
      return;
    } catch {
      await Bun.sleep(20);
    }
  }
  throw new Error(`${url} does not answer`);
}

interface Box {
  port: number;
  secret: string;
  pid: number;
  db: ReturnType<typeof openDatabase>;
}

/** A server of ours over the mock: providers `l0`, `l20`, `l60` by its delay. */
async function box(mockPort: number, memory: boolean): Promise<Box> {
  const dataDir = mkdtempSync(join(tmpdir(), "bench-proxy-"));
  folders.push(dataDir);
  const models = testModels();
  const port = 21_000 + Math.floor(Math.random() * 11_000);
  const binary = process.env["RECOLLECT_BINARY"];
  const command = binary ? [binary] : [process.execPath, join(root, "src/main.ts")];
  const child = Bun.spawn(
    [...command, "serve", "--port", String(port), "--data-dir", dataDir, ...(memory ? ["--memory"] : [])],
    {
      stdin: "ignore",
      stdout: Bun.file(join(dataDir, "out.txt")),
      stderr: "inherit",
      env: {
        ...process.env,
        LOG_LEVEL: "error",
        ...(models ? { MEMORY_STATIC_CACHE_DIR: models, MEMORY_STATIC_MODEL: STATIC_REPO } : {}),
      },
    },
  );
  children.push(child);
  await reachable(`http://127.0.0.1:${port}/health`);
  let secret: string | undefined;
  while (secret === undefined) {
    secret = /rk-[\w-]+/.exec(readFileSync(join(dataDir, "out.txt"), "utf8"))?.[0];
    await Bun.sleep(20);
  }
  const db = openDatabase(join(dataDir, "recollect.db"));
  if (memory)
    writeMemorySettings(db, { staticEnabled: models !== null, embeddingSource: models ? "static" : "auto" });
  const providers = createProviders({ db, seal: openSeal(dataDir) });
  for (const wait of [0, 20, 60]) {
    providers.create({
      id: `l${wait}`,
      baseUrl: `http://127.0.0.1:${mockPort}/l${wait}/v1`,
      wire: ["chat", "responses", "messages"],
      systemRole: "system",
      models: ["m"],
    });
  }
  return { port, secret, pid: child.pid, db };
}

const question = "Hello there, what is the weather like in Helsinki today?";
function bodyOf(wire: Wire, model: string, stream: boolean, text = question): string {
  const messages = [{ role: "user", content: text }];
  const more = stream ? { stream: true } : {};
  if (wire === "responses") return JSON.stringify({ model, input: text, ...more });
  return JSON.stringify({ model, ...(wire === "messages" ? { max_tokens: 100 } : {}), messages, ...more });
}
const through = (
  server: Box,
  wire: Wire,
  wait: number,
  stream = false,
  text?: (n: number) => string,
): Target => ({
  port: server.port,
  path: wires[wire],
  headers: { authorization: `Bearer ${server.secret}` },
  body: (n) => bodyOf(wire, `l${wait}/m`, stream, text?.(n)),
});
const direct = (port: number, wire: Wire, wait: number, stream = false): Target => ({
  port,
  path: `/l${wait}${wires[wire]}`,
  headers: {},
  body: () => bodyOf(wire, "m", stream),
});

const rss = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN) / 1024;

/** Rounds of both, taken in turns so that the machine's mood hits both alike. */
async function added(ours: Target, theirs: Target, requests: number) {
  const a: number[] = [];
  const b: number[] = [];
  for (let round = 0; round < 5; round++) {
    b.push(...(await runJson(theirs, 1, requests / 5)).ms);
    a.push(...(await runJson(ours, 1, requests / 5)).ms);
  }
  return {
    p50: percentile(a, 0.5) - percentile(b, 0.5),
    p99: percentile(a, 0.99) - percentile(b, 0.99),
    direct: percentile(b, 0.5),
  };
}

async function portkey(mockPort: number): Promise<Target> {
  // Below the ports that clients get for their own ends.
  const port = 32_000 + Math.floor(Math.random() * 700);
  children.push(
    Bun.spawn(
      [
        // As people run it: on Node.js where there is one.
        Bun.which("node") ?? process.execPath,
        join(root, "node_modules/@portkey-ai/gateway/build/start-server.js"),
        `--port=${port}`,
        "--headless",
      ],
      {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore",
        env: { ...process.env, NODE_ENV: "production", TRUSTED_CUSTOM_HOSTS: "127.0.0.1,localhost" },
      },
    ),
  );
  await reachable(`http://127.0.0.1:${port}/`);
  return {
    port,
    path: wires.chat,
    headers: {
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `http://127.0.0.1:${mockPort}/l0/v1`,
      authorization: "Bearer x",
    },
    body: () => bodyOf("chat", "m", false),
  };
}

async function main(): Promise<void> {
  process.stdout.write(
    `${cpus()[0]?.model ?? "?"} × ${cpus().length}, load ${loadavg()[0]!.toFixed(1)}, Bun ${Bun.version}, ${new Date().toISOString()}\n\n`,
  );
  const plain = await mock();
  const off = await box(plain, false);
  print("resident memory, idle", `${rss(off.pid).toFixed(0)} MB`, "≤ 70");
  for (const wire of Object.keys(wires) as Wire[])
    await runJson(through(off, wire, 0), 4, quick ? 1000 : 4000);

  if (wanted("json")) {
    for (const wire of Object.keys(wires) as Wire[]) {
      for (const wait of [0, 20, 60]) {
        const requests = wait === 0 ? (quick ? 1000 : 5000) : quick ? 50 : 200;
        const got = await added(through(off, wire, wait), direct(plain, wire, wait), requests);
        print(
          `added p50 / p99, JSON, ${wire}, upstream ${wait} ms`,
          `${ms(got.p50)} / ${ms(got.p99)} ms (direct ${ms(got.direct)})`,
          "≤ 0.25 / ≤ 1 ms",
        );
      }
    }
  }

  if (wanted("stream")) {
    for (const wire of Object.keys(wires) as Wire[]) {
      const rounds = quick ? 3 : 10;
      const theirs = await runStreams(direct(plain, wire, 0, true), 1, rounds, 100);
      const ours = await runStreams(through(off, wire, 0, true), 1, rounds, 100);
      const first = [];
      const base = [];
      for (let i = 0; i < (quick ? 10 : 40); i++) {
        base.push(...(await runStreams(direct(plain, wire, 0, true), 1, 1, 100)).firstMs);
        first.push(...(await runStreams(through(off, wire, 0, true), 1, 1, 100)).firstMs);
        if (i === 3 && quick) break;
      }
      print(
        `added time to first token p99, ${wire}`,
        `${ms(percentile(first, 0.99) - percentile(base, 0.99))} ms (p50 ${ms(percentile(first, 0.5) - percentile(base, 0.5))})`,
        "≤ 1 ms",
      );
      print(
        `added per token p50 / p99, ${wire}`,
        `${ms(percentile(ours.eventMs, 0.5) - percentile(theirs.eventMs, 0.5))} / ${ms(percentile(ours.eventMs, 0.99) - percentile(theirs.eventMs, 0.99))} ms`,
        "p99 ≤ 0.05 ms",
      );
    }
  }

  if (wanted("many")) {
    const seconds = numberFlag("seconds") ?? (quick ? 6 : 30);
    const frames = seconds * 5;
    const many = await mock(`frames=${frames}`, "every=200");
    const server = await box(many, false);
    const count = numberFlag("streams") ?? (quick ? 500 : 2000);
    const theirs = await runStreams(direct(many, "chat", 0, true), count, 1, frames, 1000);
    let peak = 0;
    const watch = setInterval(() => (peak = Math.max(peak, rss(server.pid))), 500);
    const ours = await runStreams(through(server, "chat", 0, true), count, 1, frames, 1000);
    clearInterval(watch);
    print(`streams of 5 events a second for ${seconds} s, whole`, `${ours.whole} of ${count}`, "≥ 2,000");
    print(
      "gap p99.9 / p99, above direct",
      `${ms(percentile(ours.gapMs, 0.999) - percentile(theirs.gapMs, 0.999))} / ${ms(percentile(ours.gapMs, 0.99) - percentile(theirs.gapMs, 0.99))} ms`,
      "p99.9 ≤ 50 ms",
    );
    print(`resident memory, ${count} streams`, `${peak.toFixed(0)} MB`, "1,000 streams ≤ 150");
  }

  if (wanted("throughput")) {
    const gateway = await portkey(plain);
    await runJson(gateway, 16, quick ? 300 : 1000);
    const rates: Record<string, number[]> = { direct: [], portkey: [], ours: [] };
    for (let round = 0; round < 3; round++) {
      rates["portkey"]!.push((await runJson(gateway, 16, quick ? 500 : 2000)).perSecond);
      rates["ours"]!.push((await runJson(through(off, "chat", 0), 16, quick ? 4000 : 20_000)).perSecond);
      rates["direct"]!.push((await runJson(direct(plain, "chat", 0), 16, quick ? 4000 : 20_000)).perSecond);
    }
    const best = (name: string) => Math.max(...rates[name]!);
    print("throughput, 16 clients, JSON, memory off", `${best("ours").toFixed(0)}/s`, "");
    print(
      "  @portkey-ai/gateway / direct, same run",
      `${best("portkey").toFixed(0)}/s / ${best("direct").toFixed(0)}/s`,
    );
    print("  against Portkey", `${(best("ours") / best("portkey")).toFixed(1)} ×`, "≥ 12 ×");
    const before = (await runJson(through(off, "chat", 0), 1, 100)).ms;
    await runJson(through(off, "chat", 0), 16, quick ? 2000 : 10_000);
    const after = (await runJson(through(off, "chat", 0), 1, 100)).ms;
    print(
      "p50 after 10,000 requests against p50 after 100",
      `${(percentile(after, 0.5) / percentile(before, 0.5)).toFixed(2)} ×`,
      "≤ 1.2 ×",
    );
  }

  if (wanted("memory") || wanted("recall")) await withMemory(plain);
}

const words =
  "apples basalt copper dahlia ebony fennel garnet hazel indigo jasmine kelp lavender marble nutmeg ochre pepper quartz rosemary saffron thyme umber vanilla walnut xenon yarrow zinc".split(
    " ",
  );
const pick = (n: number, step: number) => words[(n * step + Math.floor(n / 7)) % words.length]!;
const fact = (n: number) =>
  `I prefer ${pick(n, 3)} with ${pick(n, 5)} number ${n} for ${pick(n, 11)} projects.`;
const asking = (n: number) => `What do I prefer with ${pick(n, 5)} for ${pick(n, 11)} projects, number ${n}?`;

async function withMemory(plain: number): Promise<void> {
  const server = await box(plain, true);
  const lines: string[] = ['{"format":"recollect/1"}'];
  for (let n = 0; n < MEMORIES; n++)
    lines.push(
      JSON.stringify({
        kind: "memory",
        content: fact(n).replace("I prefer", "Prefers"),
        type: "factual",
        key: `preference:${n}`,
      }),
    );
  const imported = await fetch(`http://127.0.0.1:${server.port}/api/memory/import`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.secret}`, "content-type": "application/x-ndjson" },
    body: lines.join("\n"),
  });
  if (!imported.ok) throw new Error(await imported.text());
  await idle(server);
  print(
    "memories of the owner",
    `${server.db.query<{ n: number }, []>("SELECT count(*) AS n FROM memories").get()!.n}`,
  );
  let asked = 0;
  const next = () => asking(asked++ % MEMORIES);
  await runJson(through(server, "chat", 0, false, next), 2, quick ? 100 : 500);
  if (wanted("memory")) {
    for (const wire of Object.keys(wires) as Wire[]) {
      const got = await added(
        through(server, wire, 0, false, next),
        direct(plain, wire, 0),
        quick ? 200 : 1000,
      );
      print(
        `added p50 / p99, JSON, ${wire}, memory on, hybrid`,
        `${ms(got.p50)} / ${ms(got.p99)} ms`,
        "≤ 2 / ≤ 6 ms",
      );
    }
    const injected = server.db
      .query<{ share: number; late: number }, []>(
        "SELECT avg(injected > 0) AS share, sum(reason = 'deadline') AS late FROM receipts",
      )
      .get()!;
    print(
      "  requests with something injected / too late",
      `${(injected.share * 100).toFixed(0)} % / ${injected.late}`,
      "",
    );
    const gateway = await portkey(plain);
    await runJson(gateway, 16, 500);
    const theirs = (await runJson(gateway, 16, quick ? 500 : 2000)).perSecond;
    const ours = (await runJson(through(server, "chat", 0, false, next), 16, quick ? 1000 : 4000)).perSecond;
    print(
      "throughput, 16 clients, memory on, every question new",
      `${ours.toFixed(0)}/s, Portkey ${theirs.toFixed(0)}/s: ${(ours / theirs).toFixed(1)} ×`,
      "≥ 3 ×",
    );
  }
  if (wanted("recall")) {
    await idle(server);
    print("reply → its fact recalled, idle", `${ms(await recallMs(server, "umbrella"))} ms`, "≤ 500");
    const body = (n: number) =>
      `Tell me about ${pick(n, 3)} and ${pick(n, 5)}, in ${n} words. I prefer ${pick(n, 7)} ${n}.`;
    await runJson(through(server, "chat", 0, false, body), 16, quick ? 200 : 1000);
    print(
      "reply → its fact recalled, behind 1,000 exchanges",
      `${ms(await recallMs(server, "accordion"))} ms`,
      "≤ 2,000",
    );
    print("resident memory with memory on", `${rss(server.pid).toFixed(0)} MB`);
  }
}

async function idle(server: Box): Promise<void> {
  for (let quiet = 0; quiet < 5;) {
    const { n } = server.db
      .query<{ n: number }, []>("SELECT count(*) AS n FROM jobs WHERE state <> 'failed'")
      .get()!;
    quiet = n === 0 ? quiet + 1 : 0;
    await Bun.sleep(50);
  }
}

async function recallMs(server: Box, thing: string): Promise<number> {
  const say = (text: string) =>
    fetch(`http://127.0.0.1:${server.port}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${server.secret}`,
        "content-type": "application/json",
        "x-memory-mode": text.endsWith("?") ? "read" : "read-write",
      },
      body: bodyOf("chat", "l0/m", false, text),
    });
  await (await say(`I prefer my ${thing} in bright turquoise.`)).text();
  const from = performance.now();
  for (;;) {
    const response = await say(`What do I prefer my ${thing} in?`);
    await response.text();
    const id = response.headers.get("x-memory-receipt");
    if (Number(response.headers.get("x-memory-injected")) > 0 && id) {
      const { text } = server.db
        .query<{ text: string | null }, [string]>("SELECT text FROM receipts WHERE id = ?")
        .get(id) ?? { text: null };
      if (text?.includes("turquoise") && /\] Prefers/.test(text)) return performance.now() - from;
    }
    if (performance.now() - from > 60_000) return Number.NaN;
    await Bun.sleep(10);
  }
}

try {
  await main();
} finally {
  for (const child of children) child.kill();
  await Promise.all(children.map((child) => child.exited));
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
