/** The embedding model in force: resolved from the settings, opened on first use, replaced when they change. */
import { join } from "node:path";
import type { Config } from "../config.ts";
import { createEmbeddingCache } from "../embed/cache.ts";
import type { EmbeddingCacheStats } from "../embed/cache.ts";
import { createModels } from "../embed/models.ts";
import type { ModelName } from "../embed/model-files.ts";
import type { Models, ModelStatus } from "../embed/models.ts";
import { resolveEmbedding } from "../embed/resolve.ts";
import type { EmbeddingResolution } from "../embed/resolve.ts";
import { EmbeddingError } from "../embed/types.ts";
import type { Embedder, EmbeddingKind } from "../embed/types.ts";
import { AppError, notFound } from "../error.ts";
import type { Log } from "../log.ts";
import { hostOf, isPrivateHost } from "../upstream/policy.ts";
import type { MemorySettings } from "./settings.ts";

/** A provider as the embedder needs it: secrets open, URL policy already applied by `fetch`. */
export type EmbeddingProvider = { baseUrl: string; apiKey: string | null; headers: Record<string, string> };

export type EmbeddingDeps = {
  config: Config;
  log: Log;
  settings: () => MemorySettings;
  provider: (id: string) => EmbeddingProvider | null;
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  now: () => number;
  /** Counts a download as running work until the returned function is called. */
  track: () => () => void;
};

export type EmbeddingStatus = {
  source: EmbeddingKind | null;
  model: string | null;
  dimensions: number | null;
  /** True when a real call worked. */
  available: boolean;
  reason: string;
  cacheStats: EmbeddingCacheStats;
};

export type Embedding = ReturnType<typeof createEmbedding>;

/** After a failure a source is left alone for this long, so that `auto` can fall through and nobody waits for it. */
const FAILING_MS = 30_000;
/** `auto` leaves a remote, and with it the index made by it, only after so many failures over such a time. */
const REMOTE_TRIES = 3;
const REMOTE_PATIENCE_MS = 60_000;
/** A download that failed is tried again after this. */
const PULL_AGAIN_MS = 10 * 60_000;

type Opened = { id: string; embedder: Promise<Embedder> };

export function createEmbedding(deps: EmbeddingDeps) {
  const { config, log, now } = deps;
  const modelsDir = config.MEMORY_STATIC_CACHE_DIR ?? join(config.dataDir, "embeddings");
  const cache = createEmbeddingCache({
    max: config.MEMORY_EMBEDDING_CACHE_MAX,
    ttlMs: config.MEMORY_EMBEDDING_CACHE_TTL_MS,
  });
  const models: Models = createModels({
    modelsDir,
    dataDir: config.dataDir,
    repos: { static: config.MEMORY_STATIC_MODEL, transformers: config.MEMORY_TRANSFORMERS_MODEL },
    hub: { endpoint: config.HF_ENDPOINT, token: config.HF_TOKEN },
  });
  const open = new Map<string, Opened>();
  const failing = new Map<EmbeddingKind, { until: number; why: string; since: number; times: number }>();
  const pulledAt = new Map<ModelName, number>();
  let current: Embedder | null = null;

  function resolve(): EmbeddingResolution {
    return resolveEmbedding(deps.settings(), {
      staticModel: config.MEMORY_STATIC_MODEL,
      transformersModel: config.MEMORY_TRANSFORMERS_MODEL,
      provider: (id) => {
        const found = deps.provider(id);
        return found ? { hasKey: found.apiKey !== null, local: isPrivateHost(hostOf(found.baseUrl)) } : null;
      },
      failing: (source) => {
        const known = failing.get(source);
        if (!known || known.until <= now()) return null;
        const blip = known.times < REMOTE_TRIES || now() - known.since < REMOTE_PATIENCE_MS;
        return source === "remote" && blip ? null : known.why;
      },
    });
  }

  /** Opens a source once; callers that ask meanwhile share it. */
  function opened(source: EmbeddingKind, model: string): Promise<Embedder> {
    const settings = deps.settings();
    // A changed key or address of the endpoint is another embedder, although the signature is the same.
    const id =
      source === "remote" ? `remote:${JSON.stringify(remoteOptions(settings, model))}` : `${source}:${model}`;
    const known = open.get(source);
    if (known?.id === id) return known.embedder;
    void known?.embedder.then((old) => old.close()).catch(() => {});
    const embedder = openSource(source, model, settings).then((made) => cache.wrap(made));
    open.set(source, { id, embedder });
    embedder.catch((error: unknown) => {
      if (open.get(source)?.embedder === embedder) open.delete(source);
      fail(source, error);
    });
    return embedder;
  }

  function fail(source: EmbeddingKind, error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    const before = failing.get(source);
    const again = before !== undefined && before.until + FAILING_MS > now();
    failing.set(source, {
      until: now() + FAILING_MS,
      why,
      since: again ? before.since : now(),
      times: again ? before.times + 1 : 1,
    });
    log.warn("embedding.failed", { source, reason: why });
  }

  function remoteOptions(settings: MemorySettings, model: string) {
    if (settings.customBaseUrl !== null && settings.customModelId !== null) {
      return {
        baseUrl: settings.customBaseUrl,
        modelId: settings.customModelId,
        model,
        apiKey: settings.customApiKey,
      };
    }
    const slash = model.indexOf("/");
    const provider = deps.provider(model.slice(0, slash));
    if (!provider) throw new AppError("unavailable", `There is no provider ${model.slice(0, slash)}.`);
    return { ...provider, modelId: model.slice(slash + 1), model };
  }

  async function openSource(
    source: EmbeddingKind,
    model: string,
    settings: MemorySettings,
  ): Promise<Embedder> {
    if (source === "remote") {
      const { openRemote } = await import("../embed/remote.ts");
      return openRemote({ ...remoteOptions(settings, model), ...(deps.fetch ? { fetch: deps.fetch } : {}) });
    }
    ensureModel(source);
    const state = models.status(source);
    if (state.state !== "ready") {
      throw new AppError("model_not_downloaded", notThere(state));
    }
    if (source === "static") {
      const { openStatic } = await import("../embed/static.ts");
      return openStatic(join(modelsDir, model), model);
    }
    const { openTransformers } = await import("../embed/transformers.ts");
    return openTransformers({ modelsDir, model, dataDir: config.dataDir });
  }

  /** Starts the download of an enabled model that is not there yet. */
  function ensureModel(name: ModelName): void {
    const last = pulledAt.get(name) ?? Number.NEGATIVE_INFINITY;
    if (models.status(name).state !== "absent" && models.status(name).state !== "failed") return;
    if (now() - last >= PULL_AGAIN_MS) pull(name);
  }

  /** Downloads in the background; whoever waits sees it in the model's status. */
  function pull(name: ModelName): void {
    pulledAt.set(name, now());
    const done = deps.track();
    models
      .pull(name)
      .then(
        () => void failing.delete(name),
        (error: unknown) => log.warn("model.pull.failed", { model: name, error }),
      )
      .finally(done);
  }

  return {
    models,
    resolve,
    pull,
    /** The embedder in force, opened on first use; null, with the reason, when there is none or it does not work now. */
    async get(): Promise<{ embedder: Embedder | null; resolution: EmbeddingResolution }> {
      for (let tries = 0; ; tries++) {
        const resolution = resolve();
        if (resolution.source === null || resolution.model === null)
          return { embedder: (current = null), resolution };
        const held = failing.get(resolution.source);
        const paused = held !== undefined && held.until > now();
        if (!paused) {
          try {
            current = await opened(resolution.source, resolution.model);
            return { embedder: current, resolution };
          } catch {
            // `auto` resolves again, now past the source that fails; an explicit source has nothing to fall to.
            if (deps.settings().embeddingSource === "auto" && tries < 3) continue;
          }
        }
        const why = failing.get(resolution.source)?.why ?? "";
        return {
          embedder: (current = null),
          resolution: { ...resolution, reason: `${resolution.reason} ${why}`.trim() },
        };
      }
    },
    /** What is open now, without waiting. */
    peek: (): Embedder | null => current,
    /** Tells that a call failed, so that `auto` falls through for a while. */
    failed(embedder: Embedder, error: unknown): void {
      // One text that was refused says nothing about the source.
      if (!(error instanceof EmbeddingError) || error.partDown) fail(embedder.source, error);
    },
    /** A local model by its name, whatever the settings say. 503 with the command when it is not downloaded. */
    async local(name: ModelName): Promise<Embedder> {
      const state = models.status(name);
      if (state.state !== "ready") throw new AppError("model_not_downloaded", notThere(state));
      return opened(name, name === "static" ? config.MEMORY_STATIC_MODEL : config.MEMORY_TRANSFORMERS_MODEL);
    },
    /** The embedder of `provider/model`, `local/static` or `local/transformers`; null: the one in force. Null: not usable. */
    async named(model: string | null): Promise<Embedder | null> {
      if (model === null) return (await this.get()).embedder;
      const [place, name] = splitModel(model);
      try {
        // A provider may be called local too.
        if (place === "local" && (name === "static" || name === "transformers"))
          return await this.local(name);
        const { openRemote } = await import("../embed/remote.ts");
        const provider = deps.provider(place);
        if (!provider) return null;
        return cache.wrap(
          await openRemote({
            ...provider,
            modelId: name,
            model,
            ...(deps.fetch ? { fetch: deps.fetch } : {}),
          }),
        );
      } catch (error) {
        log.warn("embedding.failed", { model, error });
        return null;
      }
    },
    async status(): Promise<EmbeddingStatus> {
      const resolution = resolve();
      const held = resolution.source === null ? undefined : failing.get(resolution.source);
      const why = held && held.until > now() ? ` ${held.why}` : "";
      return {
        source: resolution.source,
        model: resolution.model,
        dimensions: current?.dimensions ?? null,
        available: current !== null && why === "",
        reason: resolution.reason + why,
        cacheStats: cache.stats(),
      };
    },
    async close(): Promise<void> {
      await Promise.allSettled([...open.values()].map(async (one) => (await one.embedder).close()));
      open.clear();
    },
  };
}

/** `provider/model` at its first slash. */
function splitModel(model: string): [provider: string, name: string] {
  const slash = model.indexOf("/");
  return [model.slice(0, slash), model.slice(slash + 1)];
}

/** The engine's calls on local models and embeddings. */
export function createModelCalls(embedding: Embedding) {
  const { models } = embedding;
  const known = (name: string): ModelName => {
    if (name !== "static" && name !== "transformers") throw notFound("model");
    return name;
  };
  return {
    list: async (): Promise<ModelStatus[]> => models.list(),
    status: async (input: { name: string }): Promise<ModelStatus> => models.status(known(input.name)),
    /** Starts or joins the download and answers at once; `status` shows how far it is. */
    async pull(input: { name: string }): Promise<ModelStatus> {
      const name = known(input.name);
      embedding.pull(name);
      return models.status(name);
    },
    async remove(input: { name: string }): Promise<{ success: true }> {
      if (!models.remove(known(input.name))) throw notFound("model");
      return { success: true };
    },
    /** Vectors of a local model, whatever the settings say. 503 when it is not downloaded. */
    async embed(input: { name: string; texts: string[] }): Promise<Float32Array[]> {
      const embedder = await embedding.local(known(input.name));
      return embedder.embed(input.texts);
    },
    embedding: () => embedding.status(),
  };
}

function notThere(state: ModelStatus): string {
  if (state.state === "downloading") return `The model ${state.name} is being downloaded.`;
  const failed = state.error ? ` The last download failed: ${state.error}` : "";
  return `The model ${state.name} is not on this machine. Get it with: recollect model pull ${state.name}${failed}`;
}
