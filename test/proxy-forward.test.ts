import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import zlib from "node:zlib";
import { startProxy, waitFor } from "./support/proxy.ts";
import type { TestProxy } from "./support/proxy.ts";
import { startUpstream } from "./support/upstream.ts";
import type { MockUpstream } from "./support/upstream.ts";

let upstream: MockUpstream;
let spare: MockUpstream;
let proxy: TestProxy;
const chat = "/v1/chat/completions";
const body = (more: Record<string, unknown> = {}) => ({
  model: "m/test-model",
  messages: [{ role: "user", content: "Hello, what is new?" }],
  ...more,
});

beforeAll(async () => {
  upstream = await startUpstream({
    key: "sk-upstream-secret-key",
    extra: ["chat_template_kwargs", "x_big", "x_float"],
  });
  spare = await startUpstream();
  proxy = await startProxy({
    settings: { enabled: false },
    providers: [
      {
        id: "m",
        baseUrl: upstream.url,
        apiKey: "sk-upstream-secret-key",
        headers: { "x-team": "blue" },
        wire: ["chat", "responses", "messages"],
        timeouts: { firstByteMs: 400, idleMs: 400 },
        systemRole: "system",
      },
      { id: "spare", baseUrl: spare.url },
    ],
  });
  proxy.providers.change("m", { fallbacks: [] });
});
afterAll(async () => {
  await proxy.stop();
  upstream.close();
  spare.close();
});
beforeEach(() => upstream.reply(undefined));

const lastUsage = async () => {
  let row: Record<string, unknown> | undefined;
  const before = proxy.rows("SELECT max(id) AS id FROM usage")[0]?.["id"] ?? 0;
  await Bun.sleep(0);
  await waitFor(() => {
    row = proxy.rows("SELECT * FROM usage ORDER BY id DESC LIMIT 1")[0];
    return row !== undefined && Number(row["id"]) >= Number(before);
  });
  return row!;
};

describe("what reaches the provider", () => {
  test("unknown fields, large integers and order byte by byte; only the model's name differs", async () => {
    const text =
      '{"model":"m/test-model", "x_big": 12345678901234567890, "x_float":1.0,"chat_template_kwargs":{"enable_thinking":false},"messages":[{"role":"user","content":"Hi \\ud83d\\ude00"}]}';
    expect((await proxy.post(chat, text)).status).toBe(200);
    expect(upstream.last().raw).toBe(text.replace("m/test-model", "test-model"));
  });

  test("headers by an allow-list; our key stays", async () => {
    await proxy.post(chat, body(), {
      "openai-organization": "org",
      "idempotency-key": "once",
      "x-request-id": "mine",
      cookie: "a=b",
      "x-forwarded-for": "10.0.0.1",
      "x-session-id": "s",
      "x-memory-mode": "read",
      te: "trailers",
    });
    const { headers } = upstream.last();
    expect(headers).toMatchObject({
      authorization: "Bearer sk-upstream-secret-key",
      "x-team": "blue",
      "openai-organization": "org",
      "idempotency-key": "once",
      "x-request-id": "mine",
      "content-type": "application/json",
      "accept-encoding": "identity",
    });
    for (const name of [
      "cookie",
      "x-forwarded-for",
      "x-session-id",
      "x-memory-mode",
      "te",
      "connection",
      "x-recollect-key",
    ]) {
      expect(headers[name]).toBeUndefined();
    }
    expect(JSON.stringify(headers)).not.toContain(proxy.secret);
  });

  test("a model name with a slash that is no provider is a whole name; a bare name goes to who lists it", async () => {
    spare.seen.length = 0;
    await proxy.post(chat, body({ model: "meta-llama/llama-3" }));
    expect(upstream.last().body["model"]).toBe("meta-llama/llama-3");
    proxy.providers.change("spare", { models: ["only-here"] });
    await proxy.post(chat, body({ model: "only-here" }));
    expect(spare.last().body["model"]).toBe("only-here");
    await proxy.post(chat, body({ model: "nobody-lists-this" }));
    expect(upstream.last().body["model"]).toBe("nobody-lists-this");
  });

  test("developer becomes system where the provider is not known to take it", async () => {
    await proxy.post(
      chat,
      body({
        messages: [
          { role: "developer", content: "Be brief." },
          { role: "user", content: "Hi" },
        ],
      }),
    );
    expect(upstream.last().body["messages"]).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ]);
  });

  test("gzip, deflate, br and zstd bodies are decoded", async () => {
    const text = JSON.stringify(body({ user: "packed" }));
    const packed: [string, Buffer][] = [
      ["gzip", zlib.gzipSync(text)],
      ["deflate", zlib.deflateSync(text)],
      ["deflate", zlib.deflateRawSync(text)],
      ["br", zlib.brotliCompressSync(text)],
      ["zstd", zlib.zstdCompressSync(text)],
    ];
    for (const [encoding, bytes] of packed) {
      const response = await proxy.post(chat, bytes, { "content-encoding": encoding });
      expect([encoding, response.status]).toEqual([encoding, 200]);
      expect(upstream.last().body["user"]).toBe("packed");
    }
  });
});

describe("bad requests", () => {
  const cases: [name: string, send: () => Promise<Response>, status: number, code: string, param?: string][] =
    [
      ["no JSON", () => proxy.post(chat, "{nope"), 400, "invalid_json"],
      ["an empty body", () => proxy.post(chat, ""), 400, "invalid_json"],
      ["not an object", () => proxy.post(chat, "[1]"), 400, "invalid_json"],
      ["not UTF-8", () => proxy.post(chat, new Uint8Array([123, 255, 125])), 400, "invalid_json"],
      [
        "no model",
        () => proxy.post(chat, { messages: [{ role: "user", content: "x" }] }),
        400,
        "invalid_request",
        "model",
      ],
      ["model not a string", () => proxy.post(chat, body({ model: 7 })), 400, "invalid_request", "model"],
      ["no messages", () => proxy.post(chat, { model: "m/x" }), 400, "invalid_request", "messages"],
      [
        "messages not a list",
        () => proxy.post(chat, body({ messages: "x" })),
        400,
        "invalid_request",
        "messages",
      ],
      [
        "no message in the list",
        () => proxy.post(chat, body({ messages: [] })),
        400,
        "invalid_request",
        "messages",
      ],
      [
        "a message that is none",
        () => proxy.post(chat, body({ messages: ["x"] })),
        400,
        "invalid_request",
        "messages.0",
      ],
      [
        "an unknown mode",
        () => proxy.post(chat, body(), { "x-memory-mode": "sometimes" }),
        400,
        "invalid_request",
        "x-memory-mode",
      ],
      [
        "a budget that is none",
        () => proxy.post(chat, body(), { "x-memory-max-tokens": "-1" }),
        400,
        "invalid_request",
        "x-memory-max-tokens",
      ],
      [
        "an unknown scope",
        () => proxy.post(chat, body(), { "x-memory-scope": "world" }),
        400,
        "invalid_request",
        "x-memory-scope",
      ],
      [
        "an unknown encoding",
        () => proxy.post(chat, "{}", { "content-encoding": "compress" }),
        415,
        "unsupported_encoding",
      ],
      [
        "bytes that are not gzip",
        () => proxy.post(chat, "{}", { "content-encoding": "gzip" }),
        400,
        "invalid_request",
      ],
      [
        "a bomb",
        () => proxy.post(chat, zlib.gzipSync(Buffer.alloc(40 << 20)), { "content-encoding": "gzip" }),
        413,
        "body_too_large",
      ],
      ["more than 32 MiB", () => proxy.post(chat, Buffer.alloc((32 << 20) + 1, " ")), 413, "body_too_large"],
      ["no key", () => proxy.post(chat, body(), { authorization: "" }), 401, "invalid_api_key"],
      [
        "a wrong key",
        () => proxy.post(chat, body(), { authorization: "Bearer rk-wrong" }),
        401,
        "invalid_api_key",
      ],
      ["GET", () => proxy.get(chat), 405, "method_not_allowed"],
    ];
  test.each(
    cases.map(([name, send, status, code, param]) => [name, send, status, code, param ?? null] as const),
  )("%s", async (_name, send, status, code, param) => {
    const before = upstream.seen.length;
    const response = await send();
    const answer = (await response.json()) as { error: Record<string, unknown> };
    expect(response.status).toBe(status);
    expect(answer.error["code"]).toBe(code);
    expect(answer.error).toHaveProperty("details");
    if (param) expect(answer.error["param"]).toBe(param);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(upstream.seen.length).toBe(before);
  });

  test("a chunked body is counted while it is read", async () => {
    let sent = 0;
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1 << 20;
        controller.enqueue(new Uint8Array(1 << 20).fill(32));
        if (sent > 64 << 20) controller.close();
      },
    });
    const response = await proxy.post(chat, "", {}, {
      body: stream as unknown as string,
      duplex: "half",
    } as RequestInit);
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { code: "body_too_large" } });
  });
});

describe("answers reach the client untouched", () => {
  test("JSON, with request id and rate limits, for every Accept value", async () => {
    for (const accept of ["*/*", "text/event-stream", "application/json", ""]) {
      const response = await proxy.post(chat, body(), { accept });
      expect(response.headers.get("x-request-id")).toMatch(/^req_/);
      expect(response.headers.get("x-ratelimit-remaining-requests")).toBe("99");
      expect(response.headers.get("content-type")).toContain("application/json");
      expect(await response.json()).toMatchObject({
        object: "chat.completion",
        choices: [{ message: { content: "Noted." } }],
      });
    }
  });

  test("a stream byte by byte, however it was cut, without the usage chunk nobody asked for", async () => {
    const text = "Grüße 世界 👩‍💻";
    for (const pieces of [1, 3, 7, 1000]) {
      upstream.reply(() => ({ text, pieces }));
      const response = await proxy.post(chat, body({ stream: true }));
      expect(response.headers.get("cache-control")).toContain("no-transform");
      expect(response.headers.get("x-accel-buffering")).toBe("no");
      const got = await response.text();
      expect(got).not.toContain("prompt_tokens");
      expect(got.endsWith("data: [DONE]\n\n")).toBe(true);
      const content = got
        .split("\n\n")
        .filter((event) => event.startsWith("data: {"))
        .map(
          (event) =>
            (JSON.parse(event.slice(6)) as { choices: { delta: { content?: string } }[] }).choices[0]!.delta
              .content ?? "",
        )
        .join("");
      expect(content).toBe(text);
      expect(upstream.last().body["stream_options"]).toEqual({ include_usage: true });
    }
    const asked = await proxy.post(chat, body({ stream: true, stream_options: { include_usage: true } }));
    expect(await asked.text()).toContain('"choices":[],"usage":{"prompt_tokens"');
  });

  test("usage is the provider's, and estimated and marked where it says nothing", async () => {
    upstream.reply(() => ({ text: "one two three" }));
    const response = await proxy.post(chat, body({ stream: true, user: "usage" }));
    await response.text();
    await waitFor(
      () =>
        proxy.rows("SELECT 1 FROM usage WHERE ttft_ms IS NOT NULL AND tokens_in > 0 AND estimated = 0")
          .length > 0,
    );
    upstream.reply(() => ({ text: "one two three", usage: false }));
    const count = proxy.rows("SELECT 1 FROM usage WHERE estimated = 1").length;
    await (await proxy.post(chat, body())).text();
    await waitFor(
      () =>
        proxy.rows("SELECT 1 FROM usage WHERE estimated = 1 AND tokens_in > 0 AND tokens_out > 0").length >
        count,
    );
  });

  test("a provider that refuses stream_options is asked once and remembered", async () => {
    const old = await startUpstream({ streamOptions: false });
    proxy.providers.create({ id: "old", baseUrl: old.url });
    for (let i = 0; i < 2; i++) {
      const response = await proxy.post(chat, body({ model: "old/x", stream: true }));
      expect(response.status).toBe(200);
      expect(await response.text()).toContain("[DONE]");
    }
    expect(old.asked().map((one) => one.refused === null)).toEqual([false, true, true]);
    old.close();
  });

  test("tool call deltas pass as they come", async () => {
    upstream.reply(() => ({
      tools: [
        { id: "call_a", name: "f", arguments: '{"a":1}' },
        { id: "call_b", name: "g", arguments: "{}" },
      ],
    }));
    const text = await (await proxy.post(chat, body({ stream: true, tools: [] }))).text();
    expect(text).toContain('"id":"call_a"');
    expect(text).toContain('"finish_reason":"tool_calls"');
  });

  test("comments pass as comments, and comments sent as data are dropped", async () => {
    const frame = 'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n';
    upstream.reply(() => ({
      raw: [
        Buffer.from(
          `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: OPENROUTER PROCESSING\n\ndata: : keepalive\n\n${frame}data: [DONE]\n\n`,
        ),
      ],
    }));
    expect(await (await proxy.post(chat, body({ stream: true }))).text()).toBe(
      `: OPENROUTER PROCESSING\n\n${frame}data: [DONE]\n\n`,
    );
  });
});

describe("a provider that fails", () => {
  const started = () => performance.now();

  test("its error reaches the client: status, body, retry-after, rate limits", async () => {
    upstream.reply(() => ({
      status: 429,
      body: { error: { message: "Slow down", type: "requests", code: "rate_limit_exceeded" } },
      headers: { "retry-after": "30", "anthropic-ratelimit-requests-remaining": "0" },
    }));
    const response = await proxy.post(chat, body());
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("30");
    expect(response.headers.get("anthropic-ratelimit-requests-remaining")).toBe("0");
    expect(response.headers.get("access-control-expose-headers")).toContain(
      "anthropic-ratelimit-requests-remaining",
    );
    expect(await response.json()).toEqual({
      error: { message: "Slow down", type: "requests", code: "rate_limit_exceeded" },
    });
  });

  test("one without a body gets ours, status kept", async () => {
    upstream.reply(() => ({ status: 418, body: "" }));
    const response = await proxy.post(chat, body());
    expect(response.status).toBe(418);
    expect(await response.json()).toMatchObject({
      error: { type: "upstream_error", code: "upstream_failed" },
    });
  });

  test("408, 429 and 5xx are tried twice more, others not", async () => {
    for (const status of [408, 429, 500, 503]) {
      const before = upstream.asked().length;
      upstream.reply((_, count) => (count < 2 ? { status, headers: { "retry-after": "0" } } : "Back."));
      const response = await proxy.post(chat, body());
      expect(response.status).toBe(200);
      expect(upstream.asked().length - before).toBe(3);
    }
    for (const status of [400, 401, 403, 404, 422]) {
      const before = upstream.asked().length;
      upstream.reply(() => ({ status }));
      expect((await proxy.post(chat, body())).status).toBe(status);
      expect(upstream.asked().length - before).toBe(1);
    }
  });

  test("a fallback provider answers when the first cannot, with a body of its own", async () => {
    proxy.providers.change("m", { fallbacks: ["spare"] });
    upstream.reply(() => ({ status: 503, headers: { "retry-after": "0" } }));
    const response = await proxy.post(chat, body());
    expect(response.status).toBe(200);
    expect(spare.last().body["model"]).toBe("test-model");
    expect(spare.last().headers.authorization).toBeUndefined();
    proxy.providers.change("m", { fallbacks: [] });
  });

  test("nobody there: 502 in our shape at once, and no wait when it is back", async () => {
    proxy.providers.create({ id: "gone", baseUrl: "http://127.0.0.1:9/v1" });
    const from = started();
    const response = await proxy.post(chat, body({ model: "gone/x" }));
    expect(response.status).toBe(502);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ error: { type: "upstream_error", code: "upstream_failed" } });
    expect(text).not.toContain("127.0.0.1");
    expect(performance.now() - from).toBeLessThan(1000);
  });

  test("no first byte in time: 504", async () => {
    upstream.reply(() => ({ silent: true }));
    const response = await proxy.post(chat, body());
    expect(response.status).toBe(504);
    expect(await response.json()).toMatchObject({
      error: { type: "timeout_error", code: "upstream_timeout" },
    });
  });

  test("a JSON reply that breaks off or stalls is an error, not half a reply", async () => {
    upstream.reply(() => ({ text: "x".repeat(100), fault: { kind: "cut", after: 0 } }));
    expect((await proxy.post(chat, body())).status).toBe(502);
    upstream.reply(() => ({ text: "x".repeat(100), fault: { kind: "stall", after: 0 } }));
    expect((await proxy.post(chat, body())).status).toBe(504);
  });

  test.each(["cut", "stall", "end"] as const)(
    "a stream that it %ss ends with an error in the stream",
    async (kind) => {
      upstream.reply(() => ({ text: "a long enough reply", fault: { kind, after: 3 } }));
      const text = await (await proxy.post(chat, body({ stream: true }))).text();
      const events = text.trim().split("\n\n");
      expect(events.at(-1)).toBe("data: [DONE]");
      expect(JSON.parse(events.at(-2)!.slice(6))).toMatchObject({
        error: { code: kind === "stall" ? "upstream_timeout" : "upstream_failed" },
      });
      for (const event of events.slice(0, -1)) JSON.parse(event.slice(6));
    },
  );

  test("a cut inside an event leaves no half event", async () => {
    upstream.reply(() => ({
      raw: [
        Buffer.from(
          'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\ndata: {"choices":[]}\n\ndata: {"choi',
        ),
      ],
    }));
    const text = await (await proxy.post(chat, body({ stream: true }))).text();
    for (const event of text.trim().split("\n\n").slice(0, -1)) JSON.parse(event.slice(6));
  });

  test("a stream without [DONE] gets one when the reply was whole", async () => {
    upstream.reply(() => ({ text: "whole", done: false }));
    const text = await (await proxy.post(chat, body({ stream: true }))).text();
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(text).not.toContain("error");
  });

  test("an error of its own inside a stream passes as it is", async () => {
    upstream.reply(() => ({ text: "a long enough reply", fault: { kind: "error", after: 3 } }));
    const text = await (await proxy.post(chat, body({ stream: true }))).text();
    expect(text.match(/"error"/g)).toHaveLength(1);
    expect(text).toContain("The server had an error.");
  });

  test.each([
    ["endless headers", [Buffer.from("HTTP/1.1 200 OK\r\n"), Buffer.from("x: y\r\n".repeat(30_000))]],
    ["garbage", [Buffer.from("hello\r\n\r\n")]],
    ["a lying length", [Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}")]],
  ])("%s: 502", async (_name, raw) => {
    upstream.reply(() => ({ raw }));
    expect((await proxy.post(chat, body())).status).toBe(502);
  });

  test("it is gzip although we asked for none: passed on as it is", async () => {
    const packed = zlib.gzipSync(
      JSON.stringify({ choices: [{ index: 0, message: { content: "packed" }, finish_reason: "stop" }] }),
    );
    upstream.reply(() => ({
      raw: [
        Buffer.from(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${packed.length}\r\n\r\n`,
        ),
        packed,
      ],
    }));
    const response = await proxy.post(chat, body());
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: "packed" } }] });
  });
});

describe("the client leaves", () => {
  test("before the first byte and in the middle: the provider is told, and usage says 499", async () => {
    for (const plan of [
      { silent: true },
      { silent: true, json: true },
      { text: "x".repeat(4000), every: 5 },
    ]) {
      upstream.reply(() => plan);
      const before = upstream.asked().length;
      const leave = new AbortController();
      const stream = !("json" in plan);
      const request = proxy.post(chat, body({ stream }), {}, { signal: leave.signal });
      request.catch(() => {});
      await waitFor(() => upstream.asked().length > before);
      const one = upstream.last();
      if (!("silent" in plan)) {
        const reader = (await request).body!.getReader();
        await reader.read();
      }
      const left = proxy.rows("SELECT 1 FROM usage WHERE status = 499").length;
      leave.abort();
      await waitFor(() => one.aborted);
      await waitFor(() => proxy.rows("SELECT 1 FROM usage WHERE status = 499").length > left);
    }
  });
});

describe("browsers", () => {
  test("preflight needs no key and reflects what is asked", async () => {
    const response = await fetch(`${proxy.url}${chat}`, {
      method: "OPTIONS",
      headers: {
        origin: "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, x-stainless-os, x-stainless-retry-count",
      },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-headers")).toBe(
      "authorization, x-stainless-os, x-stainless-retry-count",
    );
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("access-control-allow-credentials")).toBeNull();
  });

  test("answers expose what memory says", async () => {
    const response = await proxy.post(chat, body(), { origin: "https://app.example" });
    for (const name of [
      "x-memory-injected",
      "x-memory-reason",
      "x-omniroute-session-id",
      "x-request-id",
      "retry-after",
    ]) {
      expect(response.headers.get("access-control-expose-headers")!.toLowerCase()).toContain(name);
    }
  });
});

test("models: all of them under provider/model, also while one is down", async () => {
  const listed = await startUpstream({
    models: [
      { id: "a", context_length: 8192 },
      { id: "b", object: "model", created: 5, owned_by: "x" },
    ],
  });
  proxy.providers.create({ id: "listed", baseUrl: listed.url });
  const list = async () =>
    (await (await proxy.get("/v1/models")).json()) as { object: string; data: Record<string, unknown>[] };
  const first = await list();
  expect(first.object).toBe("list");
  expect(first.data).toContainEqual({
    id: "listed/a",
    context_length: 8192,
    object: "model",
    created: 0,
    owned_by: "listed",
  });
  expect(first.data).toContainEqual({ id: "listed/b", object: "model", created: 5, owned_by: "x" });
  listed.close();
  expect((await list()).data.map((model) => model["id"])).toContain("listed/a");
  expect(await (await proxy.get("/v1/models/listed/b")).json()).toMatchObject({
    id: "listed/b",
    object: "model",
  });
  expect((await proxy.get("/v1/models/listed/nope")).status).toBe(404);
});

describe("the rest of /v1", () => {
  test("goes to the default provider as it is, both ways", async () => {
    const bytes = crypto.getRandomValues(new Uint8Array(50_000));
    const response = await proxy.post("/v1/audio/transcriptions?x=1", bytes, {
      "content-type": "multipart/form-data; boundary=x",
    });
    expect(upstream.last()).toMatchObject({ method: "POST", path: "/v1/audio/transcriptions?x=1" });
    expect(upstream.last().headers["content-type"]).toBe("multipart/form-data; boundary=x");
    expect(upstream.last().headers.authorization).toBe("Bearer sk-upstream-secret-key");
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
  });

  test("is a 404 that names the routes where there is no provider", async () => {
    const empty = await startProxy();
    const response = await empty.post("/v1/audio/speech", {});
    expect(response.status).toBe(404);
    expect(await response.text()).toContain("POST /v1/chat/completions");
    expect((await empty.post(chat, body())).status).toBe(503);
    await empty.stop();
  });

  test("with /v1 twice is a 404 that says so, and not the provider's affair", async () => {
    const before = upstream.seen.length;
    const response = await proxy.post("/v1/v1/chat/completions", body());
    expect(response.status).toBe(404);
    expect(await response.text()).toContain("the base URL of a client ends in /v1 once");
    expect(upstream.seen.length).toBe(before);
  });

  test("embeddings come in the asked form, whatever the provider sends", async () => {
    const vector = [0.25, -1, 3];
    const base64 = Buffer.from(new Float32Array(vector).buffer).toString("base64");
    for (const [given, asked, expected] of [
      [vector, "base64", base64],
      [base64, "float", vector],
      [base64, undefined, vector],
      [vector, undefined, vector],
    ] as const) {
      upstream.reply(() => ({
        status: 200,
        body: {
          object: "list",
          data: [{ object: "embedding", index: 0, embedding: given }],
          model: "e",
          usage: { prompt_tokens: 3, total_tokens: 3 },
        },
        headers: { "content-type": "application/json" },
      }));
      const response = await proxy.post("/v1/embeddings", {
        model: "m/e",
        input: ["a"],
        ...(asked ? { encoding_format: asked } : {}),
      });
      expect(await response.json()).toMatchObject({ data: [{ embedding: expected }] });
      expect(upstream.last().raw).toContain('"model":"e"');
    }
    const bad = await proxy.post("/v1/embeddings", { model: "m/e", input: "a", encoding_format: "hex" });
    expect(bad.status).toBe(400);
  });

  test("rerank goes to the model's provider", async () => {
    upstream.reply(() => ({
      status: 200,
      body: { results: [{ index: 0, relevance_score: 0.9 }] },
      headers: { "content-type": "application/json" },
    }));
    const response = await proxy.post("/v1/rerank", { model: "m/r", query: "q", documents: ["d"] });
    expect(await response.json()).toEqual({ results: [{ index: 0, relevance_score: 0.9 }] });
    expect(upstream.last()).toMatchObject({ path: "/v1/rerank" });
  });
});

test("what a provider's key may do is the key's scopes, models and limits", async () => {
  const call = (secret: string, model = "m/test-model") =>
    proxy.post(chat, body({ model }), { authorization: `Bearer ${secret}` });
  expect((await call(proxy.key({ scopes: ["read:memory"] }))).status).toBe(403);
  const listed = proxy.key({ models: ["m/allowed"] });
  expect((await call(listed, "m/allowed")).status).toBe(200);
  expect((await call(listed, "m/other")).status).toBe(403);
  const slow = proxy.key({ requestsPerMinute: 2 });
  expect([(await call(slow)).status, (await call(slow)).status]).toEqual([200, 200]);
  const third = await call(slow);
  expect(third.status).toBe(429);
  expect(Number(third.headers.get("retry-after"))).toBeGreaterThan(0);
  const poor = proxy.key({ tokensPerDay: 1 });
  expect((await call(poor)).status).toBe(200);
  await waitFor(
    () =>
      proxy.rows("SELECT 1 FROM usage WHERE key_id = (SELECT id FROM api_keys WHERE tokens_per_day = 1)")
        .length > 0,
  );
  expect((await call(poor)).status).toBe(429);
  expect((await proxy.post(chat, body(), { "x-api-key": proxy.secret, authorization: "" })).status).toBe(200);
});

test("cost stands in usage where the provider has prices", async () => {
  proxy.providers.change("m", { prices: { "test-model": { input: 2_000_000, output: 1_000_000 } } });
  upstream.reply(() => "done");
  await (await proxy.post(chat, body())).text();
  await waitFor(() => proxy.rows("SELECT 1 FROM usage WHERE cost IS NOT NULL").length > 0);
  const row = (await lastUsage()) as { tokens_in: number; tokens_out: number; cost: number };
  expect(row.cost).toBeCloseTo(row.tokens_in * 2 + row.tokens_out, 5);
});

test("a redirect is not followed and not passed on", async () => {
  upstream.reply(() => ({
    raw: [
      Buffer.from("HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n"),
    ],
  }));
  const response = await proxy.post(chat, body(), {}, { redirect: "manual" });
  expect(response.status).toBe(502);
  expect(response.headers.get("location")).toBeNull();
});

test.each([false, true])("a web page is no reply: 502 that says what to check, stream %p", async (stream) => {
  upstream.reply(() => ({
    raw: [
      Buffer.from("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 14\r\n\r\n<html></html>\n"),
    ],
  }));
  const response = await proxy.post(chat, body({ stream }));
  expect(response.status).toBe(502);
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  expect(error).toMatchObject({ code: "upstream_failed" });
  expect(error.message).toContain("check the base URL of m");
});

test("management's token never leaves, also where a provider passes credentials through", async () => {
  proxy.providers.create({ id: "through", baseUrl: spare.url, passthroughAuth: true });
  const response = await proxy.post(chat, body({ model: "through/x" }), {
    authorization: "Bearer test-management-token",
  });
  expect(response.status).toBe(200);
  expect(spare.last().headers.authorization).toBeUndefined();
});

test("a Studio cookie opens no route of /v1", async () => {
  const { secret } = await cookie();
  const response = await proxy.post(chat, body(), {
    authorization: "",
    cookie: `recollect_session=${secret}`,
  });
  expect(response.status).toBe(401);
});

async function cookie(): Promise<{ secret: string }> {
  const response = await fetch(`${proxy.url}/sign-in`, {
    method: "POST",
    redirect: "manual",
    headers: { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" },
    body: new URLSearchParams({ token: "test-management-token" }),
  });
  const secret = /recollect_session=([^;]+)/.exec(response.headers.get("set-cookie") ?? "")?.[1];
  expect(secret).toBeDefined();
  return { secret: secret! };
}

test("a session named in another script comes back percent-encoded", async () => {
  const response = await proxy.post(chat, body({ metadata: { session_id: "чат 1" } }));
  expect(response.status).toBe(200);
  expect(response.headers.get("x-omniroute-session-id")).toBe(encodeURIComponent("чат 1"));
});
