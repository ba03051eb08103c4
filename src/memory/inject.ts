/**
 * Puts blocks into a request body. Pure, copy on write: what is not changed is shared with the caller's body, which is
 * never touched, so every attempt starts from the same bytes.
 */
import { isObject } from "./conversation.ts";
import type { Conversation, JsonBody, Wire } from "./conversation.ts";

/** What an upstream accepts: system messages anywhere, one leading one, or none. */
export type SystemRole = "system" | "first-only" | "none";
export type Placement = "auto" | "system-first";

/**
 * How a block travels. Weaker forms follow stronger ones when an upstream refuses: `own` (a message, item or system text
 * of its own), `user` (inside the user turn), `none`.
 */
export type Form = "own" | "user" | "none";

export interface Policy {
  role: SystemRole;
  placement: Placement;
  /** The strongest form to try; the policy may already demand a weaker one. */
  form: Form;
}

/** A block for the user turn at index `at` of the conversation. */
export interface PlacedBlock {
  at: number;
  text: string;
}

/** Where the newest block went, as receipts say it. */
export type Where =
  | "before-user"
  | "in-user"
  | "in-first-user"
  | "system-first"
  | "merged-system"
  | "top-level-system"
  | "input-item"
  | "instructions"
  | "none";

/** The form that a policy starts from on a wire format. */
export function firstForm(wire: Wire, policy: Omit<Policy, "form">, marked: boolean): Form {
  if (policy.placement === "system-first" && !marked)
    return policy.role === "none" && wire === "chat" ? "user" : "own";
  if (wire === "messages") return "user";
  return policy.role === "system" ? "own" : "user";
}

/** The next weaker form. */
export function weaker(form: Form): Form {
  return form === "own" ? "user" : "none";
}

/** The body with `blocks` in it (oldest first, the newest last), and where the newest went. */
export function inject(
  wire: Wire,
  body: JsonBody,
  conversation: Conversation,
  blocks: readonly PlacedBlock[],
  policy: Policy,
): { body: JsonBody; where: Where } {
  if (blocks.length === 0 || policy.form === "none") return { body, where: "none" };
  const first = policy.placement === "system-first" && !conversation.marked;
  if (first) {
    const text = blocks.map((block) => block.text).join("\n\n");
    const placed = systemFirst(wire, body, conversation, text, policy);
    if (placed) return placed;
  }
  return beforeTurns(wire, body, conversation, blocks, policy);
}

/** One text ahead of the conversation; null when the form says it belongs into the last user turn. */
function systemFirst(
  wire: Wire,
  body: JsonBody,
  conversation: Conversation,
  text: string,
  policy: Policy,
): { body: JsonBody; where: Where } | null {
  if (wire === "messages") {
    if (policy.form !== "own") return null;
    const system = body["system"];
    const value = Array.isArray(system)
      ? [...(system as unknown[]), { type: "text", text }]
      : typeof system === "string" && system !== ""
        ? `${system}\n\n${text}`
        : text;
    return { body: { ...body, system: value }, where: "top-level-system" };
  }
  if (wire === "responses") {
    if (policy.form !== "own") return null;
    const given = body["instructions"];
    return {
      body: {
        ...body,
        instructions: typeof given === "string" && given !== "" ? `${given}\n\n${text}` : text,
      },
      where: "instructions",
    };
  }
  const messages = body["messages"] as unknown[];
  if (policy.role === "none") {
    // Into the first user turn; a refusal of that leads to the last one only where they differ.
    const at = conversation.turns[0]?.at;
    return at === undefined ? null : { body: intoTurn(wire, body, at, text), where: "in-first-user" };
  }
  if (policy.form !== "own") return null;
  if (policy.role === "system") {
    return {
      body: { ...body, messages: [{ role: "system", content: text }, ...messages] },
      where: "system-first",
    };
  }
  const at = conversation.items.find((item) => item.role === "system")?.at;
  if (at === undefined) {
    return {
      body: { ...body, messages: [{ role: "system", content: text }, ...messages] },
      where: "system-first",
    };
  }
  return { body: intoTurn(wire, body, at, text), where: "merged-system" };
}

/** Each block with its own user turn: as a message before it, or inside it. */
function beforeTurns(
  wire: Wire,
  body: JsonBody,
  conversation: Conversation,
  blocks: readonly PlacedBlock[],
  policy: Policy,
): { body: JsonBody; where: Where } {
  const own = policy.form === "own" && policy.role === "system" && wire !== "messages";
  const field = wire === "responses" ? "input" : "messages";
  const input = body["input"];
  if (wire === "responses" && typeof input === "string") {
    const text = blocks.at(-1)!.text;
    const items = own
      ? [
          { role: "system", content: text },
          { role: "user", content: input },
        ]
      : [
          {
            role: "user",
            content: [
              { type: "input_text", text },
              { type: "input_text", text: input },
            ],
          },
        ];
    return { body: { ...body, input: items }, where: own ? "input-item" : "in-user" };
  }
  const list = [...(body[field] as unknown[])];
  let where: Where = "none";
  // From the end, so that earlier indexes stay right.
  for (const block of blocks.toReversed()) {
    const alone = own && !insideToolCalls(conversation, block.at);
    if (alone) list.splice(block.at, 0, { role: "system", content: block.text });
    else list[block.at] = withText(wire, list[block.at], block.text);
    if (where === "none") where = !alone ? "in-user" : wire === "responses" ? "input-item" : "before-user";
  }
  return { body: { ...body, [field]: list }, where };
}

/** Whether a message put before index `at` would stand between a tool call and its result. */
function insideToolCalls(conversation: Conversation, at: number): boolean {
  const waiting = new Set<string>();
  for (const item of conversation.items) {
    if (item.at >= at) break;
    for (const id of item.calls) waiting.add(id);
    for (const id of item.answers) waiting.delete(id);
  }
  return waiting.size > 0;
}

function intoTurn(wire: Wire, body: JsonBody, at: number, text: string): JsonBody {
  const field = wire === "responses" ? "input" : "messages";
  const list = [...(body[field] as unknown[])];
  list[at] = withText(wire, list[at], text);
  return { ...body, [field]: list };
}

/** A message with `text` before its own: a string stays a string, an array gets one part more. */
function withText(wire: Wire, message: unknown, text: string): unknown {
  if (!isObject(message)) return message;
  const { content } = message;
  if (typeof content === "string" || content == null) {
    return { ...message, content: content ? `${text}\n\n${content}` : text };
  }
  if (!Array.isArray(content)) return message;
  const parts = content as unknown[];
  const type = wire === "responses" ? "input_text" : "text";
  // Anthropic wants tool results first; elsewhere there are none in a user turn.
  const afterResults = parts.findLastIndex((part) => isObject(part) && part["type"] === "tool_result") + 1;
  const firstText = parts.findIndex(
    (part, index) => index >= afterResults && isObject(part) && part["type"] === type,
  );
  const index = firstText < 0 ? afterResults : firstText;
  return { ...message, content: parts.toSpliced(index, 0, { type, text }) };
}
