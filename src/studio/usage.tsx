/** `/dashboard/activity/usage`: tokens and cost by day, key and model. */
import type { UsageSum } from "../db/usage.ts";
import type { Hono } from "hono";
import type { Env } from "../auth.ts";
import { type UsageGroup, UsagePage } from "../../views/usage.tsx";
import { frameOf, ownerFilter } from "./activity.ts";
import { show, type StudioDeps } from "./context.tsx";

const DAY_MS = 86_400_000;

export function usageRoutes(app: Hono<Env>, deps: StudioDeps): void {
  app.get("/dashboard/activity/usage", async (c) => {
    const asked = Number(c.req.query("days"));
    const span = asked === 7 || asked === 90 ? asked : 30;
    const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
    const period = { owner: ownerFilter(c) || null, from: today - (span - 1) * DAY_MS, to: today + DAY_MS };
    const { usage } = deps.engine;
    const [frame, byDay, byOwner, byModel, means] = await Promise.all([
      frameOf(c, deps),
      usage.sum({ ...period, groupBy: ["day"] }),
      usage.sum({ ...period, groupBy: ["owner"] }),
      usage.sum({ ...period, groupBy: ["model"] }),
      usage.means(period),
    ]);
    // A box without prices has no cost at all, rather than one of nothing.
    const priced = [...byDay, ...byModel].some((sum) => sum.cost > 0);
    const costOf = (sum: UsageSum | undefined) => (priced ? (sum?.cost ?? 0) : null);
    const found = new Map(byDay.map((sum) => [sum.day, sum]));
    const days = Array.from({ length: span }, (_, i) => {
      const day = new Date(period.from + i * DAY_MS).toISOString().slice(0, 10);
      const sum = found.get(day);
      return {
        day,
        requests: sum?.requests ?? 0,
        tokensIn: sum?.tokensIn ?? 0,
        tokensInjected: sum?.tokensInjected ?? 0,
        cost: costOf(sum),
      };
    });
    const group = (sum: UsageSum): UsageGroup => ({
      ...sum,
      keyId: sum.owner ?? null,
      model: [sum.provider, sum.model].filter(Boolean).join("/") || null,
      cost: costOf(sum),
    });
    return show(
      c,
      <UsagePage
        frame={frame}
        days={days}
        byOwner={byOwner.slice(0, 50).map(group)}
        byModel={byModel.slice(0, 50).map(group)}
        span={span}
        ttftMs={means.ttftMs}
      />,
    );
  });
}
