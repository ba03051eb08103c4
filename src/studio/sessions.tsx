/** `/dashboard/activity/sessions`: conversations, their exchanges, what was learned from each. */
import type { Hono } from "hono";
import type { Child } from "hono/jsx";
import type { Env } from "../auth.ts";
import type { Session } from "../memory/types.ts";
import {
  DeleteEpisodeDialog,
  DeleteSessionDialog,
  type SessionDetail,
  sessionHref,
  SessionsPage,
} from "../../views/sessions.tsx";
import { cut } from "../../views/format.ts";
import { frameOf, LIST_PAGE, listPage, ownerFilter, rowId } from "./activity.ts";
import { finish, isPart, leave, readForm, show, type StudioContext, type StudioDeps } from "./context.tsx";

const TURNS = 20;
/** Ids that the proxy or a program made up. */
const NAMELESS = /^(?:h-)?[0-9a-f-]{24,}$/i;
const BASE = "/dashboard/activity/sessions";

export function sessionsRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { conversations, related, receipts } = deps.engine;
  const management = { owner: null };

  /** A session that nobody named is called by what was said first in it, since an id says nothing to a person. */
  const named = async <One extends Session>(session: One): Promise<One> => {
    if (session.metadata["title"] !== undefined || !NAMELESS.test(session.externalId)) return session;
    const { data } = await conversations.listEpisodes({
      ...management,
      sessionId: session.id,
      limit: 1,
      offset: 0,
    });
    const title = data[0]?.userMessage.replaceAll(/\s+/g, " ").trim();
    return title ? { ...session, metadata: { ...session.metadata, title: cut(title, 60) } } : session;
  };

  /** Exchanges newest first; the engine gives them oldest first. */
  const detailOf = async (c: StudioContext, session: Session): Promise<SessionDetail> => {
    const { total } = await conversations.listEpisodes({
      ...management,
      sessionId: session.id,
      limit: 1,
      offset: 0,
    });
    const from = Math.min(Math.max(0, Number(c.req.query("from") ?? 0) || 0), Math.max(0, total - 1));
    const offset = Math.max(0, total - from - TURNS);
    const [page, summaries] = await Promise.all([
      conversations.listEpisodes({
        ...management,
        sessionId: session.id,
        limit: Math.max(1, Math.min(TURNS, total - from)),
        offset,
      }),
      conversations.listSummaries({ ...management, sessionId: session.id, limit: 20, offset: 0 }),
    ]);
    const episodes = page.data.toReversed();
    const ids = episodes.map((episode) => episode.id);
    const [learned, used] = await Promise.all([
      related.learned({ owner: session.apiKeyId, episodeIds: ids }),
      receipts.ofEpisodes({ episodeIds: ids }),
    ]);
    const receiptOf = new Map(used.map((receipt) => [receipt.episodeId, receipt]));
    return {
      ...session,
      episodes: total,
      turns: episodes.map((episode) => ({
        ...episode,
        learned: learned[episode.id] ?? [],
        receipt: receiptOf.get(episode.id) ?? null,
      })),
      turnsTotal: total,
      turnsFrom: from,
      learned: null,
      summaries: summaries.data,
    };
  };

  const page = async (
    c: StudioContext,
    id: number | null,
    dialog?: Child,
    status = 200,
  ): Promise<Response> => {
    const { page: n, from } = listPage(c);
    const owner = ownerFilter(c) || null;
    const [frame, list, asked] = await Promise.all([
      frameOf(c, deps),
      conversations.listSessions({ owner, limit: LIST_PAGE, offset: from }),
      id === null ? null : conversations.getSession({ ...management, id }),
    ]);
    const rows = await Promise.all(list.data.map(named));
    const shown = asked ? await named(asked) : (rows[0] ?? null);
    return show(
      c,
      <SessionsPage
        frame={frame}
        rows={rows.map((session) => ({ ...session, episodes: null }))}
        total={list.total}
        from={from}
        page={n}
        chosen={shown ? await detailOf(c, shown) : null}
        asked={asked !== null}
        dialog={dialog}
      />,
      { status },
    );
  };

  app.get(BASE, (c) => page(c, null));
  app.get(`${BASE}/:id`, (c) => page(c, rowId(c.req.param("id"))));

  for (const verb of ["pin", "unpin"] as const) {
    app.post(`${BASE}/:id/${verb}`, async (c) => {
      const id = rowId(c.req.param("id"));
      await conversations.patchSession({ ...management, id, pinned: verb === "pin" });
      return finish(c, { code: verb === "pin" ? "session-pinned" : "unpinned" }, { to: sessionHref(id) });
    });
  }

  app.post(`${BASE}/:id/summarise`, async (c) => {
    const id = rowId(c.req.param("id"));
    const { data } = await conversations.listEpisodes({ ...management, sessionId: id, limit: 1, offset: 0 });
    if (data.length === 0) return finish(c, { code: "nothing-to-summarise" }, { to: sessionHref(id) });
    await conversations.createSummary({ ...management, sessionId: id });
    return finish(c, { code: "summarised" }, { to: sessionHref(id) });
  });

  app.get(`${BASE}/:id/delete`, async (c) => {
    const id = rowId(c.req.param("id"));
    const [session, { total }] = await Promise.all([
      conversations.getSession({ ...management, id }),
      conversations.listEpisodes({ ...management, sessionId: id, limit: 1, offset: 0 }),
    ]);
    const dialog = <DeleteSessionDialog session={session} episodes={total} />;
    return isPart(c) ? show(c, dialog) : page(c, id, dialog);
  });

  app.post(`${BASE}/:id/delete`, async (c) => {
    const id = rowId(c.req.param("id"));
    const { fields } = await readForm(c);
    await conversations.deleteSession({ ...management, id, memories: fields["memories"] === "true" });
    return leave(c, BASE, { code: "deleted" });
  });

  app.get("/dashboard/activity/episodes/:id/delete", async (c) => {
    const episode = await conversations.getEpisode({ ...management, id: rowId(c.req.param("id")) });
    const dialog = <DeleteEpisodeDialog episode={episode} />;
    return isPart(c) ? show(c, dialog) : page(c, episode.sessionId, dialog);
  });

  app.post("/dashboard/activity/episodes/:id/delete", async (c) => {
    const id = rowId(c.req.param("id"));
    const { sessionId } = await conversations.getEpisode({ ...management, id });
    await conversations.deleteEpisode({ ...management, id });
    return leave(c, sessionHref(sessionId), { code: "deleted" });
  });
}
