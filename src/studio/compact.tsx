/** "Compact old": a look at what would happen, then the summaries. */
import type { Hono } from "hono";
import { z } from "zod";
import type { Env } from "../auth.ts";
import { check } from "../validate.ts";
import { Partial } from "../../views/actions.tsx";
import { CompactDialog, type CompactPreview, CompactResult } from "../../views/compact-dialog.tsx";
import { count } from "../../views/format.ts";
import { errorsOf, finish, isPart, numberOr, ownersOf, readForm, show, type StudioDeps } from "./context.tsx";
import { listParts, showDialog } from "./memory-list.tsx";

const form = z.strictObject({ olderThanDays: z.int().min(1).max(365) });
const SAMPLE = 20;

export function compactRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { memories } = deps.engine;

  const look = async (days: number, owner: string | null): Promise<CompactPreview> => {
    const input = { mode: "age", olderThanDays: days, maxTokens: 4000, dryRun: true } as const;
    const result = await memories.summarize({ ...input, owner });
    const first = await Promise.all(
      result.candidates
        .slice(0, SAMPLE)
        .map((one) => memories.get({ owner: null, id: one.id }).catch(() => null)),
    );
    const owners = new Set(first.map((memory) => memory?.apiKeyId).filter(Boolean));
    return {
      candidates: result.candidates.map((one, i) => ({
        ...one,
        ...(first[i] ? { text: first[i].content } : {}),
      })),
      candidateCount: result.candidateCount,
      totalTokens: result.totalTokens,
      tokensSaved: result.tokensSaved,
      summaries: result.candidateCount === 0 ? 0 : owner === null ? Math.max(1, owners.size) : 1,
    };
  };

  app.get("/dashboard/memory/compact", async (c) => {
    const draft = {
      olderThanDays: c.req.query("olderThanDays") ?? "30",
      apiKeyId: c.req.query("apiKeyId") ?? "",
    };
    const update = c.req.header("HX-Target") === "section#compact-preview";
    try {
      const { olderThanDays } = check(form, { olderThanDays: numberOr(draft.olderThanDays) });
      const asked = update || c.req.query("look") !== undefined;
      const preview = asked ? await look(olderThanDays, draft.apiKeyId || null) : null;
      if (update && preview) {
        return show(
          c,
          <>
            <CompactResult preview={preview} />
            <Partial target="#compact-do" swap="textContent">
              {preview.candidateCount > 0
                ? `Compact ${count(preview.candidateCount, "memory", "memories")}`
                : "Compact"}
            </Partial>
          </>,
        );
      }
      const dialog = <CompactDialog draft={draft} errors={{}} preview={preview} owners={ownersOf(deps)} />;
      return await showDialog(c, deps, dialog);
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      const dialog = <CompactDialog draft={draft} errors={errors} preview={null} owners={ownersOf(deps)} />;
      const response = await showDialog(c, deps, dialog, status);
      if (update) response.headers.set("HX-Retarget", "#compact");
      return response;
    }
  });

  app.post("/dashboard/memory/compact", async (c) => {
    const { fields } = await readForm(c);
    const draft = { olderThanDays: fields["olderThanDays"] ?? "", apiKeyId: fields["apiKeyId"] ?? "" };
    try {
      const { olderThanDays } = check(form, { olderThanDays: numberOr(draft.olderThanDays) });
      const { archivedCount } = await memories.summarize({
        owner: draft.apiKeyId || null,
        mode: "age",
        olderThanDays,
        maxTokens: 4000,
        dryRun: false,
      });
      return finish(
        c,
        { code: "compacted", n: archivedCount },
        { to: "/dashboard/memory", parts: isPart(c) ? await listParts(c, deps) : null },
      );
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      const dialog = <CompactDialog draft={draft} errors={errors} preview={null} owners={ownersOf(deps)} />;
      return showDialog(c, deps, dialog, status);
    }
  });
}
