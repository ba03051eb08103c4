/** `/api/models`: the embedding models that run on this box. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { count, success } from "../schemas/common.ts";
import { eventStream, pause, type ServerEvent } from "./events.ts";
import { operation, type Operation } from "./operation.ts";

const base = { tag: "Models", access: "management" } as const;
const byName = z.strictObject({ name: z.string().max(100) });
/** How often a download is looked at. */
const POLL_MS = 200;

const model = z
  .strictObject({
    name: z.string(),
    repo: z.string(),
    dimensions: z.int().nullable(),
    state: z.enum(["absent", "downloading", "ready", "failed"]),
    bytes: count,
    totalBytes: count,
    error: z.string().exactOptional(),
  })
  .meta({ id: "Model" });

export function modelOperations({ models }: Engine): Operation[] {
  return [
    operation({
      ...base,
      method: "get",
      path: "/api/models",
      summary: "List embedding models",
      answer: z.strictObject({ data: z.array(model) }),
      handle: async () => ({ data: await models.list() }),
    }),
    operation({
      ...base,
      method: "post",
      path: "/api/models/{name}/pull",
      summary: "Download a model",
      description:
        "Events: `progress` with the model as in the list, then `done` or `error`. The download goes on when the client leaves.",
      params: byName,
      body: z.strictObject({}),
      answer: { type: "text/event-stream", description: "progress, done or error" },
      exclusive: "pull",
      handle: async ({ params }) => {
        const first = await models.pull({ name: params.name });
        return eventStream((signal) => progress(models, first, signal));
      },
    }),
    operation({
      ...base,
      method: "delete",
      path: "/api/models/{name}",
      summary: "Remove a model from this box",
      params: byName,
      answer: success,
      handle: ({ params }) => models.remove({ name: params.name }),
    }),
  ];
}

type Status = Awaited<ReturnType<Engine["models"]["status"]>>;

async function* progress(
  models: Engine["models"],
  first: Status,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  let last = "";
  for (let status = first; !signal.aborted; status = await models.status({ name: first.name })) {
    if (status.state === "ready") return yield { event: "done", data: status };
    if (status.state === "failed") {
      return yield { event: "error", data: { message: status.error ?? "The download failed." } };
    }
    const now = JSON.stringify(status);
    if (now !== last) yield { event: "progress", data: status };
    last = now;
    await pause(POLL_MS, signal);
  }
}
