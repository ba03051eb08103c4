/** Compacting, export and import of an owner's rows. */
import { z } from "zod";
import { exportStream, importStream } from "../data/transfer.ts";
import type { Engine } from "../engine.ts";
import { AppError } from "../error.ts";
import { count, ownerName, time } from "../schemas/common.ts";
import { memory, memoryId, memoryType, sessionName } from "../schemas/memory.ts";
import { operation, type Operation } from "./operation.ts";

const tag = "Data";
const lineTypes = new Set(["application/x-ndjson", "application/jsonl", "text/plain"]);

export function dataOperations({ memories, data }: Engine): Operation[] {
  return [
    operation({
      tag,
      method: "post",
      path: "/api/memory/summarize",
      summary: "Compact old memories",
      description:
        "`age`: memories neither confirmed nor used for `olderThanDays` become one summary and are archived. `budget`: the newest that fit `maxTokens` stay, the others are cut to three sentences; history keeps the whole. Pinned, standing and pending ones are left alone.",
      access: "write:memory",
      owner: "span",
      exclusive: "summarize",
      body: z.strictObject({
        mode: z.enum(["age", "budget"]).default("age"),
        olderThanDays: z.int().min(1).max(365).default(30),
        maxTokens: z.int().min(0).max(10_000_000).default(4000),
        sessionId: sessionName.optional(),
        apiKeyId: ownerName.optional(),
        dryRun: z.boolean().default(false),
      }),
      answer: z.strictObject({
        candidates: z.array(
          z.strictObject({
            id: memoryId,
            type: memoryType,
            key: z.string().nullable(),
            tokens: count,
            createdAt: time,
          }),
        ),
        candidateCount: count,
        totalTokens: count,
        tokensSaved: count,
        archivedCount: count,
        summaryId: memoryId.nullable(),
        dryRun: z.boolean(),
      }),
      handle: ({ body, owner }) => {
        const { apiKeyId: _, ...input } = body;
        return memories.summarize({ ...input, owner });
      },
    }),
    operation({
      tag,
      method: "post",
      path: "/api/memory/{id}/restore-originals",
      summary: "Undo a summary",
      description:
        "Its originals are active again and the summary is archived. `held` names originals whose key another memory holds by now.",
      access: "write:memory",
      owner: "span",
      params: z.strictObject({ id: memoryId }),
      answer: z.strictObject({ memory, restored: count, held: z.array(memoryId) }),
      handle: ({ params, owner }) => memories.restoreOriginals({ owner, id: params.id }),
    }),
    operation({
      tag,
      method: "get",
      path: "/api/memory/export",
      summary: "Export everything as JSON lines",
      description:
        "First `{format}`, then a line a row with its `kind`: session, episode, memory with its versions, entity, relationship, summary.",
      access: "read:memory",
      owner: "span",
      exclusive: "export",
      query: z.strictObject({ memoriesOnly: z.boolean().default(false) }),
      answer: { type: "application/x-ndjson", description: "One JSON object a line." },
      handle: ({ query, owner }) =>
        new Response(
          exportStream((cursor) => data.exportPage({ owner, cursor, memoriesOnly: query.memoriesOnly })),
          {
            headers: {
              "Content-Type": "application/x-ndjson",
              "Content-Disposition": 'attachment; filename="recollect-export.jsonl"',
              "Cache-Control": "no-store",
            },
          },
        ),
    }),
    operation({
      tag,
      method: "post",
      path: "/api/memory/import",
      summary: "Import JSON lines",
      description:
        "What an export gave, or lines of the same kinds. What is there already is not made again. Refused lines stop no other.",
      access: "write:memory",
      owner: "one",
      exclusive: "import",
      rawBody: { type: "application/x-ndjson", description: "One JSON object a line." },
      answer: z.strictObject({
        created: count,
        updated: count,
        unchanged: count,
        refused: z.array(z.strictObject({ line: z.int().min(1), message: z.string() })),
        refusedCount: count.exactOptional(),
        redacted: count.exactOptional(),
      }),
      handle: ({ request, owner }) => importBody(request, owner!, data),
    }),
  ];
}

async function importBody(request: Request, owner: string, data: Engine["data"]) {
  const type = (request.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
  if (!lineTypes.has(type)) {
    throw new AppError("unsupported_media_type", "Send JSON lines as content type application/x-ndjson.");
  }
  const { redacted, refusedCount, ...answer } = await importStream(data, owner, request.body);
  return {
    ...answer,
    ...(refusedCount > answer.refused.length ? { refusedCount } : {}),
    ...(redacted > 0 ? { redacted } : {}),
  };
}
