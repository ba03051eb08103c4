import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readChatgpt } from "../src/importers/chatgpt.ts";
import { readClaude } from "../src/importers/claude.ts";
import { jsonItems } from "../src/importers/json-items.ts";
import { readMem0 } from "../src/importers/mem0.ts";
import { readOmniroute } from "../src/importers/omniroute.ts";
import { formats, readExport } from "../src/importers/read.ts";
import { importLine } from "../src/schemas/import.ts";

/** A stream of these bytes, cut wherever `cut` says. */
function stream(text: string, cut = 7): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + cut));
      at += cut;
    },
  });
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe("pieces of a JSON document", () => {
  test("an array's elements, a list in an object, lines: whatever their text, however the bytes are cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue(), { maxLength: 8 }),
        fc.integer({ min: 1, max: 40 }),
        fc.boolean(),
        async (values, cut, pretty) => {
          const space = pretty ? 2 : 0;
          const expected = values.map((value) => ({ value: JSON.parse(JSON.stringify(value)) as unknown }));
          expect(await all(jsonItems(stream(JSON.stringify(values, null, space), cut)))).toEqual(expected);
          expect(await all(jsonItems(stream(JSON.stringify({ count: 1, results: values }), cut)))).toEqual(
            expected,
          );
        },
      ),
      { numRuns: 60 },
    );
    expect(await all(jsonItems(stream('{"a":1}\n{"a":"}"}\n')))).toEqual([
      { value: { a: 1 } },
      { value: { a: "}" } },
    ]);
  });

  test("what is broken or cut off is said, and what came before it is there", async () => {
    expect(await all(jsonItems(stream('[{"a":1},{"a":')))).toEqual([
      { value: { a: 1 } },
      { problem: "is cut off" },
    ]);
    expect(await all(jsonItems(stream('[{"a":1},{a},{"a":2}]')))).toEqual([
      { value: { a: 1 } },
      { problem: "is not valid JSON" },
      { value: { a: 2 } },
    ]);
    expect(await all(jsonItems(stream("nonsense")))).toEqual([{ problem: "is not valid JSON" }]);
    expect(await all(jsonItems(stream("")))).toEqual([]);
  });
});

const node = (id: string, parent: string | null, role: string, text: string, more: object = {}) => ({
  id,
  parent,
  children: [],
  message: {
    id: `m-${id}`,
    author: { role },
    create_time: 1_700_000_000,
    content: { content_type: "text", parts: [text] },
    recipient: "all",
    ...more,
  },
});

describe("ChatGPT", () => {
  const conversation = {
    title: "Trip",
    create_time: 1_700_000_000.5,
    conversation_id: "c-1",
    current_node: "e",
    mapping: {
      root: { id: "root", parent: null, children: ["a"], message: null },
      a: node("a", "root", "system", "hidden rules"),
      b: node("b", "a", "user", "Where to?"),
      other: node("other", "b", "assistant", "An answer that was regenerated"),
      c: node("c", "b", "assistant", "search(…)", { recipient: "web" }),
      t: node("t", "c", "tool", "ten results"),
      d: node("d", "t", "assistant", "To Lapland."),
      e: node("e", "d", "user", "When?"),
    },
  };

  test("the branch that was seen last becomes exchanges; system, tools and dropped branches do not", () => {
    expect(readChatgpt(conversation)).toEqual([
      {
        kind: "session",
        externalId: "chatgpt:c-1",
        metadata: { source: "chatgpt", title: "Trip" },
        createdAt: "2023-11-14T22:13:20.500Z",
      },
      {
        kind: "episode",
        externalId: "chatgpt:c-1",
        importId: "chatgpt:m-b",
        userMessage: "Where to?",
        aiResponse: "To Lapland.",
        createdAt: "2023-11-14T22:13:20.000Z",
      },
      {
        kind: "episode",
        externalId: "chatgpt:c-1",
        importId: "chatgpt:m-e",
        userMessage: "When?",
        aiResponse: "",
        createdAt: "2023-11-14T22:13:20.000Z",
      },
    ]);
  });

  test("a tree that runs in a circle ends", () => {
    const circle = {
      id: "x",
      mapping: { a: node("a", "b", "user", "hello"), b: node("b", "a", "assistant", "hi") },
      current_node: "a",
    };
    expect(Array.isArray(readChatgpt(circle))).toBe(true);
  });
});

test("Claude: human and assistant in turn, the text of blocks and not their tools", () => {
  const lines = readClaude({
    uuid: "u-1",
    name: "Boat",
    created_at: "2025-01-02T03:04:05Z",
    chat_messages: [
      { uuid: "1", sender: "human", text: "Which varnish?", created_at: "2025-01-02T03:04:06Z" },
      {
        uuid: "2",
        sender: "assistant",
        text: "flattened",
        content: [
          { type: "thinking", thinking: "hm" },
          { type: "tool_use", name: "search", input: {} },
          { type: "text", text: "Spar varnish." },
        ],
      },
    ],
  });
  expect(lines).toEqual([
    {
      kind: "session",
      externalId: "claude:u-1",
      metadata: { source: "claude", title: "Boat" },
      createdAt: "2025-01-02T03:04:05.000Z",
    },
    {
      kind: "episode",
      externalId: "claude:u-1",
      importId: "claude:1",
      userMessage: "Which varnish?",
      aiResponse: "Spar varnish.",
      createdAt: "2025-01-02T03:04:06.000Z",
    },
  ]);
});

test("mem0 and OmniRoute: ids stay, owners are named, times of any form are ISO", () => {
  const id = "0b1f3c52-7d0a-4d0e-9b0c-111111111111";
  expect(
    readMem0({
      id,
      memory: "Plays chess",
      user_id: "ann",
      metadata: { mood: "calm" },
      created_at: "2025-05-01T00:00:00-07:00",
    }),
  ).toEqual([
    {
      kind: "memory",
      id,
      content: "Plays chess",
      metadata: { mood: "calm", source: "mem0", user_id: "ann" },
      createdAt: "2025-05-01T07:00:00.000Z",
    },
  ]);
  expect(
    readOmniroute({
      id,
      api_key_id: "k1",
      type: "episodic",
      key: "decision:x",
      content: "Chose X",
      metadata: '{"a":1}',
      created_at: "2025-05-01 10:00:00",
      expires_at: null,
    }),
  ).toEqual({
    owner: "k1",
    lines: [
      {
        kind: "memory",
        id,
        key: "decision:x",
        type: "episodic",
        content: "Chose X",
        metadata: { a: 1 },
        createdAt: "2025-05-01T10:00:00.000Z",
      },
    ],
  });
});

test.each(formats)(
  "%s: whatever the pieces are, each becomes valid lines or is refused with its number",
  async (format) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 6 }), async (values) => {
        for (const piece of await all(readExport(format, stream(JSON.stringify(values))))) {
          expect(piece.item).toBeWithin(1, values.length + 1);
          if ("line" in piece) expect(importLine.safeParse(piece.line).success).toBe(true);
          else expect(piece.refused.length).toBeGreaterThan(3);
        }
      }),
      { numRuns: 100 },
    );
  },
);
