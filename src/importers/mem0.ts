/** mem0: what `get_all` gives (`{results: [{id, memory, metadata, created_at, user_id …}]}`), or a list of such memories. */
import type { JsonObject } from "../memory/types.ts";
import type { Line } from "./types.ts";
import { given, isLoose, objectOf, textOf, timeOf, uuidOf } from "./values.ts";

const kept = ["user_id", "agent_id", "run_id", "app_id", "categories"] as const;

/** One memory, or why it is none. The id stays, so that a second import changes nothing. */
export function readMem0(value: unknown): Line[] | string {
  if (!isLoose(value)) return "is no memory";
  const content = textOf(value, "memory", "data", "text", "content");
  if (content === undefined) return "has no text in memory";
  const metadata: JsonObject = { ...objectOf(value["metadata"]), source: "mem0" };
  for (const name of kept) {
    const one = value[name];
    if (typeof one === "string" || (Array.isArray(one) && one.every((part) => typeof part === "string")))
      metadata[name] = one;
  }
  return [
    {
      kind: "memory",
      content,
      ...given({
        id: uuidOf(value["id"]),
        metadata,
        createdAt: timeOf(value["created_at"]),
        expiresAt: timeOf(value["expiration_date"]),
      }),
    },
  ];
}
