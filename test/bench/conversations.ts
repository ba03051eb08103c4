/**
 * `bun run bench:conversations [episodes]`: how fast exchanges come in, are found, and go away, over HTTP on the whole
 * appliance. Texts are made up (`words.ts`).
 */
import { Database } from "bun:sqlite";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { startAppliance, until } from "../support/appliance.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { createWords, fillers } from "./words.ts";

const EPISODES = Number(process.argv[2] ?? 100_000);
const LONG_SESSION = Math.min(10_000, Math.floor(EPISODES / 10));
const QUERIES = 200;
const WARM_UP_MS = 15_000;
const CHUNK_BYTES = 30 * 1024 * 1024;

const words = createWords(42);

const sorted = (numbers: number[]) => numbers.toSorted((a, b) => a - b);
const at = (numbers: number[], share: number) =>
  sorted(numbers)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] ?? NaN;
const spread = (numbers: number[]) =>
  `p50 ${at(numbers, 0.5).toFixed(1)}  p95 ${at(numbers, 0.95).toFixed(1)}  max ${Math.max(...numbers).toFixed(1)}`;
const print = (name: string, value: string, goal: string) =>
  process.stdout.write(`${name.padEnd(52)} ${value.padEnd(44)} goal ${goal}\n`);

const models = testModels();
const appliance = await startAppliance({
  demo: true,
  env: models === null ? {} : { MEMORY_STATIC_CACHE_DIR: models, MEMORY_STATIC_MODEL: STATIC_REPO },
});
const { key, url } = appliance;
const call: typeof appliance.call = (...args) => appliance.call(...args);

async function timed(
  path: string,
  body?: unknown,
): Promise<{ ms: number; body: { data?: unknown[]; resolution?: unknown } }> {
  const started = performance.now();
  const answer = await call(body === undefined ? "GET" : "POST", path, body, key);
  const ms = performance.now() - started;
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return { ms, body: answer.body as { data?: unknown[] } };
}

async function bulk(lines: string): Promise<void> {
  const response = await fetch(`${url}/episodes/bulk`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/x-ndjson" },
    body: lines,
  });
  const answer = (await response.json()) as { refused?: unknown[] };
  if (response.status !== 200 || answer.refused?.length !== 0)
    throw new Error(JSON.stringify(answer).slice(0, 500));
}

/** Time of a small request, again and again, while `work` runs. */
async function beside(start: () => Promise<unknown>): Promise<number[]> {
  let running = true;
  loop.enable();
  const ended = start().finally(() => {
    running = false;
    loop.disable();
  });
  const times: number[] = [];
  while (running) {
    times.push((await timed("/sessions?limit=1")).ms);
    await Bun.sleep(5);
  }
  await ended;
  return times;
}

/** A table with SQLite's own FTS5 over it, in this process, without HTTP, owners, redaction or vectors: what the machine can do. */
function reference(
  texts: readonly [string, string][],
  queries: readonly string[],
): { rate: number; ms: number[] } {
  const db = new Database(":memory:");
  db.run("CREATE VIRTUAL TABLE t USING fts5(user, reply, tokenize='porter unicode61')");
  const insert = db.query("INSERT INTO t VALUES (?, ?)");
  const started = performance.now();
  for (let from = 0; from < texts.length; from += 200) {
    db.transaction(() => texts.slice(from, from + 200).forEach((pair) => insert.run(...pair)))();
  }
  const rate = texts.length / ((performance.now() - started) / 1000);
  const find = db.query("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 20");
  const ms = queries.map((query) => {
    const begun = performance.now();
    find.all(
      query
        .split(/\W+/)
        .filter((part) => part !== "" && !fillers.includes(part))
        .join(" OR "),
    );
    return performance.now() - begun;
  });
  db.close();
  return { rate, ms };
}

const loop = monitorEventLoopDelay({ resolution: 1 });
try {
  process.stdout.write(
    `${cpus()[0]?.model ?? "?"} × ${cpus().length}, Bun ${Bun.version}, load ${loadavg()[0]?.toFixed(1)}, ${EPISODES} episodes, ${models === null ? "no model" : `static stand-in ${STATIC_REPO}`}\n`,
  );
  await call("PUT", "/api/settings/memory", {
    enabled: true,
    embeddingSource: models === null ? "auto" : "static",
  });

  const queries: string[] = [];
  const sample: [string, string][] = [];
  let made = 0;
  let insertMs = 0;
  let besideMs: number[] = [];
  while (made < EPISODES) {
    const lines: string[] = [];
    let bytes = 0;
    for (; made < EPISODES && bytes < CHUNK_BYTES && lines.length < 20_000; made++) {
      const externalId = made < LONG_SESSION ? "long" : `s${made % 2000}`;
      const userMessage = words.speech(20 + Math.floor(words.random() * 20));
      if (queries.length < QUERIES && words.random() < 0.02)
        queries.push(userMessage.split(" ").slice(0, 8).join(" "));
      const aiResponse = words.speech(40 + Math.floor(words.random() * 40));
      if (sample.length < 20_000) sample.push([userMessage, aiResponse]);
      const line = JSON.stringify({ id: `e${made}`, externalId, userMessage, aiResponse });
      lines.push(line);
      bytes += line.length + 1;
    }
    const body = lines.join("\n");
    const started = performance.now();
    besideMs = besideMs.concat(await beside(() => bulk(body)));
    insertMs += performance.now() - started;
  }
  print(
    "bulk insert with lexical index, episodes a second",
    (EPISODES / (insertMs / 1000)).toFixed(0),
    "≥ 2,000",
  );
  print("small request meanwhile, ms", spread(besideMs), "–");

  const session = ((await call("GET", "/sessions/by-external/long", undefined, key)).body as { id: number })
    .id;
  const single: number[] = [];
  for (let n = 0; n < 200; n++) {
    const started = performance.now();
    await call(
      "POST",
      "/episodes?extract=false",
      { sessionId: session, userMessage: words.speech(30), aiResponse: words.speech(50) },
      key,
    );
    single.push(performance.now() - started);
  }
  print("POST /episodes, ms", spread(single), "–");

  const embedding = performance.now();
  await until(
    "all jobs done",
    async () => {
      const status = (await call("GET", "/api/memory/engine-status")).body as {
        jobs?: { queued: number; running: number };
      };
      return (status.jobs?.queued ?? 0) + (status.jobs?.running ?? 0) === 0;
    },
    3_600_000,
  );
  print("all embedded after, s", ((performance.now() - embedding) / 1000).toFixed(1), "–");

  const search = (mode: string, query: string) =>
    timed(`/episodes/search?mode=${mode}&q=${encodeURIComponent(query)}`);
  // The first questions have words and vectors read into memory, while the tables answer.
  const cold: number[] = [];
  for (const warm = performance.now() + WARM_UP_MS; performance.now() < warm;)
    for (const query of queries.slice(0, 20)) cold.push((await search("hybrid", query)).ms);
  print(`hybrid in the first ${WARM_UP_MS / 1000} s, ms`, spread(cold), "–");
  for (const mode of ["keyword", "hybrid"]) {
    for (const query of queries.slice(0, 20)) await search(mode, query);
    const times: number[] = [];
    for (const query of queries) times.push((await search(mode, query)).ms);
    print(`/episodes/search ${mode}, ms`, spread(times), "8 / 20");
  }
  for (const query of queries.slice(0, 20)) await timed("/context", { query });
  const context: number[] = [];
  for (const query of queries) context.push((await timed("/context", { query })).ms);
  print("/context, ms", spread(context), "10 / 25");

  const plain = reference(sample, queries);
  print(
    `reference: plain FTS5 of ${sample.length}, in memory`,
    `${plain.rate.toFixed(0)} a second, search ${spread(plain.ms)}`,
    "–",
  );

  const db = new Database(join(appliance.dataDir, "recollect.db"), { readonly: true });
  loop.reset();
  const started = performance.now();
  const meanwhile = await beside(() => call("DELETE", `/sessions/${session}`, undefined, key));
  const answered = performance.now() - started;
  await until(
    "the words have left the file",
    () => db.query("SELECT 1 FROM jobs WHERE type = 'purge'").get() === null,
  );
  print(
    `delete of a session of ${LONG_SESSION}, ms`,
    `${answered.toFixed(0)}, its words out of the file after ${(performance.now() - started).toFixed(0)}`,
    "≤ 1,000",
  );
  print("small request meanwhile, ms", spread(meanwhile), "–");
  print("main event loop's worst stall meanwhile, ms", (loop.max / 1e6).toFixed(1), "≤ 10");
} finally {
  await appliance.stop();
}
