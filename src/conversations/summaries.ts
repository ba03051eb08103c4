/** Summaries: what carries a session, in a few of its own sentences or, where one is set, in a model's words. */
import type { Database } from "bun:sqlite";
import { emptyLog, transact } from "../db/open.ts";
import { ensureOwner } from "../db/owners.ts";
import { getSession } from "../db/sessions.ts";
import {
  deleteSummaryRow,
  getSummary,
  insertSummary,
  listSummaries,
  otherAutomatic,
  sessionsToSummarize,
} from "../db/summaries.ts";
import { DAY_MS } from "../db/time.ts";
import { AppError, conflict, notFound } from "../error.ts";
import { cutToTokens, estimateTokens } from "../memory/budget.ts";
import type { Summary } from "../memory/types.ts";
import { readAs, type Caller, type ConversationDeps, type Paging } from "./deps.ts";
import { breathe } from "../memory/breathe.ts";
import { createSalience } from "./salience.ts";

export const DEFAULT_SUMMARY_TOKENS = 500;
/** Of a session that is longer, a model gets its most telling sentences. */
const MODEL_INPUT_TOKENS = 6000;
/** A session with more episodes is summed up by itself. */
const QUIET_EPISODES = 20;
/** How often a session is read whose exchanges are deleted meanwhile. */
const TRIES = 3;
/** How long one step of reading a long session may hold the thread, in milliseconds. */
const SLICE_MS = 8;

type Said = { id: number; user_message: string; ai_response: string };

/** Ids of the episodes that may be recalled, oldest first, up to and including `through`. */
function recallable(db: Database, sessionId: number, through: number | null): number[] {
  return db
    .query<{ id: number }, [number, number | null]>(
      `SELECT e.id FROM episodes e LEFT JOIN episodes t ON t.id = ?2
       WHERE e.session_id = ?1 AND e.recall = 1 AND (t.id IS NULL OR (e.created_at, e.id) <= (t.created_at, t.id))
       ORDER BY e.created_at, e.id`,
    )
    .all(sessionId, through)
    .map((row) => row.id);
}

export function createSummaries(deps: ConversationDeps) {
  const { db, now } = deps;

  function find(caller: Caller, id: number): Summary {
    const summary = getSummary(db, readAs(db, caller), id);
    if (summary === null) throw notFound("summary");
    return summary;
  }

  /**
   * Sums up a session up to the episode `through` (all of it without), at most half as long as what was said. The
   * episodes stay. 409 when there is nothing to sum up.
   */
  async function create(
    input: Caller & {
      sessionId: number;
      maxTokens?: number | undefined;
      through?: number | undefined;
      automatic?: boolean;
    },
    tries = TRIES,
  ): Promise<Summary> {
    const session = getSession(db, readAs(db, input), input.sessionId);
    if (session === null) throw notFound("session");
    const through = input.through ?? null;
    if (through !== null) requireEpisode(session.id, through);
    const read = await readSession(session.id, through);
    if (read === null) throw conflict("Nothing was said in this session that could be summed up.");
    const budget = Math.max(
      20,
      Math.min(input.maxTokens ?? DEFAULT_SUMMARY_TOKENS, Math.ceil(read.tokens / 2)),
    );
    const text = (await byModel(read.text, budget)) ?? read.text(budget);
    const id = transact(db, () => {
      // The session may have gone while a model was writing.
      if (getSession(db, null, session.id) === null) throw notFound("session");
      if (!allThere(read.ids)) return null;
      const owner = ensureOwner(db, session.apiKeyId);
      const made = insertSummary(
        db,
        {
          owner,
          sessionId: session.id,
          text,
          firstEpisodeId: read.first,
          lastEpisodeId: read.last,
          tokenCount: estimateTokens(text),
          automatic: input.automatic ?? false,
        },
        now(),
      );
      deps.hooks.changed(db, "summary", { owner, id: made });
      return made;
    });
    if (id !== null) return getSummary(db, null, id)!;
    if (tries > 1) return create(input, tries - 1);
    throw conflict("Exchanges of this session were deleted while it was summed up; try again.");
  }

  /** Whether these episodes may all still be recalled: what was deleted while a model wrote must not live on in its words. */
  function allThere(ids: readonly number[]): boolean {
    const there = db
      .query<{ n: number }, [string]>(
        "SELECT count(*) AS n FROM episodes WHERE recall = 1 AND id IN (SELECT value FROM json_each(?))",
      )
      .get(JSON.stringify(ids));
    return there?.n === ids.length;
  }

  function requireEpisode(sessionId: number, id: number): void {
    const row = db
      .query<{ id: number }, [number, number]>("SELECT id FROM episodes WHERE id = ? AND session_id = ?")
      .get(id, sessionId);
    if (row === null) throw notFound("episode");
  }

  /** Reads a session in short steps; null when nothing in it may be recalled. */
  async function readSession(sessionId: number, through: number | null) {
    const salience = createSalience((text) => estimateTokens(text) + 2);
    let first: number | null = null;
    let last = 0;
    let exchange = 0;
    let tokens = 0;
    let longest = "";
    const ids: number[] = [];
    const texts = db.query<Said, [number]>("SELECT id, user_message, ai_response FROM episodes WHERE id = ?");
    let started = performance.now();
    for (const id of recallable(db, sessionId, through)) {
      const row = texts.get(id);
      if (row === null) continue;
      ids.push(row.id);
      first ??= row.id;
      last = row.id;
      for (const [role, text] of [
        ["user", row.user_message],
        ["assistant", row.ai_response],
      ] as const) {
        if (text.trim() === "") continue;
        tokens += estimateTokens(text);
        if (text.length > longest.length) longest = text;
        salience.add({ exchange, role, text });
      }
      exchange += 1;
      if (performance.now() - started > SLICE_MS) {
        await breathe();
        started = performance.now();
      }
    }
    if (first === null || tokens === 0) return null;
    const text = (budget: number): string => {
      const lines = salience
        .best(budget)
        .map(({ role, text }) => `${role === "user" ? "User" : "Assistant"}: ${text}`);
      // Nothing but code, or sentences longer than the budget: the beginning of the longest text.
      return lines.length > 0 ? lines.join("\n") : cutToTokens(longest.trim(), budget);
    };
    return { ids, first, last, tokens, text };
  }

  /** A model's summary, free of secrets; null without a model, or when it failed. */
  async function byModel(text: (budget: number) => string, budget: number): Promise<string | null> {
    const written = await deps.write?.({ text: text(MODEL_INPUT_TOKENS), maxTokens: budget });
    if (written == null || written.trim() === "") return null;
    return cutToTokens(deps.redact.text(written.trim()).text, budget);
  }

  /** Sums up sessions that have been quiet for a day and are long; a newer automatic summary takes an older one's place. */
  async function nightly(): Promise<number> {
    const before = now() - DAY_MS;
    let made = 0;
    for (let after = 0; ;) {
      const page = sessionsToSummarize(db, { before, episodes: QUIET_EPISODES, after, limit: 50 });
      for (const { id, owner } of page) {
        const summary = await create({ owner, sessionId: id, automatic: true }).catch((thrown: unknown) => {
          // Deleted meanwhile, or nothing but code in it.
          if (thrown instanceof AppError) return null;
          throw thrown;
        });
        if (summary === null) continue;
        made += 1;
        transact(db, () => {
          const number = ensureOwner(db, owner);
          for (const older of otherAutomatic(db, id, summary.id)) {
            deps.hooks.removed(db, "summary", { owner: number, id: older });
            deleteSummaryRow(db, older);
          }
        });
      }
      const last = page.at(-1);
      if (last === undefined) return made;
      after = last.id;
    }
  }

  async function get(input: Caller & { id: number }): Promise<Summary> {
    return find(input, input.id);
  }

  /** Of one session, oldest first. */
  async function list(
    input: Caller & Paging & { sessionId: number },
  ): Promise<{ data: Summary[]; total: number }> {
    if (getSession(db, readAs(db, input), input.sessionId) === null) throw notFound("session");
    return listSummaries(db, input.sessionId, input);
  }

  async function remove(input: Caller & { id: number }): Promise<{ success: true }> {
    transact(db, () => {
      const summary = find(input, input.id);
      const session = getSession(db, null, summary.sessionId)!;
      deps.hooks.removed(db, "summary", { owner: ensureOwner(db, session.apiKeyId), id: summary.id });
      deleteSummaryRow(db, summary.id);
    });
    emptyLog(db);
    return { success: true };
  }

  return { create, nightly, get, list, remove };
}
