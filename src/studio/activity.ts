/** What the Activity pages share: the chosen owner, figures beside the tabs, paging. */
import type { ActivityFrame } from "../../views/activity.tsx";
import { chromeOf, ownersOf, pageOf, type StudioContext, type StudioDeps } from "./context.tsx";

export const LIST_PAGE = 20;

export const ownerFilter = (c: StudioContext): string => (c.req.query("owner") ?? "").slice(0, 400);

export const listPage = (c: StudioContext): { page: number; from: number } => {
  const page = pageOf(c.req.query("page"));
  return { page, from: (page - 1) * LIST_PAGE };
};

export async function frameOf(c: StudioContext, deps: StudioDeps): Promise<ActivityFrame> {
  const owner = ownerFilter(c);
  const who = { owner: owner || null, limit: 1, offset: 0 };
  const [chrome, receipts, sessions, entities] = await Promise.all([
    chromeOf(c, deps),
    deps.engine.receipts.lines(who),
    deps.engine.conversations.listSessions(who),
    deps.engine.conversations.listEntities(who),
  ]);
  return {
    chrome,
    owner,
    owners: ownersOf(deps),
    counts: { receipts: receipts.total, sessions: sessions.total, entities: entities.total },
  };
}

/** A row id of a path: a positive whole number, else nothing is there. */
export const rowId = (text: string): number => (/^[1-9]\d{0,15}$/.test(text) ? Number(text) : -1);
