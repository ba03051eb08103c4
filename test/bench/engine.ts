/**
 * `bun run bench:engine [rows…]` (default 1000 10000 100000; 1000000 takes some minutes): retrieval, writing and embedding
 * in this process, on a database file. Texts are made of a Zipf-like vocabulary, so that words are about as common as in
 * speech; every question is new. Beside ours: vec0's exact scan, and recall@20 of the vector channel against it.
 */
import { statSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { ensureOwner } from "../../src/db/owners.ts";
import { insertMemory } from "../../src/db/memories.ts";
import { openStatic } from "../../src/embed/static.ts";
import { sqliteVecPath } from "../../src/native.ts";
import { embedBatch } from "../../src/search/indexing.ts";
import { ensureLexical } from "../../src/search/lexical-tables.ts";
import { fillTexts, wantsFilling } from "../../src/search/texts/fill.ts";
import { nearestRows, itemOf } from "../../src/search/vector-store.ts";
import { activeSpace, ensureVectors } from "../../src/search/vector-tables.ts";
import { createSight } from "../../src/search/sight.ts";
import { createVectorIndex } from "../../src/search/vectors.ts";
import { startTestEngine } from "../support/engine.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { table } from "../../src/bench/corpus.ts";
import { measureStalls } from "./stall.ts";
import { createWords } from "./words.ts";

const sizes = process.argv.slice(2).map(Number);
if (sizes.length === 0) sizes.push(1000, 10_000, 100_000);
const models = testModels();
if (models === null) throw new Error("this bench needs the embedding weights");
const out = (text: string) => process.stdout.write(`${text}\n`);
const at = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
const spread = (ms: readonly number[]) => {
  const sorted = ms.toSorted((a, b) => a - b);
  return `${at(sorted, 0.5).toFixed(2)} / ${at(sorted, 0.95).toFixed(2)}`;
};
const goals: Record<number, string> = {
  1000: "1 / 3",
  10_000: "2 / 5",
  100_000: "8 / 20",
  1_000_000: "60 / 120",
};
const QUESTIONS = 200;
/** Before them, as a server that has run for a while. */
const WARM_UP = 100;
const NEIGHBOURS = 1000;

out(`${cpus()[0]?.model ?? "?"} × ${cpus().length}, Bun ${Bun.version}, static stand-in ${STATIC_REPO}`);
const embedder = await openStatic(join(models, STATIC_REPO), STATIC_REPO);
{
  const words = createWords(7);
  const texts = Array.from({ length: 20_000 }, () => words.text(14));
  await embedder.embed(texts.slice(0, 500));
  const started = performance.now();
  await embedder.embed(texts);
  out(
    `static embedding: ${((texts.length / (performance.now() - started)) * 1000).toFixed(0)} texts of 14 words a second (goal 25,000)`,
  );
}

const rows: string[][] = [
  [
    "rows of the owner",
    "retrieve p50 / p95 ms",
    "goal",
    "vector alone",
    "vec0 scan",
    "recall@20",
    "write rows/s",
    "kB a row",
  ],
];
for (const size of sizes) {
  const box = startTestEngine({
    settings: { enabled: true, embeddingSource: "static", retentionDays: 0, injectEpisodes: false },
    env: { MEMORY_STATIC_MODEL: STATIC_REPO, MEMORY_STATIC_CACHE_DIR: models },
  });
  try {
    const { db } = box;
    ensureLexical(db);
    const { vec0 } = ensureVectors(db, sqliteVecPath(box.dataDir));
    db.run("PRAGMA synchronous = NORMAL");
    const words = createWords(size);
    const owner = ensureOwner(db, "bench");
    const started = performance.now();
    await fill(box, owner, size, words, vec0);
    const rate = (size / (performance.now() - started)) * 1000;
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const kB = statSync(join(box.dataDir, "recollect.db")).size / 1024 / size;
    const ask = () => words.question();
    const { retrieve } = box.engine.retrieval;
    const call = (query: string) =>
      retrieve({ owner: "bench", query, mode: "proxy", deadlineMs: null, count: false });
    // The first question has the vectors read into memory.
    await call(ask());
    await Bun.sleep(500 + size / 50);
    for (let i = 0; i < WARM_UP; i++) await call(ask());
    const whole: number[] = [];
    for (let i = 0; i < QUESTIONS; i++) {
      const query = ask();
      const from = performance.now();
      await call(query);
      whole.push(performance.now() - from);
    }
    const index = createVectorIndex(db);
    await index.warm("memory", owner);
    const vector: number[] = [];
    const scan: number[] = [];
    let same = 0;
    let asked = 0;
    const space = activeSpace(db)!;
    const predicate = { owner, session: null, retentionDays: 0, now: Date.now() };
    for (let i = 0; i < (size > 200_000 ? 20 : 60); i++) {
      const [query] = (await embedder.embed([ask()])) as [Float32Array];
      let from = performance.now();
      const found = index.search("memory", createSight(db, "memory", predicate), query, 20);
      vector.push(performance.now() - from);
      from = performance.now();
      const exact = nearestRows(db, space, "memory", owner, query, 20).map(({ row }) => itemOf(row));
      scan.push(performance.now() - from);
      const ids = new Set(found?.hits.map((hit) => hit.id));
      same += exact.filter((id) => ids.has(id)).length;
      asked += exact.length;
    }
    rows.push([
      size.toLocaleString("en"),
      spread(whole),
      goals[size] ?? "–",
      spread(vector),
      spread(scan),
      (same / Math.max(1, asked)).toFixed(4),
      rate.toFixed(0),
      kB.toFixed(2),
    ]);
    if (size === 1000) {
      // The same owner, with a thousand others in the tables.
      for (let n = 0; n < NEIGHBOURS; n++) await fill(box, ensureOwner(db, `n${n}`), 50, words, vec0);
      for (let i = 0; i < WARM_UP; i++) await call(ask());
      const shared: number[] = [];
      for (let i = 0; i < QUESTIONS; i++) {
        const query = ask();
        const from = performance.now();
        await call(query);
        shared.push(performance.now() - from);
      }
      rows.push([
        `${size.toLocaleString("en")} beside ${NEIGHBOURS} owners of 50`,
        spread(shared),
        goals[size] ?? "–",
        "",
        "",
        "",
        "",
        "",
      ]);
    }
  } finally {
    await box.stop();
  }
}
out(table(rows));
const largest = Math.min(100_000, Math.max(...sizes));
for (const { name, worstMs } of await measureStalls(largest, models))
  out(`main event loop's worst stall, ${name}: ${worstMs.toFixed(1)} ms (goal 10)`);
out("goals: recall@20 ≥ 0.998; write path ≥ 3,000 rows a second; ≤ 2.5 kB a row");

async function fill(
  box: ReturnType<typeof startTestEngine>,
  owner: number,
  size: number,
  words: ReturnType<typeof createWords>,
  vec0: boolean,
): Promise<void> {
  const { db } = box;
  for (let made = 0; made < size;) {
    db.transaction(() => {
      for (let n = 0; n < 500 && made < size; n++, made++) {
        const now = Date.now();
        insertMemory(db, {
          id: crypto.randomUUID(),
          ownerId: owner,
          sessionId: null,
          type: "factual",
          key: null,
          content: words.text(14),
          metadata: {},
          origin: "api",
          status: "active",
          pinned: false,
          standing: false,
          byHand: false,
          episodeId: null,
          tokens: 24,
          createdAt: now,
          updatedAt: now,
          confirmedAt: now,
          expiresAt: null,
        });
      }
    }).immediate();
    // The copy of texts for lists with `q` is made behind; here its time and bytes count as well.
    if (wantsFilling(db) !== null) for (const _step of fillTexts(db));
    for (;;) {
      const { more } = await embedBatch({ db, embedder, quantization: "none", vec0, now: Date.now() }, 512);
      if (!more) break;
    }
  }
}
