/**
 * How fast the Studio's pages are on a box with 100,000 memories: first byte and size of every page, size of the assets
 * as served, first paint in a real browser. `bun run bench:studio [memories]`. Goals: first byte ≤ 20 ms, first paint
 * ≤ 200 ms, HTML ≤ 60 kB, CSS ≤ 16 kB, scripts ≤ 30 kB compressed.
 */
import { cpus, loadavg } from "node:os";
import { chat, fill, pagesOf } from "../support/studio-data.ts";
import { desktop, launch, visit } from "../support/browser.ts";
import { startAppliance, until } from "../support/appliance.ts";

const memories = Number(process.argv[2] ?? 100_000);
const ROUNDS = 20;
const PIECE = 20_000;

const quantile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;
const fixed = (n: number) => n.toFixed(1).padStart(7);
const kB = (bytes: number) => (bytes / 1000).toFixed(1).padStart(6);

const box = await startAppliance();
const print = (line: string) => process.stdout.write(`${line}\n`);

const subjects = [
  "the importer",
  "Juniper",
  "the office",
  "the printer",
  "releases",
  "reviews",
  "tea",
  "the garden",
];
const started = performance.now();
for (let from = 0; from < memories; from += PIECE) {
  const lines = Array.from({ length: Math.min(PIECE, memories - from) }, (_, i) => {
    const n = from + i;
    const type = ["factual", "episodic", "procedural", "semantic"][n % 4];
    const content = `Statement ${n} about ${subjects[n % subjects.length]}, as long as such statements usually are, no more`;
    return JSON.stringify({ kind: "memory", content, type, key: `bench:${n}` });
  });
  const response = await fetch(`${box.url}/api/memory/import?apiKeyId=${box.keyId}`, {
    method: "POST",
    headers: { authorization: `Bearer ${box.token}`, "content-type": "application/x-ndjson" },
    body: lines.join("\n"),
  });
  if (!response.ok) throw new Error(await response.text());
}
const ids = await fill(box);
for (let i = 0; i < 50; i++)
  await chat(box, `Question ${i} about ${subjects[i % subjects.length]}?`, `session-${i % 9}`);

// Vectors and index rows of what was just stored are still being made; pages are measured on a quiet box.
await until(
  "a quiet box",
  async () => {
    const { body } = await box.call("GET", "/api/memory/engine-status");
    const { queued, running } = (body as { jobs: { queued: number; running: number } }).jobs;
    return queued + running === 0;
  },
  300_000,
);

print(`${cpus()[0]?.model ?? "unknown CPU"}, ${cpus().length} cores, Bun ${Bun.version}`);
print(`load of the machine while measuring: ${loadavg()[0]!.toFixed(1)} (2.0 is two busy cores)`);
print(`${memories} memories stored in ${((performance.now() - started) / 1000).toFixed(0)} s\n`);
print("page                      first byte p50     p99 ms   HTML kB");

const { page, context } = await visit(await launch(), box.url, box.token, desktop);
const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
let worst = { byte: 0, size: 0, paint: 0 };
const pages = [
  ["reference: /health", "/health"] as [string, string],
  ...pagesOf(ids),
  ["memories-search", "/dashboard/memory?q=garden"] as [string, string],
  ["memories-last", `/dashboard/memory?page=${Math.floor(memories / 20)}`] as [string, string],
];
for (const [name, path] of pages) {
  const times: number[] = [];
  let size = 0;
  await fetch(box.url + path, { headers: { cookie } });
  for (let i = 0; i < ROUNDS; i++) {
    const at = performance.now();
    const response = await fetch(box.url + path, { headers: { cookie } });
    times.push(performance.now() - at);
    size = (await response.arrayBuffer()).byteLength;
  }
  const p99 = quantile(times, 0.99);
  print(`${name.padEnd(26)}${fixed(quantile(times, 0.5))}  ${fixed(p99)}     ${kB(size)}`);
  worst = { ...worst, byte: Math.max(worst.byte, quantile(times, 0.5)), size: Math.max(worst.size, size) };
}

print("\npage                      first paint ms (median of 5)");
for (const [name, path] of pages) {
  const paints: number[] = [];
  for (let i = 0; i < 5; i++) {
    await page.goto(box.url + path);
    await page.waitForFunction(() => performance.getEntriesByName("first-paint").length > 0);
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-paint")[0]!.startTime));
  }
  const paint = quantile(paints, 0.5);
  worst = { ...worst, paint: Math.max(worst.paint, paint) };
  print(`${name.padEnd(26)}${fixed(paint)}`);
}

print("\nasset                     kB as served (br, gzip)");
const html = await (await fetch(`${box.url}/sign-in?out`)).text();
for (const url of new Set(html.match(/\/assets\/[^"]+/g))) {
  const size = async (encoding: string) => {
    const response = await fetch(box.url + url, {
      headers: { "accept-encoding": encoding },
      decompress: false,
    });
    return (await response.arrayBuffer()).byteLength;
  };
  print(`${url.split("/").at(-1)!.padEnd(26)}${kB(await size("br"))} ${kB(await size("gzip"))}`);
}
print(
  `\nworst: first byte ${fixed(worst.byte)} ms (goal 20), first paint ${fixed(worst.paint)} ms (goal 200), HTML ${kB(worst.size)} kB (goal 60)`,
);
await context.browser()?.close();
await box.stop();
