/** `/api/memory/receipts`: what was injected into requests, and why. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { limit, listOf, offset } from "../schemas/common.ts";
import { sessionName } from "../schemas/memory.ts";
import { receipt, receiptDetail } from "../schemas/receipts.ts";
import { operation, type Operation } from "./operation.ts";

const base = { tag: "Receipts", access: "read:memory", owner: "span" } as const;

export function receiptOperations({ receipts }: Engine): Operation[] {
  return [
    operation({
      ...base,
      method: "get",
      path: "/api/memory/receipts",
      summary: "What was injected into requests, newest first",
      query: z.strictObject({ sessionId: sessionName.exactOptional(), limit, offset: offset.default(0) }),
      answer: listOf(receipt),
      handle: ({ query, owner }) => receipts.list({ ...query, owner }),
    }),
    operation({
      ...base,
      method: "get",
      path: "/api/memory/receipts/{id}",
      summary: "One receipt with its candidates, their ranks, and the text",
      params: z.strictObject({ id: z.uuid() }),
      answer: z.strictObject({ receipt: receiptDetail }),
      handle: async ({ params, owner }) => ({ receipt: await receipts.get({ owner, id: params.id }) }),
    }),
  ];
}
