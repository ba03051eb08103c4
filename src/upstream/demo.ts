/** The built-in provider: answers what it was told, and shows what memory added, so that the whole loop works without a model. */
import { blockLines } from "../memory/block.ts";
import { isObject, listOf, readConversation, textOf } from "../memory/conversation.ts";
import type { JsonBody, Wire } from "../memory/conversation.ts";
import { estimateTokens } from "../memory/budget.ts";
import type { Answer, BodySink } from "./answer.ts";

/** Answers a request of any wire format in its format. */
export async function callDemo(wire: Wire, bytes: Buffer, counting: boolean): Promise<Answer> {
  const body = JSON.parse(bytes.toString()) as JsonBody;
  const text = reply(wire, body);
  const usage = { input: estimateTokens(bytes.toString()), output: estimateTokens(text) };
  if (counting) return answer(JSON.stringify({ input_tokens: usage.input }), "application/json");
  if (body["stream"] === true) return answer(stream(wire, body, text, usage), "text/event-stream");
  return answer(JSON.stringify(whole(wire, body, text, usage)), "application/json");
}

function reply(wire: Wire, body: JsonBody): string {
  const texts = (listOf(wire, body) ?? []).filter(isObject).map((item) => textOf(item["content"]));
  texts.unshift(textOf(body["system"]), textOf(body["instructions"]));
  const remembered = texts.flatMap((text) => {
    const at = text.indexOf("Memory context:");
    return at < 0 ? [] : blockLines(text.slice(at));
  });
  const { query } = readConversation(wire, body);
  const said = `You said: ${withoutBlock(query)}`;
  return remembered.length === 0 ? said : `${said}\n\nI remember:\n${remembered.map(asked).join("\n")}`;
}

/** A recalled exchange without this provider's own answer, which would hold all that was recalled before it. */
function asked(line: string): string {
  return line.replace(/ \| Assistant said: You said: .*/s, "");
}

/** What the person said, without a block that stands in the same turn. */
function withoutBlock(text: string): string {
  const lines = blockLines(text);
  return lines.length === 0 ? text : text.slice(text.indexOf("\n\n") + 2);
}

interface Usage {
  input: number;
  output: number;
}

const ID = "demo";

function whole(wire: Wire, body: JsonBody, text: string, usage: Usage): unknown {
  const { model } = body;
  if (wire === "messages") {
    return {
      id: `msg_${ID}`,
      type: "message",
      role: "assistant",
      model,
      content: [{ type: "text", text }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { input_tokens: usage.input, output_tokens: usage.output },
    };
  }
  if (wire === "responses") return responseOf(model, text, usage, "completed");
  return {
    id: `chatcmpl-${ID}`,
    object: "chat.completion",
    created: seconds(),
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: text, refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: {
      prompt_tokens: usage.input,
      completion_tokens: usage.output,
      total_tokens: usage.input + usage.output,
    },
  };
}

const seconds = (): number => Math.floor(Date.now() / 1000);

function responseOf(model: unknown, text: string, usage: Usage, status: "in_progress" | "completed") {
  const done = status === "completed";
  return {
    id: `resp_${crypto.randomUUID().replaceAll("-", "")}`,
    object: "response",
    created_at: seconds(),
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    model,
    output: done ? [messageItem(text)] : [],
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
    metadata: {},
    usage: done
      ? {
          input_tokens: usage.input,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: usage.output,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: usage.input + usage.output,
        }
      : null,
  };
}

const messageItem = (text: string) => ({
  id: `msg_${ID}`,
  type: "message",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
});

function stream(wire: Wire, body: JsonBody, text: string, usage: Usage): string {
  const words = text.match(/\S*\s*/g)?.filter(Boolean) ?? [];
  const { model } = body;
  const frame = (data: unknown, event?: string) =>
    `${event ? `event: ${event}\n` : ""}data: ${JSON.stringify(data)}\n\n`;
  if (wire === "messages") {
    const event = (type: string, fields: object) => frame({ type, ...fields }, type);
    const message = { ...(whole(wire, body, "", usage) as object), content: [], stop_reason: null };
    return [
      event("message_start", { message }),
      event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
      ...words.map((word) =>
        event("content_block_delta", { index: 0, delta: { type: "text_delta", text: word } }),
      ),
      event("content_block_stop", { index: 0 }),
      event("message_delta", {
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: usage.output },
      }),
      event("message_stop", {}),
    ].join("");
  }
  if (wire === "responses") {
    let sequence = 0;
    const event = (type: string, fields: object) =>
      frame({ type, sequence_number: sequence++, ...fields }, type);
    const done = responseOf(model, text, usage, "completed");
    const begun = { ...responseOf(model, text, usage, "in_progress"), id: done.id };
    const item = messageItem(text);
    const place = { item_id: item.id, output_index: 0, content_index: 0 };
    const part = item.content[0]!;
    return [
      event("response.created", { response: begun }),
      event("response.output_item.added", {
        output_index: 0,
        item: { ...item, status: "in_progress", content: [] },
      }),
      event("response.content_part.added", { ...place, part: { ...part, text: "" } }),
      ...words.map((delta) => event("response.output_text.delta", { ...place, delta, logprobs: [] })),
      event("response.output_text.done", { ...place, text, logprobs: [] }),
      event("response.content_part.done", { ...place, part }),
      event("response.output_item.done", { output_index: 0, item }),
      event("response.completed", { response: done }),
    ].join("");
  }
  const head = { id: `chatcmpl-${ID}`, object: "chat.completion.chunk", created: seconds(), model };
  const chunk = (delta: object, finish: string | null) =>
    frame({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] });
  const total = {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
  };
  return [
    chunk({ role: "assistant", content: "" }, null),
    ...words.map((content) => chunk({ content }, null)),
    chunk({}, "stop"),
    // Asked for by the client or by the proxy, which takes it out again.
    frame({ ...head, choices: [], usage: total }),
    "data: [DONE]\n\n",
  ].join("");
}

function answer(text: string, type: string): Answer {
  const bytes = Buffer.from(text);
  return {
    status: 200,
    headers: [["content-type", type]],
    header: (name) => (name === "content-type" ? type : null),
    read: async () => ({ bytes, whole: true }),
    follow(sink: BodySink) {
      sink.data(bytes);
      sink.end();
    },
    pause() {},
    resume() {},
    abort() {},
  };
}
