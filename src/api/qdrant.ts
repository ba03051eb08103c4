/** `/api/settings/qdrant`: the outside vector store, its health, a search test, cleaning up and comparing both sides. */
import type { Engine } from "../engine.ts";
import {
  qdrantCleanup,
  qdrantHealth,
  qdrantModels,
  qdrantReconcile,
  qdrantReconciled,
  qdrantSearch,
  qdrantSearchResult,
  qdrantSettings,
  qdrantSettingsPatch,
} from "../schemas/qdrant.ts";
import type { Models } from "../upstream/models.ts";
import type { Providers } from "../upstream/providers.ts";
import { embeddingModels } from "./embedding-models.ts";
import { operation, type Operation } from "./operation.ts";

const base = { tag: "Qdrant", access: "management" } as const;

export function qdrantOperations(engine: Engine, providers: Providers, models: Models): Operation[] {
  const { qdrant } = engine;
  return [
    operation({
      ...base,
      method: "get",
      path: "/api/settings/qdrant",
      summary: "The Qdrant settings, without the key",
      answer: qdrantSettings,
      handle: () => qdrant.read(),
    }),
    operation({
      ...base,
      method: "put",
      path: "/api/settings/qdrant",
      summary: "Change some Qdrant settings; answers all of them",
      description: "Enabling fills in what is stored already, in the background.",
      body: qdrantSettingsPatch,
      answer: qdrantSettings,
      handle: ({ body }) => qdrant.write({ patch: body }),
    }),
    operation({
      ...base,
      method: "get",
      path: "/api/settings/qdrant/health",
      summary: "Is it ready, is the collection there, does a search work",
      answer: qdrantHealth,
      handle: () => qdrant.health(),
    }),
    operation({
      ...base,
      method: "post",
      path: "/api/settings/qdrant/search",
      summary: "A search test over all owners",
      body: qdrantSearch,
      answer: qdrantSearchResult,
      handle: ({ body }) => qdrant.search(body),
    }),
    operation({
      ...base,
      method: "post",
      path: "/api/settings/qdrant/cleanup",
      summary: "Delete points that are expired or past retention",
      answer: qdrantCleanup,
      exclusive: "qdrant-cleanup",
      handle: () => qdrant.cleanup(),
    }),
    operation({
      ...base,
      method: "post",
      path: "/api/settings/qdrant/reconcile",
      summary: "Compare both sides and repair missing, stale and orphaned points",
      body: qdrantReconcile,
      answer: qdrantReconciled,
      exclusive: "qdrant-reconcile",
      handle: ({ body }) => qdrant.reconcile(body),
    }),
    operation({
      ...base,
      method: "get",
      path: "/api/settings/qdrant/embedding-models",
      summary: "What `embeddingModel` can be",
      answer: qdrantModels,
      handle: async () => {
        const all = await embeddingModels(engine, providers, models);
        return {
          models: all.flatMap(({ provider, models: listed }) =>
            listed.map(({ id, name }) => ({ value: id, label: `${name} (${provider})` })),
          ),
        };
      },
    }),
  ];
}
