/** Replies in the recorded shapes of the three wire formats, as JSON and as streams of events. */
import type { Wire } from "../../src/memory/conversation.ts";

export interface Reply {
  text: string;
  tools?: { id: string; name: string; arguments: string }[];
  refusal?: boolean;
  usage: { input: number; output: number; cached: number };
  model: string;
  id: string;
}

const CREATED = 1_767_225_600;
/** Pieces of about a token, by code points so that no character is lost. */
export const pieces = (text: string): string[] => text.match(/[\s\S]{1,4}(?![\udc00-\udfff])/g) ?? [];

export function json(wire: Wire, reply: Reply): unknown {
  const { text, tools = [], usage, model, id } = reply;
  if (wire === "chat") {
    return {
      id,
      object: "chat.completion",
      created: CREATED,
      model,
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: tools.length > 0 && !text ? null : reply.refusal ? null : text,
            refusal: reply.refusal ? text : null,
            ...(tools.length > 0
              ? {
                  tool_calls: tools.map((tool) => ({
                    id: tool.id,
                    type: "function",
                    function: { name: tool.name, arguments: tool.arguments },
                  })),
                }
              : {}),
          },
          logprobs: null,
          finish_reason: tools.length > 0 ? "tool_calls" : "stop",
        },
      ],
      usage: chatUsage(usage),
    };
  }
  if (wire === "responses") return responseObject(reply, "completed");
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: [
      ...(text ? [{ type: "text", text }] : []),
      ...tools.map((tool) => ({
        type: "tool_use",
        id: tool.id,
        name: tool.name,
        input: JSON.parse(tool.arguments) as unknown,
      })),
    ],
    stop_reason: tools.length > 0 ? "tool_use" : reply.refusal ? "refusal" : "end_turn",
    stop_sequence: null,
    usage: messagesUsage(usage),
  };
}

const chatUsage = (usage: Reply["usage"]) => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  prompt_tokens_details: { cached_tokens: usage.cached },
});
const messagesUsage = (usage: Reply["usage"]) => ({
  input_tokens: usage.input - usage.cached,
  cache_read_input_tokens: usage.cached,
  cache_creation_input_tokens: 0,
  output_tokens: usage.output,
});

function responseItems(reply: Reply): Record<string, unknown>[] {
  const items: Record<string, unknown>[] = [];
  if (reply.text) {
    const part = reply.refusal
      ? { type: "refusal", refusal: reply.text }
      : { type: "output_text", text: reply.text, annotations: [], logprobs: [] };
    items.push({ id: "msg_1", type: "message", status: "completed", role: "assistant", content: [part] });
  }
  for (const [at, tool] of (reply.tools ?? []).entries()) {
    items.push({
      id: `fc_${at}`,
      type: "function_call",
      status: "completed",
      call_id: tool.id,
      name: tool.name,
      arguments: tool.arguments,
    });
  }
  return items;
}

function responseObject(reply: Reply, status: string): Record<string, unknown> {
  return {
    id: reply.id,
    object: "response",
    created_at: CREATED,
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    model: reply.model,
    output: status === "completed" ? responseItems(reply) : [],
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
    metadata: {},
    usage:
      status === "completed"
        ? {
            input_tokens: reply.usage.input,
            input_tokens_details: { cached_tokens: reply.usage.cached },
            output_tokens: reply.usage.output,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: reply.usage.input + reply.usage.output,
          }
        : null,
  };
}

export const frame = (data: unknown, event?: string): string =>
  `${event ? `event: ${event}\n` : ""}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

/** The events of a stream. `usage`: whether the usage chunk of chat completions was asked for. */
export function events(
  wire: Wire,
  reply: Reply,
  options: { usage?: boolean; done?: boolean } = {},
): string[] {
  return { chat: chatEvents, responses: responsesEvents, messages: messagesEvents }[wire](reply, options);
}

function chatEvents(reply: Reply, options: { usage?: boolean; done?: boolean }): string[] {
  const head = { id: reply.id, object: "chat.completion.chunk", created: CREATED, model: reply.model };
  const more = options.usage ? { usage: null } : {};
  const chunk = (delta: unknown, finish: string | null = null) =>
    frame({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], ...more });
  const out = [chunk({ role: "assistant", content: "", refusal: null })];
  for (const piece of pieces(reply.text))
    out.push(chunk(reply.refusal ? { refusal: piece } : { content: piece }));
  // Parallel calls arrive interleaved.
  const tools = reply.tools ?? [];
  for (const [index, tool] of tools.entries()) {
    out.push(
      chunk({
        tool_calls: [{ index, id: tool.id, type: "function", function: { name: tool.name, arguments: "" } }],
      }),
    );
  }
  const parts = tools.map((tool) => pieces(tool.arguments));
  for (let at = 0; at < Math.max(0, ...parts.map((one) => one.length)); at++) {
    for (const [index, one] of parts.entries()) {
      if (one[at] !== undefined)
        out.push(chunk({ tool_calls: [{ index, function: { arguments: one[at] } }] }));
    }
  }
  out.push(chunk({}, tools.length > 0 ? "tool_calls" : "stop"));
  if (options.usage) out.push(frame({ ...head, choices: [], usage: chatUsage(reply.usage) }));
  if (options.done !== false) out.push(frame("[DONE]"));
  return out;
}

function responsesEvents(reply: Reply, options: { done?: boolean }): string[] {
  let sequence = 0;
  const event = (type: string, fields: Record<string, unknown>) =>
    frame({ type, sequence_number: sequence++, ...fields }, type);
  const out = [
    event("response.created", { response: responseObject(reply, "in_progress") }),
    event("response.in_progress", { response: responseObject(reply, "in_progress") }),
  ];
  for (const [index, item] of responseItems(reply).entries()) {
    out.push(
      event("response.output_item.added", {
        output_index: index,
        item: { ...item, status: "in_progress", content: [], arguments: "" },
      }),
    );
    const place = { item_id: item["id"], output_index: index };
    if (item["type"] === "message") {
      const kind = reply.refusal ? "refusal" : "output_text";
      const part = reply.refusal ? { type: kind, refusal: "" } : { type: kind, text: "", annotations: [] };
      out.push(event("response.content_part.added", { ...place, content_index: 0, part }));
      for (const piece of pieces(reply.text))
        out.push(event(`response.${kind}.delta`, { ...place, content_index: 0, delta: piece, logprobs: [] }));
      out.push(
        event(`response.${kind}.done`, {
          ...place,
          content_index: 0,
          [reply.refusal ? "refusal" : "text"]: reply.text,
          logprobs: [],
        }),
      );
      out.push(
        event("response.content_part.done", {
          ...place,
          content_index: 0,
          part: (item["content"] as unknown[])[0],
        }),
      );
    } else {
      for (const piece of pieces(String(item["arguments"])))
        out.push(event("response.function_call_arguments.delta", { ...place, delta: piece }));
      out.push(
        event("response.function_call_arguments.done", {
          ...place,
          arguments: item["arguments"],
          name: item["name"],
        }),
      );
    }
    out.push(event("response.output_item.done", { output_index: index, item }));
  }
  if (options.done !== false)
    out.push(event("response.completed", { response: responseObject(reply, "completed") }));
  return out;
}

function messagesEvents(reply: Reply, options: { done?: boolean }): string[] {
  const event = (type: string, fields: Record<string, unknown>) => frame({ type, ...fields }, type);
  const start = {
    id: reply.id,
    type: "message",
    role: "assistant",
    model: reply.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  const out = [
    event("message_start", {
      message: { ...start, usage: { ...messagesUsage(reply.usage), output_tokens: 1 } },
    }),
    event("ping", {}),
  ];
  let index = 0;
  if (reply.text) {
    out.push(event("content_block_start", { index, content_block: { type: "text", text: "" } }));
    for (const text of pieces(reply.text))
      out.push(event("content_block_delta", { index, delta: { type: "text_delta", text } }));
    out.push(event("content_block_stop", { index }));
    index++;
  }
  for (const tool of reply.tools ?? []) {
    out.push(
      event("content_block_start", {
        index,
        content_block: { type: "tool_use", id: tool.id, name: tool.name, input: {} },
      }),
    );
    for (const piece of pieces(tool.arguments))
      out.push(
        event("content_block_delta", { index, delta: { type: "input_json_delta", partial_json: piece } }),
      );
    out.push(event("content_block_stop", { index }));
    index++;
  }
  const stop_reason = (reply.tools ?? []).length > 0 ? "tool_use" : reply.refusal ? "refusal" : "end_turn";
  out.push(
    event("message_delta", {
      delta: { stop_reason, stop_sequence: null },
      usage: { output_tokens: reply.usage.output },
    }),
  );
  if (options.done !== false) out.push(event("message_stop", {}));
  return out;
}
