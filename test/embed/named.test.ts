/** A model that is named beside the one in force, as Qdrant may have one of its own. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig } from "../../src/config.ts";
import { silentLog } from "../../src/log.ts";
import { createEmbedding } from "../../src/memory/embedding.ts";
import { defaultSettings } from "../../src/memory/settings.ts";

const dir = mkdtempSync(join(tmpdir(), "recollect-named-"));
let server: ReturnType<typeof Bun.serve>;
const asked: unknown[] = [];

beforeAll(() => {
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { model, input } = (await request.json()) as { model: string; input: string[] };
      asked.push(model);
      return Response.json({
        data: input.map((_, index) => ({ object: "embedding", index, embedding: [1, 0, 0] })),
      });
    },
  });
});
afterAll(async () => {
  await server.stop(true);
  rmSync(dir, { recursive: true, force: true });
});

test("a provider that is called local is asked for its own models", async () => {
  const embedding = createEmbedding({
    config: resolveConfig({ flags: { DATA_DIR: dir }, env: {} }, {}),
    log: silentLog,
    settings: () => defaultSettings,
    provider: (id) => (id === "local" ? { baseUrl: `${server.url}v1`, apiKey: null, headers: {} } : null),
    now: Date.now,
    track: () => () => {},
  });
  const embedder = await embedding.named("local/nomic-embed-text");
  expect([embedder?.source, embedder?.dimensions]).toEqual(["remote", 3]);
  expect(new Set(asked)).toEqual(new Set(["nomic-embed-text"]));
  // The names of the models of this box stay theirs: it is not downloaded.
  expect(await embedding.named("local/static")).toBeNull();
  await embedding.close();
});
