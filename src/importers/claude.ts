/** Claude's data export: `conversations.json`, a list of conversations with `chat_messages` in order, sender `human` or `assistant`. */
import { conversationLines } from "./conversation.ts";
import type { Message } from "./conversation.ts";
import type { Line } from "./types.ts";
import { isLoose, textOf, timeOf } from "./values.ts";

/** A session and its episodes, or why there are none. */
export function readClaude(value: unknown): Line[] | string {
  if (!isLoose(value) || !Array.isArray(value["chat_messages"])) {
    return "is no conversation of a Claude export (it has no chat_messages)";
  }
  const id = textOf(value, "uuid");
  if (id === undefined) return "has no uuid";
  return conversationLines({
    externalId: `claude:${id}`.slice(0, 128),
    source: "claude",
    title: textOf(value, "name"),
    createdAt: timeOf(value["created_at"]),
    updatedAt: timeOf(value["updated_at"]),
    messages: value["chat_messages"].map(messageOf).filter((message) => message !== null),
  });
}

function messageOf(value: unknown, index: number): Message | null {
  if (!isLoose(value)) return null;
  const sender = String(value["sender"]).toLowerCase();
  const from = sender === "human" || sender === "user" ? "user" : sender === "assistant" ? "assistant" : null;
  if (from === null) return null;
  return {
    id: textOf(value, "uuid") ?? `message-${index}`,
    from,
    text: blocks(value["content"]) || (textOf(value, "text") ?? ""),
    at: timeOf(value["created_at"]),
  };
}

/** The text blocks alone: thinking, tool calls and their results are not what was said. */
function blocks(content: unknown): string {
  if (!Array.isArray(content)) return "";
  return content
    .filter((block) => isLoose(block) && block["type"] === "text" && typeof block["text"] === "string")
    .map((block) => (block as { text: string }).text)
    .join("\n");
}
