/**
 * ChatGPT's data export: `conversations.json`, a list of conversations whose messages are a tree (`mapping`, by parent and
 * child); `current_node` is the end of the branch that the person saw last. Times are seconds since 1970.
 */
import { conversationLines } from "./conversation.ts";
import type { Message } from "./conversation.ts";
import type { Line } from "./types.ts";
import { isLoose, textOf, timeOf } from "./values.ts";
import type { Loose } from "./values.ts";

/** A session and its episodes, or why there are none. */
export function readChatgpt(value: unknown): Line[] | string {
  if (!isLoose(value) || !isLoose(value["mapping"]))
    return "is no conversation of a ChatGPT export (it has no mapping)";
  const id = textOf(value, "conversation_id", "id");
  if (id === undefined) return "has no id";
  return conversationLines({
    externalId: `chatgpt:${id}`.slice(0, 128),
    source: "chatgpt",
    title: textOf(value, "title"),
    createdAt: timeOf(value["create_time"]),
    updatedAt: timeOf(value["update_time"]),
    messages: branch(value["mapping"], value["current_node"]),
  });
}

/** The messages from the root to `current`, or to the last leaf where none is named. */
function branch(mapping: Loose, current: unknown): Message[] {
  const found: Message[] = [];
  const seen = new Set<string>();
  let id = typeof current === "string" && current in mapping ? current : lastLeaf(mapping);
  while (id !== null && !seen.has(id)) {
    seen.add(id);
    const node = mapping[id];
    if (!isLoose(node)) break;
    const message = messageOf(id, node["message"]);
    if (message) found.push(message);
    id = typeof node["parent"] === "string" ? node["parent"] : null;
  }
  return found.toReversed();
}

function lastLeaf(mapping: Loose): string | null {
  const leaves = Object.entries(mapping).filter(
    ([, node]) => isLoose(node) && (!Array.isArray(node["children"]) || node["children"].length === 0),
  );
  return leaves.at(-1)?.[0] ?? null;
}

/** What a person or the model said; nothing of tools, of the system, or of what the model sent to a tool. */
function messageOf(node: string, message: unknown): Message | null {
  if (!isLoose(message) || !isLoose(message["author"]) || !isLoose(message["content"])) return null;
  const { role } = message["author"];
  if (role !== "user" && role !== "assistant") return null;
  if (typeof message["recipient"] === "string" && message["recipient"] !== "all") return null;
  const { parts, content_type: type } = message["content"];
  if ((type !== "text" && type !== "multimodal_text") || !Array.isArray(parts)) return null;
  const hidden =
    isLoose(message["metadata"]) && message["metadata"]["is_visually_hidden_from_conversation"] === true;
  if (hidden) return null;
  const text = parts.filter((part) => typeof part === "string").join("\n");
  return { id: textOf(message, "id") ?? node, from: role, text, at: timeOf(message["create_time"]) };
}
