/** From messages in order to exchanges: a user's words and the reply that follows, as the verbatim record keeps them. */
import type { JsonObject } from "../memory/types.ts";
import type { Line } from "./types.ts";
import { given } from "./values.ts";

export type Message = { id: string; from: "user" | "assistant"; text: string; at?: string | undefined };

export type Conversation = {
  externalId: string;
  title?: string | undefined;
  source: string;
  createdAt?: string | undefined;
  updatedAt?: string | undefined;
  messages: readonly Message[];
};

/** A session and its episodes. Several messages of one side in a row are one text; nothing said gives no lines. */
export function conversationLines(conversation: Conversation): Line[] {
  const { externalId, source } = conversation;
  const exchanges = exchangesOf(conversation.messages);
  if (exchanges.length === 0) return [];
  const metadata: JsonObject = {
    source,
    ...(conversation.title === undefined ? {} : { title: conversation.title }),
  };
  return [
    {
      kind: "session",
      ...given({
        externalId,
        metadata,
        createdAt: conversation.createdAt,
        updatedAt: conversation.updatedAt,
      }),
    },
    ...exchanges.map((exchange): Line => ({
      kind: "episode",
      ...given({
        externalId,
        importId: `${source}:${exchange.id}`,
        userMessage: exchange.user.join("\n\n"),
        aiResponse: exchange.assistant.join("\n\n"),
        createdAt: exchange.at ?? conversation.createdAt,
      }),
    })),
  ];
}

type Exchange = { id: string; at: string | undefined; user: string[]; assistant: string[] };

function exchangesOf(messages: readonly Message[]): Exchange[] {
  const exchanges: Exchange[] = [];
  let last: Exchange | null = null;
  for (const { id, from, text, at } of messages) {
    if (text.trim() === "") continue;
    if (last === null || (from === "user" && last.assistant.length > 0)) {
      last = { id, at, user: [], assistant: [] };
      exchanges.push(last);
    }
    last[from].push(text);
  }
  return exchanges;
}
