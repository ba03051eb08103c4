/** `/api/memory`: the rows themselves. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { count, limit, listOf, offset, success, text } from "../schemas/common.ts";
import {
  memory,
  memoryChanges,
  memoryId,
  memoryOrigin,
  memoryStatus,
  memoryType,
  memoryVersion,
  newMemory,
  selection,
  sessionName,
} from "../schemas/memory.ts";
import { invalidFields } from "../validate.ts";
import { created, operation, type Operation } from "./operation.ts";

const tag = "Memory";
const byId = z.strictObject({ id: memoryId });
const read = { tag, access: "read:memory" } as const;
const write = { tag, access: "write:memory" } as const;

export function memoryOperations({ memories }: Engine): Operation[] {
  return [
    operation({
      ...read,
      method: "get",
      path: "/api/memory",
      summary: "List memories",
      description:
        "Newest first. `q` is a case-folded substring of content or key; the statistics follow the filters. `offset` wins over `page`.",
      owner: "span",
      query: z.strictObject({
        type: memoryType.exactOptional(),
        sessionId: sessionName.exactOptional(),
        q: text({ min: 0, max: 1000 }).exactOptional(),
        status: memoryStatus.default("active"),
        origin: memoryOrigin.exactOptional(),
        sort: z.enum(["createdAt", "updatedAt", "lastAccessedAt"]).default("createdAt"),
        order: z.enum(["asc", "desc"]).default("desc"),
        limit,
        page: z.int().min(1).max(10_000_000).default(1),
        offset: offset.exactOptional(),
      }),
      answer: z.strictObject({
        data: z.array(memory),
        total: count,
        page: z.int(),
        limit: z.int(),
        totalPages: count,
        stats: z.strictObject({
          total: count,
          byType: z.record(memoryType, count),
          tokensUsed: count,
          hitRate: z.number().nullable(),
        }),
        cacheStats: z.strictObject({ hits: count, misses: count, size: count }),
      }),
      handle: async ({ query: { page, ...query }, owner }) => {
        const start = query.offset ?? (page - 1) * query.limit;
        const [list, cacheStats] = await Promise.all([
          memories.list({ ...query, owner, offset: start }),
          memories.cacheStats(),
        ]);
        return {
          ...list,
          page: Math.floor(start / query.limit) + 1,
          limit: query.limit,
          totalPages: Math.ceil(list.total / query.limit),
          cacheStats,
        };
      },
    }),
    operation({
      ...write,
      method: "post",
      path: "/api/memory",
      summary: "Add a memory, or update the active one with the same key",
      owner: "one",
      body: newMemory,
      answer: z.strictObject({
        success: z.literal(true),
        id: memoryId,
        created: z.boolean(),
        memory,
        redacted: z.int().min(1).exactOptional(),
      }),
      statuses: [201, 200],
      handle: async ({ body, owner }) => {
        const made = await memories.create({ ...body, owner: owner!, origin: "api" });
        const answer = {
          success: true as const,
          id: made.memory.id,
          created: made.created,
          memory: made.memory,
          ...(made.redacted > 0 ? { redacted: made.redacted } : {}),
        };
        return made.created ? created(answer) : answer;
      },
    }),
    operation({
      ...write,
      method: "post",
      path: "/api/memory/bulk-delete",
      summary: "Delete for good, by ids or by a filter",
      description: "Pinned memories stay unless their ids are named. `dryRun` only counts.",
      owner: "span",
      body: z.strictObject({
        ...selection,
        dryRun: z.boolean().default(false),
      }),
      answer: z.strictObject({ matched: count, deleted: count, dryRun: z.boolean() }),
      handle: ({ body: { dryRun, ids, ...filter }, owner }) => {
        const filtered = Object.keys(filter).length > 0;
        if (ids !== undefined && filtered) {
          throw invalidFields([{ field: "ids", message: "name either ids or a filter" }]);
        }
        if (ids === undefined && !filtered) {
          throw invalidFields([{ field: "ids", message: "name ids or at least one filter" }]);
        }
        if (ids === undefined && owner === null) {
          throw invalidFields([{ field: "apiKeyId", message: "name the owner that this is for" }]);
        }
        return memories.bulkDelete({ owner, selection: ids === undefined ? filter : { ids }, dryRun });
      },
    }),
    operation({
      ...write,
      method: "post",
      path: "/api/memory/bulk-review",
      summary: "Approve or reject several pending memories",
      owner: "span",
      body: z.strictObject({
        ids: z.array(memoryId).min(1).max(1000),
        action: z.enum(["approve", "reject"]),
      }),
      answer: z.strictObject({
        done: count,
        failed: z.array(z.strictObject({ id: memoryId, message: z.string() })),
      }),
      handle: ({ body: { ids, action }, owner }) => memories.review({ owner, ids, action }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/api/memory/{id}",
      summary: "Get one memory",
      owner: "span",
      params: byId,
      answer: z.strictObject({ memory }),
      handle: async ({ params, owner }) => ({ memory: await memories.get({ owner, id: params.id }) }),
    }),
    operation({
      ...write,
      method: "put",
      path: "/api/memory/{id}",
      summary: "Change some fields of a memory",
      description:
        "Fields left out stay. `metadata` is replaced. The earlier version is kept in the history.",
      owner: "span",
      params: byId,
      body: memoryChanges,
      answer: z.strictObject({ success: z.literal(true), memory, redacted: z.int().min(1).exactOptional() }),
      handle: async ({ params, body, owner }) => {
        const { memory, redacted } = await memories.update({ owner, id: params.id, patch: body });
        return { success: true as const, memory, ...(redacted > 0 ? { redacted } : {}) };
      },
    }),
    operation({
      ...write,
      method: "delete",
      path: "/api/memory/{id}",
      summary: "Delete a memory for good",
      description:
        "`source` deletes the exchange it came from as well; `proof` answers what was found afterwards in every place it could be.",
      owner: "span",
      params: byId,
      query: z.strictObject({ proof: z.boolean().default(false), source: z.boolean().default(false) }),
      answer: z.strictObject({
        success: z.literal(true),
        proof: z
          .strictObject({
            row: count,
            history: count,
            fts: count,
            vectors: count,
            receipts: count,
            blocks: count,
            episodes: count,
            qdrant: z.enum(["confirmed", "pending", "off"]),
          })
          .exactOptional(),
      }),
      handle: ({ params, query, owner }) => memories.remove({ owner, id: params.id, ...query }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/api/memory/{id}/history",
      summary: "All versions of a memory, oldest first",
      owner: "span",
      params: byId,
      answer: listOf(memoryVersion),
      handle: async ({ params, owner }) => {
        const data = await memories.history({ owner, id: params.id });
        return { data, total: data.length };
      },
    }),
    operation({
      ...write,
      method: "post",
      path: "/api/memory/{id}/restore",
      summary: "Make an earlier version the current one",
      owner: "span",
      params: byId,
      body: z.strictObject({ version: z.int().min(1) }),
      answer: z.strictObject({ memory }),
      handle: async ({ params, body, owner }) => ({
        memory: await memories.restore({ owner, id: params.id, version: body.version }),
      }),
    }),
    operation({
      ...write,
      method: "post",
      path: "/api/memory/{id}/approve",
      summary: "Approve a pending memory",
      description: "Where an active memory holds its key by now, that one is updated and answered.",
      owner: "span",
      params: byId,
      body: z.strictObject({}),
      answer: z.strictObject({ memory }),
      handle: async ({ params, owner }) => ({ memory: await memories.approve({ owner, id: params.id }) }),
    }),
    operation({
      ...write,
      method: "post",
      path: "/api/memory/{id}/reject",
      summary: "Reject a pending memory: it is deleted and not learned again",
      owner: "span",
      params: byId,
      body: z.strictObject({}),
      answer: success,
      handle: ({ params, owner }) => memories.reject({ owner, id: params.id }),
    }),
  ];
}
