import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Wire } from "../src/memory/conversation.ts";
import { captureJson, captureStream } from "../src/upstream/capture.ts";
import { createFramer, eventData } from "../src/upstream/sse.ts";
import { events, frame, json } from "./support/streams.ts";
import type { Reply } from "./support/streams.ts";

const base = { usage: { input: 21, output: 9, cached: 5 }, model: "m", id: "id_1" };
const replies: [name: string, reply: Reply][] = [
  ["text", { ...base, text: "Grüße, 世界! 👩‍💻 done.\r\nSecond line" }],
  [
    "tools in parallel",
    {
      ...base,
      text: "",
      tools: [
        { id: "call_a", name: "weather", arguments: '{"city":"Åbo"}' },
        { id: "call_b", name: "time", arguments: '{"zone":"Europe/Helsinki"}' },
      ],
    },
  ],
  [
    "text and a tool",
    { ...base, text: "Let me look.", tools: [{ id: "call_a", name: "weather", arguments: "{}" }] },
  ],
  ["a refusal", { ...base, text: "I cannot help with that.", refusal: true }],
];
const wires: Wire[] = ["chat", "responses", "messages"];

function capture(wire: Wire, parts: Buffer[]) {
  const one = captureStream(wire);
  for (const part of parts) one.push(part);
  return one.finish();
}

describe.each(wires)("capture of %s", (wire) => {
  test.each(replies)("%s, whatever way it is cut", (_name, reply) => {
    const bytes = Buffer.from(events(wire, reply, { usage: true }).join(""));
    const expected = {
      text: reply.text,
      truncated: false,
      usage: reply.usage,
      complete: true,
      terminated: true,
      failed: false,
      wantsTools: (reply.tools ?? []).length > 0,
      toolCalls: (reply.tools ?? []).map(({ id, name }) => ({ id, name })),
    };
    for (let at = 0; at <= bytes.length; at++) {
      expect(capture(wire, [bytes.subarray(0, at), bytes.subarray(at)])).toMatchObject(expected);
    }
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 40 }), (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        expect(
          capture(
            wire,
            at.slice(1).map((to, i) => bytes.subarray(at[i], to)),
          ),
        ).toMatchObject(expected);
      }),
      { numRuns: 30 },
    );
    expect(captureJson(wire, json(wire, reply))).toMatchObject(expected);
  });

  test("CR and CRLF, comments, comments sent as data, no blank after the colon", () => {
    const reply = replies[0]![1];
    const lines = events(wire, reply, { usage: true }).map(
      (event) => `: OPENROUTER PROCESSING\n\ndata: : keepalive\n\n${event}`,
    );
    for (const end of ["\r", "\r\n"]) {
      const bytes = Buffer.from(
        lines
          .join("")
          .replace(/data: (?!:)/g, "data:")
          .replaceAll("\n", end),
      );
      expect(capture(wire, [bytes])).toMatchObject({ text: reply.text, complete: true, usage: reply.usage });
    }
  });

  test("what ends early is not complete", () => {
    const all = events(wire, replies[0]![1], { usage: true });
    for (let count = 0; count < all.length - 3; count++) {
      expect(capture(wire, [Buffer.from(all.slice(0, count).join(""))]).complete).toBe(false);
    }
  });

  test("an error in the middle", () => {
    const error =
      wire === "chat"
        ? frame({ error: { message: "boom", type: "server_error" } })
        : wire === "messages"
          ? frame({ type: "error", error: { type: "overloaded_error", message: "boom" } }, "error")
          : frame({ type: "error", code: "server_error", message: "boom", sequence_number: 9 }, "error");
    const all = events(wire, replies[0]![1]);
    const got = capture(wire, [Buffer.from([...all.slice(0, 4), error].join(""))]);
    expect(got).toMatchObject({ failed: true, complete: false });
  });

  test("keeps at most 256 KiB of text", () => {
    const got = capture(wire, [Buffer.from(events(wire, { ...base, text: "abcd".repeat(80_000) }).join(""))]);
    expect(got.text).toHaveLength(256 * 1024);
    expect(got).toMatchObject({ truncated: true, complete: true });
  });
});

test("usage is the last real one: neither summed nor overwritten by null", () => {
  const chunk = (usage: unknown) =>
    frame({ choices: [{ index: 0, delta: { content: "x" }, finish_reason: null }], usage });
  const usage = (n: number) => ({ prompt_tokens: 10, completion_tokens: n, total_tokens: 10 + n });
  const got = capture("chat", [Buffer.from([chunk(usage(1)), chunk(usage(2)), chunk(null)].join(""))]);
  expect(got.usage).toEqual({ input: 10, output: 2, cached: 0 });
});

test("only choice 0 counts", () => {
  const chunk = (index: number, content: string) =>
    frame({ choices: [{ index, delta: { content }, finish_reason: null }] });
  expect(capture("chat", [Buffer.from(chunk(0, "a") + chunk(1, "b") + chunk(0, "c"))]).text).toBe("ac");
});

describe("framer", () => {
  test("lets every byte through, in whole events, whatever way it is cut", () => {
    const ends = ["\n", "\r\n", "\r"];
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string({ unit: "grapheme", maxLength: 12 }), fc.nat(2)), { maxLength: 8 }),
        fc.array(fc.nat(300), { maxLength: 20 }),
        (items, cuts) => {
          const bytes = Buffer.from(
            items
              .map(([text, end]) => `data: ${text.replace(/[\r\n]/g, "")}${ends[end]!}${ends[end]!}`)
              .join(""),
          );
          const at = [
            0,
            ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b),
            bytes.length,
          ];
          const framer = createFramer();
          const out: Buffer[] = [];
          for (const [i, to] of at.slice(1).entries()) {
            const part = framer.push(bytes.subarray(at[i], to));
            if (part.length > 0) {
              expect(
                /(?:\n\n|\r\n\r\n|\r\r|\n\r\n)$/.test(part.toString("latin1")) || part.toString() === "\n",
              ).toBe(true);
              out.push(part);
            }
          }
          out.push(framer.rest());
          expect(Buffer.concat(out).equals(bytes)).toBe(true);
        },
      ),
    );
  });

  test("leaves out an event that is asked away, and nothing else", () => {
    const all = events("chat", { ...base, text: "hello" }, { usage: true });
    const usage = all.find((event) => event.includes('"choices":[]'))!;
    const rest = all.filter((event) => event !== usage).join("");
    const bytes = Buffer.from(all.join(""));
    for (let size = 1; size < 200; size += 7) {
      const framer = createFramer(
        (chunk) => chunk.includes('"prompt_tokens"'),
        (event) => eventData(event).includes('"choices":[]'),
      );
      let out = "";
      for (let at = 0; at < bytes.length; at += size)
        out += framer.push(bytes.subarray(at, at + size)).toString("latin1");
      out += framer.rest().toString("latin1");
      expect(out).toBe(Buffer.from(rest).toString("latin1"));
    }
  });

  test("does not hold an event without end", () => {
    const framer = createFramer();
    const big = Buffer.alloc(70_000, "x");
    expect(framer.push(Buffer.from("data: ")).length).toBe(0);
    expect(framer.push(big).length).toBe(70_006);
    expect(framer.inside()).toBe(true);
    expect(framer.push(big).length).toBe(70_000);
    expect(framer.push(Buffer.from("\n\ndata: y")).toString()).toBe("\n\n");
    expect(framer.inside()).toBe(false);
    expect(framer.rest().toString()).toBe("data: y");
  });
});
