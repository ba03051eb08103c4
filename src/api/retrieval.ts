/** `/api/memory`: what would be recalled, and the state of the parts that recall. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { AppError } from "../error.ts";
import { count, text, time } from "../schemas/common.ts";
import { found, maxTokens, rankedLimit, sessionName, showFound, strategy } from "../schemas/memory.ts";
import { engineStatus } from "../schemas/status.ts";
import type { Models } from "../upstream/models.ts";
import type { Providers } from "../upstream/providers.ts";
import { eventStream, pause, type ServerEvent } from "./events.ts";
import { embeddingModels } from "./embedding-models.ts";
import { operation, sharedPoolOf, type Operation } from "./operation.ts";

const read = { tag: "Retrieval", access: "read:memory" } as const;
/** How often the state of a reindexing is looked at. */
const POLL_MS = 250;

export type RetrievalDeps = { engine: Engine; providers: Providers; models: Models };

export function retrievalOperations({ engine, providers, models }: RetrievalDeps): Operation[] {
  /** Owners (empty: all of them) for whom a reindexing was started. */
  const reindexing = new Set<string>();
  return [
    operation({
      ...read,
      method: "post",
      path: "/api/memory/retrieve-preview",
      summary: "What a request with this query would be given, and why",
      description: "The same function as in the proxy. Changes nothing, not even counters.",
      owner: "one",
      body: z.strictObject({
        query: text({ min: 0, max: 65_536 }),
        strategy: strategy.exactOptional(),
        maxTokens: maxTokens.exactOptional(),
        limit: rankedLimit,
        sessionId: sessionName.exactOptional(),
        asOf: time.exactOptional(),
      }),
      answer: z.strictObject(found),
      handle: async ({ body, owner, key }) =>
        showFound(
          await engine.retrieval.retrieve({
            ...body,
            owner: owner!,
            ...sharedPoolOf(key),
            mode: "interactive",
            count: false,
          }),
        ),
    }),
    operation({
      ...read,
      method: "get",
      path: "/api/memory/health",
      summary: "A real round trip: extract, store, find, delete",
      description: "The result of the last one when that was within 10 seconds. `error` is for management.",
      answer: z.strictObject({
        working: z.boolean(),
        latencyMs: z.number().min(0),
        error: z.string().exactOptional(),
        checkedAt: time,
      }),
      handle: async ({ management }) => {
        const { error, ...health } = await engine.status.health();
        return { ...health, ...(error !== undefined && management ? { error } : {}) };
      },
    }),
    operation({
      ...read,
      method: "get",
      path: "/api/memory/engine-status",
      summary: "Which parts work, in words and numbers",
      description: "To an API key it shows no host, no error text, and counts of its own rows only.",
      owner: "span",
      answer: engineStatus,
      handle: ({ owner, management }) => engine.status.engine({ owner, brief: !management }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/api/memory/embedding-providers",
      summary: "What could make vectors: the models of this box and of the providers",
      answer: z.strictObject({
        providers: z.array(
          z.strictObject({
            provider: z.string(),
            hasKey: z.boolean(),
            models: z.array(
              z.strictObject({ id: z.string(), name: z.string(), dimensions: z.int().nullable() }),
            ),
          }),
        ),
      }),
      handle: async () => ({
        providers: await embeddingModels(engine, providers, models),
      }),
    }),
    operation({
      tag: read.tag,
      method: "post",
      path: "/api/memory/reindex",
      summary: "Embed what has no vector yet",
      description:
        "`force` embeds everything anew (without `apiKeyId` the copy of texts for `q` is made anew too) and is management's. Answers at once; see the events.",
      access: "write:memory",
      owner: "span",
      exclusive: "reindex",
      body: z.strictObject({ force: z.boolean().default(false) }),
      answer: z.strictObject({ started: z.boolean(), pending: count }),
      handle: async ({ body, owner, management }) => {
        if (body.force && !management) {
          throw new AppError("insufficient_scope", "`force` needs the management token.");
        }
        const name = owner ?? "";
        if (reindexing.has(name) && isBusy(await engine.index.progress({ owner }))) {
          throw new AppError("busy", "A reindexing runs already; its events say how far it is.", {
            retryAfter: 5,
          });
        }
        const { pending } = await engine.index.start({ force: body.force, owner });
        const { source } = await engine.models.embedding();
        const started = source !== null && pending > 0;
        if (started) reindexing.add(name);
        else reindexing.delete(name);
        return { started, pending };
      },
    }),
    operation({
      ...read,
      method: "get",
      path: "/api/memory/reindex/events",
      summary: "How far the embedding is",
      description: "Events: `progress` with `{done, total}`, then `done`.",
      owner: "span",
      answer: { type: "text/event-stream", description: "progress, then done" },
      handle: ({ owner }) => eventStream((signal) => progress(engine, owner, signal)),
    }),
  ];
}

type Progress = Awaited<ReturnType<Engine["index"]["progress"]>>;

function isBusy({ pending, building }: Progress): boolean {
  return pending > 0 || building !== null;
}

async function* progress(
  engine: Engine,
  owner: string | null,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  for (let last = ""; !signal.aborted; await pause(POLL_MS, signal)) {
    const state = await engine.index.progress({ owner });
    const { rows, pending, building } = state;
    const data = building && owner === null ? building : { done: rows - pending, total: rows };
    const event = { done: data.done, total: data.total };
    if (JSON.stringify(event) !== last) yield { event: "progress", data: event };
    last = JSON.stringify(event);
    // Without a model nothing will ever move.
    const { source } = await engine.models.embedding();
    if (!isBusy(state) || source === null) return yield { event: "done", data: event };
  }
}
