/** The clients that people use, unchanged, against the real server and a strict provider. The settings are those of docs/clients.md. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { z } from "zod";
import { startProxy } from "../support/proxy.ts";
import type { TestProxy } from "../support/proxy.ts";
import { startUpstream } from "../support/upstream.ts";
import type { MockUpstream } from "../support/upstream.ts";

let upstream: MockUpstream;
let proxy: TestProxy;
let secret: string;
const FACT = "I prefer TypeScript for new services.";
const ASK = "What do I prefer for new services?";

beforeAll(async () => {
  upstream = await startUpstream({ models: [{ id: "x", object: "model", created: 1, owned_by: "mock" }] });
  proxy = await startProxy({
    providers: [
      { id: "m", baseUrl: upstream.url, wire: ["chat", "responses", "messages"], systemRole: "system" },
    ],
  });
});
afterAll(async () => {
  await proxy.stop();
  upstream.close();
});
beforeEach(() => {
  upstream.reply((seen) => (seen.raw.includes("Memory context:") ? "I remember." : "Noted."));
  secret = proxy.key();
});
/** What a promise rejects with. The SDKs' promises are thenables of their own, which `rejects` does not wait for. */
async function failure(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return null;
}
const other = () => proxy.key();
const recalled = () =>
  upstream.last().raw.includes("TypeScript") && upstream.last().raw.includes("Memory context:");

describe("openai", () => {
  const client = (apiKey = secret) => new OpenAI({ baseURL: proxy.v1, apiKey, maxRetries: 0 });

  test("chat completions: learn, recall next turn, in another session, never with another key", async () => {
    const talk: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: FACT }];
    const first = await client().chat.completions.create({ model: "m/x", messages: talk });
    expect(first.choices[0]!.message.content).toBe("Noted.");
    await proxy.settled();
    talk.push(first.choices[0]!.message, { role: "user", content: ASK });
    const second = await client().chat.completions.create({ model: "m/x", messages: talk });
    expect(second.choices[0]!.message.content).toBe("I remember.");
    expect(recalled()).toBe(true);
    await client().chat.completions.create({ model: "m/x", messages: [{ role: "user", content: ASK }] });
    expect(recalled()).toBe(true);
    const stranger = await client(other()).chat.completions.create({
      model: "m/x",
      messages: [{ role: "user", content: ASK }],
    });
    expect(stranger.choices[0]!.message.content).toBe("Noted.");
    expect(upstream.last().raw).not.toContain("TypeScript");
  });

  test("streams, with and without usage, and the client's own helpers", async () => {
    upstream.reply(() => "Grüße an alle 👋");
    const plain = await client().chat.completions.create({
      model: "m/x",
      stream: true,
      messages: [{ role: "user", content: FACT }],
    });
    let text = "";
    for await (const chunk of plain) {
      expect(chunk.usage ?? null).toBeNull();
      text += chunk.choices[0]!.delta.content ?? "";
    }
    expect(text).toBe("Grüße an alle 👋");
    const counted = client().chat.completions.stream({
      model: "m/x",
      messages: [{ role: "user", content: "hi" }],
      stream_options: { include_usage: true },
    });
    expect((await counted.totalUsage()).prompt_tokens).toBeGreaterThan(0);
    expect(await counted.finalContent()).toBe("Grüße an alle 👋");
  });

  test("runs tools in a loop, as one exchange", async () => {
    upstream.reply((_, count) =>
      count < 2
        ? { tools: [{ id: `call_${count}`, name: "weather", arguments: '{"city":"Turku"}' }] }
        : "Sunny.",
    );
    const runner = client().chat.completions.runTools({
      model: "m/x",
      stream: true,
      messages: [{ role: "user", content: "How is the weather in Turku?" }],
      tools: [
        {
          type: "function",
          function: {
            name: "weather",
            description: "weather",
            parameters: { type: "object", properties: {} },
            function: async () => "sun",
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe("Sunny.");
    await proxy.settled();
    const rows = proxy.rows<{ ai_response: string }>(
      "SELECT ai_response FROM episodes WHERE user_message LIKE '%Turku%'",
    );
    expect(rows).toEqual([{ ai_response: "Sunny." }]);
  });

  test("a stream that breaks throws, an error keeps its class", async () => {
    upstream.reply(() => ({ text: "a long enough reply", fault: { kind: "cut", after: 3 } }));
    const stream = await client().chat.completions.create({
      model: "m/x",
      stream: true,
      messages: [{ role: "user", content: "hi" }],
    });
    expect(
      String(
        await failure(
          (async () => {
            for await (const chunk of stream) void chunk;
          })(),
        ),
      ),
    ).toMatch(/closed the connection|before the reply/);
    upstream.reply(() => ({
      status: 429,
      body: { error: { message: "Slow down" } },
      headers: { "retry-after": "20" },
    }));
    expect(
      await failure(
        client().chat.completions.create({ model: "m/x", messages: [{ role: "user", content: "hi" }] }),
      ),
    ).toBeInstanceOf(OpenAI.RateLimitError);
    expect(
      await failure(new OpenAI({ baseURL: proxy.v1, apiKey: "rk-wrong", maxRetries: 0 }).models.list()),
    ).toBeInstanceOf(OpenAI.AuthenticationError);
  });

  test("responses: JSON, stream, tools, chain", async () => {
    const first = await client().responses.create({ model: "m/x", input: FACT });
    expect(first.output_text).toBe("Noted.");
    await proxy.settled();
    const second = await client().responses.create({
      model: "m/x",
      input: ASK,
      previous_response_id: first.id,
    });
    expect(second.output_text).toBe("I remember.");
    upstream.reply(() => ({ tools: [{ id: "call_a", name: "weather", arguments: '{"city":"Turku"}' }] }));
    const stream = client().responses.stream({ model: "m/x", input: "Weather?" });
    const final = await stream.finalResponse();
    expect(final.output[0]).toMatchObject({ type: "function_call", name: "weather", call_id: "call_a" });
    upstream.reply(() => ({ text: "a long enough reply", fault: { kind: "cut", after: 6 } }));
    const events: string[] = [];
    for await (const event of await client().responses.create({ model: "m/x", input: "hi", stream: true }))
      events.push(event.type);
    expect(events.at(-1)).toBe("response.failed");
  });

  test("models and embeddings", async () => {
    const ids = [];
    for await (const model of client().models.list()) ids.push(model.id);
    expect(ids).toContain("m/x");
    expect((await client().models.retrieve("m/x")).object).toBe("model");
    const floats = [0.5, -0.25, 1];
    upstream.reply(() => ({
      status: 200,
      headers: { "content-type": "application/json" },
      body: {
        object: "list",
        model: "e",
        data: [{ object: "embedding", index: 0, embedding: floats }],
        usage: { prompt_tokens: 1, total_tokens: 1 },
      },
    }));
    expect((await client().embeddings.create({ model: "m/e", input: "a" })).data[0]!.embedding).toEqual(
      floats,
    );
    expect(
      (await client().embeddings.create({ model: "m/e", input: ["a"], encoding_format: "float" })).data[0]!
        .embedding,
    ).toEqual(floats);
  });
});

describe("@anthropic-ai/sdk", () => {
  const client = (apiKey = secret) => new Anthropic({ baseURL: proxy.url, apiKey, maxRetries: 0 });

  test("messages: learn, recall, another key never; stream, tools, count", async () => {
    const talk: Anthropic.MessageParam[] = [{ role: "user", content: FACT }];
    const first = await client().messages.create({ model: "m/x", max_tokens: 50, messages: talk });
    expect(first.content).toMatchObject([{ type: "text", text: "Noted." }]);
    await proxy.settled();
    talk.push({ role: "assistant", content: first.content }, { role: "user", content: ASK });
    const stream = client().messages.stream({ model: "m/x", max_tokens: 50, messages: talk });
    expect(await stream.finalText()).toBe("I remember.");
    expect(recalled()).toBe(true);
    const stranger = await client(other()).messages.create({
      model: "m/x",
      max_tokens: 50,
      messages: [{ role: "user", content: ASK }],
    });
    expect(stranger.content).toMatchObject([{ text: "Noted." }]);
    const counted = await client().messages.countTokens({
      model: "m/x",
      messages: [{ role: "user", content: ASK }],
    });
    expect(counted.input_tokens).toBeGreaterThan(20);
    upstream.reply(() => ({
      text: "Let me see.",
      tools: [{ id: "toolu_a", name: "weather", arguments: '{"city":"Turku"}' }],
    }));
    const tools = client().messages.stream({
      model: "m/x",
      max_tokens: 50,
      messages: [{ role: "user", content: "Weather?" }],
      tools: [{ name: "weather", input_schema: { type: "object" } }],
    });
    expect((await tools.finalMessage()).content[1]).toMatchObject({
      type: "tool_use",
      name: "weather",
      input: { city: "Turku" },
    });
  });

  test("errors keep their class, a broken stream throws", async () => {
    expect(
      await failure(
        client("rk-wrong").messages.create({
          model: "m/x",
          max_tokens: 5,
          messages: [{ role: "user", content: "hi" }],
        }),
      ),
    ).toBeInstanceOf(Anthropic.AuthenticationError);
    upstream.reply(() => ({
      status: 529,
      body: { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
      headers: { "retry-after": "20" },
    }));
    expect(
      String(
        await failure(
          client().messages.create({
            model: "m/x",
            max_tokens: 5,
            messages: [{ role: "user", content: "hi" }],
          }),
        ),
      ),
    ).toMatch(/Overloaded/);
    upstream.reply(() => ({ text: "a long enough reply", fault: { kind: "cut", after: 5 } }));
    expect(
      String(
        await failure(
          client()
            .messages.stream({ model: "m/x", max_tokens: 5, messages: [{ role: "user", content: "hi" }] })
            .finalText(),
        ),
      ),
    ).toMatch(/./);
  });
});

describe("Vercel AI SDK", () => {
  const kinds = {
    "openai() over responses": () => createOpenAI({ baseURL: proxy.v1, apiKey: secret })("m/x"),
    "openai() over chat": () => createOpenAI({ baseURL: proxy.v1, apiKey: secret }).chat("m/x"),
    "createOpenAICompatible()": () =>
      createOpenAICompatible({ name: "recollect", baseURL: proxy.v1, apiKey: secret, includeUsage: true })(
        "m/x",
      ),
  };
  test.each(Object.entries(kinds))("%s: learn, recall, stream, tools", async (_name, model) => {
    upstream.rules.developer = true;
    expect((await generateText({ model: model(), prompt: FACT, maxRetries: 0 })).text).toBe("Noted.");
    await proxy.settled();
    const stream = streamText({ model: model(), prompt: ASK, maxRetries: 0 });
    let text = "";
    for await (const piece of stream.textStream) text += piece;
    expect(text).toBe("I remember.");
    expect(recalled()).toBe(true);
    expect((await stream.usage).inputTokens).toBeGreaterThan(0);
    upstream.reply((_, count) =>
      count === 0
        ? { tools: [{ id: "call_1", name: "weather", arguments: '{"city":"Turku"}' }] }
        : "Sunny there.",
    );
    const looped = await generateText({
      model: model(),
      prompt: "Weather in Turku, please?",
      maxRetries: 0,
      stopWhen: stepCountIs(3),
      tools: {
        weather: tool({
          description: "weather",
          inputSchema: z.object({ city: z.string() }),
          execute: async () => "sun",
        }),
      },
    });
    expect(looped.text).toBe("Sunny there.");
    await proxy.settled();
    const mine = proxy.rows<{ ai_response: string }>(
      "SELECT ai_response FROM episodes e JOIN owners o ON o.id = e.owner_id WHERE user_message LIKE 'Weather in Turku%' AND o.name = (SELECT id FROM api_keys WHERE prefix = ?)",
      `${secret.slice(0, 7)}…`,
    );
    expect(mine).toEqual([{ ai_response: "Sunny there." }]);
  });
});

test("1,000 parallel streams arrive whole", async () => {
  const text = "word ".repeat(60);
  upstream.reply((seen) => ({
    text: `${String((seen.body["messages"] as { content: string }[]).at(-1)!.content)} ${text}`,
    every: 1,
  }));
  proxy.settings({ injectEpisodes: false });
  const replies = await Promise.all(
    Array.from({ length: 1000 }, async (_, at) => {
      const response = await fetch(`${proxy.v1}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "m/x",
          stream: true,
          messages: [{ role: "user", content: `stream ${at}` }],
        }),
      });
      const body = await response.text();
      if (!body.endsWith("data: [DONE]\n\n")) return null;
      return body
        .split("\n\n")
        .filter((event) => event.startsWith("data: {"))
        .map(
          (event) =>
            (JSON.parse(event.slice(6)) as { choices: { delta: { content?: string } }[] }).choices[0]!.delta
              .content ?? "",
        )
        .join("");
    }),
  );
  expect(replies.filter((reply, at) => reply === `stream ${at} ${text}`)).toHaveLength(1000);
  await proxy.settled();
  expect(
    proxy.rows("SELECT 1 FROM episodes WHERE user_message LIKE 'stream %' AND complete = 1"),
  ).toHaveLength(1000);
}, 60_000);
