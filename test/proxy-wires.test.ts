import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import zlib from "node:zlib";
import { startProxy, waitFor } from "./support/proxy.ts";
import type { TestProxy } from "./support/proxy.ts";
import { startUpstream } from "./support/upstream.ts";
import type { MockUpstream } from "./support/upstream.ts";

let upstream: MockUpstream;
let proxy: TestProxy;
let secret: string;
type Json = Record<string, unknown>;

beforeAll(async () => {
  upstream = await startUpstream({ key: "sk-ant-upstream-secret" });
  proxy = await startProxy({
    providers: [
      {
        id: "m",
        baseUrl: upstream.url,
        apiKey: "sk-ant-upstream-secret",
        wire: ["chat", "responses", "messages"],
        systemRole: "system",
        timeouts: { idleMs: 300, firstByteMs: 2000 },
      },
      { id: "chatonly", baseUrl: upstream.url },
    ],
  });
});
afterAll(async () => {
  await proxy.stop();
  upstream.close();
});
beforeEach(() => {
  upstream.reply(undefined);
  secret = proxy.key();
});

const post = (path: string, body: Json, headers: Record<string, string> = {}) =>
  proxy.post(path, body, { authorization: `Bearer ${secret}`, ...headers });
const responses = (body: Json, headers?: Record<string, string>) =>
  post("/v1/responses", { model: "m/x", ...body }, headers);
const messages = (body: Json, headers?: Record<string, string>) =>
  post("/v1/messages", { model: "m/x", max_tokens: 100, ...body }, headers);
const teach = async (text: string) => {
  await (
    await post("/v1/chat/completions", { model: "m/x", messages: [{ role: "user", content: text }] })
  ).text();
  await proxy.settled();
};
const owner = () =>
  proxy.rows<{ id: string }>("SELECT id FROM api_keys WHERE prefix = ?", `${secret.slice(0, 7)}…`)[0]!.id;
const episodes = () =>
  proxy.rows<{
    user_message: string;
    ai_response: string;
    complete: number;
    metadata: string;
    session_id: number;
  }>("SELECT e.* FROM episodes e JOIN owners o ON o.id = e.owner_id WHERE o.name = ? ORDER BY e.id", owner());
const sent = () => upstream.last().body;
const ASK = "What do I prefer for new services?";

describe("responses", () => {
  test("remember, JSON and stream, string and items", async () => {
    await teach("I prefer TypeScript for new services.");
    const first = await responses({ input: ASK });
    expect(Number(first.headers.get("x-memory-injected"))).toBeGreaterThan(0);
    expect(await first.json()).toMatchObject({ object: "response", status: "completed" });
    expect(sent()["input"]).toEqual([
      { role: "system", content: expect.stringMatching(/^Memory context:/) },
      { role: "user", content: ASK },
    ]);
    upstream.reply(() => "TypeScript it is.");
    const stream = await responses({
      input: [{ role: "user", content: [{ type: "input_text", text: ASK }] }],
      stream: true,
    });
    const text = await stream.text();
    expect(text).toContain("event: response.completed");
    expect(JSON.stringify(sent()["input"])).toContain("Memory context:");
    await proxy.settled();
    expect(episodes().at(-1)).toMatchObject({
      user_message: ASK,
      ai_response: "TypeScript it is.",
      complete: 1,
    });
    await waitFor(
      () =>
        proxy.rows("SELECT 1 FROM usage WHERE route = 'responses' AND tokens_in > 0 AND estimated = 0")
          .length === 2,
    );
  });

  test("a chain over previous_response_id: only what was not given yet, one session, a tool loop is one exchange", async () => {
    await teach("I prefer TypeScript for new services.");
    const before = episodes().length;
    const first = await responses({ input: ASK });
    const { id } = (await first.json()) as { id: string };
    const session = first.headers.get("x-omniroute-session-id");
    upstream.reply(() => ({ tools: [{ id: "call_1", name: "f", arguments: "{}" }] }));
    const second = await responses({ input: `${ASK} Look it up.`, previous_response_id: id });
    expect(second.headers.get("x-omniroute-session-id")).toBe(session);
    expect(JSON.stringify(sent()["input"])).not.toContain("Prefers TypeScript");
    const step = (await second.json()) as { id: string };
    upstream.reply(() => "Looked up.");
    const third = await responses({
      input: [{ type: "function_call_output", call_id: "call_1", output: "x" }],
      previous_response_id: step.id,
    });
    expect(third.headers.get("x-omniroute-session-id")).toBe(session);
    await third.text();
    await proxy.settled();
    const added = episodes().slice(before);
    expect(added.map((one) => [one.user_message, one.ai_response])).toEqual([
      [ASK, "Noted."],
      [`${ASK} Look it up.`, "Looked up."],
    ]);
    expect(JSON.parse(added[1]!.metadata)).toMatchObject({ toolCalls: 1 });
  });

  test("a conversation that the provider keeps is one session", async () => {
    const a = await responses({ input: "hello", conversation: "conv_1" });
    const b = await responses({ input: "again", conversation: { id: "conv_1" } });
    expect(a.headers.get("x-omniroute-session-id")).toBe(b.headers.get("x-omniroute-session-id"));
  });

  test.each(["cut", "stall", "end"] as const)(
    "a stream that is %s ends with response.failed",
    async (kind) => {
      upstream.reply(() => ({ text: "a long enough reply", fault: { kind, after: 6 } }));
      const text = await (await responses({ input: "I prefer mint.", stream: true })).text();
      const last = text.trim().split("\n\n").at(-1)!;
      expect(last).toStartWith("event: response.failed\ndata: ");
      const data = JSON.parse(last.split("\ndata: ")[1]!) as {
        response: { id: string; status: string; error: Json };
      };
      expect(data.response).toMatchObject({ status: "failed", error: { code: "server_error" } });
      expect(text).toContain(data.response.id);
      await waitFor(() => episodes().length === 1);
      await proxy.settled();
      expect(proxy.rows("SELECT 1 FROM memories WHERE content LIKE '%mint%'")).toEqual([]);
    },
  );

  test("zstd bodies as Codex sends them", async () => {
    const body = JSON.stringify({
      model: "m/x",
      instructions: "You are a coding agent.",
      input: [
        {
          type: "message",
          role: "user",
          content: [
            { type: "input_text", text: "<environment_context>\n  <cwd>/src</cwd>\n</environment_context>" },
          ],
        },
        { type: "message", role: "user", content: [{ type: "input_text", text: "I prefer small commits." }] },
      ],
      tools: [],
      tool_choice: "auto",
      parallel_tool_calls: false,
      reasoning: { effort: "medium", summary: "auto" },
      store: false,
      stream: true,
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: "0199-codex",
    });
    const response = await proxy.post("/v1/responses", zlib.zstdCompressSync(body), {
      authorization: `Bearer ${secret}`,
      "content-encoding": "zstd",
      accept: "text/event-stream",
      session_id: "0199-codex",
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("response.completed");
    expect(response.headers.get("x-omniroute-session-id")).toBe("0199-codex");
    await proxy.settled();
    expect(episodes()).toMatchObject([{ user_message: "I prefer small commits." }]);
    expect(sent()["include"]).toEqual(["reasoning.encrypted_content"]);
  });
});

describe("messages", () => {
  const headers = { "anthropic-version": "2023-06-01", "anthropic-beta": "prompt-caching-2024-07-31" };

  test("remember, JSON and stream; x-api-key; anthropic headers go through", async () => {
    await teach("I prefer TypeScript for new services.");
    const response = await proxy.post(
      "/v1/messages?beta=true",
      { model: "m/x", max_tokens: 100, messages: [{ role: "user", content: ASK }] },
      {
        ...headers,
        authorization: "",
        "x-api-key": secret,
      },
    );
    expect(response.status).toBe(200);
    expect(Number(response.headers.get("x-memory-injected"))).toBeGreaterThan(0);
    expect(await response.json()).toMatchObject({ type: "message", role: "assistant" });
    expect((sent()["messages"] as { content: string }[])[0]!.content).toMatch(
      /^Memory context:[\s\S]*TypeScript[\s\S]*\n\nWhat do I prefer/,
    );
    expect(upstream.last().headers).toMatchObject({
      "x-api-key": "sk-ant-upstream-secret",
      "anthropic-beta": "prompt-caching-2024-07-31",
      "anthropic-version": "2023-06-01",
    });
    expect(upstream.last().path).toBe("/v1/messages?beta=true");
    expect(JSON.stringify(upstream.last().headers)).not.toContain(secret);
    upstream.reply(() => "TypeScript.");
    const text = await (await messages({ messages: [{ role: "user", content: ASK }], stream: true })).text();
    expect(text).toContain("event: message_stop");
    await proxy.settled();
    expect(episodes().at(-1)).toMatchObject({ ai_response: "TypeScript.", complete: 1 });
  });

  test("turns, tool loops and marks in Claude Code's shape keep their prefix", async () => {
    await teach("I prefer TypeScript for new services.");
    const mark = { cache_control: { type: "ephemeral" } };
    const clean = (list: Json[]) =>
      JSON.stringify(list).replaceAll(',"cache_control":{"type":"ephemeral"}', "");
    const system = [{ type: "text", text: "You are Claude Code.", ...mark }];
    const reminder = { type: "text", text: "<system-reminder>\nContext\n</system-reminder>" };
    const talk: Json[] = [{ role: "user", content: [reminder, { type: "text", text: ASK, ...mark }] }];
    upstream.reply(() => ({
      text: "Let me look.",
      tools: [{ id: "toolu_1", name: "Read", arguments: "{}" }],
    }));
    const first = await messages(
      { system, messages: talk, metadata: { user_id: "user_x_session_y" } },
      headers,
    );
    const { content } = (await first.json()) as { content: Json[] };
    await proxy.settled();
    const one = sent()["messages"] as Json[];
    const firstContent = one[0]!["content"] as Json[];
    expect(firstContent.map((part) => String(part["text"]).slice(0, 15))).toContain("Memory context:");
    expect(firstContent.at(-1)).toEqual({ type: "text", text: ASK, ...mark });
    talk[0] = { role: "user", content: [reminder, { type: "text", text: ASK }] };
    talk.push(
      { role: "assistant", content },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "I prefer Java", ...mark }],
      },
    );
    upstream.reply(() => "TypeScript.");
    const second = await messages({ system, messages: talk }, headers);
    await second.text();
    await proxy.settled();
    const two = sent()["messages"] as Json[];
    expect(clean(two.slice(0, 1))).toBe(clean(one));
    expect(JSON.stringify(two).match(/Memory context:/g)).toHaveLength(1);
    expect(second.headers.get("x-omniroute-session-id")).toBe(first.headers.get("x-omniroute-session-id"));
    expect(episodes().slice(1)).toMatchObject([{ ai_response: "TypeScript." }]);
    expect(proxy.rows("SELECT 1 FROM memories WHERE content LIKE '%Java%'")).toEqual([]);
    talk.push(
      { role: "assistant", content: [{ type: "text", text: "TypeScript." }] },
      { role: "user", content: [{ type: "text", text: "thanks", ...mark }] },
    );
    await (await messages({ system, messages: talk }, headers)).text();
    const three = sent()["messages"] as Json[];
    expect(clean(three.slice(0, two.length))).toBe(clean(two));
  });

  test("count_tokens injects and records nothing", async () => {
    await teach("I prefer TypeScript for new services.");
    const before = [
      episodes().length,
      proxy.rows("SELECT 1 FROM receipts").length,
      proxy.rows("SELECT 1 FROM blocks").length,
    ];
    const response = await post("/v1/messages/count_tokens", {
      model: "m/x",
      messages: [{ role: "user", content: ASK }],
    });
    expect(await response.json()).toEqual({ input_tokens: expect.any(Number) });
    expect(upstream.last()).toMatchObject({ path: "/v1/messages/count_tokens" });
    expect(upstream.last().raw).toContain("Memory context:");
    await proxy.settled();
    expect([
      episodes().length,
      proxy.rows("SELECT 1 FROM receipts").length,
      proxy.rows("SELECT 1 FROM blocks").length,
    ]).toEqual(before);
  });

  test.each(["cut", "stall", "end"] as const)(
    "a stream that is %s ends with an error event",
    async (kind) => {
      upstream.reply(() => ({ text: "a long enough reply", fault: { kind, after: 5 } }));
      const text = await (
        await messages({ messages: [{ role: "user", content: "hi" }], stream: true })
      ).text();
      const last = text.trim().split("\n\n").at(-1)!;
      expect(last).toStartWith("event: error\ndata: ");
      expect(JSON.parse(last.split("\ndata: ")[1]!)).toMatchObject({
        type: "error",
        error: { type: kind === "stall" ? "timeout_error" : "api_error" },
      });
    },
  );

  test("errors have Anthropic's shape, also before a provider is asked", async () => {
    const cases: [Response, number, string][] = [
      [await proxy.post("/v1/messages", {}, { authorization: "" }), 401, "authentication_error"],
      [
        await proxy.post("/v1/messages", {}, { authorization: "", "x-api-key": "rk-nope" }),
        401,
        "authentication_error",
      ],
      [await post("/v1/messages", { messages: [] }), 400, "invalid_request_error"],
      [await post("/v1/messages", { model: "m/x" }), 400, "invalid_request_error"],
      [
        await proxy.post("/v1/messages", Buffer.alloc((32 << 20) + 1, " "), {
          authorization: `Bearer ${secret}`,
        }),
        413,
        "request_too_large",
      ],
      [await proxy.get("/v1/messages"), 405, "invalid_request_error"],
    ];
    for (const [response, status, type] of cases) {
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({
        type: "error",
        error: { type, message: expect.any(String) },
      });
    }
  });
});

test("a provider that does not speak the format: 400 that names what to set", async () => {
  const response = await post("/v1/messages", {
    model: "chatonly/x",
    max_tokens: 5,
    messages: [{ role: "user", content: "hi" }],
  });
  expect(response.status).toBe(400);
  const { error } = (await response.json()) as { error: { message: string; code: string } };
  expect(error.code).toBe("wire_not_supported");
  expect(error.message).toMatch(/chatonly.*messages.*wire/s);
});

test("Open WebUI's requests: chat id as session, its own calls left alone", async () => {
  const headers = { "x-openwebui-chat-id": "chat-1", "x-openwebui-user-id": "u" };
  const body = {
    model: "m/x",
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "user", content: "I prefer tea." }],
  };
  const response = await post("/v1/chat/completions", body, headers);
  expect(response.headers.get("x-omniroute-session-id")).toBe("chat-1");
  await response.text();
  for (const task of [
    "Generate a concise, 3-5 word title with an emoji summarizing the chat history.",
    "Generate 1-3 broad tags categorizing the main themes of the chat history",
    "Suggest 3-5 relevant follow-up questions or prompts",
  ]) {
    const call = await post(
      "/v1/chat/completions",
      {
        model: "m/x",
        stream: false,
        max_completion_tokens: 1000,
        messages: [
          { role: "user", content: `### Task:\n${task}\n<chat_history>USER: I prefer tea.</chat_history>` },
        ],
      },
      headers,
    );
    expect(call.headers.get("x-memory-reason")).toBe("housekeeping");
    await call.text();
  }
  await proxy.settled();
  expect(episodes()).toHaveLength(1);
});
