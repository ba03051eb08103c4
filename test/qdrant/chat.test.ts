// Chats while Qdrant is killed, revived, slow, full and refusing: none fails, and everything is there afterwards.
import { expect, test } from "bun:test";
import { startAppliance, until } from "../support/appliance.ts";
import type { Appliance } from "../support/appliance.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { startTarget } from "../support/qdrant-target.ts";
import type { QdrantTarget } from "../support/qdrant-target.ts";

const models = testModels();
const run = test.skipIf(models === null);

const chat = async (box: Appliance, content: string): Promise<{ status: number; text: string }> => {
  const { status, body } = await box.call(
    "POST",
    "/v1/chat/completions",
    { model: "demo/echo", messages: [{ role: "user", content }] },
    box.key,
  );
  return { status, text: JSON.stringify(body) };
};

async function open(target: QdrantTarget, name: string): Promise<Appliance> {
  const box = await startAppliance({
    env: { MEMORY_STATIC_CACHE_DIR: models!, MEMORY_STATIC_MODEL: STATIC_REPO },
  });
  await box.call("PUT", "/api/settings/memory", { embeddingSource: "static" });
  const { status } = await box.call("PUT", "/api/settings/qdrant", {
    host: target.url,
    collection: name,
    ...(target.apiKey === null ? {} : { apiKey: target.apiKey }),
  });
  expect(status).toBe(200);
  return box;
}

run(
  "as a vector store",
  async () => {
    const target = await startTarget();
    const name = target.name();
    const box = await open(target, name);
    await box.call("PUT", "/api/settings/qdrant", { enabled: true });
    await box.call("POST", "/api/memory", { content: "Drinks oolong tea every morning" }, box.key);
    let going = true;
    const answers: number[] = [];
    const loops = Array.from({ length: 4 }, async (_, loop) => {
      for (let i = 0; going; i++) {
        answers.push(
          (await chat(box, `My ${["boat", "dog", "bike", "house"][loop]} number ${i} is called Number ${i}.`))
            .status,
        );
        answers.push((await chat(box, "Which tea do I drink in the morning?")).status);
      }
    });
    const some = (n: number) => {
      const at = answers.length + n;
      return until(`${n} more chats`, () => answers.length >= at, 30_000);
    };
    await some(20);
    await target.proxy.kill();
    await some(30);
    target.proxy.revive();
    target.proxy.fault({ delay: 5000 });
    await some(30);
    target.proxy.heal();
    for (const status of [507, 500, 401]) {
      target.proxy.fault({ status });
      await some(20);
      target.proxy.heal();
    }
    going = false;
    await Promise.all(loops);
    expect(new Set(answers)).toEqual(new Set([200]));
    const compare = () =>
      box
        .call("POST", "/api/settings/qdrant/reconcile", { dryRun: true })
        .then(({ body }) => body as { missing: number; stale: number; orphaned: number });
    await until(
      "both sides agree",
      async () => {
        const { missing, stale, orphaned } = await compare();
        return missing + stale + orphaned === 0;
      },
      60_000,
    );
    const { body } = await box.call("GET", "/api/jobs?state=failed");
    expect((body as { total: number }).total).toBe(0);
    await box.stop();
    await target.stop();
  },
  120_000,
);

run(
  "as the home of memories: recall is empty while it is gone, writes are refused, chats go on",
  async () => {
    const target = await startTarget();
    const box = await open(target, target.name());
    await box.call("PUT", "/api/settings/memory", { primaryBackend: "qdrant", injectEpisodes: false });
    const add = (content: string) => box.call("POST", "/api/memory", { content }, box.key);
    expect((await add("Drinks oolong tea every morning")).status).toBe(201);
    const question = "Which tea do I drink in the morning?";
    await until("recall", async () => (await chat(box, question)).text.includes("oolong"));
    await target.proxy.kill();
    const without = await chat(box, question);
    expect(without.status).toBe(200);
    expect(without.text).not.toContain("oolong");
    expect((await add("Not stored")).status).toBe(503);
    expect((await chat(box, "I prefer TypeScript over Java.")).status).toBe(200);
    target.proxy.revive();
    await until(
      "what the chat taught arrives",
      async () => {
        const { body } = await box.call("GET", "/api/memory", undefined, box.key);
        return JSON.stringify(body).includes("TypeScript");
      },
      40_000,
    );
    expect(JSON.stringify((await box.call("GET", "/api/memory", undefined, box.key)).body)).not.toContain(
      "Not stored",
    );
    await box.stop();
    await target.stop();
  },
  60_000,
);
