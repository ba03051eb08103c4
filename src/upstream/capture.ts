/**
 * What a reply said, read beside the stream: text, tool calls, usage, stop reason, in one form for the three wire
 * formats. Keeps text only, at most 256 KiB.
 */
import { isObject } from "../memory/conversation.ts";
import type { Wire } from "../memory/conversation.ts";
import { createEventReader } from "./sse.ts";

export interface TokenUsage {
  /** All prompt tokens, cached ones included. */
  input: number;
  output: number;
  cached: number;
}

export interface ToolCall {
  id: string;
  name: string;
}

export interface Captured {
  /** The text of choice 0, or of all output messages. */
  text: string;
  truncated: boolean;
  toolCalls: ToolCall[];
  /** The upstream's word for why it stopped; null when it has not said. */
  stop: string | null;
  usage: TokenUsage | null;
  /** The reply came to its end, by the rules of its format. */
  complete: boolean;
  /** The terminator of the stream has been seen (`[DONE]`, `message_stop`, `response.completed` …). */
  terminated: boolean;
  /** The upstream reported an error inside a 200. */
  failed: boolean;
  /** Id of a response that can be continued from. */
  responseId: string | null;
  /** The reply wants tools run before it goes on. */
  wantsTools: boolean;
}

export interface Capture {
  push(chunk: Buffer): void;
  /** Reads what is left and says what there was. */
  finish(): Captured;
}

const MAX_TEXT = 256 * 1024;

type Draft = Captured & { parts: string[]; size: number };

function draft(): Draft {
  return {
    text: "",
    parts: [],
    size: 0,
    truncated: false,
    toolCalls: [],
    stop: null,
    usage: null,
    complete: false,
    terminated: false,
    failed: false,
    responseId: null,
    wantsTools: false,
  };
}

/** Reads a stream of events. */
export function captureStream(wire: Wire): Capture {
  const into = draft();
  const take = { chat: chatEvent, responses: responsesEvent, messages: messagesEvent }[wire];
  const reader = createEventReader((data) => {
    if (data === "[DONE]") {
      into.terminated = true;
      return;
    }
    const event = parse(data);
    if (event) take(into, event);
  });
  return {
    push: (chunk) => reader.push(chunk),
    finish() {
      reader.end();
      if (wire === "chat") into.complete = into.stop !== null;
      return close(into);
    },
  };
}

/** Reads a JSON reply. */
export function captureJson(wire: Wire, body: unknown): Captured {
  const into = draft();
  if (isObject(body)) {
    ({ chat: chatReply, responses: responsesReply, messages: messagesReply })[wire](into, body);
    if (isObject(body["error"])) into.failed = true;
  }
  into.terminated = true;
  return close(into);
}

function close(into: Draft): Captured {
  const { parts, size, ...captured } = into;
  void size;
  const text = parts.join("");
  return { ...captured, text, complete: captured.complete && !captured.failed };
}

function parse(data: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(data);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function say(into: Draft, text: unknown): void {
  if (typeof text !== "string" || text === "") return;
  const room = MAX_TEXT - into.size;
  if (text.length > room) into.truncated = true;
  if (room <= 0) return;
  into.parts.push(text.length > room ? text.slice(0, room) : text);
  into.size += Math.min(text.length, room);
}

const number = (value: unknown): number => (typeof value === "number" && value >= 0 ? value : 0);
const string = (value: unknown): string => (typeof value === "string" ? value : "");
const objects = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

// ---- chat completions

function chatUsage(into: Draft, usage: unknown): void {
  // Cumulative in some upstreams and null in the chunk after it in others: the last real one counts.
  if (!isObject(usage)) return;
  const details = usage["prompt_tokens_details"];
  const cached = isObject(details)
    ? number(details["cached_tokens"])
    : number(usage["prompt_cache_hit_tokens"]);
  into.usage = { input: number(usage["prompt_tokens"]), output: number(usage["completion_tokens"]), cached };
}

function chatCalls(into: Draft, message: Record<string, unknown>): void {
  for (const call of objects(message["tool_calls"])) {
    const fn = isObject(call["function"]) ? call["function"] : isObject(call["custom"]) ? call["custom"] : {};
    const at = typeof call["index"] === "number" ? call["index"] : into.toolCalls.length;
    const known = into.toolCalls[at];
    if (!known) into.toolCalls[at] = { id: string(call["id"]), name: string(fn["name"]) };
    else if (!known.name) known.name = string(fn["name"]);
  }
  const legacy = message["function_call"];
  if (isObject(legacy) && typeof legacy["name"] === "string")
    into.toolCalls[0] = { id: "", name: legacy["name"] };
  if (into.toolCalls.length > 0) into.wantsTools = true;
}

function chatEvent(into: Draft, event: Record<string, unknown>): void {
  if (event["error"] != null) into.failed = true;
  chatUsage(into, event["usage"]);
  for (const choice of objects(event["choices"])) {
    if (choice["index"] !== undefined && choice["index"] !== 0) continue;
    const delta = choice["delta"];
    if (isObject(delta)) {
      say(into, delta["content"]);
      say(into, delta["refusal"]);
      if (delta["tool_calls"] != null || delta["function_call"] != null) chatCalls(into, delta);
    } else say(into, choice["text"]);
    if (typeof choice["finish_reason"] === "string") into.stop = choice["finish_reason"];
  }
}

function chatReply(into: Draft, body: Record<string, unknown>): void {
  chatUsage(into, body["usage"]);
  const choice = objects(body["choices"]).find((one) => one["index"] === undefined || one["index"] === 0);
  if (!choice) return;
  const { message } = choice;
  if (isObject(message)) {
    if (Array.isArray(message["content"]))
      for (const part of objects(message["content"])) say(into, part["text"]);
    else say(into, message["content"]);
    say(into, message["refusal"]);
    chatCalls(into, message);
  } else say(into, choice["text"]);
  into.stop = string(choice["finish_reason"]) || null;
  into.complete = true;
}

// ---- responses

const CLIENT_CALLS = new Set([
  "function_call",
  "custom_tool_call",
  "local_shell_call",
  "shell_call",
  "apply_patch_call",
  "computer_call",
  "mcp_approval_request",
]);

function responsesUsage(into: Draft, usage: unknown): void {
  if (!isObject(usage)) return;
  const details = usage["input_tokens_details"];
  into.usage = {
    input: number(usage["input_tokens"]),
    output: number(usage["output_tokens"]),
    cached: isObject(details) ? number(details["cached_tokens"]) : 0,
  };
}

function responsesItem(into: Draft, item: unknown): void {
  if (!isObject(item) || !CLIENT_CALLS.has(string(item["type"]))) return;
  into.toolCalls.push({
    id: string(item["call_id"]) || string(item["id"]),
    name: string(item["name"]) || string(item["type"]),
  });
  into.wantsTools = true;
}

function responsesEnd(into: Draft, response: unknown): void {
  if (!isObject(response)) return;
  into.responseId = string(response["id"]) || into.responseId;
  responsesUsage(into, response["usage"]);
  const status = string(response["status"]);
  const why = response["incomplete_details"];
  into.stop = isObject(why) ? string(why["reason"]) : status || null;
  if (status === "failed" || status === "cancelled") into.failed = true;
  into.complete = status === "completed" || status === "incomplete";
}

function responsesEvent(into: Draft, event: Record<string, unknown>): void {
  switch (event["type"]) {
    case "response.created":
      if (isObject(event["response"])) into.responseId = string(event["response"]["id"]) || null;
      break;
    case "response.output_text.delta":
    case "response.refusal.delta":
      say(into, event["delta"]);
      break;
    case "response.output_item.done":
      responsesItem(into, event["item"]);
      break;
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      into.terminated = true;
      responsesEnd(into, event["response"]);
      break;
    case "error":
      into.failed = true;
      into.terminated = true;
      break;
    default:
      if (isObject(event["error"])) into.failed = true;
  }
}

function responsesReply(into: Draft, body: Record<string, unknown>): void {
  for (const item of objects(body["output"])) {
    responsesItem(into, item);
    if (item["type"] !== "message") continue;
    for (const part of objects(item["content"])) {
      say(into, part["text"]);
      say(into, part["refusal"]);
    }
  }
  responsesEnd(into, body);
}

// ---- messages

function messagesUsage(into: Draft, usage: unknown): void {
  if (!isObject(usage)) return;
  const before = into.usage ?? { input: 0, output: 0, cached: 0 };
  const read = number(usage["cache_read_input_tokens"]);
  const given = usage["input_tokens"];
  into.usage = {
    // `input_tokens` leaves out what the cache served or stored.
    input:
      typeof given === "number" ? given + read + number(usage["cache_creation_input_tokens"]) : before.input,
    output: usage["output_tokens"] === undefined ? before.output : number(usage["output_tokens"]),
    cached: typeof given === "number" ? read : before.cached,
  };
}

function messagesBlock(into: Draft, block: unknown): void {
  if (!isObject(block)) return;
  if (block["type"] === "text") say(into, block["text"]);
  if (block["type"] === "tool_use")
    into.toolCalls.push({ id: string(block["id"]), name: string(block["name"]) });
}

function messagesStop(into: Draft, reason: unknown): void {
  if (typeof reason !== "string") return;
  into.stop = reason;
  // `pause_turn` asks to be sent back as it is, which makes it a step of the same exchange.
  into.wantsTools = reason === "tool_use" || reason === "pause_turn";
}

function messagesEvent(into: Draft, event: Record<string, unknown>): void {
  switch (event["type"]) {
    case "message_start":
      if (isObject(event["message"])) messagesUsage(into, event["message"]["usage"]);
      break;
    case "content_block_start":
      messagesBlock(into, event["content_block"]);
      break;
    case "content_block_delta":
      if (isObject(event["delta"]) && event["delta"]["type"] === "text_delta")
        say(into, event["delta"]["text"]);
      break;
    case "message_delta":
      if (isObject(event["delta"])) messagesStop(into, event["delta"]["stop_reason"]);
      messagesUsage(into, event["usage"]);
      break;
    case "message_stop":
      into.terminated = true;
      into.complete = true;
      break;
    case "error":
      into.failed = true;
      into.terminated = true;
      break;
    default:
  }
}

function messagesReply(into: Draft, body: Record<string, unknown>): void {
  for (const block of objects(body["content"])) messagesBlock(into, block);
  messagesStop(into, body["stop_reason"]);
  messagesUsage(into, body["usage"]);
  into.complete = body["type"] === "message" || Array.isArray(body["content"]);
}
