/** `/api/usage`: tokens, cost and errors by day, owner and model. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { count, time } from "../schemas/common.ts";
import { invalidFields } from "../validate.ts";
import { operation, type Operation } from "./operation.ts";

const DAY_MS = 86_400_000;
const groups = z.enum(["day", "owner", "model"]);
/** A day stands for its first moment, UTC. */
const dayOrTime = z
  .union([time, z.iso.date()])
  .meta({ format: "date-time", description: "A time, or a day in UTC." });

const sum = z
  .strictObject({
    day: z.string().exactOptional(),
    owner: z.string().nullable().exactOptional(),
    provider: z.string().nullable().exactOptional(),
    model: z.string().nullable().exactOptional(),
    requests: count,
    tokensIn: count,
    tokensOut: count,
    tokensInjected: count,
    tokensCached: count,
    cost: z.number().min(0),
    errors: count,
  })
  .meta({ id: "Usage" });

export function usageOperations({ usage }: Engine): Operation[] {
  return [
    operation({
      method: "get",
      path: "/api/usage",
      tag: "Usage",
      summary: "Requests, tokens, cost and errors",
      description: "The last 30 days by day, unless said otherwise. `to` is excluded.",
      access: "management",
      owner: "span",
      query: z.strictObject({
        from: dayOrTime.exactOptional(),
        to: dayOrTime.exactOptional(),
        groupBy: z.array(groups).min(1).max(3).default(["day"]),
      }),
      answer: z.strictObject({ data: z.array(sum) }),
      handle: async ({ query, owner }) => {
        const to = query.to === undefined ? Date.now() + 1 : Date.parse(query.to);
        const from = query.from === undefined ? to - 30 * DAY_MS : Date.parse(query.from);
        if (from >= to) throw invalidFields([{ field: "from", message: "must be before `to`" }]);
        return { data: await usage.sum({ owner, from, to, groupBy: query.groupBy }) };
      },
    }),
  ];
}
