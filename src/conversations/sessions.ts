/** Sessions: made, found, changed, and deleted with every trace of what was said in them. */
import {
  deleteSessionRow,
  ensureSession,
  getSession,
  listSessions,
  patchSession,
  sessionsByExternal,
} from "../db/sessions.ts";
import { episodeIdsOf } from "../db/episodes.ts";
import { emptyLog, transact } from "../db/open.ts";
import { ensureOwner } from "../db/owners.ts";
import { listSummaries } from "../db/summaries.ts";
import { AppError, notFound } from "../error.ts";
import { cleanMetadata } from "../memory/fields.ts";
import { MANY_ROWS } from "../search/purge.ts";
import { within } from "../within.ts";
import type { JsonObject, Session } from "../memory/types.ts";
import { mergeMetadata, nextBatch, readAs, type Caller, type ConversationDeps, type Paging } from "./deps.ts";
import { dropSourceless } from "./learn.ts";
import { eraseEpisodes, eraseSessionTraces } from "./erase.ts";

/** A batch of a deletion writes out the whole index's marks each time, so it is given longer than others, in milliseconds. */
const SLICE_MS = 20;
/**
 * How long the answer waits for the words of a long session to leave the file, in milliseconds. Nothing finds them any
 * more; a longer merge of the index goes on behind the answer, or after a crash.
 */
const PURGE_WAIT_MS = 250;

export function createSessions(deps: ConversationDeps) {
  const { db, now } = deps;

  function find(caller: Caller, id: number): Session {
    const session = getSession(db, readAs(db, caller), id);
    if (session === null) throw notFound("session");
    return session;
  }

  /** The session of this external id, made when it is unknown; other metadata is merged into a known one. */
  async function create(input: {
    owner: string;
    externalId: string;
    metadata?: JsonObject | undefined;
  }): Promise<{ session: Session; created: boolean; redacted: number }> {
    const metadata = input.metadata === undefined ? null : cleanMetadata(input.metadata, deps.redact);
    const { id, created } = transact(db, () => {
      const owner = ensureOwner(db, input.owner);
      const session = ensureSession(db, owner, input.externalId, metadata?.value ?? {}, now());
      if (!session.created && metadata !== null && Object.keys(metadata.value).length > 0) {
        const merged = mergeMetadata(find(input, session.id).metadata, metadata.value);
        patchSession(db, session.id, { metadata: merged }, now());
      }
      return session;
    });
    return { session: find(input, id), created, redacted: metadata?.count ?? 0 };
  }

  async function get(input: Caller & { id: number }): Promise<Session> {
    return find(input, input.id);
  }

  async function byExternal(input: Caller & { externalId: string }): Promise<Session> {
    const [session, other] = sessionsByExternal(db, readAs(db, input), input.externalId);
    if (session === undefined) throw notFound("session");
    if (other !== undefined) {
      throw new AppError(
        "owner_required",
        "Several owners have a session of this id: name one with apiKeyId.",
        {
          param: "apiKeyId",
        },
      );
    }
    return session;
  }

  /** Newest first. */
  async function list(input: Caller & Paging): Promise<{ data: Session[]; total: number }> {
    return listSessions(db, readAs(db, input), input);
  }

  /** Replaces what is given. */
  async function patch(
    input: Caller & { id: number; metadata?: JsonObject | undefined; pinned?: boolean | undefined },
  ): Promise<Session> {
    const metadata =
      input.metadata === undefined ? undefined : cleanMetadata(input.metadata, deps.redact).value;
    return transact(db, () => {
      find(input, input.id);
      patchSession(db, input.id, { metadata, pinned: input.pinned }, now());
      return find(input, input.id);
    });
  }

  /**
   * Deletes the session with its episodes and summaries, their index rows, and every copy of their text; with
   * `memories` also what was learned from them. A long session goes in many short transactions, the row itself in the
   * last one, so that a crash in between leaves a shorter session that can be deleted again. `partOfMany`: the caller
   * deletes more and finishes the purge itself.
   */
  async function remove(
    input: Caller & { id: number; memories: boolean; partOfMany?: boolean },
  ): Promise<{ success: true }> {
    const session = find(input, input.id);
    const owner = ensureOwner(db, session.apiKeyId);
    // Many rows leave marks in the index, which then is merged once; few are taken out of it one by one.
    const indexes = ["episodes", ...(input.memories ? (["memories"] as const) : [])] as const;
    const many = input.partOfMany === true || episodeIdsOf(db, input.id, MANY_ROWS).length === MANY_ROWS;
    const erased: number[] = [];
    for (let size = 20, gone = false; !gone;) {
      const started = performance.now();
      gone = transact(db, () => {
        const ids = episodeIdsOf(db, input.id, size);
        erased.push(...ids);
        const erase = () => {
          if (input.memories) for (const id of ids) deps.unlearn(db, { owner, episodeId: id });
          eraseEpisodes(deps, owner, ids);
        };
        if (many) deps.purge.marking(indexes, erase);
        else erase();
        if (ids.length === size) return false;
        for (let page = listSummaries(db, input.id, { limit: 200, offset: 0 }); page.data.length > 0;) {
          for (const { id } of page.data) {
            deps.hooks.removed(db, "summary", { owner, id });
            db.query("DELETE FROM summaries WHERE id = ?").run(id);
          }
          page = listSummaries(db, input.id, { limit: 200, offset: 0 });
        }
        if (input.memories) dropSourceless(deps, owner, erased);
        eraseSessionTraces(db, owner, session.externalId);
        deleteSessionRow(db, input.id);
        return true;
      });
      size = nextBatch(size, performance.now() - started, 500, SLICE_MS);
      if (!gone) await deps.purge.rest();
    }
    if (input.partOfMany === true) return { success: true };
    if (many) await within(deps.purge.finish(indexes), PURGE_WAIT_MS);
    else emptyLog(db);
    return { success: true };
  }

  return { create, get, byExternal, list, patch, remove };
}
