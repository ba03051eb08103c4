/**
 * One reading of a request's conversation for the three wire formats: who said what, where the user turns are, and the
 * hashes by which a conversation is found again. Pure. Hashes cover role and text only, since clients move cache marks,
 * and leave out tools, reasoning and the context wrappers that coding agents add anew each time.
 */

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

/** A user turn and the hash of the conversation up to and including it. */
export interface Turn {
  at: number;
  hash: string;
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

/** Without and with the system messages: these tell apart what else is the same, but some clients put a clock in them. */
export interface HashPair {
  bare: string;
  full: string;
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

/** Tags in which coding agents and chat front ends wrap context of their own. */
const WRAPPERS = [
  "system-reminder",
  "environment_context",
  "environment_details",
  "user_instructions",
  "user_info",
  "project_layout",
  "permissions instructions",
  "collaboration_mode",
  "skills_instructions",
  "instructions",
  "context",
  "attached_files",
  "attachments",
  "additional_data",
  "open_and_recently_viewed_files",
  "ide_context",
  "ide_selection",
  "ide_opened_file",
  "ide_diagnostics",
  "command-name",
  "command-message",
  "command-args",
  "local-command-stdout",
  "local-command-caveat",
  "turn_aborted",
  "user_shell_command",
  "memories",
  "retrieved_context",
  "source",
];
const KNOWN = new Set(WRAPPERS);
const LONGEST = 2 + Math.max(...WRAPPERS.map((name) => name.length));
const AGENTS_MARK = "# AGENTS.md instructions for ";
const AGENTS_HEAD = /^# AGENTS\.md instructions for .*$/m;

/** What the person wrote, without the wrappers. Linear in the text, whatever stands in it. */
export function ownText(text: string): string {
  if (!text.includes("<")) return text.trim();
  const closed = closedTags(text);
  let rest = text;
  // Folding that changes lengths would move the places; such a text has no wrapper worth finding.
  if (closed.size > 0 && text.toLowerCase().length === text.length) {
    for (const name of WRAPPERS) if (closed.has(name)) rest = withoutTag(rest, name);
  }
  return (rest.includes(AGENTS_MARK) ? rest.replace(AGENTS_HEAD, "") : rest).trim();
}

/** The wrappers that are closed somewhere. */
function closedTags(text: string): Set<string> {
  const found = new Set<string>();
  let end = 0;
  for (let at = text.indexOf("</"); at >= 0; at = text.indexOf("</", at + 2)) {
    if (end < at) end = text.indexOf(">", at);
    if (end < 0) break;
    if (end - at > LONGEST) continue;
    const name = text.slice(at + 2, end).toLowerCase();
    if (KNOWN.has(name)) found.add(name);
  }
  return found;
}

/** The text without every `<name …>…</name>`. */
function withoutTag(text: string, name: string): string {
  const folded = text.toLowerCase();
  const close = `</${name}>`;
  let out = "";
  let at = 0;
  for (;;) {
    const open = folded.indexOf(`<${name}`, at);
    const end = open < 0 ? -1 : folded.indexOf(close, open);
    if (end < 0) return out + text.slice(at);
    const after = folded[open + 1 + name.length];
    if (after !== ">" && !/\s/.test(after ?? "")) {
      // Another tag whose name begins alike.
      out += text.slice(at, open + 1);
      at = open + 1;
      continue;
    }
    out += text.slice(at, open);
    at = end + close.length;
  }
}

/** Clients drop the thinking of a reply before they send it back. */
function replyText(text: string): string {
  return text.replace(/^\s*<think(?:ing)?>[\s\S]*?<\/think(?:ing)?>/i, "");
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

/** Text beyond this takes no part in a hash; more of a reply is captured. */
const HASHED = 65_536;

export function readConversation(wire: Wire, body: JsonBody): Conversation {
  const items = (listOf(wire, body) ?? []).map((value, at) => readItem(wire, value, at));
  const last = items.findLast((item) => item.role === "user");
  const hasAssistant = items.some((item) => item.role === "assistant");
  const open = last !== undefined && last.at < items.length - 1;
  // A request without memory needs no hashes.
  let hashed: Hashed | null = null;
  const hashes = () => (hashed ??= hashItems(wire, body, items));
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

interface Hashed {
  turns: Turn[];
  /** How it stood before the last user turn. */
  before: string;
  pair: (bare: string) => HashPair;
  after: (reply: string) => HashPair;
}

function hashItems(wire: Wire, body: JsonBody, items: Item[]): Hashed {
  const chain = new Bun.CryptoHasher("sha256");
  const system = new Bun.CryptoHasher("sha256");
  system.update(
    textOf(wire === "messages" ? body["system"] : wire === "responses" ? body["instructions"] : ""),
  );
  const turns: Turn[] = [];
  let before = "";
  const last = items.findLast((item) => item.role === "user");
  // The steps of one reply are one text, however its parts were cut into items.
  let said = "";
  for (const item of items) {
    if (item.role === "system") system.update(`\0${item.text}`);
    if (item.role === "assistant") said += replyText(item.text);
    if (item.role === "user") {
      say(chain, "assistant", said);
      said = "";
      if (item === last) before = short(chain);
      say(chain, "user", item.own, true);
      turns.push({ at: item.at, hash: short(chain) });
    }
  }
  const systemHash = short(system);
  const pair = (bare: string): HashPair => ({
    bare,
    full: Bun.CryptoHasher.hash("sha256", bare + systemHash, "hex").slice(0, SHORT),
  });
  return {
    turns,
    before,
    pair,
    after(reply) {
      const next = chain.copy();
      say(next, "assistant", said + replyText(reply));
      return pair(short(next));
    },
  };
}

/** A pair of hashes for a conversation that the upstream keeps under a name (`previous_response_id`, `conversation`). */
export function namedHash(kind: "response" | "conversation", id: string): string {
  return Bun.CryptoHasher.hash("sha256", `${kind}\0${id}`, "hex").slice(0, SHORT);
}

/** White space takes no part: clients trim texts and join their parts in ways of their own. */
function say(chain: Bun.CryptoHasher, role: string, text: string, marked = false): void {
  if (text === "" && !marked) return;
  chain.update(`${role}\0${marked ? "\0" : ""}`);
  // One unit less with the mark, which counts as well.
  chain.update(dense(text.slice(0, marked ? HASHED - 1 : HASHED)));
  chain.update("\0");
}

/** The bytes of a text without white space (what `\s` means). */
function dense(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte < 0x80) {
      if (byte > 32 || (byte !== 32 && (byte < 9 || byte > 13))) bytes[length++] = byte;
      continue;
    }
    const wide = wideBlank(bytes, at, byte);
    if (wide === 0) bytes[length++] = byte;
    else at += wide - 1;
  }
  return bytes.subarray(0, length);
}

/** The length of the white space outside ASCII that begins at `at`, else 0. */
function wideBlank(bytes: Buffer, at: number, byte: number): number {
  if (byte === 0xc2) return bytes[at + 1] === 0xa0 ? 2 : 0;
  if (byte !== 0xe2 && byte !== 0xe3 && byte !== 0xe1 && byte !== 0xef) return 0;
  const code = ((byte & 0x0f) << 12) | ((bytes[at + 1]! & 0x3f) << 6) | (bytes[at + 2]! & 0x3f);
  const blank =
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000 ||
    code === 0x1680 ||
    code === 0xfeff;
  return blank ? 3 : 0;
}

/** 128 bits are plenty for telling one owner's conversations apart. In hexadecimal digits. */
const SHORT = 32;

function short(hasher: Bun.CryptoHasher): string {
  return hasher.copy().digest("hex").slice(0, SHORT);
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
