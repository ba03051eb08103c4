/**
 * `bun run bench:embedding`: the figures of the local embedding models, with the machine they were taken on. The static
 * model is a stand-in of the shape of potion-base-8M. Where Python has onnxruntime and tokenizers, the same ONNX file is
 * run there on the same texts for comparison.
 */
import { cpus, tmpdir } from "node:os";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openStatic } from "../../src/embed/static.ts";
import { openTransformers } from "../../src/embed/transformers.ts";
import type { Embedder } from "../../src/embed/types.ts";
import { STATIC_REPO, testModels, TRANSFORMERS_REPO } from "../support/models.ts";

const models = testModels();
if (models === null) process.exit(1);
const dataDir = mkdtempSync(join(tmpdir(), "bench-embedding-"));
const print = (name: string, value: string, goal: string) =>
  process.stdout.write(`${name.padEnd(58)} ${value.padEnd(34)} goal ${goal}\n`);
const rss = () => `${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`;

const subjects = [
  "the kitchen tap",
  "a blue bicycle",
  "my sister's wedding",
  "the tax form",
  "TypeScript generics",
];
const verbs = [
  "needs a new seal before",
  "was sold again after",
  "comes up in every talk about",
  "reminds me of",
  "is due on",
];
const places = [
  "the third of March",
  "Oulu in winter",
  "the old harbour café",
  "naïve résumés",
  "chapter twelve",
];
/** Short texts that all differ, some 60 characters long. */
const shortTexts = (count: number): string[] =>
  Array.from({ length: count }, (_, at) => {
    const pick = (list: string[], step: number) => list[Math.floor(at / step) % list.length]!;
    return `${pick(subjects, 1)} ${pick(verbs, 5)} ${pick(places, 25)} number ${at}`;
  });
const hundredTokens = "the weather report spoke of rain in the hills and wind at the coast ".repeat(7);

function percentiles(times: number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(2);
  return `p50 ${at(0.5)}  p95 ${at(0.95)} ms`;
}

async function each(embedder: Embedder, texts: string[]): Promise<string> {
  const times: number[] = [];
  for (const text of texts) {
    const started = performance.now();
    await embedder.embed([text]);
    times.push(performance.now() - started);
  }
  return percentiles(times);
}

async function rate(embedder: Embedder, texts: string[], batch: number): Promise<number> {
  const started = performance.now();
  for (let at = 0; at < texts.length; at += batch) await embedder.embed(texts.slice(at, at + batch));
  return texts.length / ((performance.now() - started) / 1000);
}

try {
  process.stdout.write(`${cpus()[0]?.model ?? "?"} × ${cpus().length}, Bun ${Bun.version}\n`);
  let started = performance.now();
  const fixed = await openStatic(join(models, STATIC_REPO), STATIC_REPO);
  print(
    "static (stand-in): load",
    `${(performance.now() - started).toFixed(0)} ms, ${rss()} resident`,
    "≤ 200 ms, ≤ 120 MB",
  );
  await rate(fixed, shortTexts(5000), 500);
  print(
    "static: short texts a second, one core",
    (await rate(fixed, shortTexts(50_000), 500)).toFixed(0),
    "≥ 25,000",
  );
  print("static: one text", await each(fixed, shortTexts(2000)), "≤ 0.2 ms");

  started = performance.now();
  const mini = await openTransformers({ modelsDir: models, model: TRANSFORMERS_REPO, dataDir });
  print(
    "transformers: load (both models now resident)",
    `${(performance.now() - started).toFixed(0)} ms, ${rss()}`,
    "≤ 300 MB",
  );
  await each(mini, shortTexts(20));
  print(
    "transformers: one text of 100 tokens",
    await each(mini, Array<string>(100).fill(hundredTokens)),
    "≤ 20 / 50 ms",
  );
  print("transformers: one short text", await each(mini, shortTexts(100)), "–");
  const batchTexts = shortTexts(1000);
  print(
    "transformers: short texts a second, batches of 64",
    (await rate(mini, batchTexts, 64)).toFixed(0),
    "≥ 0.9 × Python",
  );
  const longTexts = Array.from({ length: 64 }, (_, at) => `${at} ${hundredTokens}`);
  print(
    "transformers: texts of 100 tokens a second, batches of 64",
    (await rate(mini, longTexts, 64)).toFixed(1),
    "≥ 0.9 × Python",
  );
  print("resident at the end", rss(), "–");
  python(join(models, TRANSFORMERS_REPO), batchTexts, longTexts);
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}

/** The same file, the same texts, batches of 64 sorted by length. */
function python(folder: string, short: string[], long: string[]): void {
  const script = `
import json, sys, time, numpy, onnxruntime, tokenizers
folder, short, long = json.load(sys.stdin)
tok = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json"); tok.enable_padding(); tok.enable_truncation(512)
session = onnxruntime.InferenceSession(folder + "/onnx/model_quantized.onnx", providers=["CPUExecutionProvider"])
def run(texts):
    enc = tok.encode_batch(texts)
    ids = numpy.array([e.ids for e in enc]); mask = numpy.array([e.attention_mask for e in enc])
    out = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)})[0]
    pooled = (out * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return pooled / numpy.linalg.norm(pooled, axis=1, keepdims=True)
def rate(texts):
    run(texts[:64]); start = time.perf_counter()
    for at in range(0, len(texts), 64): run(sorted(texts[at:at+64], key=len))
    return len(texts) / (time.perf_counter() - start)
print(onnxruntime.__version__, round(rate(short)), round(rate(long), 1))
`;
  const name = process.env["BENCH_PYTHON"] ?? "python3";
  const { exitCode, stdout } = Bun.spawnSync([name, "-c", script], {
    stdin: new TextEncoder().encode(JSON.stringify([folder, short, long])),
    stderr: "ignore",
  });
  if (exitCode !== 0) print("Python reference", `${name} has no onnxruntime and tokenizers`, "–");
  else {
    const [version, fast, slow] = stdout.toString().trim().split(" ");
    print(`Python onnxruntime ${version}: short / 100 tokens a second`, `${fast} / ${slow}`, "reference");
  }
}
