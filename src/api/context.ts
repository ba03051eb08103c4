/** The context package. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { kinds } from "../memory/types.ts";
import { ownerName } from "../schemas/common.ts";
import { contextPackage, externalId, rowId, searchText } from "../schemas/conversations.ts";
import { maxTokens, rankedLimit } from "../schemas/memory.ts";
import { operation, sharedPoolOf, type Operation } from "./operation.ts";

export function contextOperations({ context }: Engine): Operation[] {
  return [
    operation({
      tag: "Context",
      method: "post",
      path: "/context",
      summary: "Get what fits a question",
      description:
        "Memories, episodes, entities with their relationships and summaries, ranked together under one budget. `text` is the block as the proxy would inject it, over the kinds asked for. `sessionId` or `externalId` keeps to one session and to memories without one.",
      access: "read:memory",
      owner: "one",
      body: z.strictObject({
        query: searchText,
        sessionId: rowId.exactOptional(),
        externalId: externalId.exactOptional(),
        kinds: z.array(z.enum(kinds)).min(1).max(4).exactOptional(),
        limit: rankedLimit,
        maxTokens: maxTokens.exactOptional(),
        apiKeyId: ownerName.exactOptional(),
      }),
      answer: contextPackage,
      handle: ({ body, owner, key }) => {
        const { apiKeyId: _, ...input } = body;
        return context.build({ ...input, owner: owner!, ...sharedPoolOf(key) });
      },
    }),
  ];
}
