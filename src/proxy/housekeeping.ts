/** Calls that clients make for themselves: titles, tags, follow-up suggestions, quota probes. They get no memory and leave none. */
import type { Conversation, JsonBody } from "../memory/conversation.ts";
import { textOf } from "../memory/conversation.ts";
import markers from "./housekeeping.json";

/** Markers stand near the beginning; a long paste that quotes one further down is not meant. */
const LOOKED_AT = 3000;

const fold = (text: string): string => text.slice(0, LOOKED_AT).toLowerCase();

export function isHousekeeping(body: JsonBody, conversation: Conversation): boolean {
  for (const name of ["max_tokens", "max_completion_tokens", "max_output_tokens"]) {
    const value = body[name];
    if (typeof value === "number" && value <= 1) return true;
  }
  const user = fold(conversation.query);
  const system = fold(
    [body["system"], body["instructions"]].map(textOf).join("\n") +
      conversation.items
        .filter((item) => item.role === "system")
        .map((item) => item.text)
        .join("\n"),
  );
  return markers.some(({ in: where, all }) => {
    const holds = (text: string) => all.every((marker) => text.includes(marker));
    return where === "user" ? holds(user) : where === "system" ? holds(system) : holds(user) || holds(system);
  });
}
