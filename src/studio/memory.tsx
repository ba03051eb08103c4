/** `/dashboard/memory/{id}`: one memory with its history, its origin, its chain and its uses. */
import type { Hono } from "hono";
import type { Env } from "../auth.ts";
import { invalid } from "../error.ts";
import type { Episode } from "../memory/types.ts";
import { memoryHref } from "../../views/format.ts";
import { MemoryPage } from "../../views/memory.tsx";
import {
  chromeOf,
  finish,
  ownersOf,
  readForm,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";

export function memoryRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { memories, related, conversations } = deps.engine;

  /** The exchange a memory came from; null when it is gone. */
  const episodeOf = async (id: number | null): Promise<Episode | null> => {
    if (id === null) return null;
    return conversations.getEpisode({ owner: null, id }).catch(() => null);
  };

  const page = async (c: StudioContext, id: string): Promise<Response> => {
    const memory = await memories.get({ owner: null, id });
    const [chrome, versions, chain, episode] = await Promise.all([
      chromeOf(c, deps),
      memories.history({ owner: null, id }),
      related.chain({ owner: null, id }),
      episodeOf(memory.episodeId),
    ]);
    return show(
      c,
      <MemoryPage
        chrome={chrome}
        memory={memory}
        owners={ownersOf(deps)}
        versions={versions}
        episode={episode}
        uses={[]}
        usesTotal={0}
        replaced={chain.replaced}
        replacedBy={chain.replacedBy}
        tokens={chain.tokens}
        retentionDays={deps.admin.settings.read().retentionDays}
        indexes={[]}
        signature={null}
      />,
    );
  };

  app.get("/dashboard/memory/:id", (c) => page(c, c.req.param("id")));

  app.post("/dashboard/memory/:id/restore", async (c) => {
    const id = c.req.param("id");
    const version = Number((await readForm(c)).fields["version"]);
    if (!Number.isSafeInteger(version)) throw invalid("version", "is the number of a version");
    await memories.restore({ owner: null, id, version });
    return finish(c, { code: "restored" }, { to: memoryHref(id) });
  });

  app.post("/dashboard/memory/:id/restore-originals", async (c) => {
    const id = c.req.param("id");
    const { restored } = await memories.restoreOriginals({ owner: null, id });
    return finish(c, { code: "originals", n: restored }, { to: memoryHref(id) });
  });

  app.post("/dashboard/memory/:id/approve", async (c) => {
    const memory = await memories.approve({ owner: null, id: c.req.param("id") });
    return finish(c, { code: "approved" }, { to: memoryHref(memory.id) });
  });

  app.post("/dashboard/memory/:id/reject", async (c) => {
    await memories.reject({ owner: null, id: c.req.param("id") });
    return finish(c, { code: "rejected" }, { to: "/dashboard/memory/review" });
  });
}
