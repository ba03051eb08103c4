import { afterEach, beforeEach, expect, test } from "bun:test";
import { openSeal } from "../src/seal.ts";
import { createProviders } from "../src/upstream/providers.ts";
import { startTestEngine } from "./support/engine.ts";
import type { TestEngine } from "./support/engine.ts";

/** A rerank endpoint as providers publish it: puts the document with `favoured` first, late or failing when told. */
function startReranker() {
  const state = { favoured: "", delayMs: 0, status: 200, asked: 0 };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (new URL(request.url).pathname !== "/v1/rerank")
        return new Response("no such path", { status: 404 });
      const body = (await request.json()) as {
        model: string;
        query: string;
        documents: string[];
        top_n: number;
      };
      if (body.model !== "judge" || body.documents.length > 20 || body.top_n !== body.documents.length) {
        return new Response("bad request", { status: 400 });
      }
      state.asked++;
      await Bun.sleep(state.delayMs);
      if (state.status !== 200) return new Response("down", { status: state.status });
      const results = body.documents
        .map((text, index) => ({ index, relevance_score: text.includes(state.favoured) ? 0.9 : 0.1 }))
        .toSorted((a, b) => b.relevance_score - a.relevance_score);
      return Response.json({ results });
    },
  });
  return { state, url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
}

let reranker: ReturnType<typeof startReranker>;
let box: TestEngine;
beforeEach(async () => {
  reranker = startReranker();
  box = startTestEngine({
    settings: { enabled: true, rerankEnabled: true, rerankProviderModel: "box/judge" },
  });
  createProviders({ db: box.db, seal: openSeal(box.dataDir) }).create({ id: "box", baseUrl: reranker.url });
  for (const content of [
    "Sails a ketch named Aurora",
    "Sails on lakes in summer",
    "Sails with her brother",
  ]) {
    await box.engine.memories.create({ owner: "anna", origin: "api", content });
  }
});
afterEach(async () => {
  await box.stop();
  await reranker.stop();
});

const ask = () =>
  box.engine.retrieval.retrieve({
    owner: "anna",
    query: "Who sails a ketch?",
    mode: "interactive",
    kinds: ["memory"],
    count: false,
  });
const contents = (found: Awaited<ReturnType<typeof ask>>) =>
  found.results.map(({ text }) => text.replace(/^- \[[^\]]*\] /, ""));

test("the provider's model has the last word on the order", async () => {
  reranker.state.favoured = "brother";
  const found = await ask();
  expect(contents(found)[0]).toBe("Sails with her brother");
  expect(found.resolution.rerankApplied).toBe(true);
  expect(found.results[0]!.tier).toBe("rerank");
});

test.each([
  ["is down", { status: 500, delayMs: 0 }],
  ["is later than half a second", { status: 200, delayMs: 2000 }],
])("a reranker that %s leaves the order as it was, and that is seen", async (_, fault) => {
  reranker.state.favoured = "brother";
  Object.assign(reranker.state, fault);
  const found = await ask();
  expect(contents(found)[0]).toBe("Sails a ketch named Aurora");
  expect(found.resolution.rerankApplied).toBe(false);
  expect(found.resolution.fallbackReason).toContain("order is ours");
  expect(reranker.state.asked).toBe(1);
  const status = await box.engine.status.engine({ owner: null, brief: false });
  expect(status.rerank).toMatchObject({ enabled: true, available: false });
});
