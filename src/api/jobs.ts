/** `/api/jobs`: background work that waits, runs or was set aside. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { limit, listOf, offset, time } from "../schemas/common.ts";
import { operation, type Operation } from "./operation.ts";

const base = { tag: "Jobs", access: "management" } as const;
const state = z.enum(["queued", "running", "failed"]);

const job = z
  .strictObject({
    id: z.int(),
    type: z.string(),
    state,
    apiKeyId: z.string().nullable(),
    attempts: z.int(),
    lastError: z.string().nullable(),
    runAt: time,
  })
  .meta({ id: "Job" });

export function jobOperations({ jobs }: Engine): Operation[] {
  return [
    operation({
      ...base,
      method: "get",
      path: "/api/jobs",
      summary: "List jobs, oldest first",
      query: z.strictObject({ state: state.exactOptional(), limit, offset: offset.default(0) }),
      answer: listOf(job),
      handle: ({ query }) => jobs.list(query),
    }),
    operation({
      ...base,
      method: "post",
      path: "/api/jobs/{id}/retry",
      summary: "Try a failed job again",
      params: z.strictObject({
        id: z
          .string()
          .regex(/^[1-9]\d{0,14}$/)
          .transform(Number),
      }),
      body: z.strictObject({}),
      answer: z.strictObject({ job }),
      handle: async ({ params }) => ({ job: await jobs.retry({ id: params.id }) }),
    }),
  ];
}
