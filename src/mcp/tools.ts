/** The tools that a model may call: what each takes and gives, and the one engine call behind it. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { invalid, notFound } from "../error.ts";
import { kinds } from "../memory/types.ts";
import { count, ownerName, text, time } from "../schemas/common.ts";
import { contextPackage } from "../schemas/conversations.ts";
import {
  content,
  found,
  key,
  maxTokens,
  memory,
  memoryChanges,
  memoryId,
  memoryType,
  metadata,
  rankedLimit,
  sessionName,
  showFound,
} from "../schemas/memory.ts";

/** Who calls: an API key for its own owner, or management, which names one. */
export type McpCaller =
  | { kind: "management"; ownerExists: (name: string) => boolean }
  | { kind: "key"; owner: string; sharedPool: boolean; scopes: readonly string[] };

export type ToolRun = {
  engine: Engine;
  caller: McpCaller;
  /** Tells the client how far a long call is. */
  progress: (done: number, total: number) => Promise<void>;
  signal: AbortSignal;
};

type Tool<I extends z.ZodObject, O extends z.ZodObject> = {
  name: string;
  title: string;
  description: string;
  scope: "read:memory" | "write:memory";
  input: I;
  output: O;
  /** What the tool does to the world, as MCP's annotations say it. */
  hints: { readOnlyHint: boolean; destructiveHint?: boolean; idempotentHint?: boolean };
  run: (input: z.output<I>, run: ToolRun) => Promise<z.input<O>>;
};

/** A tool whose types are erased: `run` must be given what `input` parsed. */
export type AnyTool = Tool<z.ZodObject, z.ZodObject>;

function tool<I extends z.ZodObject, O extends z.ZodObject>(definition: Tool<I, O>): AnyTool {
  return definition as unknown as AnyTool;
}

const apiKeyId = ownerName
  .exactOptional()
  .meta({ description: "The owner; only the management token may name one." });
const reads = { readOnlyHint: true, idempotentHint: true };
/** Memories deleted between two reports of progress. */
const CLEAR_PAGE = 500;

export const tools: readonly AnyTool[] = [
  tool({
    name: "omniroute_memory_search",
    title: "Search memories",
    description:
      "Finds what is remembered about the person and fits the query, best first. Without a query it gives the newest memories.",
    scope: "read:memory",
    hints: reads,
    input: z.strictObject({
      query: text({ min: 0, max: 65_536 }).exactOptional(),
      type: memoryType.exactOptional(),
      maxTokens: maxTokens.exactOptional(),
      limit: rankedLimit,
      apiKeyId,
    }),
    output: z.strictObject({
      memories: found.memories,
      episodes: found.episodes,
      count,
      totalTokens: count,
      resolution: found.resolution,
    }),
    run: async ({ query, apiKeyId, ...input }, { engine, caller }) => {
      const owner = oneOwner(caller, apiKeyId);
      const result = await engine.retrieval.retrieve({
        ...input,
        owner,
        ...sharedPoolOf(caller),
        query: query ?? null,
        mode: "interactive",
      });
      const { memories, episodes, resolution, totalTokensUsed } = showFound(result);
      return {
        memories,
        episodes,
        count: memories.length + episodes.length,
        totalTokens: totalTokensUsed,
        resolution,
      };
    },
  }),
  tool({
    name: "omniroute_memory_add",
    title: "Remember",
    description:
      "Stores one durable statement about the person. A memory with the same key is updated instead, so choose a stable key such as `preference:editor`.",
    scope: "write:memory",
    hints: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
    input: z.strictObject({
      type: memoryType,
      key,
      content,
      sessionId: sessionName.exactOptional(),
      metadata: metadata.exactOptional(),
      apiKeyId,
    }),
    output: z.strictObject({ memory, created: z.boolean(), redacted: count }),
    run: async ({ apiKeyId, ...input }, { engine, caller }) =>
      engine.memories.create({ ...input, owner: oneOwner(caller, apiKeyId), origin: "mcp" }),
  }),
  tool({
    name: "omniroute_memory_clear",
    title: "Forget many",
    description:
      "Deletes for good all memories, or those of a type or created before a time. Pinned ones stay. Cannot be undone.",
    scope: "write:memory",
    hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
    input: z.strictObject({ type: memoryType.exactOptional(), olderThan: time.exactOptional(), apiKeyId }),
    output: z.strictObject({ deletedCount: count }),
    run: async ({ apiKeyId, ...selection }, { engine, caller, progress, signal }) => {
      const owner = oneOwner(caller, apiKeyId);
      const { matched } = await engine.memories.bulkDelete({ owner, selection, dryRun: true });
      for (let deletedCount = 0; ;) {
        const page = await engine.memories.bulkDelete({ owner, selection, dryRun: false, limit: CLEAR_PAGE });
        deletedCount += page.deleted;
        if (page.deleted < CLEAR_PAGE || signal.aborted) return { deletedCount };
        await progress(deletedCount, Math.max(matched, deletedCount));
      }
    },
  }),
  tool({
    name: "omniroute_memory_update",
    title: "Correct a memory",
    description:
      "Changes fields of one memory; what is left out stays. The earlier version is kept in its history.",
    scope: "write:memory",
    hints: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
    input: z.strictObject({ id: memoryId, ...memoryChanges.shape, apiKeyId }),
    output: z.strictObject({ memory }),
    run: async ({ id, apiKeyId, ...patch }, { engine, caller }) => {
      if (Object.keys(patch).length === 0) throw invalid("content", "name at least one field to change");
      const { memory } = await engine.memories.update({ owner: anyOwner(caller, apiKeyId), id, patch });
      return { memory };
    },
  }),
  tool({
    name: "omniroute_memory_context",
    title: "Recall for a question",
    description:
      "Everything that fits a question under one budget: memories, exchanges, entities with their relationships, and summaries.",
    scope: "read:memory",
    hints: reads,
    input: z.strictObject({
      query: text({ max: 65_536 }),
      kinds: z.array(z.enum(kinds)).min(1).max(4).exactOptional(),
      maxTokens: maxTokens.exactOptional(),
      apiKeyId,
    }),
    output: contextPackage,
    run: ({ apiKeyId, ...input }, { engine, caller }) =>
      engine.context.build({
        ...input,
        owner: oneOwner(caller, apiKeyId),
        ...sharedPoolOf(caller),
      }),
  }),
  tool({
    name: "omniroute_memory_delete",
    title: "Forget one",
    description: "Deletes one memory for good. Cannot be undone.",
    scope: "write:memory",
    hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: false },
    input: z.strictObject({ id: memoryId, apiKeyId }),
    output: z.strictObject({ success: z.literal(true) }),
    run: async ({ id, apiKeyId }, { engine, caller }) => {
      await engine.memories.remove({ owner: anyOwner(caller, apiKeyId), id });
      return { success: true as const };
    },
  }),
];

/** The owner of a call that must have one. */
function oneOwner(caller: McpCaller, named: string | undefined): string {
  const owner = anyOwner(caller, named);
  if (owner === null) throw invalid("apiKeyId", "name the owner that this is for");
  return owner;
}

/** The owner of a call on one row; null: whoever has that row (management). */
function anyOwner(caller: McpCaller, named: string | undefined): string | null {
  if (caller.kind === "key") {
    if (named !== undefined && named !== caller.owner) throw notFound("owner");
    return caller.owner;
  }
  if (named !== undefined && !caller.ownerExists(named)) throw notFound("owner");
  return named ?? null;
}

/** What the caller's key says of the shared pool; management sees what the owner's key would. */
function sharedPoolOf(caller: McpCaller): { sharedPool?: boolean } {
  return caller.kind === "key" ? { sharedPool: caller.sharedPool } : {};
}

/** Whether the caller's scopes reach this tool. */
export function allows(caller: McpCaller, tool: AnyTool): boolean {
  return caller.kind === "management" || caller.scopes.includes(tool.scope);
}
