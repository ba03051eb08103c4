/** What could make vectors: the models of this box, and those of the providers whose names say that they embed. */
import type { Engine } from "../engine.ts";
import type { Models } from "../upstream/models.ts";
import type { Providers } from "../upstream/providers.ts";

export type EmbeddingProvider = {
  provider: string;
  hasKey: boolean;
  /** `id` is what settings take: `local/static`, `provider/model`. */
  models: { id: string; name: string; dimensions: number | null }[];
};

const EMBEDS = /embed|bge|gte-|e5-|minilm|nomic|jina|arctic|voyage/i;

export async function embeddingModels(
  engine: Pick<Engine, "models">,
  providers: Providers,
  models: Models,
): Promise<EmbeddingProvider[]> {
  const local = await engine.models.list();
  const known = providers.list();
  const lists = await models.all();
  return [
    {
      provider: "local",
      hasKey: false,
      models: local.map(({ name, repo, dimensions }) => ({ id: `local/${name}`, name: repo, dimensions })),
    },
    ...lists
      .filter(({ upstream }) => !upstream.builtin)
      .map(({ upstream, models: listed }) => ({
        provider: upstream.id,
        hasKey: known.some(({ id, apiKeyMasked }) => id === upstream.id && apiKeyMasked !== null),
        models: listed
          .filter(({ id }) => EMBEDS.test(id))
          .map(({ id }) => ({ id: `${upstream.id}/${id}`, name: id, dimensions: null })),
      })),
  ];
}
