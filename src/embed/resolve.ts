/** Which model embeds, from the settings, and why, in words. */
import type { EmbeddingKind } from "./types.ts";

/** The part of the memory settings that matters here. */
export interface EmbeddingSettings {
  readonly embeddingSource: EmbeddingKind | "auto";
  readonly embeddingProviderModel: string | null;
  readonly customBaseUrl: string | null;
  readonly customModelId: string | null;
  readonly staticEnabled: boolean;
  readonly transformersEnabled: boolean;
}

export interface ResolveDeps {
  /** MEMORY_STATIC_MODEL and MEMORY_TRANSFORMERS_MODEL. */
  readonly staticModel: string;
  readonly transformersModel: string;
  /** `local`: on loopback or LAN, where no key is needed. */
  readonly provider: (id: string) => { readonly hasKey: boolean; readonly local: boolean } | null;
  /** One sentence while a source keeps failing, else null. `auto` then falls through to the next. */
  readonly failing?: (source: EmbeddingKind) => string | null;
}

export interface EmbeddingResolution {
  /** Null: none, so search is lexical. */
  readonly source: EmbeddingKind | null;
  /** Repository of a local model, `provider/model`, or the custom endpoint and its model. */
  readonly model: string | null;
  /** One or more sentences in English. */
  readonly reason: string;
}

type Choice = { source: EmbeddingKind; model: string; why: string };
type Refusal = { refused: string };

/** Custom endpoint or `embeddingProviderModel`, else static, else transformers, else none; an explicit source stands alone. */
export function resolveEmbedding(settings: EmbeddingSettings, deps: ResolveDeps): EmbeddingResolution {
  const choices: Record<EmbeddingKind, () => Choice | Refusal> = {
    remote: () => remoteChoice(settings, deps),
    static: () => ({ source: "static", model: deps.staticModel, why: "" }),
    transformers: () => ({ source: "transformers", model: deps.transformersModel, why: "" }),
  };
  if (settings.embeddingSource !== "auto") {
    const choice = choices[settings.embeddingSource]();
    if ("refused" in choice) return { source: null, model: null, reason: choice.refused };
    const { source, model } = choice;
    return { source, model, reason: `The setting embeddingSource is ${source}.` };
  }
  const said: string[] = [];
  for (const [source, wanted] of [
    ["remote", settings.customBaseUrl !== null || settings.embeddingProviderModel !== null],
    ["static", settings.staticEnabled],
    ["transformers", settings.transformersEnabled],
  ] as const) {
    if (!wanted) continue;
    const choice = choices[source]();
    if ("refused" in choice) {
      said.push(choice.refused);
      continue;
    }
    const failing = deps.failing?.(source) ?? null;
    if (failing !== null) {
      said.push(`${source} keeps failing: ${failing}`);
      continue;
    }
    said.push(choice.why || `The setting ${source}Enabled is on.`);
    return { source, model: choice.model, reason: said.join(" ") };
  }
  if (said.length === 0) said.push("No embedding endpoint is set and no local model is enabled.");
  return { source: null, model: null, reason: `${said.join(" ")} Search is by words alone.` };
}

function remoteChoice(settings: EmbeddingSettings, deps: ResolveDeps): Choice | Refusal {
  if (settings.customBaseUrl !== null && settings.customModelId !== null) {
    const model = `${settings.customModelId}@${withoutUserInfo(settings.customBaseUrl)}`;
    return { source: "remote", model, why: "A custom embedding endpoint is set." };
  }
  const model = settings.embeddingProviderModel;
  if (model === null) return { refused: "No embedding endpoint and no embeddingProviderModel is set." };
  const id = model.slice(0, model.indexOf("/"));
  const provider = deps.provider(id);
  if (provider === null)
    return { refused: `There is no provider ${id}, which embeddingProviderModel names.` };
  if (!provider.hasKey && !provider.local) {
    return { refused: `Provider ${id}, which embeddingProviderModel names, has no key.` };
  }
  return { source: "remote", model, why: `The setting embeddingProviderModel is ${model}.` };
}

/** A base URL as it may be shown: no user info, query or fragment, no slash at the end. */
export function withoutUserInfo(baseUrl: string): string {
  const url = URL.parse(baseUrl);
  return url === null ? "" : `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}
