/**
 * One reading of a request's conversation for the three wire formats: who said what, where the user turns are, and by which
 * hashes it is found again. Pure.
 */
import { hashConversation, type Hashed, type HashPair, type Turn } from "./conversation-hash.ts";
import { ownText } from "./own-text.ts";

export const wires = ["chat", "responses", "messages"] as const;
export type Wire = (typeof wires)[number];

export type JsonBody = Record<string, unknown>;

export type ItemRole = "user" | "assistant" | "system" | "tool" | "other";

/** One message or input item. `at` is its index in `messages` or `input`. */
export interface Item {
  at: number;
  role: ItemRole;
  /** All text parts, joined by line breaks. */
  text: string;
  /** Of a user turn: what the person wrote, without wrappers. */
  own: string;
  /** Ids of tool calls this item opens, and of those it answers. */
  calls: string[];
  answers: string[];
}

export interface Conversation {
  items: Item[];
  turns: Turn[];
  /** The text of the last user turn without context wrappers; "" when it has none (an image). */
  query: string;
  /** The whole text of the last user turn, as it is recorded. */
  userText: string;
  hasAssistant: boolean;
  /** Something stands after the last user turn: a tool loop, or an assistant prefill. */
  open: boolean;
  /** Where a known conversation is looked up: what stands before the last user turn or, in a tool loop, up to it. */
  history: HashPair | null;
  /** The conversation up to and including the last user turn. */
  turn: HashPair | null;
  /** `cache_control` marks anywhere. */
  marked: boolean;
  /** The same pair of hashes once the reply has been said. The function holds on to no text. */
  readonly after: (reply: string) => HashPair;
}

/** Text of a content field in any of its forms: string, parts, null. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const texts: string[] = [];
  for (const part of content as unknown[]) {
    if (typeof part === "string") texts.push(part);
    else if (isObject(part)) {
      if (typeof part["text"] === "string" && part["type"] !== "reasoning") texts.push(part["text"]);
      else if (typeof part["refusal"] === "string") texts.push(part["refusal"]);
    }
  }
  return texts.join("\n");
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The list that holds the conversation, or null when the body has none in the right form. */
export function listOf(wire: Wire, body: JsonBody): unknown[] | null {
  const list = wire === "responses" ? body["input"] : body["messages"];
  if (Array.isArray(list)) return list as unknown[];
  return wire === "responses" && typeof list === "string" ? [{ role: "user", content: list }] : null;
}

export function readConversation(wire: Wire, body: JsonBody): Conversation {
  const items = (listOf(wire, body) ?? []).map((value, at) => readItem(wire, value, at));
  const last = items.findLast((item) => item.role === "user");
  const hasAssistant = items.some((item) => item.role === "assistant");
  const open = last !== undefined && last.at < items.length - 1;
  // A request without memory needs no hashes.
  let hashed: Hashed | null = null;
  const hashes = () => (hashed ??= hashConversation(systemOf(wire, body), items));
  return {
    items,
    query: last?.own ?? "",
    userText: last?.text ?? "",
    hasAssistant,
    open,
    get turns() {
      return hashes().turns;
    },
    get history() {
      if (!last || !hasAssistant) return null;
      return hashes().pair(open ? hashes().turns.at(-1)!.hash : hashes().before);
    },
    get turn() {
      return last ? hashes().pair(hashes().turns.at(-1)!.hash) : null;
    },
    get marked() {
      return hasMark(wire, body);
    },
    get after() {
      return hashes().after;
    },
  };
}

/** What the system is told beside the list. */
function systemOf(wire: Wire, body: JsonBody): string {
  return textOf(wire === "messages" ? body["system"] : wire === "responses" ? body["instructions"] : "");
}

function readItem(wire: Wire, value: unknown, at: number): Item {
  const item: Item = { at, role: "other", text: "", own: "", calls: [], answers: [] };
  if (!isObject(value)) return item;
  if (wire === "chat") readChat(item, value);
  else if (wire === "messages") readMessage(item, value);
  else readInput(item, value);
  if (item.role !== "user") return item;
  item.own = ownText(item.text);
  if (item.own === "" && !hasMedia(value["content"])) item.role = "other";
  return item;
}

function readChat(item: Item, value: JsonBody): void {
  item.text = textOf(value["content"]);
  switch (value["role"]) {
    case "user":
    case "assistant":
      item.role = value["role"];
      break;
    case "system":
    case "developer":
      item.role = "system";
      break;
    case "tool":
    case "function":
      item.role = "tool";
      item.answers.push(stringOf(value["tool_call_id"]) ?? stringOf(value["name"]) ?? "");
      break;
    default:
  }
  if (Array.isArray(value["tool_calls"])) {
    for (const call of value["tool_calls"] as unknown[])
      if (isObject(call)) item.calls.push(stringOf(call["id"]) ?? "");
  }
}

function readMessage(item: Item, value: JsonBody): void {
  const role = value["role"];
  item.role = role === "user" || role === "assistant" || role === "system" ? role : "other";
  item.text = textOf(value["content"]);
  if (!Array.isArray(value["content"])) return;
  for (const part of value["content"] as unknown[]) {
    if (!isObject(part)) continue;
    if (part["type"] === "tool_use") item.calls.push(stringOf(part["id"]) ?? "");
    if (part["type"] === "tool_result") item.answers.push(stringOf(part["tool_use_id"]) ?? "");
  }
  // Results alone, or with nothing but an agent's own reminders, continue a tool loop.
  if (item.role === "user" && item.answers.length > 0 && ownText(item.text) === "") item.role = "tool";
}

function readInput(item: Item, value: JsonBody): void {
  const type = stringOf(value["type"]) ?? "message";
  if (type === "message") {
    const role = value["role"];
    item.text = textOf(value["content"]);
    if (role === "user" || role === "assistant") item.role = role;
    else if (role === "system" || role === "developer") item.role = "system";
  } else if (type.endsWith("_call_output")) {
    item.role = "tool";
    item.answers.push(stringOf(value["call_id"]) ?? "");
  } else if (type.endsWith("_call")) {
    // A call is something the assistant did: history that holds one is not the start of a conversation.
    item.role = "assistant";
    item.calls.push(stringOf(value["call_id"]) ?? "");
  }
}

function stringOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

const MEDIA = /image|audio|file|document|video/;

function hasMedia(content: unknown): boolean {
  return (
    Array.isArray(content) &&
    (content as unknown[]).some((part) => isObject(part) && MEDIA.test(stringOf(part["type"]) ?? ""))
  );
}

function hasMark(wire: Wire, body: JsonBody): boolean {
  if (isObject(body["cache_control"])) return true;
  const marked = (content: unknown): boolean =>
    Array.isArray(content) &&
    (content as unknown[]).some((part) => isObject(part) && isObject(part["cache_control"]));
  if (wire === "messages" && (marked(body["system"]) || marked(body["tools"]))) return true;
  return (listOf(wire, body) ?? []).some(
    (value) => isObject(value) && (isObject(value["cache_control"]) || marked(value["content"])),
  );
}
