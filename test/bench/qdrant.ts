/**
 * `QDRANT_URL=… bun run bench:qdrant [points]`: filling a collection with what SQLite holds, and what a search costs on
 * top of Qdrant's own time. Bytes a point carries are printed too; docs/scale.md counts with them.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { createMirror, FILL, OUTBOX } from "../../src/backends/mirror/mirror.ts";
import { memorySource } from "../../src/backends/mirror/source.ts";
import { fillHandler, outboxHandler } from "../../src/backends/mirror/work.ts";
import { fullPayload, sparseOfMemory } from "../../src/backends/qdrant-payload.ts";
import { insertMemory, memoryById, toMemory } from "../../src/db/memories.ts";
import { boxId } from "../../src/db/meta.ts";
import { migrate } from "../../src/db/migrate.ts";
import { openDatabase } from "../../src/db/open.ts";
import { ensureOwner } from "../../src/db/owners.ts";
import { openStatic } from "../../src/embed/static.ts";
import { silentLog } from "../../src/log.ts";
import { createJobs } from "../../src/memory/jobs.ts";
import { connectQdrant } from "../../src/search/qdrant/client.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";

const url = Bun.env["QDRANT_URL"];
const models = testModels();
const say = (line: string): void => void process.stdout.write(`${line}\n`);
if (!url || models === null) {
  say(
    url
      ? "No embedding weights: set RECOLLECT_TEST_MODELS."
      : "No server: set QDRANT_URL (and QDRANT_API_KEY) to measure against it.",
  );
  process.exit(0);
}

const count = Number(process.argv[2] ?? 20_000);
const searches = 300;
const owners = 10;
const words =
  "tea coffee sailing python typescript garden rain letters postgres winter train music bread river night".split(
    " ",
  );
const apiKey = Bun.env["QDRANT_API_KEY"] ?? null;
const dir = mkdtempSync(join(tmpdir(), "bench-qdrant-"));
const db = openDatabase(join(dir, "recollect.db"));
const collection = `bench_${crypto.randomUUID().slice(0, 8)}`;
const direct = await connectQdrant({ url, apiKey });
const quantile = (all: number[], q: number): string =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length * q)]!.toFixed(2);

try {
  migrate(db, null);
  const embedder = await openStatic(join(models, STATIC_REPO), "bench");
  const box = boxId(db);
  const random = (n: number): number => Math.floor(Math.random() * n);
  let last = "";
  db.transaction(() => {
    for (let i = 0; i < count; i++) {
      const at = Date.now() - random(20 * 86_400_000);
      last = crypto.randomUUID();
      const said = Array.from({ length: 12 }, () => words[random(words.length)]).join(" ");
      insertMemory(db, {
        id: last,
        ownerId: ensureOwner(db, `k${i % owners}`),
        sessionId: null,
        type: "factual",
        key: `note:${i}`,
        content: `Note ${i}: ${said}`,
        metadata: { category: "preference" },
        origin: "user",
        status: "active",
        pinned: false,
        standing: false,
        byHand: false,
        episodeId: null,
        tokens: 20,
        createdAt: at,
        updatedAt: at,
        confirmedAt: at,
        expiresAt: null,
      });
    }
  })();
  const jobs = createJobs({ db, log: silentLog, now: Date.now, leaseName: "bench" });
  const mirror = createMirror({
    db,
    log: silentLog,
    now: Date.now,
    jobs,
    boxId: box,
    retentionDays: () => 30,
    connection: () => ({
      enabled: true,
      host: url,
      port: 6333,
      collection,
      embeddingModel: null,
      quantization: "none",
      url,
      apiKey,
      efConstruct: null,
    }),
    embedder: async () => embedder,
    sources: [memorySource(db, box)],
  });
  jobs.handle(OUTBOX, outboxHandler(mirror, "bench"));
  jobs.handle(FILL, fillHandler(mirror));

  say(
    `${cpus()[0]?.model ?? "?"} × ${cpus().length}, Bun ${Bun.version}, ${count} memories of ${owners} owners, ${embedder.dimensions} dimensions`,
  );
  const started = performance.now();
  mirror.check();
  jobs.start();
  while (!mirror.filled("memory")?.complete) await Bun.sleep(20);
  const seconds = (performance.now() - started) / 1000;
  say(`back-fill with embedding             ${(count / seconds).toFixed(0)} points/s (goal ≥ 5,000)`);

  const own: number[] = [];
  const ours: number[] = [];
  const plain: number[] = [];
  for (let i = 0; i < searches; i++) {
    const text = `${words[random(words.length)]} ${words[random(words.length)]}`;
    const [vector] = await embedder.embed([text]);
    const scope = { owner: `k${i % owners}`, session: null, retentionDays: 30, now: Date.now() };
    const a = performance.now();
    const answer = await mirror.search({
      ...scope,
      kind: "memory",
      text,
      vector: vector!,
      signature: embedder.signature,
      limit: 20,
    });
    ours.push(performance.now() - a);
    if (!("hits" in answer)) throw new Error(answer.reason);
    // The same question by fetch alone: what the server and the network take, and the server's own word for it.
    const { baseFilter, ownBox } = await import("../../src/search/qdrant/points.ts");
    const base = baseFilter("omniroute_memory", scope);
    const body = JSON.stringify({
      query: Array.from(vector!),
      filter: { must: [...(base.must as []), ownBox(box)] },
      limit: 20,
      with_payload: false,
    });
    const b = performance.now();
    const response = await fetch(`${url}/collections/${collection}/points/query`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "accept-encoding": "identity",
        ...(apiKey === null ? {} : { "api-key": apiKey }),
      },
      body,
    });
    const { time } = (await response.json()) as { time: number };
    plain.push(performance.now() - b);
    own.push(time * 1000);
  }
  say(`search through the product, ms       p50 ${quantile(ours, 0.5)}  p95 ${quantile(ours, 0.95)}`);
  say(`the same by fetch alone, ms          p50 ${quantile(plain, 0.5)}  p95 ${quantile(plain, 0.95)}`);
  say(`the server's own time, ms            p50 ${quantile(own, 0.5)}  p95 ${quantile(own, 0.95)}`);
  say(
    `added to the call, p50               ${(Number(quantile(ours, 0.5)) - Number(quantile(plain, 0.5))).toFixed(2)} ms (goal ≤ 1)`,
  );

  const memory = toMemory(memoryById(db, null, last)!);
  const payload = Buffer.byteLength(JSON.stringify(fullPayload(memory, box)));
  const sparse = sparseOfMemory(memory).indices.length;
  say(
    `payload of a ${memory.content.length}-character memory    ${payload} bytes as JSON, ${sparse} sparse terms of 8 bytes`,
  );
  await jobs.stop();
  await mirror.disconnect();
} finally {
  const { collections } = await direct.call("search", (api, init) => api.getCollections({}, init));
  for (const { name } of collections)
    if (name.startsWith(collection))
      await direct.call("write", (api, init) => api.deleteCollection({ collection_name: name }, init));
  direct.close();
  db.close();
  rmSync(dir, { recursive: true, force: true });
}
