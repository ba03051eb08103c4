/** How long the main thread of a whole appliance stands still while its engine searches many memories and loads a model. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { startAppliance, until } from "../support/appliance.ts";
import { STATIC_REPO, TRANSFORMERS_REPO } from "../support/models.ts";
import { createWords } from "./words.ts";

/** Lines a request brings. */
const PIECE = 5000;
const QUESTIONS = 300;

/** `name`, then the worst stall in milliseconds of each. `models`: the folder of the weights. */
export async function measureStalls(
  rows: number,
  models: string,
): Promise<{ name: string; worstMs: number }[]> {
  const appliance = await startAppliance({
    demo: true,
    env: {
      MEMORY_STATIC_CACHE_DIR: models,
      MEMORY_STATIC_MODEL: STATIC_REPO,
      MEMORY_TRANSFORMERS_MODEL: TRANSFORMERS_REPO,
    },
  });
  const { key, url } = appliance;
  const call: typeof appliance.call = (...args) => appliance.call(...args);
  const words = createWords(5);
  const settings = async (patch: object) => {
    const { status, body } = await call("PUT", "/api/settings/memory", patch);
    if (status !== 200) throw new Error(`settings: ${status} ${JSON.stringify(body)}`);
  };
  const ask = async () => {
    const { status } = await call("POST", "/api/memory/retrieve-preview", { query: words.question() }, key);
    if (status !== 200) throw new Error(`preview: ${status}`);
  };
  const loop = monitorEventLoopDelay({ resolution: 1 });
  const stalls: { name: string; worstMs: number }[] = [];
  const during = async (name: string, work: () => Promise<void>) => {
    loop.reset();
    loop.enable();
    await work();
    loop.disable();
    stalls.push({ name, worstMs: loop.max / 1e6 });
  };
  try {
    await settings({ enabled: true, embeddingSource: "static", retentionDays: 0 });
    for (let made = 0; made < rows; made += PIECE) {
      const lines = ['{"format":"recollect/1"}'];
      for (let n = 0; n < Math.min(PIECE, rows - made); n++)
        lines.push(JSON.stringify({ kind: "memory", type: "factual", content: words.text(14) }));
      const response = await fetch(`${url}/api/memory/import`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/x-ndjson" },
        body: lines.join("\n"),
      });
      if (!response.ok) throw new Error(await response.text());
    }
    await until(
      "all embedded",
      async () => {
        const { jobs } = (await call("GET", "/api/memory/engine-status", undefined, key)).body as {
          jobs: { queued: number; running: number };
        };
        return jobs.queued + jobs.running === 0;
      },
      3_600_000,
    );
    for (let n = 0; n < 20; n++) await ask();
    await during(`${QUESTIONS} questions over ${rows.toLocaleString("en")} memories`, async () => {
      for (let n = 0; n < QUESTIONS; n++) await ask();
    });
    await during("the same, eight at once", async () => {
      for (let n = 0; n < QUESTIONS; n += 8) await Promise.all(Array.from({ length: 8 }, ask));
    });
    await during("another model loads (MiniLM)", async () => {
      await settings({ embeddingSource: "transformers", transformersEnabled: true });
      for (let n = 0; n < 10; n++) await ask();
    });
  } finally {
    await appliance.stop();
  }
  return stalls;
}
