/** `/dashboard/activity/receipts`: what each request was given, and why. */
import type { Hono } from "hono";
import type { Env } from "../auth.ts";
import { AppError } from "../error.ts";
import { estimateTokens } from "../memory/budget.ts";
import type { Kind } from "../memory/types.ts";
import { askOnce } from "../upstream/ask-once.ts";
import { type Comparison, ComparisonView } from "../../views/comparison.tsx";
import { memoryHref } from "../../views/format.ts";
import { resultHref } from "../../views/playground.tsx";
import type { ReceiptDetail, ReceiptLine } from "../../views/receipt.tsx";
import { ReceiptsPage } from "../../views/receipts.tsx";
import { frameOf, LIST_PAGE, listPage, ownerFilter } from "./activity.ts";
import { isPart, show, type StudioContext, type StudioDeps } from "./context.tsx";

const BASE = "/dashboard/activity/receipts";
/** Words of the question that are shown and can be asked again. */
const QUESTION = 2000;

interface StoredLine {
  id: string;
  createdAt: string;
  apiKeyId: string | null;
  injected: number;
  tokens: number;
  reason: string | null;
  query: string | null;
}

export const lineOf = (line: StoredLine): ReceiptLine => ({
  id: line.id,
  ownerId: line.apiKeyId ?? "",
  query: line.query || null,
  at: line.createdAt,
  injected: line.injected,
  tokens: line.tokens,
  reason: line.reason,
});

const actions: Record<string, string> = {
  created: "new",
  updated: "updated, the old text is in its history",
  confirmed: "said before, confirmed",
  superseded: "replaced by it",
  archived: "archived on request",
  pending: "waits for review",
};

export async function receiptOf(deps: StudioDeps, id: string): Promise<ReceiptDetail> {
  const { receipts, usage, related, conversations } = deps.engine;
  const receipt = await receipts.get({ owner: null, id });
  const [cost, episode, texts, learned, session] = await Promise.all([
    usage.ofReceipt({ id, createdAt: receipt.createdAt }),
    receipt.episodeId === null
      ? null
      : conversations.getEpisode({ owner: null, id: receipt.episodeId }).catch(() => null),
    related.texts({ refs: receipt.candidates.map(({ kind, id: ref }) => ({ kind, id: ref })) }),
    related.texts({ refs: receipt.learned.map((one) => ({ kind: "memory" as Kind, id: one.id })) }),
    receipt.sessionId === null || receipt.apiKeyId === null
      ? null
      : conversations
          .sessionByExternal({ owner: receipt.apiKeyId, externalId: receipt.sessionId })
          .catch(() => null),
  ]);
  return {
    ...lineOf({ ...receipt, query: episode?.userMessage.slice(0, QUESTION) ?? null }),
    sessionId: receipt.sessionId,
    sessionHref: session
      ? `/dashboard/activity/sessions/${session.id}${episode ? `#e-${episode.id}` : ""}`
      : null,
    provider: receipt.provider,
    model: receipt.model,
    placement: receipt.placement,
    latencyMs: receipt.latencyMs,
    fallbacks: receipt.fallbacks,
    candidates: receipt.candidates.map((candidate, i) => ({
      ...candidate,
      text: texts[i]?.text ?? null,
      href: resultHref(candidate.kind, candidate.id, texts[i]?.sessionId ?? undefined),
    })),
    text: receipt.text,
    redacted: receipt.redacted,
    learned: receipt.learned.map((one, i) => ({
      href: learned[i]?.text ? memoryHref(one.id) : null,
      text: learned[i]?.text ?? "a memory that was deleted",
      action: actions[one.action] ?? one.action,
    })),
    usage: cost,
    again:
      receipt.injected > 0 && receipt.text && episode?.userMessage && upstreamOf(deps, receipt)
        ? { model: [receipt.provider, receipt.model].join("/") }
        : null,
  };
}

/** The provider that answered, where it is still in use. */
const upstreamOf = (deps: StudioDeps, receipt: { provider: string | null; model: string | null }) =>
  receipt.model === null ? undefined : deps.providers.active().find((one) => one.id === receipt.provider);

/** Asks the same model twice, with what was injected and without. Nothing of it is recorded or learned. */
async function compare(c: StudioContext, deps: StudioDeps, id: string): Promise<Comparison> {
  const receipt = await deps.engine.receipts.get({ owner: null, id });
  const upstream = upstreamOf(deps, receipt);
  const { model, text: block, episodeId } = receipt;
  if (!upstream || model === null) throw new AppError("conflict", "Its provider is not in use any more.");
  if (!block || episodeId === null) {
    throw new AppError("conflict", "What was sent is not kept any more, so it cannot be sent again.");
  }
  const episode = await deps.engine.conversations.getEpisode({ owner: null, id: episodeId });
  const question = episode.userMessage;
  const ask = async (given: string | null): Promise<Comparison["withMemory"]> => {
    const reply = await askOnce(
      deps.transport,
      upstream,
      { model, question, block: given },
      c.req.raw.signal,
    );
    const tokens = reply.tokensIn ?? estimateTokens(question) + (given === null ? 0 : estimateTokens(given));
    return { ...reply, tokens };
  };
  const [withMemory, without] = await Promise.all([ask(block), ask(null)]);
  return { model: `${upstream.id}/${model}`, withMemory, without };
}

export function receiptsRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const page = async (
    c: StudioContext,
    id: string | null,
    comparison: Comparison | null = null,
  ): Promise<Response> => {
    const { page: n, from } = listPage(c);
    const [frame, list, asked] = await Promise.all([
      frameOf(c, deps),
      deps.engine.receipts.lines({ owner: ownerFilter(c) || null, limit: LIST_PAGE, offset: from }),
      id === null ? null : receiptOf(deps, id),
    ]);
    const first = list.data[0];
    return show(
      c,
      <ReceiptsPage
        frame={frame}
        rows={list.data.map(lineOf)}
        total={list.total}
        from={from}
        page={n}
        chosen={asked ?? (first ? await receiptOf(deps, first.id) : null)}
        asked={asked !== null}
        comparison={comparison}
      />,
    );
  };

  app.get(BASE, (c) => page(c, null));
  app.get(`${BASE}/:id`, (c) => page(c, c.req.param("id")));

  app.post(`${BASE}/:id/again`, async (c) => {
    const comparison = await compare(c, deps, c.req.param("id"));
    if (isPart(c))
      return show(c, <ComparisonView comparison={comparison} />, { say: "Both replies are here." });
    return page(c, c.req.param("id"), comparison);
  });
}
