/**
 * `bun test/support/fixture.ts`: writes test/fixtures/<version>.tar.zst, a backup with a little of everything, made by
 * the version that is checked out. One is made at each release and never changed; `upgrade.test.ts` opens them all.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeBackup } from "../../src/db/backup.ts";
import { VERSION } from "../../src/version.ts";
import { startAppliance } from "./appliance.ts";
import { safetensors, wordTokenizer } from "./tables.ts";

export const TOY_MODEL = "toy/words";

/** A static model over a dozen words in eight dimensions, so that vectors are in the fixture too. */
export function placeToyModel(dataDir: string): void {
  const words = [
    "favourite",
    "editor",
    "helix",
    "lives",
    "in",
    "oulu",
    "tea",
    "green",
    "drinks",
    "always",
    "answer",
    "finnish",
  ];
  const data = Float32Array.from(
    { length: (words.length + 1) * 8 },
    (_, at) => Math.sin(at * 1.7) + (at % 9 === 0 ? 1 : 0),
  );
  const folder = join(dataDir, "embeddings", TOY_MODEL);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "config.json"), '{"model_type":"model2vec","hidden_dim":8}');
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(wordTokenizer(words)));
  writeFileSync(
    join(folder, "model.safetensors"),
    safetensors({ embeddings: { shape: [words.length + 1, 8], data } }),
  );
}

async function make(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "fixture-"));
  placeToyModel(dataDir);
  const box = await startAppliance({ dataDir, env: { MEMORY_STATIC_MODEL: TOY_MODEL } });
  const done = async (method: string, path: string, body?: unknown, key?: string) => {
    const answer = await box.call(method, path, body, key);
    if (answer.status >= 300)
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body as Record<string, unknown>;
  };
  try {
    await done("PUT", "/api/settings/memory", { staticEnabled: true, retentionDays: 0 });
    const chat = (content: string) =>
      done(
        "POST",
        "/v1/chat/completions",
        { model: "demo/echo", messages: [{ role: "user", content }] },
        box.key,
      );
    await chat("My favourite editor is Helix.");
    await done(
      "POST",
      "/api/memory",
      { type: "factual", key: "identity:home", content: "Lives in Turku" },
      box.key,
    );
    await done(
      "POST",
      "/api/memory",
      { type: "factual", key: "identity:home", content: "Lives in Oulu" },
      box.key,
    );
    await done(
      "POST",
      "/api/memory",
      { type: "procedural", content: "Always answer in Finnish", metadata: { category: "instruction" } },
      box.key,
    );
    const session = await done("POST", "/sessions", { externalId: "tea-talk" }, box.key);
    await done(
      "POST",
      "/episodes",
      { sessionId: session["id"], userMessage: "I drink green tea.", aiResponse: "Noted." },
      box.key,
    );
    await done("POST", "/entities", { name: "Oulu", type: "place" }, box.key);
    type Status = {
      jobs: { queued: number; running: number };
      vectorStore: { coverage: number; rowCount: number };
    };
    for (;;) {
      const status = (await done("GET", "/api/memory/engine-status")) as unknown as Status;
      const idle = status.jobs.queued + status.jobs.running === 0;
      if (idle && status.vectorStore.coverage === 1 && status.vectorStore.rowCount > 2) break;
      await Bun.sleep(100);
    }
    await chat("Which editor is my favourite?");
  } finally {
    await box.stop({ keep: true });
  }
  const file = join(dataDir, "fixture.tar");
  const manifest = writeBackup({ dataDir, file, version: VERSION });
  const target = join(import.meta.dir, "../fixtures", `${VERSION}.tar.zst`);
  writeFileSync(target, Bun.zstdCompressSync(await Bun.file(file).bytes(), { level: 19 }));
  rmSync(dataDir, { recursive: true, force: true });
  process.stdout.write(`${target}\n${JSON.stringify(manifest.rows)}\n`);
}

if (import.meta.main) await make();
