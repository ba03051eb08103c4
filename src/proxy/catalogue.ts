/** GET `/v1/models` and `/v1/models/{id}`: what every provider has, under `provider/model`, and the local ones. */
import type { Context } from "hono";
import type { Env } from "../auth.ts";
import { AppError } from "../error.ts";
import type { ListedModel } from "../upstream/models.ts";
import type { Upstream } from "../upstream/providers.ts";
import { admit } from "./access.ts";
import type { ProxyDeps } from "./deps.ts";

interface Entry extends Record<string, unknown> {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
}

function entryOf(upstream: Upstream, model: ListedModel): Entry {
  return {
    ...model.raw,
    id: `${upstream.id}/${model.id}`,
    object: "model",
    created: model.created,
    owned_by: model.ownedBy,
  };
}

async function catalogue(deps: ProxyDeps): Promise<Entry[]> {
  const [lists, local] = await Promise.all([deps.models.all(), deps.localModels?.() ?? []]);
  const entries = lists.flatMap(({ upstream, models }) => models.map((model) => entryOf(upstream, model)));
  for (const { id, created } of local) entries.push({ id, object: "model", created, owned_by: "recollect" });
  return entries;
}

export function listModelsRoute(deps: ProxyDeps) {
  return async (c: Context<Env>): Promise<Response> => {
    const principal = c.get("principal");
    admit(principal, deps);
    const allowed = principal.kind === "key" ? principal.key.models : null;
    const all = await catalogue(deps);
    const data =
      allowed === null
        ? all
        : all.filter(({ id }) => allowed.includes(id) || allowed.includes(id.slice(id.indexOf("/") + 1)));
    return c.json({ object: "list", data });
  };
}

export function getModelRoute(deps: ProxyDeps) {
  return async (c: Context<Env>): Promise<Response> => {
    admit(c.get("principal"), deps);
    const id = decodeURIComponent(new URL(c.req.url).pathname.slice("/v1/models/".length));
    const all = await catalogue(deps);
    const exact = all.find((one) => one.id === id);
    if (exact) return c.json(exact);
    const bare = all.find((one) => one.id.slice(one.id.indexOf("/") + 1) === id);
    if (bare) return c.json({ ...bare, id });
    throw new AppError("model_not_found", `There is no model ${id}; see GET /v1/models.`, { param: "model" });
  };
}
