/** Episodes: one exchange each, kept verbatim but for secrets. */
import { getEpisode, insertEpisode, listEpisodes } from "../db/episodes.ts";
import { emptyLog, transact } from "../db/open.ts";
import { ensureOwner } from "../db/owners.ts";
import { getSession, sessionIdOf, touchSession } from "../db/sessions.ts";
import { notFound } from "../error.ts";
import { estimateTokens } from "../memory/budget.ts";
import { cleanMetadata } from "../memory/fields.ts";
import type { Episode, JsonObject } from "../memory/types.ts";
import { readAs, type Caller, type ConversationDeps, type Paging } from "./deps.ts";
import { eraseEpisode } from "./erase.ts";

export type EpisodeInput = {
  owner: string;
  /** One of the two names the session, which must exist. */
  sessionId?: number | undefined;
  externalId?: string | undefined;
  userMessage: string;
  aiResponse: string;
  tokenCount?: number | undefined;
  metadata?: JsonObject | undefined;
  /** Whether it teaches like a chat, while memory is on. */
  extract: boolean;
};

export function createEpisodes(deps: ConversationDeps) {
  const { db, now, redact } = deps;

  function find(caller: Caller, id: number): Episode {
    const episode = getEpisode(db, readAs(db, caller), id);
    if (episode === null) throw notFound("episode");
    return episode;
  }

  /** Stores one exchange; its vectors follow by a job of the same transaction. */
  async function create(input: EpisodeInput): Promise<{ episode: Episode; redacted: number }> {
    const user = redact.text(input.userMessage);
    const reply = redact.text(input.aiResponse);
    const metadata = cleanMetadata(input.metadata ?? {}, redact);
    const id = transact(db, () => {
      const owner = ensureOwner(db, input.owner);
      const sessionId = input.sessionId ?? sessionIdOf(db, owner, input.externalId ?? "");
      const session = sessionId === null ? null : getSession(db, owner, sessionId);
      if (session === null) throw notFound("session");
      const at = now();
      const made = insertEpisode(
        db,
        {
          owner,
          sessionId: session.id,
          externalId: session.externalId,
          userMessage: user.text,
          aiResponse: reply.text,
          tokenCount: input.tokenCount ?? estimateTokens(user.text) + estimateTokens(reply.text),
          metadata: metadata.value,
          createdAt: at,
        },
        at,
      );
      touchSession(db, session.id, at);
      deps.hooks.changed(db, "episode", { owner, id: made });
      if (input.extract) deps.teach(db, { owner, episodeId: made });
      return made;
    });
    return { episode: getEpisode(db, null, id)!, redacted: user.count + reply.count + metadata.count };
  }

  async function get(input: Caller & { id: number }): Promise<Episode> {
    return find(input, input.id);
  }

  /** Of one session, oldest first. */
  async function list(
    input: Caller & Paging & { sessionId: number },
  ): Promise<{ data: Episode[]; total: number }> {
    if (getSession(db, readAs(db, input), input.sessionId) === null) throw notFound("session");
    return listEpisodes(db, input.sessionId, input);
  }

  /** What was learned from it stays. */
  async function remove(input: Caller & { id: number }): Promise<{ success: true }> {
    transact(db, () => {
      const episode = find(input, input.id);
      const owner = ensureOwner(db, episode.apiKeyId);
      eraseEpisode(deps, { owner, sessionId: episode.sessionId, id: episode.id });
    });
    emptyLog(db);
    return { success: true };
  }

  return { create, get, list, remove };
}
