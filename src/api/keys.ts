/** `/api/keys`: the credentials of clients. */
import { z } from "zod";
import type { Admin } from "../admin.ts";
import type { Engine } from "../engine.ts";
import { listOf, success } from "../schemas/common.ts";
import { apiKey, keyChanges, newKey } from "../schemas/keys.ts";
import { created, operation, type Operation } from "./operation.ts";

const base = { tag: "Keys", access: "management" } as const;
const byId = z.strictObject({ id: z.string().max(64) });
const withSecret = z.strictObject({ secret: z.string(), key: apiKey });

export function keyOperations({ keys }: Admin, { owners }: Engine): Operation[] {
  return [
    operation({
      ...base,
      method: "get",
      path: "/api/keys",
      summary: "List API keys, oldest first",
      answer: listOf(apiKey),
      handle: () => {
        const data = keys.list();
        return { data, total: data.length };
      },
    }),
    operation({
      ...base,
      method: "post",
      path: "/api/keys",
      summary: "Create an API key",
      description:
        "The secret is in this answer and nowhere else. The same `id` on several boxes is the same owner.",
      body: newKey,
      answer: withSecret,
      statuses: [201],
      handle: ({ body }) => created(keys.create(body)),
    }),
    operation({
      ...base,
      method: "patch",
      path: "/api/keys/{id}",
      summary: "Change some fields of a key",
      params: byId,
      body: keyChanges,
      answer: z.strictObject({ key: apiKey }),
      handle: ({ params, body }) => ({ key: keys.change(params.id, body) }),
    }),
    operation({
      ...base,
      method: "delete",
      path: "/api/keys/{id}",
      summary: "Revoke a key at once",
      description:
        "Its rows stay for management, unless `memories`: then all of its owner is deleted for good, and of the people behind it.",
      params: byId,
      query: z.strictObject({ memories: z.boolean().default(false) }),
      answer: success,
      handle: async ({ params, query }) => {
        // Of a key that was revoked before, the rows can still be deleted.
        const revoked = keys.find(params.id)?.revokedAt != null;
        if (!revoked || !query.memories) keys.revoke(params.id);
        if (query.memories) await owners.erase({ owner: params.id });
        return { success: true as const };
      },
    }),
    operation({
      ...base,
      method: "post",
      path: "/api/keys/{id}/rotate",
      summary: "Give a key a new secret; the old one stops working at once",
      params: byId,
      body: z.strictObject({}),
      answer: withSecret,
      handle: ({ params }) => keys.rotate(params.id),
    }),
  ];
}
