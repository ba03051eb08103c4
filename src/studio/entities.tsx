/** `/dashboard/activity/entities`: named things, their links, the small graph. */
import type { Hono } from "hono";
import type { Child } from "hono/jsx";
import type { Env } from "../auth.ts";
import type { Entity } from "../memory/types.ts";
import {
  aliasesOf,
  DeleteEntityDialog,
  EditEntityDialog,
  EntitiesPage,
  type EntityDetail,
  entityHref,
  type EntityLine,
  EntityPick,
  foundEntities,
} from "../../views/entities.tsx";
import { frameOf, LIST_PAGE, listPage, ownerFilter, rowId } from "./activity.ts";
import { errorsOf, isPart, leave, readForm, show, type StudioContext, type StudioDeps } from "./context.tsx";

const BASE = "/dashboard/activity/entities";
const LINKS = 200;

export function entitiesRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { conversations } = deps.engine;
  const management = { owner: null };

  const detailOf = async (entity: Entity): Promise<EntityDetail> => {
    const { data, total } = await conversations.listRelationships({
      ...management,
      entityId: entity.id,
      direction: "both",
      limit: LINKS,
      offset: 0,
    });
    const names = new Map([[entity.id, entity.name]]);
    const others = [...new Set(data.flatMap((link) => [link.fromId, link.toId]))].filter(
      (id) => id !== entity.id,
    );
    const found = await Promise.all(
      others.map((id) => conversations.getEntity({ ...management, id }).catch(() => null)),
    );
    for (const other of found) if (other) names.set(other.id, other.name);
    return {
      ...entity,
      links: total,
      relationships: data.map((link) => ({
        ...link,
        from: names.get(link.fromId) ?? String(link.fromId),
        to: names.get(link.toId) ?? String(link.toId),
      })),
    };
  };

  const list = async (
    c: StudioContext,
  ): Promise<{ rows: EntityLine[]; total: number; from: number; page: number; q: string }> => {
    const { page, from } = listPage(c);
    const q = (c.req.query("q") ?? "").trim().slice(0, 200);
    const { data, total } = await conversations.listEntities({
      owner: ownerFilter(c) || null,
      limit: LIST_PAGE,
      offset: from,
      ...(q ? { named: q } : {}),
    });
    return { rows: data.map((entity) => ({ ...entity, links: null })), total, from, page, q };
  };

  const page = async (
    c: StudioContext,
    id: number | null,
    dialog?: Child,
    status = 200,
  ): Promise<Response> => {
    const [frame, found, asked] = await Promise.all([
      frameOf(c, deps),
      list(c),
      id === null ? null : conversations.getEntity({ ...management, id }),
    ]);
    const shown = asked ?? found.rows[0] ?? null;
    return show(
      c,
      <EntitiesPage
        frame={frame}
        {...found}
        chosen={shown ? await detailOf(shown) : null}
        asked={asked !== null}
        dialog={dialog}
      />,
      { status },
    );
  };

  app.get(BASE, async (c) => {
    if (!isPart(c)) return page(c, null);
    const [frame, found] = await Promise.all([frameOf(c, deps), list(c)]);
    return show(c, <EntityPick frame={frame} {...found} chosen={null} />, {
      say: foundEntities(found.total),
    });
  });
  app.get(`${BASE}/:id`, (c) => page(c, rowId(c.req.param("id"))));

  app.get(`${BASE}/:id/edit`, async (c) => {
    const entity = await conversations.getEntity({ ...management, id: rowId(c.req.param("id")) });
    const dialog = (
      <EditEntityDialog entity={entity} notes={entity.notes ?? ""} aliases={aliasesOf(entity)} errors={{}} />
    );
    return isPart(c) ? show(c, dialog) : page(c, entity.id, dialog);
  });

  app.post(`${BASE}/:id/edit`, async (c) => {
    const entity = await conversations.getEntity({ ...management, id: rowId(c.req.param("id")) });
    const { fields } = await readForm(c);
    const notes = fields["notes"] ?? "";
    const aliases = (fields["aliases"] ?? "")
      .split(",")
      .map((alias) => alias.trim())
      .filter(Boolean);
    try {
      await conversations.upsertEntity({
        owner: entity.apiKeyId,
        name: entity.name,
        type: entity.type,
        notes: notes.trim() === "" ? null : notes,
        metadata: { aliases },
      });
      return leave(c, entityHref(entity.id), { code: "saved" });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      const dialog = (
        <EditEntityDialog entity={entity} notes={notes} aliases={fields["aliases"] ?? ""} errors={errors} />
      );
      return isPart(c) ? show(c, dialog, { status }) : page(c, entity.id, dialog, status);
    }
  });

  app.get(`${BASE}/:id/delete`, async (c) => {
    const entity = await conversations.getEntity({ ...management, id: rowId(c.req.param("id")) });
    const { links } = await detailOf(entity);
    const dialog = <DeleteEntityDialog entity={entity} links={links ?? 0} />;
    return isPart(c) ? show(c, dialog) : page(c, entity.id, dialog);
  });

  app.post(`${BASE}/:id/delete`, async (c) => {
    await conversations.deleteEntity({ ...management, id: rowId(c.req.param("id")) });
    return leave(c, BASE, { code: "deleted" });
  });
}
