/** `/api/providers`: the model servers that requests are forwarded to. */
import { z } from "zod";
import { listOf, success } from "../schemas/common.ts";
import { newProvider, provider, providerChanges, providerTest } from "../schemas/providers.ts";
import { probe } from "../upstream/probe.ts";
import type { Providers } from "../upstream/providers.ts";
import type { Transport } from "../upstream/transport.ts";
import { created, operation, type Operation } from "./operation.ts";

const base = { tag: "Providers", access: "management" } as const;
const byId = z.strictObject({ id: z.string().max(64) });

export function providerOperations(providers: Providers, transport: Transport): Operation[] {
  return [
    operation({
      ...base,
      method: "get",
      path: "/api/providers",
      summary: "List providers, oldest first",
      answer: listOf(provider),
      handle: () => {
        const data = providers.list();
        return { data, total: data.length };
      },
    }),
    operation({
      ...base,
      method: "post",
      path: "/api/providers",
      summary: "Add a provider",
      description: "The key and header values are write-only. The first provider becomes the default.",
      body: newProvider,
      answer: z.strictObject({ provider }),
      statuses: [201],
      handle: ({ body }) => created({ provider: providers.create(body) }),
    }),
    operation({
      ...base,
      method: "put",
      path: "/api/providers/{id}",
      summary: "Change some fields of a provider",
      description: "What is left out stays; a masked value sent back changes nothing.",
      params: byId,
      body: providerChanges,
      answer: z.strictObject({ provider }),
      handle: ({ params, body }) => ({ provider: providers.change(params.id, body) }),
    }),
    operation({
      ...base,
      method: "delete",
      path: "/api/providers/{id}",
      summary: "Remove a provider",
      params: byId,
      answer: success,
      handle: ({ params }) => {
        providers.remove(params.id);
        return { success: true as const };
      },
    }),
    operation({
      ...base,
      method: "post",
      path: "/api/providers/{id}/test",
      summary: "Make one real call and say what failed",
      params: byId,
      body: z.strictObject({}),
      answer: providerTest,
      handle: ({ params, request }) => probe(transport, providers.upstream(params.id), request.signal),
    }),
  ];
}
