/** kill −9 under load: what a client was told is whole in the database afterwards. KILL_ROUNDS sets how often. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { waitFor } from "../support/proxy.ts";
import { startUpstream } from "../support/upstream.ts";
import type { MockUpstream } from "../support/upstream.ts";

const ROUNDS = Number(process.env["KILL_ROUNDS"] ?? 6);
/** A reply that ended this long before the end counts as acknowledged; on a machine that does much else no thread runs in time. */
const ACKNOWLEDGED_MS = loadavg()[0]! > 2 * availableParallelism() ? 2000 : 250;
const root = join(import.meta.dir, "../..");
let upstream: MockUpstream;
let dataDir: string;
let child: Subprocess | null = null;

beforeAll(async () => {
  upstream = await startUpstream({
    reply: (seen) => `Reply to ${String((seen.body["messages"] as { content: string }[]).at(-1)!.content)}`,
  });
  dataDir = mkdtempSync(join(tmpdir(), "recollect-kill-"));
});
afterAll(async () => {
  child?.kill(9);
  await child?.exited;
  upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function start(): Promise<{ url: string; out: () => string }> {
  const file = join(dataDir, `out-${crypto.randomUUID()}.txt`);
  const out = () => readFileSync(file, "utf8");
  child = Bun.spawn(
    [
      process.execPath,
      join(root, "src/main.ts"),
      "serve",
      "--memory",
      "--port",
      "0",
      "--upstream",
      upstream.url,
      "--data-dir",
      dataDir,
    ],
    {
      stdin: "ignore",
      stdout: Bun.file(file),
      stderr: "inherit",
      env: { ...process.env, LOG_LEVEL: "error" },
    },
  );
  await waitFor(() => /API {9}http\S+/.test(out()), 20_000);
  return { url: /API +(http\S+)/.exec(out())![1]!, out };
}

test(
  "no acknowledged exchange or memory is lost, and the file is sound",
  async () => {
    let secret = "";
    const acknowledged: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const { url, out } = await start();
      secret ||= /rk-[\w-]+/.exec(out())![0];
      const ended: { text: string; at: number }[] = [];
      const written: { content: string; at: number }[] = [];
      let over = false;
      const chat = async (worker: number) => {
        for (let n = 0; !over; n++) {
          const text = `I prefer item ${round}.${worker}.${n} for the cellar.`;
          try {
            const response = await fetch(`${url}/chat/completions`, {
              method: "POST",
              headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
              body: JSON.stringify({
                model: "x",
                stream: n % 2 === 0,
                messages: [{ role: "user", content: text }],
              }),
            });
            const reply = await response.text();
            if (response.ok && reply.length > 0) ended.push({ text, at: performance.now() });
          } catch {
            return;
          }
        }
      };
      const write = async () => {
        for (let n = 0; !over; n++) {
          const content = `Written ${round}.${n}`;
          try {
            const response = await fetch(`${url.replace("/v1", "")}/api/memory`, {
              method: "POST",
              headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
              body: JSON.stringify({ content }),
            });
            if (response.status === 201 && (await response.json()))
              written.push({ content, at: performance.now() });
          } catch {
            return;
          }
        }
      };
      const load = [...Array.from({ length: 8 }, (_, worker) => chat(worker)), write()];
      await Bun.sleep(500 + ACKNOWLEDGED_MS + Math.random() * 500);
      const killedAt = performance.now();
      child!.kill(9);
      over = true;
      await child!.exited;
      await Promise.all(load);
      acknowledged.push(
        ...ended.filter(({ at }) => at <= killedAt - ACKNOWLEDGED_MS).map(({ text }) => text),
      );
      const db = new Database(join(dataDir, "recollect.db"));
      const episodes = new Set(
        db
          .query<{ t: string }, []>("SELECT user_message AS t FROM episodes")
          .all()
          .map((row) => row.t),
      );
      const memories = new Set(
        db
          .query<{ t: string }, []>("SELECT content AS t FROM memories")
          .all()
          .map((row) => row.t),
      );
      expect(acknowledged.filter((text) => !episodes.has(text))).toEqual([]);
      expect(written.filter(({ content }) => !memories.has(content))).toEqual([]);
      expect(db.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
      db.close();
    }
    expect(acknowledged.length).toBeGreaterThan(ROUNDS * 5);
    // What was said before each kill is learned after it.
    const { url } = await start();
    await waitFor(async () => {
      const response = await fetch(`${url}/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${secret}`,
          "content-type": "application/json",
          "x-memory-mode": "read",
        },
        body: JSON.stringify({
          model: "x",
          messages: [
            { role: "user", content: acknowledged.at(-1)!.replace("I prefer", "What do I prefer like") },
          ],
        }),
      });
      await response.text();
      const db = new Database(join(dataDir, "recollect.db"), { readonly: true });
      const { n } = db
        .query<{ n: number }, []>(
          "SELECT count(*) AS n FROM jobs WHERE type = 'extract' AND state <> 'failed'",
        )
        .get()!;
      db.close();
      return n === 0 && Number(response.headers.get("x-memory-injected")) > 0;
    }, 60_000);
    child!.kill(9);
    await child!.exited;
  },
  Math.max(300_000, ROUNDS * 30_000),
);
