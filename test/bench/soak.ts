/**
 * `bun run bench:soak [minutes]` (30): a server with memory on under mixed load, plain replies and streams, of which a fifth is
 * cut by the client; its resident memory at even times, and the slope of the second half.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { table } from "../../src/bench/corpus.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { createWords } from "./words.ts";

const MINUTES = Number(process.argv[2] ?? 30);
const CLIENTS = 4;
const SAMPLES = 30;
const root = join(import.meta.dir, "../..");
const out = (text: string) => process.stdout.write(`${text}\n`);

const dataDir = mkdtempSync(join(tmpdir(), "bench-soak-"));
const log = join(dataDir, "out.txt");
const models = testModels();
const binary = process.env["RECOLLECT_BINARY"];
// Below the ports that clients get for their own ends.
const port = 21_000 + Math.floor(Math.random() * 11_000);
const server = Bun.spawn(
  [
    ...(binary ? [binary] : [process.execPath, join(root, "src/main.ts")]),
    "serve",
    "--demo",
    "--memory",
    "--port",
    String(port),
    "--data-dir",
    dataDir,
  ],
  {
    stdin: "ignore",
    stdout: Bun.file(log),
    stderr: "inherit",
    env: {
      ...process.env,
      LOG_LEVEL: "error",
      ...(models ? { MEMORY_STATIC_CACHE_DIR: models, MEMORY_STATIC_MODEL: STATIC_REPO } : {}),
    },
  },
);
const rssMB = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))![1]) / 1024;

try {
  let secret: string | undefined;
  while (secret === undefined) {
    await Bun.sleep(50);
    secret = /rk-[\w-]+/.exec(readFileSync(log, "utf8"))?.[0];
  }
  const words = createWords(3);
  const until = performance.now() + MINUTES * 60_000;
  const counts = { plain: 0, streams: 0, cut: 0, failed: 0 };

  const chat = async (n: number): Promise<void> => {
    const stream = n % 2 === 0;
    const cut = n % 10 === 0;
    const abort = new AbortController();
    const text =
      n % 3 === 0
        ? `I prefer ${words.text(2)} for ${words.text(1)} ${n}.`
        : `What about ${words.question()}?`;
    try {
      const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "demo/echo", stream, messages: [{ role: "user", content: text }] }),
        signal: abort.signal,
      });
      if (!response.ok) counts.failed++;
      const reader = response.body!.getReader();
      for (let chunks = 0; !(await reader.read()).done; chunks++) {
        if (!cut || chunks < 1) continue;
        abort.abort();
        counts.cut++;
        return;
      }
      counts[stream ? "streams" : "plain"]++;
    } catch (error) {
      if (!abort.signal.aborted) {
        counts.failed++;
        out(String(error));
      }
    }
  };

  const samples: { minute: number; mb: number }[] = [];
  let n = 0;
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (performance.now() < until) await chat(n++);
  });
  const started = performance.now();
  while (performance.now() < until) {
    await Bun.sleep((MINUTES * 60_000) / SAMPLES);
    samples.push({ minute: (performance.now() - started) / 60_000, mb: rssMB() });
  }
  await Promise.all(clients);
  out(
    `${cpus()[0]?.model ?? "?"} × ${cpus().length}, load ${loadavg()[0]!.toFixed(1)}, Bun ${Bun.version}; ${n} chats: ${JSON.stringify(counts)}`,
  );
  out(table([["minute", "MB"], ...samples.map(({ minute, mb }) => [minute.toFixed(1), mb.toFixed(0)])]));
  const half = samples.slice(samples.length / 2);
  const mean = (of: (one: (typeof half)[number]) => number) =>
    half.reduce((sum, one) => sum + of(one), 0) / half.length;
  const [x, y] = [mean((one) => one.minute), mean((one) => one.mb)];
  const slope =
    half.reduce((sum, one) => sum + (one.minute - x) * (one.mb - y), 0) /
    half.reduce((sum, one) => sum + (one.minute - x) ** 2, 0);
  out(`slope of the second half: ${slope.toFixed(2)} MB a minute (goal: none)`);
} finally {
  server.kill();
  await server.exited;
  rmSync(dataDir, { recursive: true, force: true });
}
