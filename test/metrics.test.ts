import { expect, test } from "bun:test";
import { startAppliance, until } from "./support/appliance.ts";
import { createMetrics, renderMetrics } from "../src/metrics.ts";

test("adds the series of all threads up, in the text format", () => {
  const main = createMetrics();
  const worker = createMetrics();
  main.count("recollect_requests_total", { route: "/v1/chat/completions", status: 200 });
  main.count("recollect_requests_total", { route: "/v1/chat/completions", status: 200 });
  worker.count("recollect_requests_total", { route: "/v1/chat/completions", status: 200 }, 3);
  worker.set("recollect_memories", 7, { status: "active" });
  main.observe("recollect_retrieval_seconds", 0.004, { channel: "fts5" });
  worker.observe("recollect_retrieval_seconds", 700, { channel: "fts5" });
  const lines = renderMetrics([main.snapshot(), worker.snapshot()]).split("\n");
  expect(lines).toContain('recollect_requests_total{route="/v1/chat/completions",status="200"} 5');
  expect(lines).toContain("# TYPE recollect_memories gauge");
  expect(lines).toContain('recollect_memories{status="active"} 7');
  expect(lines).toContain('recollect_retrieval_seconds_bucket{channel="fts5",le="0.0025"} 0');
  expect(lines).toContain('recollect_retrieval_seconds_bucket{channel="fts5",le="0.005"} 1');
  expect(lines).toContain('recollect_retrieval_seconds_bucket{channel="fts5",le="300"} 1');
  expect(lines).toContain('recollect_retrieval_seconds_bucket{channel="fts5",le="+Inf"} 2');
  expect(lines).toContain('recollect_retrieval_seconds_sum{channel="fts5"} 700.004');
});

test("a label cannot break out of its quotes", () => {
  const metrics = createMetrics();
  metrics.count("recollect_extraction_total", { result: 'a"} 1\nx{y="\\' });
  const text = renderMetrics([metrics.snapshot()]);
  expect(text).toContain('recollect_extraction_total{result="a\\"} 1\\nx{y=\\"\\\\"} 1');
});

test("a chat through the appliance is counted by route, tokens, time added, channel and extraction", async () => {
  const box = await startAppliance();
  await box.call("POST", "/api/memory", { content: "Keeps a zebra finch" }, box.key);
  await fetch(`${box.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${box.key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "demo/echo",
      stream: true,
      messages: [{ role: "user", content: "I prefer oolong. What about the zebra finch?" }],
    }),
  }).then((answer) => answer.text());
  await fetch(`${box.url}/mcp`, { method: "POST", body: "{}" });
  const text = await until("the exchange to be read", async () => {
    const { body } = await box.call("GET", "/metrics");
    return String(body).includes("recollect_extraction_total{") ? String(body) : null;
  });
  for (const line of [
    /^recollect_requests_total\{route="\/mcp",status="401"\} 1$/m,
    /^recollect_requests_total\{route="\/v1\/chat\/completions",status="200"\} 1$/m,
    /^recollect_tokens_total\{kind="in"\} [1-9]/m,
    /^recollect_tokens_total\{kind="injected"\} [1-9]/m,
    /^recollect_added_seconds_count 1$/m,
    /^recollect_ttft_seconds_count 1$/m,
    /^recollect_retrieval_seconds_count\{channel="index"\} [1-9]/m,
    /^recollect_extraction_total\{result="learned"\} 1$/m,
    /^recollect_embedding_cache_hits_total 0$/m,
  ]) {
    expect(text).toMatch(line);
  }
  await box.stop();
});
