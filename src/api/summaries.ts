/** Summaries of sessions. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { listOf, success } from "../schemas/common.ts";
import { newSummary, paging, pathId, summary } from "../schemas/conversations.ts";
import { created, operation, type Operation } from "./operation.ts";

const byId = z.strictObject({ id: pathId });

export function summaryOperations({ conversations }: Engine): Operation[] {
  const read = { tag: "Summaries", access: "read:memory", owner: "span" } as const;
  const write = { tag: "Summaries", access: "write:memory", owner: "span" } as const;
  return [
    operation({
      ...write,
      method: "post",
      path: "/sessions/{id}/summaries",
      summary: "Sum up a session",
      description:
        "In its own sentences, or by the model of `extractionModel` when one is set. The episodes stay. 409 when nothing was said.",
      params: byId,
      body: newSummary,
      answer: summary,
      statuses: [201],
      handle: async ({ params, body, owner }) =>
        created(await conversations.createSummary({ owner, sessionId: params.id, ...body })),
    }),
    operation({
      ...read,
      method: "get",
      path: "/sessions/{id}/summaries",
      summary: "List a session's summaries",
      description: "Oldest first.",
      params: byId,
      query: paging,
      answer: listOf(summary),
      handle: ({ params, query, owner }) =>
        conversations.listSummaries({ owner, sessionId: params.id, ...query }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/summaries/{id}",
      summary: "Get a summary",
      params: byId,
      answer: summary,
      handle: ({ params, owner }) => conversations.getSummary({ owner, id: params.id }),
    }),
    operation({
      ...write,
      method: "delete",
      path: "/summaries/{id}",
      summary: "Delete a summary",
      params: byId,
      answer: success,
      handle: ({ params, owner }) => conversations.deleteSummary({ owner, id: params.id }),
    }),
  ];
}
