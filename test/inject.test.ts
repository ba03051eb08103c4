import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readConversation, textOf } from "../src/memory/conversation.ts";
import type { JsonBody, Wire } from "../src/memory/conversation.ts";
import { ownText } from "../src/memory/own-text.ts";
import { firstForm, inject, weaker } from "../src/memory/inject.ts";
import type { Form, Placement, SystemRole } from "../src/memory/inject.ts";
import { systemRoleOf, takesDeveloper } from "../src/upstream/roles.ts";
import type { RoleSubject } from "../src/upstream/roles.ts";
import { problem } from "./support/upstream-rules.ts";

const B = "Memory context: BLOCK";
const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown, more = {}) => ({ role: "assistant", content, ...more });
const system = (content: unknown) => ({ role: "system", content });

function place(
  wire: Wire,
  body: JsonBody,
  options: {
    role?: SystemRole;
    placement?: Placement;
    form?: Form;
    blocks?: { at: number; text: string }[];
  } = {},
) {
  const conversation = readConversation(wire, body);
  const { role = "system", placement = "auto" } = options;
  const form = options.form ?? firstForm(wire, { role, placement }, conversation.marked);
  const blocks = options.blocks ?? [{ at: conversation.turns.at(-1)!.at, text: B }];
  const before = JSON.stringify(body);
  const result = inject(wire, body, conversation, blocks, { role, placement, form });
  // Copy on write: the caller's body is never touched.
  expect(JSON.stringify(body)).toBe(before);
  return result;
}
const messages = (body: JsonBody, options: Parameters<typeof place>[2] = {}) =>
  place("chat", body, options).body["messages"];

describe("chat: every row of the placement table", () => {
  const talk = { messages: [system("S"), user("one"), assistant("1"), user("two")] };
  test.each([
    ["system", "auto", [system("S"), user("one"), assistant("1"), system(B), user("two")]],
    ["system", "system-first", [system(B), system("S"), user("one"), assistant("1"), user("two")]],
    ["first-only", "auto", [system("S"), user("one"), assistant("1"), user(`${B}\n\ntwo`)]],
    ["first-only", "system-first", [system(`${B}\n\nS`), user("one"), assistant("1"), user("two")]],
    ["none", "auto", [system("S"), user("one"), assistant("1"), user(`${B}\n\ntwo`)]],
    ["none", "system-first", [system("S"), user(`${B}\n\none`), assistant("1"), user("two")]],
  ] as const)("%s, %s", (role, placement, expected) => {
    expect(messages(talk, { role, placement })).toEqual([...expected]);
  });

  test("first-only without a system message gets one leading", () => {
    expect(messages({ messages: [user("one")] }, { role: "first-only", placement: "system-first" })).toEqual([
      system(B),
      user("one"),
    ]);
  });

  test("parts get one text part more, before the first text; null content becomes the block", () => {
    const image = { type: "image_url", image_url: { url: "u" } };
    const text = { type: "text", text: "two" };
    expect(messages({ messages: [user([image, text])] }, { role: "none" })).toEqual([
      user([image, { type: "text", text: B }, text]),
    ]);
    expect(messages({ messages: [user([image])] }, { role: "none", form: "user" })).toEqual([
      user([{ type: "text", text: B }, image]),
    ]);
  });

  test("a tool loop: before the user turn that started it, never between a call and its result", () => {
    const call = assistant(null, {
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
    });
    const result = { role: "tool", tool_call_id: "c", content: "r" };
    expect(messages({ messages: [user("go"), call, result] })).toEqual([system(B), user("go"), call, result]);
    // A user turn that stands inside an unanswered call takes the block itself.
    expect(messages({ messages: [user("go"), call, user("stop"), result] })).toEqual([
      user("go"),
      call,
      user(`${B}\n\nstop`),
      result,
    ]);
  });

  test("earlier blocks go back where they were", () => {
    const blocks = [
      { at: 1, text: "A" },
      { at: 3, text: B },
    ];
    expect(messages(talk, { blocks })).toEqual([
      system("S"),
      system("A"),
      user("one"),
      assistant("1"),
      system(B),
      user("two"),
    ]);
    expect(messages(talk, { blocks, role: "first-only" })).toEqual([
      system("S"),
      user("A\n\none"),
      assistant("1"),
      user(`${B}\n\ntwo`),
    ]);
  });

  test("with cache marks system-first acts as auto, and nothing new goes before an earlier mark", () => {
    const mark = { cache_control: { type: "ephemeral" } };
    const marked = {
      messages: [
        system([{ type: "text", text: "S", ...mark }]),
        user([{ type: "text", text: "one", ...mark }]),
        assistant("1"),
        user([{ type: "text", text: "two", ...mark }]),
      ],
    };
    const placed = messages(marked, { placement: "system-first" }) as unknown[];
    expect(placed.slice(0, 3)).toEqual(marked.messages.slice(0, 3));
    expect(placed[3]).toEqual(system(B));
    const inside = messages(marked, { role: "first-only" }) as { content: unknown[] }[];
    expect(inside[3]!.content).toEqual([
      { type: "text", text: B },
      { type: "text", text: "two", ...mark },
    ]);
  });
});

describe("messages", () => {
  const result = { type: "tool_result", tool_use_id: "t", content: "r" };
  const use = assistant([{ type: "tool_use", id: "t", name: "f", input: {} }]);
  test("a text block before the turn's own text, after any tool_result", () => {
    expect(place("messages", { messages: [user("one")] }).body["messages"]).toEqual([user(`${B}\n\none`)]);
    const typed = user([result, { type: "text", text: "and also" }]);
    expect(place("messages", { messages: [user("go"), use, typed] }).body["messages"]).toEqual([
      user("go"),
      use,
      user([result, { type: "text", text: B }, { type: "text", text: "and also" }]),
    ]);
    expect(place("messages", { messages: [user("go"), use, user([result])] }).body["messages"]).toEqual([
      user(`${B}\n\ngo`),
      use,
      user([result]),
    ]);
  });

  test("results with nothing but an agent's reminders continue the loop", () => {
    const reminder = user([result, { type: "text", text: "<system-reminder>be good</system-reminder>" }]);
    const conversation = readConversation("messages", { messages: [user("go"), use, reminder] });
    expect(conversation).toMatchObject({ query: "go", open: true });
  });

  test("system-first: after the caller's own system blocks, in their form", () => {
    const first = (given: JsonBody) =>
      place("messages", { messages: [user("one")], ...given }, { placement: "system-first" }).body["system"];
    expect(first({})).toBe(B);
    expect(first({ system: "S" })).toBe(`S\n\n${B}`);
    expect(first({ system: [{ type: "text", text: "S" }] })).toEqual([
      { type: "text", text: "S" },
      { type: "text", text: B },
    ]);
    expect(
      place("messages", { system: "S", messages: [user("one")] }, { placement: "system-first", form: "user" })
        .body,
    ).toEqual({
      system: "S",
      messages: [user(`${B}\n\none`)],
    });
  });

  test("thinking blocks and everything else stay the very same objects", () => {
    const thinking = assistant([
      { type: "thinking", thinking: "t", signature: "s" },
      { type: "text", text: "1" },
    ]);
    const body = { messages: [user("one"), thinking, user("two")], metadata: { user_id: "u" } };
    const placed = place("messages", body).body;
    expect((placed["messages"] as unknown[])[1]).toBe(thinking);
    expect(placed["metadata"]).toBe(body.metadata);
  });
});

describe("responses", () => {
  const part = (text: string) => ({ type: "input_text", text });
  test("a string becomes items, by role", () => {
    expect(place("responses", { input: "hi" }).body["input"]).toEqual([system(B), user("hi")]);
    expect(place("responses", { input: "hi" }, { role: "first-only" }).body["input"]).toEqual([
      user([part(B), part("hi")]),
    ]);
  });

  test("an item before the last user item, reasoning untouched", () => {
    const reasoning = { type: "reasoning", id: "r", summary: [], encrypted_content: "x" };
    const input = [
      user("one"),
      reasoning,
      assistant([{ type: "output_text", text: "1" }]),
      { type: "message", ...user([part("two")]) },
    ];
    const placed = place("responses", { input }).body["input"] as unknown[];
    expect(placed).toEqual([...input.slice(0, 3), system(B), input[3]]);
    expect(placed[1]).toBe(reasoning);
    expect(place("responses", { input }, { role: "none" }).body["input"]).toEqual([
      ...input.slice(0, 3),
      { type: "message", ...user([part(B), part("two")]) },
    ]);
  });

  test("tool outputs continue the exchange of the user item before them", () => {
    const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    const output = { type: "function_call_output", call_id: "c", output: "r" };
    expect(place("responses", { input: [user("go"), call, output] }).body["input"]).toEqual([
      system(B),
      user("go"),
      call,
      output,
    ]);
  });

  test("system-first: instructions", () => {
    expect(place("responses", { input: "hi" }, { placement: "system-first" }).body).toEqual({
      input: "hi",
      instructions: B,
    });
    expect(
      place("responses", { input: "hi", instructions: "I" }, { placement: "system-first" }).body[
        "instructions"
      ],
    ).toBe(`I\n\n${B}`);
  });

  test("Codex's context item is not the user's turn", () => {
    const input = [
      user([part("<environment_context>\n<cwd>/x</cwd>\n</environment_context>")]),
      user([part("fix the bug")]),
    ];
    expect(readConversation("responses", { input })).toMatchObject({
      query: "fix the bug",
      hasAssistant: false,
      turns: [{ at: 1 }],
    });
  });
});

test("forms get weaker one by one", () => {
  expect(weaker("own")).toBe("user");
  expect(weaker("user")).toBe("none");
  expect(place("chat", { messages: [user("x")] }, { form: "none" })).toEqual({
    body: { messages: [user("x")] },
    where: "none",
  });
});

test("whatever a conversation looks like, a strict server of each kind takes what its policy gives", () => {
  const text = fc.string({ minLength: 1, maxLength: 8 }).filter((value) => value.trim() !== "");
  const content = fc.oneof(
    text,
    text.map((value) => [{ type: "text", text: value }]),
  );
  const exchange = fc.tuple(content, fc.nat(3), content).map(([ask, tools, reply]) => {
    const steps = Array.from({ length: tools }, (_, at) => [
      assistant(null, {
        tool_calls: [{ id: `c${at}`, type: "function", function: { name: "f", arguments: "{}" } }],
      }),
      { role: "tool", tool_call_id: `c${at}`, content: "r" },
    ]).flat();
    return [user(ask), ...steps, assistant(reply)];
  });
  fc.assert(
    fc.property(
      fc.option(content),
      fc.array(exchange, { maxLength: 4 }),
      content,
      fc.constantFrom<SystemRole>("system", "first-only", "none"),
      fc.constantFrom<Placement>("auto", "system-first"),
      fc.array(fc.nat(4), { maxLength: 3 }),
      (lead, exchanges, last, role, placement, old) => {
        const body = {
          model: "m",
          messages: [...(lead && role !== "none" ? [system(lead)] : []), ...exchanges.flat(), user(last)],
        };
        const { turns } = readConversation("chat", body);
        const again = [...new Set(old)].toSorted((a, b) => a - b).filter((index) => index < turns.length - 1);
        const blocks = [...(placement === "auto" ? again : []), turns.length - 1].map((index) => ({
          at: turns[index]!.at,
          text: `${B} ${index}`,
        }));
        const { body: placed } = place("chat", body, { role, placement, blocks });
        const roles = ({ system: "anywhere", "first-only": "first-only", none: "none" } as const)[role];
        expect(
          problem("/v1/chat/completions", placed, {
            roles,
            developer: false,
            streamOptions: true,
            extra: [],
          }),
        ).toBeNull();
        expect(JSON.stringify(placed).split(B).length - 1).toBe(blocks.length);
      },
    ),
    { numRuns: 400 },
  );
});

describe("reading a conversation", () => {
  test("texts of every form", () => {
    expect(textOf("a")).toBe("a");
    expect(textOf(null)).toBe("");
    expect(
      textOf([{ type: "text", text: "a" }, { type: "image_url" }, "b", { type: "refusal", refusal: "c" }]),
    ).toBe("a\nb\nc");
    expect(ownText("<system-reminder>x</system-reminder>\n hello <b>there</b>")).toBe("hello <b>there</b>");
  });

  const hashes = (wire: Wire, body: JsonBody) => readConversation(wire, body).turns.map((turn) => turn.hash);
  test("hashes see role and text only", () => {
    const plain = hashes("chat", { messages: [user("one"), assistant("1"), user("two")] });
    const mark = { cache_control: { type: "ephemeral" } };
    for (const same of [
      [user([{ type: "text", text: "one", ...mark }]), assistant("1"), user("two")],
      [system("It is noon."), user("one"), assistant(" 1\n"), user("two ")],
      [user("one"), assistant("<think>hm</think>1"), user("<system-reminder>r</system-reminder>two")],
      [
        user("one"),
        assistant(null, { tool_calls: [{ id: "c" }] }),
        { role: "tool", tool_call_id: "c", content: "x" },
        assistant("1"),
        user("two"),
      ],
    ]) {
      expect(hashes("chat", { messages: same })).toEqual(plain);
    }
    expect(
      hashes("messages", {
        messages: [
          user("one"),
          assistant([{ type: "text", text: "1" }]),
          user([{ type: "text", text: "two" }]),
        ],
      }),
    ).toEqual(plain);
    expect(
      hashes("responses", {
        input: [
          user("one"),
          assistant([{ type: "output_text", text: "1" }]),
          user([{ type: "input_text", text: "two" }]),
        ],
      }),
    ).toEqual(plain);
    for (const other of [
      [user("one"), assistant("2"), user("two")],
      [user("one"), user("two")],
      [user("onetwo")],
    ]) {
      expect(hashes("chat", { messages: other }).at(-1)).not.toBe(plain.at(-1));
    }
  });

  test("after the reply it stands as the next request will show it", () => {
    const now = readConversation("chat", { messages: [system("S"), user("one")] });
    const next = readConversation("chat", {
      messages: [system("S"), user("one"), assistant("the reply"), user("two")],
    });
    expect(now.history).toBeNull();
    expect(now.after(" the reply\n")).toEqual(next.history!);
  });

  test("is never broken by what it finds", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<Wire>("chat", "responses", "messages"),
        fc.jsonValue(),
        fc.array(fc.jsonValue()),
        (wire, value, list) => {
          for (const body of [
            { messages: value, input: value },
            { messages: list, input: list, system: value, instructions: value },
          ] as JsonBody[]) {
            const conversation = readConversation(wire, body);
            void [
              conversation.turns,
              conversation.history,
              conversation.turn,
              conversation.marked,
              conversation.after("x"),
            ];
            const { turns } = conversation;
            if (turns.length > 0) place(wire, body);
          }
        },
      ),
    );
  });
});

describe("which provider takes what", () => {
  const at = (id: string, host: string, systemRole: RoleSubject["systemRole"] = "auto"): RoleSubject => ({
    id,
    host,
    systemRole,
  });
  test.each([
    [at("openai", "api.openai.com"), "gpt-5", "system"],
    [at("x", "openrouter.ai"), "mistralai/mistral-large", "system"],
    [at("x", "api.anthropic.com"), "claude", "system"],
    [at("x", "my.azure.example"), "m", "system"],
    [at("vllm", "gpu.example.com"), "qwen", "first-only"],
    [at("x", "127.0.0.1"), "qwen3", "first-only"],
    [at("x", "192.168.1.20"), "m", "first-only"],
    [at("ollama", "10.0.0.2"), "m", "first-only"],
    [at("x", "api.example.com"), "org/Xiaomi-MiMo-7B", "first-only"],
    [at("openai", "127.0.0.1"), "m", "system"],
    [at("openai", "api.openai.com"), "o1", "none"],
    [at("openai", "api.openai.com"), "o1-mini-2024-09-12", "none"],
    [at("openai", "api.openai.com"), "o1x", "system"],
    [at("openrouter", "openrouter.ai"), "z-ai/glm-4.6", "none"],
    [at("GLM-cn", "api.example.com"), "m", "none"],
    [at("x", "qianfan.example.com"), "m", "none"],
    [at("vllm", "127.0.0.1", "system"), "o1", "system"],
    [at("demo", "demo"), "echo", "system"],
  ] as const)("%j %s: %s", (subject, model, role) => {
    expect(systemRoleOf(subject, model)).toBe(role);
  });

  test("developer is kept only where it is known to be taken", () => {
    expect(takesDeveloper(at("x", "api.openai.com"))).toBe(true);
    expect(takesDeveloper(at("x", "foo.openai.azure.com"))).toBe(true);
    expect(takesDeveloper(at("x", "127.0.0.1"))).toBe(false);
  });
});

test("finding wrappers takes time in proportion to the text", () => {
  const hostile = "<context>".repeat(200_000) + "hello</context>";
  ownText(hostile);
  ownText("<context>".repeat(200_000));
  ownText("<contextual>x</contextual> stays");
  expect(ownText("<contextual>x</contextual> stays")).toBe("<contextual>x</contextual> stays");
  expect(ownText('<context id="1">a</context> b <CONTEXT>c</CONTEXT>d')).toBe("b d");
});

test("hashes are what earlier versions wrote: they find what is stored", () => {
  const conversation = readConversation("chat", {
    messages: [
      { role: "system", content: "Be\u00a0brief. Ärger" },
      { role: "user", content: "<system-reminder>now</system-reminder> I live in\u2003Tromsø\u0001 🦊 \n" },
      { role: "assistant", content: "<think>hm</think>Noted,\tthanks." },
      { role: "user", content: "Where?" },
    ],
  });
  expect(conversation.turns.map((turn) => turn.hash)).toEqual([
    "ced6f41caa3944d99a787856f2c60069",
    "f5ad7a4456cc1904f0460ad1aa64bec7",
  ]);
  expect(conversation.history).toEqual({
    bare: "ac9574ba7cdb666d3cbaee3b6111565d",
    full: "22a516b3c686f2914c321e3206801be3",
  });
  expect(conversation.after("In Tromsø.")).toEqual({
    bare: "09f4e72e43fa99fe6cf742f54215ba42",
    full: "df1c3eddc9db6e805e5ec28485fa63bf",
  });
});

test("white space takes no part in a hash, whatever kind it is", () => {
  const hash = (content: string) => readConversation("chat", { messages: [{ role: "user", content }] }).turn;
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 1 }), (text) => {
      const content = `x${text}y`;
      expect(hash(content)).toEqual(hash(content.replace(/\s+/g, "")));
    }),
  );
  for (const blank of "\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff")
    expect(hash(`a${blank}b`)).toEqual(hash("ab"));
  for (const other of "\u0000\u001f\u0085\u180e\u200b\u2030\u3001")
    expect(hash(`a${other}b`)).not.toEqual(hash("ab"));
});
