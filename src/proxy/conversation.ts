/**
 * The pipeline of the three conversation routes: principal, session, query → retrieve → inject → forward → tee → record.
 */
import { invalid } from "../error.ts";
import { isObject, listOf, readConversation } from "../memory/conversation.ts";
import type { JsonBody, Wire } from "../memory/conversation.ts";
import { admit, checkModel } from "./access.ts";
import { BODY_LIMIT, readBody, stringMember } from "./body.ts";
import type { ByteBudget } from "./body.ts";
import type { ProxyDeps } from "./deps.ts";
import type { Handler } from "./direct.ts";
import { memoryAccess } from "./identity.ts";
import { gate, lookupOf, recall, wanted } from "./recall.ts";
import { answerTurn } from "./reply.ts";
import { saidIn, sessionOf } from "./turn.ts";
import type { ConversationRoute, Usage } from "./turn.ts";

export function conversationRoute(
  deps: ProxyDeps,
  usage: Usage,
  budget: ByteBudget,
  route: ConversationRoute,
): Handler {
  return async (principal, request, headers) => {
    admit(principal, deps);
    const started = performance.now();
    const release = budget.take(Math.min(Number(headers["content-length"]) || 0, BODY_LIMIT));
    try {
      const body = await readBody(request);
      const name = stringMember(body.json, "model");
      checkList(route.wire, body.json);
      const { upstream, model } = await deps.models.route(name, route.wire);
      checkModel(principal, name, upstream.id, model);
      const conversation = readConversation(route.wire, body.json);
      const settings = deps.settings();
      const memory = gate(memoryAccess(principal, headers, body.json, settings), body.json, conversation);
      const lookup = lookupOf(headers, route.wire, body.json, conversation);
      const counting = route.counting === true;
      const prepared = wanted(memory, counting)
        ? await recall(deps, { memory, lookup, conversation, upstream, model, counting })
        : { got: null, reason: memory.reason };
      const kept = memory.owner !== null && (memory.write || prepared.got?.receiptId != null);
      return await answerTurn({
        deps,
        usage,
        route,
        principal,
        request,
        headers,
        sending: { body, conversation },
        sentChars: body.text.length,
        said: kept ? saidIn(conversation, body.json, settings.injectionPlacement) : null,
        memory,
        lookup,
        prepared: prepared.got,
        sessionId: sessionOf(prepared.got, lookup),
        reason: prepared.reason,
        requestId: headers["x-request-id"] ?? crypto.randomUUID(),
        startedAt: started,
        upstream,
        model,
      });
    } finally {
      release();
    }
  };
}

function checkList(wire: Wire, body: JsonBody): void {
  const field = wire === "responses" ? "input" : "messages";
  // A response may be made from a stored prompt or conversation alone.
  if (wire === "responses" && body["input"] === undefined) return;
  const list = listOf(wire, body);
  if (!list) throw invalid(field, wire === "responses" ? "must be a string or an array" : "must be an array");
  if (list.length === 0) throw invalid(field, "must not be empty");
  const bad = list.findIndex((item) => !isObject(item));
  if (bad >= 0) throw invalid(`${field}.${bad}`, "must be an object");
}
