import { expect, test } from "bun:test";
import { until } from "./support/appliance.ts";
import { startTestEngine } from "./support/engine.ts";

test("a channel that is late is left out, the others answer, and the resolution says so", async () => {
  // An embedding endpoint that works at first and then never answers.
  const hold = Promise.withResolvers<void>();
  let stuck = false;
  using endpoint = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { input } = (await request.json()) as { input: string[] };
      if (stuck) await hold.promise;
      return Response.json({
        object: "list",
        model: "tiny",
        data: input.map((text, index) => ({ object: "embedding", index, embedding: [text.length, 1, 2, 3] })),
      });
    },
  });
  const box = startTestEngine({
    settings: {
      embeddingSource: "remote",
      customBaseUrl: `http://127.0.0.1:${endpoint.port}/v1`,
      customModelId: "tiny",
    },
  });
  try {
    await box.engine.memories.create({ owner: "anna", origin: "api", content: "Keeps bees behind the barn" });
    const ask = (query: string) =>
      box.engine.retrieval.retrieve({
        owner: "anna",
        query,
        mode: "proxy",
        kinds: ["memory"],
        deadlineMs: 200,
      });
    box.start();
    await until(
      "the memory to have its vector",
      async () => (await box.engine.index.progress()).current === 1,
    );
    expect((await ask("Where are the bees kept?")).results[0]!.vecScore).not.toBeNull();
    stuck = true;
    const found = await ask("Who keeps bees behind which barn?");
    expect(found.results.map((row) => row.kind === "memory" && row.item.content)).toEqual([
      "Keeps bees behind the barn",
    ]);
    expect(found.results[0]!.vecScore).toBeNull();
    expect(found.resolution.fallbackReason).toMatch(/late|time|deadline|not ready/i);
  } finally {
    hold.resolve();
    await box.stop();
  }
});
