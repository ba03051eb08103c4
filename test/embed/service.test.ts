import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEmbeddingCache } from "../../src/embed/cache.ts";
import { createModels } from "../../src/embed/models.ts";
import { createEmbedding, type EmbeddingDeps, type EmbeddingProvider } from "../../src/embed/service.ts";
import { STATIC_REPO, testModels, TRANSFORMERS_REPO } from "../support/models.ts";

const models = testModels();

describe.skipIf(models === null)("the embedder of the moment", () => {
  let dir: string;
  let remote: ReturnType<typeof Bun.serve>;
  let status = 200;
  let calls = 0;
  let clock = 0;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "service-"));
    [status, calls, clock] = [200, 0, 1_000_000];
    remote = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        calls++;
        if (status !== 200) return new Response("", { status });
        const { input } = (await request.json()) as { input: string[] };
        return Response.json({ data: input.map((text, index) => ({ index, embedding: [text.length, 1] })) });
      },
    });
  });
  afterEach(async () => {
    await remote.stop(true);
    rmSync(dir, { recursive: true, force: true });
  });

  const off = {
    embeddingSource: "auto" as const,
    embeddingProviderModel: null,
    customBaseUrl: null,
    customModelId: null,
    customApiKey: null,
    staticEnabled: false,
    transformersEnabled: false,
  };
  type Settings = ReturnType<EmbeddingDeps["settings"]>;
  function create(first: Partial<Settings>, modelsDir = models!) {
    let settings: Settings = { ...off, ...first };
    const provider: EmbeddingProvider = {
      baseUrl: `http://127.0.0.1:${remote.port}/v1`,
      apiKey: null,
      local: true,
    };
    const embedding = createEmbedding({
      settings: () => settings,
      provider: (id) => (id === "here" ? provider : null),
      staticModel: STATIC_REPO,
      transformersModel: TRANSFORMERS_REPO,
      modelsDir,
      dataDir: dir,
      cache: createEmbeddingCache({ max: 100, ttlMs: 60_000 }),
      now: () => clock,
    });
    return { embedding, set: (more: Partial<Settings>) => (settings = { ...settings, ...more }) };
  }

  test("none without a source; a setting takes effect on the next call", async () => {
    const { embedding, set } = create({});
    expect(await embedding.current()).toBeNull();
    expect(embedding.status()).toMatchObject({ source: null, available: null, signature: null });
    set({ staticEnabled: true });
    const embedder = await embedding.current();
    expect(embedder?.signature).toBe(`static:${STATIC_REPO}:256`);
    await embedder!.embed(["a", "a"]);
    expect(embedding.status()).toMatchObject({
      source: "static",
      dimensions: 256,
      available: true,
      error: null,
      cache: { hits: 1, misses: 1 },
    });
    expect(await embedding.current()).toBe(embedder);
    set({ embeddingProviderModel: "here/e" });
    expect((await embedding.current())?.signature).toBe("remote:here/e:2");
    await embedding.close();
  });

  test("a model that is not there yet is a reason, and works after it was imported", async () => {
    const modelsDir = join(dir, "embeddings");
    const { embedding } = create({ staticEnabled: true }, modelsDir);
    expect(embedding.current()).rejects.toThrow("tokenizer.json of the static model is not there.");
    await embedding.current().catch(() => undefined);
    expect(embedding.status()).toMatchObject({
      source: null,
      reason: expect.stringContaining("static keeps failing: tokenizer.json"),
    });
    const repos = { static: STATIC_REPO, transformers: TRANSFORMERS_REPO };
    await createModels({
      modelsDir,
      dataDir: dir,
      repos,
      hub: { endpoint: "http://127.0.0.1:9", token: null },
    }).importFrom(models!, "static");
    embedding.reset();
    expect((await embedding.current())?.source).toBe("static");
  });

  test("auto leaves a remote that keeps failing for a minute, says so, and comes back", async () => {
    const { embedding } = create({ embeddingProviderModel: "here/e", staticEnabled: true });
    const first = await embedding.current();
    expect(first?.source).toBe("remote");
    status = 503;
    for (const at of [0, 30_000, 60_000]) {
      clock = 2_000_000 + at;
      expect((await embedding.current())?.source).toBe("remote");
      await first!.embed([`text ${at}`]).catch(() => undefined);
    }
    const fallen = embedding.status();
    expect(fallen).toMatchObject({ source: "static" });
    expect(fallen.reason).toMatch(
      /^remote keeps failing: The embedding endpoint 127\.0\.0\.1:\d+ failed \(503\)\. The setting staticEnabled is on\.$/,
    );
    expect((await embedding.current())?.source).toBe("static");
    const before = calls;
    await (await embedding.current())!.embed(["text"]);
    expect(calls).toBe(before);
    status = 200;
    clock += 61_000;
    const back = await embedding.current();
    expect(back?.source).toBe("remote");
    await back!.embed(["again"]);
    expect(embedding.status()).toMatchObject({ source: "remote", available: true });
  });

  test("an explicit source stays, and says what is wrong", async () => {
    const { embedding } = create({
      embeddingSource: "remote",
      embeddingProviderModel: "here/e",
      staticEnabled: true,
    });
    status = 401;
    for (let times = 0; times < 5; times++) {
      clock += 40_000;
      await embedding.current().catch(() => undefined);
    }
    expect(embedding.status()).toMatchObject({
      source: "remote",
      available: false,
      error: expect.stringContaining("refuses the key (401)"),
    });
    expect(calls).toBe(5);
  });

  test("an endpoint that cannot be opened is asked once in 30 s", async () => {
    const { embedding } = create({ customBaseUrl: `http://127.0.0.1:${remote.port}/v1`, customModelId: "m" });
    status = 500;
    for (const at of [0, 1000, 29_000, 30_000]) {
      clock = 3_000_000 + at;
      await embedding.current().catch(() => undefined);
    }
    expect(calls).toBe(2);
  });

  test("models by name, whatever the settings", async () => {
    const { embedding } = create({});
    expect((await embedding.named("local/static")).dimensions).toBe(256);
    expect((await embedding.named("here/any/model")).signature).toBe("remote:here/any/model:2");
    expect(embedding.named("gone/m")).rejects.toThrow("There is no provider gone.");
    const mini = await embedding.named("local/transformers");
    expect(mini.dimensions).toBe(384);
    await embedding.close();
  });
});
