/** The conversation side of the engine: one group of functions, each taking one plain object. */
import { createBulk } from "./bulk.ts";
import type { ConversationDeps } from "./deps.ts";
import { createEntities } from "./entities.ts";
import { createEpisodes } from "./episodes.ts";
import { createRelationships } from "./relationships.ts";
import { createSearch } from "./search.ts";
import { createSessions } from "./sessions.ts";
import { createSummaries } from "./summaries.ts";

export type Conversations = ReturnType<typeof createConversations>;

export function createConversations(deps: ConversationDeps) {
  const sessions = createSessions(deps);
  const episodes = createEpisodes(deps);
  const entities = createEntities(deps);
  const relationships = createRelationships(deps);
  const summaries = createSummaries(deps);
  return {
    createSession: sessions.create,
    getSession: sessions.get,
    sessionByExternal: sessions.byExternal,
    listSessions: sessions.list,
    patchSession: sessions.patch,
    deleteSession: sessions.remove,
    createEpisode: episodes.create,
    getEpisode: episodes.get,
    listEpisodes: episodes.list,
    deleteEpisode: episodes.remove,
    bulk: createBulk(deps),
    upsertEntity: entities.upsert,
    getEntity: entities.get,
    listEntities: entities.list,
    deleteEntity: entities.remove,
    upsertRelationship: relationships.upsert,
    listRelationships: relationships.list,
    deleteRelationship: relationships.remove,
    createSummary: summaries.create,
    getSummary: summaries.get,
    listSummaries: summaries.list,
    deleteSummary: summaries.remove,
    ...createSearch(deps),
    summarizeQuiet: summaries.nightly,
  };
}
