/** `?tab=playground`: the same search that serves every client, with its reasons. Changes nothing, not even counters. */
import { z } from "zod";
import { AppError, invalid } from "../error.ts";
import type { Dropped, Retrieved, Strategy } from "../memory/types.ts";
import { check } from "../validate.ts";
import { count } from "../../views/format.ts";
import { Answer, type PlayAnswer, type PlayResult } from "../../views/playground-answer.tsx";
import { AskForm, type PlayForm, PlaygroundPage, resultHref } from "../../views/playground.tsx";
import {
  chromeOf,
  errorsOf,
  isPart,
  numberOr,
  ownersOf,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";
import { dayEnd } from "./days.ts";

const LIMIT = 20;

const asked = z.strictObject({
  query: z.string().trim().min(1).max(20_000),
  strategy: z.enum(["exact", "semantic", "hybrid"]),
  maxTokens: z.int().min(1).max(16_000),
});

const strategyOf = (strategy: Strategy): string => (strategy === "recent" ? "exact" : strategy);

function formOf(c: StudioContext, deps: StudioDeps): PlayForm {
  const settings = deps.admin.settings.read();
  const owners = ownersOf(deps).filter((owner) => !owner.revoked);
  return {
    query: c.req.query("query") ?? "",
    strategy: c.req.query("strategy") ?? strategyOf(settings.strategy),
    maxTokens: c.req.query("maxTokens") ?? String(settings.maxTokens),
    apiKeyId: c.req.query("apiKeyId") ?? owners[0]?.id ?? "",
    asOf: c.req.query("asOf") ?? "",
    lookBack: settings.primaryBackend === "sqlite",
  };
}

const textOf = (found: Retrieved): string => {
  switch (found.kind) {
    case "memory":
      return found.item.content;
    case "episode":
      return found.item.userMessage || found.item.aiResponse;
    case "entity":
      return found.item.name;
    case "summary":
      return found.item.text;
  }
};

const sessionOf = (found: Retrieved): number | undefined =>
  found.kind === "episode" || found.kind === "summary" ? found.item.sessionId : undefined;

const resultOf = (found: Retrieved): PlayResult => ({
  kind: found.kind,
  id: found.id,
  type: found.kind === "memory" ? found.item.type : null,
  text: textOf(found),
  href: resultHref(found.kind, found.id, sessionOf(found)),
  score: found.score,
  tier: found.tier,
  tokens: found.tokens,
  ftsRank: found.ftsRank,
  ftsScore: found.ftsScore,
  vecRank: found.vecRank,
  vecScore: found.vecScore,
});

async function droppedOf(deps: StudioDeps, dropped: readonly Dropped[]): Promise<PlayAnswer["dropped"]> {
  const shown = dropped.slice(0, 30);
  const texts = await deps.engine.related.texts({ refs: shown.map(({ kind, id }) => ({ kind, id })) });
  return dropped.map((item, i) => ({
    id: item.id,
    text: texts[i]?.text ?? null,
    href: resultHref(item.kind, item.id, texts[i]?.sessionId ?? undefined),
    reason: item.reason.replaceAll("-", " "),
  }));
}

async function answerOf(deps: StudioDeps, form: PlayForm): Promise<PlayAnswer> {
  const settings = deps.admin.settings.read();
  const input = check(asked, {
    query: form.query,
    strategy: form.strategy,
    maxTokens: numberOr(form.maxTokens) ?? settings.maxTokens,
  });
  if (!deps.admin.ownerExists(form.apiKeyId)) throw invalid("apiKeyId", "there is no such owner");
  const asOf = dayEnd(form.asOf);
  if (asOf !== null && Number.isNaN(Date.parse(asOf))) throw invalid("asOf", "must be a day");
  const started = performance.now();
  const found = await deps.engine.retrieval.retrieve({
    ...input,
    owner: form.apiKeyId,
    limit: LIMIT,
    // There is no session here: whatever setting, those of all sessions.
    scope: settings.scope === "global" ? "global" : "apiKey",
    mode: "interactive",
    count: false,
    ...(asOf === null ? {} : { asOf }),
  });
  return {
    results: found.results.map(resultOf),
    dropped: await droppedOf(deps, found.dropped),
    resolution: found.resolution,
    totalTokensUsed: found.totalTokensUsed,
    budgetMaxTokens: found.budgetMaxTokens,
    text: found.text,
    tookMs: performance.now() - started,
  };
}

export async function playground(c: StudioContext, deps: StudioDeps): Promise<Response> {
  const form = formOf(c, deps);
  const owners = ownersOf(deps);
  try {
    const answer = form.query === "" ? null : await answerOf(deps, form);
    if (isPart(c))
      return show(c, <Answer answer={answer} />, { say: `${count(answer?.results.length ?? 0, "result")}.` });
    const chrome = await chromeOf(c, deps);
    return show(
      c,
      <PlaygroundPage chrome={chrome} form={form} errors={{}} owners={owners} answer={answer} />,
    );
  } catch (thrown) {
    if (!(thrown instanceof AppError)) throw thrown;
    const { errors, status } = errorsOf(thrown);
    if (isPart(c)) {
      const headers = { "HX-Retarget": "#ask" };
      return show(c, <AskForm form={form} errors={errors} owners={owners} />, { status, headers });
    }
    const chrome = await chromeOf(c, deps);
    return show(
      c,
      <PlaygroundPage chrome={chrome} form={form} errors={errors} owners={owners} answer={null} />,
      {
        status,
      },
    );
  }
}
