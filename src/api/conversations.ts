/** The conversation routes; here sessions and episodes: the verbatim record, for programs that do not talk through the proxy. */
import { z } from "zod";
import { bulkImport } from "./bulk.ts";
import { contextOperations } from "./context.ts";
import { entityOperations } from "./entities.ts";
import { summaryOperations } from "./summaries.ts";
import type { Engine } from "../engine.ts";
import { listOf, success } from "../schemas/common.ts";
import {
  bulkAnswer,
  episode,
  externalId,
  foundEpisode,
  foundOf,
  newEpisode,
  newSession,
  paging,
  pathId,
  redacted,
  rowId,
  searchLimit,
  searchText,
  session,
  sessionPatch,
  withRedacted,
} from "../schemas/conversations.ts";
import { operation, Reply, type Operation } from "./operation.ts";

const byId = z.strictObject({ id: pathId });
/** One exchange may hold two long documents, with every character escaped. */
const EPISODE_LIMIT = 16 * 1024 * 1024;

export function conversationOperations(engine: Engine): Operation[] {
  return [
    ...sessionOperations(engine),
    ...episodeOperations(engine),
    ...entityOperations(engine),
    ...summaryOperations(engine),
    ...contextOperations(engine),
  ];
}

function sessionOperations({ conversations }: Engine): Operation[] {
  const read = { tag: "Sessions", access: "read:memory", owner: "span" } as const;
  const write = { tag: "Sessions", access: "write:memory", owner: "span" } as const;
  return [
    operation({
      ...write,
      owner: "one",
      method: "post",
      path: "/sessions",
      summary: "Make a session",
      description:
        "A known `externalId` answers 200 with its session; other metadata is merged into it shallowly.",
      body: newSession,
      answer: session.extend(redacted),
      statuses: [200, 201],
      handle: async ({ body, owner }) => {
        const made = await conversations.createSession({
          owner: owner!,
          externalId: body.externalId,
          metadata: body.metadata,
        });
        return new Reply(made.created ? 201 : 200, withRedacted(made.session, made.redacted));
      },
    }),
    operation({
      ...read,
      method: "get",
      path: "/sessions",
      summary: "List sessions",
      description: "Newest first.",
      query: paging,
      answer: listOf(session),
      handle: ({ query, owner }) => conversations.listSessions({ owner, ...query }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/sessions/by-external/{externalId}",
      summary: "Get a session by the client's own id",
      params: z.strictObject({ externalId }),
      answer: session,
      handle: ({ params, owner }) =>
        conversations.sessionByExternal({ owner, externalId: params.externalId }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/sessions/{id}",
      summary: "Get a session",
      params: byId,
      answer: session,
      handle: ({ params, owner }) => conversations.getSession({ owner, id: params.id }),
    }),
    operation({
      ...write,
      method: "patch",
      path: "/sessions/{id}",
      summary: "Change a session",
      description: "A pinned session's episodes do not leave retrieval with age. `metadata` is replaced.",
      params: byId,
      body: sessionPatch,
      answer: session,
      handle: ({ params, body, owner }) => conversations.patchSession({ owner, id: params.id, ...body }),
    }),
    operation({
      ...write,
      method: "delete",
      path: "/sessions/{id}",
      summary: "Delete a session",
      description:
        "With its episodes and summaries. What was learned from them stays unless `memories` is true. Nothing of them is found once this answers; the words of a long session may take a moment longer to leave the file.",
      params: byId,
      query: z.strictObject({ memories: z.boolean().default(false) }),
      answer: success,
      handle: ({ params, query, owner }) =>
        conversations.deleteSession({ owner, id: params.id, memories: query.memories }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/sessions/{id}/episodes",
      summary: "List a session's episodes",
      description: "Oldest first.",
      params: byId,
      query: paging,
      answer: listOf(episode),
      handle: ({ params, query, owner }) =>
        conversations.listEpisodes({ owner, sessionId: params.id, ...query }),
    }),
  ];
}

function episodeOperations({ conversations }: Engine): Operation[] {
  const read = { tag: "Episodes", access: "read:memory", owner: "span" } as const;
  const write = { tag: "Episodes", access: "write:memory", owner: "span" } as const;
  return [
    operation({
      ...write,
      owner: "one",
      method: "post",
      path: "/episodes",
      summary: "Store an exchange",
      description:
        "Either text may be empty, not both. It teaches like a chat while memory is on; `extract=false` stops that.",
      query: z.strictObject({ extract: z.boolean().default(true) }),
      body: newEpisode,
      maxBody: EPISODE_LIMIT,
      answer: episode.extend(redacted),
      statuses: [201],
      handle: async ({ body, query, owner, key }) => {
        const { apiKeyId: _, ...fields } = body;
        // A key with memory off writes its record and teaches nothing.
        const extract = query.extract && key?.memory !== "off";
        const made = await conversations.createEpisode({ ...fields, owner: owner!, extract });
        return new Reply(201, withRedacted(made.episode, made.redacted));
      },
    }),
    operation({
      ...write,
      owner: "one",
      method: "post",
      path: "/episodes/bulk",
      summary: "Import exchanges",
      description:
        "JSON lines `{id?, externalId, userMessage?, aiResponse?, createdAt?, tokenCount?, metadata?}`. Sessions are made where they are unknown. The same `id`, or without one the same session, time and texts, is stored once. Refused lines do not stop the others. Teaches with `extract=true` alone.",
      query: z.strictObject({ extract: z.boolean().default(false) }),
      rawBody: { type: "application/x-ndjson", description: "JSON lines, 32 MiB at most." },
      answer: bulkAnswer,
      handle: ({ request, query, owner, key }) => {
        const extract = query.extract && key?.memory !== "off";
        return bulkImport(request, (piece) => conversations.bulk({ ...piece, owner: owner!, extract }));
      },
    }),
    operation({
      ...read,
      owner: "one",
      method: "get",
      path: "/episodes/search",
      summary: "Search episodes",
      description:
        "`keyword`, `semantic` or `hybrid`; by words where there are no vectors. `sessionId` or `externalId` keeps to one session.",
      query: z.strictObject({
        q: searchText,
        limit: searchLimit,
        mode: z.enum(["keyword", "semantic", "hybrid"]).default("hybrid"),
        sessionId: rowId.exactOptional(),
        externalId: externalId.exactOptional(),
      }),
      answer: foundOf(foundEpisode),
      handle: ({ query: { q, ...query }, owner }) =>
        conversations.searchEpisodes({ ...query, query: q, owner: owner! }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/episodes/{id}",
      summary: "Get an episode",
      params: byId,
      answer: episode,
      handle: ({ params, owner }) => conversations.getEpisode({ owner, id: params.id }),
    }),
    operation({
      ...write,
      method: "delete",
      path: "/episodes/{id}",
      summary: "Delete an episode",
      description: "What was learned from it stays; summaries that cover it become stale.",
      params: byId,
      answer: success,
      handle: ({ params, owner }) => conversations.deleteEpisode({ owner, id: params.id }),
    }),
  ];
}
