/** The body of one attempt: a fresh copy for this provider, with only what has to differ from what the client sent. */
import { isObject } from "../memory/conversation.ts";
import type { Conversation, JsonBody, Wire } from "../memory/conversation.ts";
import { inject } from "../memory/inject.ts";
import type { Form, PlacedBlock, Placement, SystemRole, Where } from "../memory/inject.ts";
import type { ParsedBody } from "./body.ts";
import { replaceMembers } from "./splice.ts";

/** What every attempt starts from. */
export interface Asked {
  wire: Wire;
  body: ParsedBody;
  conversation: Conversation;
  blocks: readonly PlacedBlock[];
  placement: Placement;
}

interface AttemptPlan {
  /** The model's name as the provider knows it. */
  model: string;
  role: SystemRole;
  form: Form;
  takesDeveloper: boolean;
  /** Ask for usage in a stream; its chunk is then taken out again. */
  askUsage: boolean;
}

export interface AttemptBody {
  bytes: Buffer;
  where: Where;
}

const FIELDS = ["messages", "input", "instructions", "system"] as const;

export function attemptBody(asked: Asked, plan: AttemptPlan): AttemptBody {
  const { wire, blocks, placement } = asked;
  const { json, text } = asked.body;
  const { role, form } = plan;
  const { body, where } = inject(wire, json, asked.conversation, blocks, { role, form, placement });
  const changes: Record<string, string> = {};
  const next: JsonBody = wire === "chat" && !plan.takesDeveloper ? withoutDeveloper(body) : body;
  if (next !== json)
    for (const field of FIELDS) if (next[field] !== json[field]) changes[field] = JSON.stringify(next[field]);
  if (plan.model !== json["model"]) changes["model"] = JSON.stringify(plan.model);
  if (plan.askUsage) {
    const given = json["stream_options"];
    changes["stream_options"] = JSON.stringify({ ...(isObject(given) ? given : {}), include_usage: true });
  }
  return { bytes: Buffer.from(replaceMembers(text, changes)), where };
}

/** `developer` is `system` under a name that older servers do not know. */
function withoutDeveloper(body: JsonBody): JsonBody {
  const { messages } = body;
  if (!Array.isArray(messages) || !messages.some((one) => isObject(one) && one["role"] === "developer"))
    return body;
  return {
    ...body,
    messages: (messages as unknown[]).map((one) =>
      isObject(one) && one["role"] === "developer" ? { ...one, role: "system" } : one,
    ),
  };
}

/** Whether the client itself asked for usage in its stream. */
export function wantsUsage(body: JsonBody): boolean {
  return isObject(body["stream_options"]) && body["stream_options"]["include_usage"] === true;
}
