/** `/dashboard/memory/{id}`: one memory with its history, its origin, its chain and its uses. */
import type { Hono } from "hono";
import type { Env } from "../auth.ts";
import { invalid } from "../error.ts";
import type { Episode } from "../memory/types.ts";
import { memoryHref } from "../../views/format.ts";
import { MemoryPage, type MemoryUse } from "../../views/memory.tsx";
import {
  chromeOf,
  finish,
  ownersOf,
  readForm,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";
import { indexesOf, readStatus } from "./engine-status.ts";

const SHOWN = 10;

export function memoryRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { memories, related, conversations, receipts } = deps.engine;

  /** The exchange a memory came from; null when it is gone. */
  const episodeOf = async (id: number | null): Promise<Episode | null> => {
    if (id === null) return null;
    return conversations.getEpisode({ owner: null, id }).catch(() => null);
  };

  /** The newest requests that were given it, with its place among the others. */
  const usesOf = async (id: string): Promise<MemoryUse[]> => {
    const found = await receipts.using({ owner: null, kind: "memory", id, limit: SHOWN });
    const details = await Promise.all(found.map((one) => receipts.get({ owner: null, id: one.id })));
    const episodes = await Promise.all(details.map((one) => episodeOf(one.episodeId)));
    return found.map((receipt, i) => {
      const given = receipt.candidates.filter((candidate) => candidate.injected);
      const rank = given.findIndex((candidate) => candidate.kind === "memory" && candidate.id === id);
      return {
        receiptId: receipt.id,
        query: episodes[i]?.userMessage.slice(0, 200) || null,
        model: [receipt.provider, receipt.model].filter(Boolean).join("/") || null,
        rank: rank < 0 ? null : rank + 1,
        of: given.length,
        score: given[rank]?.score ?? null,
        injected: rank >= 0,
        at: receipt.createdAt,
      };
    });
  };

  const page = async (c: StudioContext, id: string): Promise<Response> => {
    const memory = await memories.get({ owner: null, id });
    const [chrome, versions, chain, episode, uses, usesTotal, status] = await Promise.all([
      chromeOf(c, deps),
      memories.history({ owner: null, id }),
      related.chain({ owner: null, id }),
      episodeOf(memory.episodeId),
      usesOf(id),
      receipts.countUsing({ kind: "memory", id }),
      readStatus(deps),
    ]);
    return show(
      c,
      <MemoryPage
        chrome={chrome}
        memory={memory}
        owners={ownersOf(deps)}
        versions={versions}
        episode={episode}
        uses={uses}
        usesTotal={usesTotal}
        replaced={chain.replaced}
        replacedBy={chain.replacedBy}
        tokens={chain.tokens}
        retentionDays={deps.admin.settings.read().retentionDays}
        indexes={indexesOf(status, memory)}
        signature={status.vectorStore.signature}
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
