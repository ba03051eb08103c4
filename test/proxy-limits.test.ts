/** Large and slow things: memory stays bounded, nothing is lost. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import net from "node:net";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { startProxy, waitFor } from "./support/proxy.ts";
import type { TestProxy } from "./support/proxy.ts";
import { startUpstream } from "./support/upstream.ts";
import type { MockUpstream } from "./support/upstream.ts";

let proxy: TestProxy;
let upstream: MockUpstream;
/** A raw server that swallows what it is sent, and sends as much as the path says. */
let raw: net.Server;
let received = 0;
let produced = 0;

beforeAll(async () => {
  raw = net.createServer((socket) => {
    socket.on("error", () => {});
    let head = "";
    let left = -1;
    let total = 0;
    socket.on("data", (bytes) => {
      received += bytes.length;
      if (left < 0) {
        head += bytes.toString("latin1");
        const end = head.indexOf("\r\n\r\n");
        if (end < 0) return;
        left = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0) - (head.length - end - 4);
        total = Number(/\/v1\/send\/(\d+)/.exec(head)?.[1] ?? 0);
      } else left -= bytes.length;
      if (left > 0) return;
      if (total === 0) return void socket.end(`HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`);
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: ${total}\r\n\r\n`,
      );
      let sent = 0;
      const chunk = Buffer.alloc(1 << 20, 7);
      const go = () => {
        while (sent < total) {
          sent += chunk.length;
          produced = sent;
          if (!socket.write(chunk)) return void socket.once("drain", go);
        }
      };
      go();
    });
  });
  await new Promise<void>((resolve) => raw.listen(0, "127.0.0.1", resolve));
  upstream = await startUpstream();
  proxy = await startProxy({
    providers: [
      { id: "raw", baseUrl: `http://127.0.0.1:${(raw.address() as AddressInfo).port}/v1` },
      { id: "m", baseUrl: upstream.url, wire: ["chat", "responses", "messages"] },
    ],
  });
});
afterAll(async () => {
  await proxy.stop();
  raw.close();
  upstream.close();
});

const MB = 1 << 20;
const resident = () => process.memoryUsage.rss() / MB;

test("a gigabyte is uploaded without being held", async () => {
  const total = 1024 * MB;
  const before = resident();
  let peak = 0;
  received = 0;
  const watch = setInterval(() => (peak = Math.max(peak, resident())), 20);
  const socket = net.connect(Number(new URL(proxy.url).port), "127.0.0.1");
  const answer = new Promise<string>((resolve, reject) => {
    socket.once("data", (bytes) => resolve(bytes.toString()));
    socket.once("error", reject);
  });
  socket.write(
    `POST /v1/files HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${proxy.secret}\r\ncontent-type: application/octet-stream\r\ncontent-length: ${total}\r\n\r\n`,
  );
  const chunk = Buffer.alloc(MB, 1);
  for (let sent = 0; sent < total; sent += chunk.length) {
    if (!socket.write(chunk)) await new Promise((resolve) => socket.once("drain", resolve));
  }
  expect(await answer).toStartWith("HTTP/1.1 200");
  clearInterval(watch);
  socket.destroy();
  expect(received).toBeGreaterThan(total);
  expect(peak - before).toBeLessThan(300);
}, 120_000);

test("a slow client holds the provider back, not the proxy's memory", async () => {
  const before = resident();
  produced = 0;
  const response = await proxy.get(`/v1/send/${512 * MB}`);
  const reader = response.body!.getReader();
  await reader.read();
  let seen = -1;
  await waitFor(async () => {
    const still = produced === seen;
    seen = produced;
    await Bun.sleep(100);
    return still;
  });
  expect(produced).toBeLessThan(256 * MB);
  expect(resident() - before).toBeLessThan(300);
  let got = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) got += part.value.length;
  expect(got).toBeGreaterThan(500 * MB);
}, 120_000);

test("whatever the body, never a 500 and never a crash", async () => {
  const routes = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/embeddings",
    "/v1/rerank",
  ];
  const part = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.record(
      {
        type: fc.constantFrom("text", "input_text", "tool_result", "image_url", 7),
        text: fc.jsonValue({ maxDepth: 1 }),
      },
      { requiredKeys: [] },
    ),
  );
  const message = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.record(
      {
        role: fc.constantFrom<unknown>("user", "assistant", "system", "developer", "tool", 1, null),
        content: fc.oneof(fc.string(), fc.array(part, { maxLength: 3 }), fc.constant(null), fc.integer()),
        tool_calls: fc.jsonValue({ maxDepth: 2 }),
        type: fc.constantFrom("message", "function_call", "function_call_output", "reasoning", 3),
        call_id: fc.jsonValue({ maxDepth: 0 }),
      },
      { requiredKeys: [] },
    ),
  );
  const body = fc.record(
    {
      model: fc.constantFrom<unknown>("m/x", "x", "m/", "/", "", 5, null),
      messages: fc.oneof(fc.array(message, { maxLength: 4 }), fc.jsonValue({ maxDepth: 1 })),
      input: fc.oneof(fc.array(message, { maxLength: 4 }), fc.string(), fc.jsonValue({ maxDepth: 1 })),
      system: fc.oneof(fc.string(), fc.array(part, { maxLength: 2 }), fc.integer()),
      instructions: fc.jsonValue({ maxDepth: 1 }),
      stream: fc.constantFrom<unknown>(true, false, "yes", null),
      stream_options: fc.jsonValue({ maxDepth: 1 }),
      metadata: fc.jsonValue({ maxDepth: 1 }),
      max_tokens: fc.oneof(fc.integer({ min: -5, max: 5 }), fc.string()),
      previous_response_id: fc.jsonValue({ maxDepth: 0 }),
      conversation: fc.jsonValue({ maxDepth: 1 }),
      encoding_format: fc.jsonValue({ maxDepth: 0 }),
    },
    { requiredKeys: [] },
  );
  const text = fc.oneof(
    body.map((value) => JSON.stringify(value)),
    body.map((value) => JSON.stringify(value, null, 1)),
    fc.json(),
    fc.string(),
  );
  const headers = fc.record(
    {
      "x-session-id": fc.stringMatching(/^[\x20-\x7e]{0,140}$/),
      "x-memory-mode": fc.constantFrom("read", "write", "off", "read-write"),
      "x-memory-max-tokens": fc.constantFrom("0", "10", "5000"),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...routes), text, headers, async (route, sent, extra) => {
      const response = await proxy.post(route, sent, extra as Record<string, string>);
      const answer = await response.text();
      if (response.status >= 500) throw new Error(`${route} ${response.status} ${answer}`);
      if (response.status >= 400) JSON.parse(answer);
    }),
    { numRuns: Number(process.env["FUZZ_RUNS"] ?? 1500) },
  );
  expect(
    (
      await proxy.post("/v1/chat/completions", {
        model: "m/x",
        messages: [{ role: "user", content: "still here?" }],
      })
    ).status,
  ).toBe(200);
}, 600_000);
