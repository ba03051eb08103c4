/**
 * The embedder of the moment: resolved from the settings at each call, opened on first use, kept while nothing changes.
 * A source that keeps failing is left by `auto` for the next one, and tried again from time to time.
 */
import { join } from "node:path";
import type { EmbeddingCache, EmbeddingCacheStats } from "./cache.ts";
import { openRemote } from "./remote.ts";
import {
  resolveEmbedding,
  type EmbeddingResolution,
  type EmbeddingSettings,
  type ResolveDeps,
} from "./resolve.ts";
import { openStatic } from "./static.ts";
import { openTransformers } from "./transformers.ts";
import { EmbeddingError, type Embedder, type EmbeddingKind } from "./types.ts";

export interface EmbeddingProvider {
  /** As requests use it, with its version segment. */
  readonly baseUrl: string;
  readonly apiKey: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** On loopback or LAN. */
  readonly local: boolean;
}

export interface EmbeddingDeps {
  readonly settings: () => EmbeddingSettings & { readonly customApiKey: string | null };
  readonly provider: (id: string) => EmbeddingProvider | null;
  readonly staticModel: string;
  readonly transformersModel: string;
  readonly modelsDir: string;
  readonly dataDir: string;
  readonly cache: EmbeddingCache;
  /** For remotes: the URL policy's own. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  readonly now?: () => number;
}

export interface EmbeddingStatus extends EmbeddingResolution {
  readonly dimensions: number | null;
  readonly signature: string | null;
  /** True: a real call worked and none failed since; false: the last one failed; null: none was made yet. */
  readonly available: boolean | null;
  /** One sentence while it is not available. */
  readonly error: string | null;
  readonly cache: EmbeddingCacheStats;
}

export interface Embedding {
  /** Null: no source, so search is lexical (`status().reason` says why). Throws EmbeddingError when it cannot be opened. */
  current(): Promise<Embedder | null>;
  /** A model by name, whatever the settings: `local/static`, `local/transformers` or `provider/model`. */
  named(model: string): Promise<Embedder>;
  status(): EmbeddingStatus;
  /** A model was downloaded or removed, a provider changed: what failed is tried again at once. */
  reset(): void;
  close(): Promise<void>;
}

/** A remote is given this many tries over this time before `auto` leaves it; a model that cannot be opened, none. */
const REMOTE_TRIES = 3;
const REMOTE_PATIENCE_MS = 60_000;
/** Then it is tried again. */
const RETRY_MS = 60_000;
/** A source that could not be opened is not asked again for this long. */
const OPEN_PAUSE_MS = 30_000;

interface Opened {
  readonly embedder: Promise<Embedder>;
  /** Set when opening failed. */
  failedAt: number | null;
}

interface Health {
  ok: boolean;
  error: string | null;
  failures: number;
  firstFailure: number;
  lastFailure: number;
  fatal: boolean;
}

type Target = {
  readonly key: string;
  readonly source: EmbeddingKind;
  readonly open: () => Promise<Embedder>;
};

export function createEmbedding(deps: EmbeddingDeps): Embedding {
  const now = deps.now ?? Date.now;
  const opened = new Map<string, Opened>();
  const health = new Map<string, Health>();
  const signatures = new Map<string, string>();
  let currentKey: string | null = null;

  const local = (source: "static" | "transformers"): Target => {
    const model = source === "static" ? deps.staticModel : deps.transformersModel;
    const { modelsDir, dataDir } = deps;
    const open = (): Promise<Embedder> =>
      source === "static"
        ? openStatic(join(modelsDir, model), model)
        : openTransformers({ modelsDir, model, dataDir });
    return { key: `${source}:${model}`, source, open };
  };

  const remote = (
    model: string,
    baseUrl: string,
    modelId: string,
    apiKey: string | null,
    headers = {},
  ): Target => ({
    key: `remote:${model}:${baseUrl}:${Bun.hash(JSON.stringify([apiKey, headers]))}`,
    source: "remote",
    open: () =>
      openRemote({
        baseUrl,
        modelId,
        model,
        apiKey,
        headers,
        now,
        ...(deps.fetch ? { fetch: deps.fetch } : {}),
      }),
  });

  const ofProvider = (model: string): Target => {
    const slash = model.indexOf("/");
    const provider = deps.provider(model.slice(0, slash));
    if (provider === null) throw down(`There is no provider ${model.slice(0, slash)}.`);
    return remote(model, provider.baseUrl, model.slice(slash + 1), provider.apiKey, provider.headers);
  };

  const targetOf = (source: EmbeddingKind, model: string): Target => {
    if (source !== "remote") return local(source);
    const { customBaseUrl, customModelId, customApiKey } = deps.settings();
    if (customBaseUrl !== null && customModelId !== null) {
      return remote(model, customBaseUrl, customModelId, customApiKey);
    }
    return ofProvider(model);
  };

  const failing = (source: EmbeddingKind): string | null => {
    const state = health.get(source === "remote" ? (remoteKey() ?? "") : local(source).key);
    if (state === undefined || state.ok || now() - state.lastFailure >= RETRY_MS) return null;
    const patient =
      state.failures < REMOTE_TRIES || state.lastFailure - state.firstFailure < REMOTE_PATIENCE_MS;
    return !state.fatal && patient ? null : state.error;
  };
  /** Key of the remote that the settings name; a changed address or key begins with a clean slate. */
  const remoteKey = (): string | null => {
    const choice = resolveEmbedding({ ...deps.settings(), embeddingSource: "remote" }, resolveDeps);
    return choice.model === null ? null : targetOf("remote", choice.model).key;
  };

  const resolveDeps: ResolveDeps = {
    staticModel: deps.staticModel,
    transformersModel: deps.transformersModel,
    provider(id) {
      const provider = deps.provider(id);
      return provider === null ? null : { hasKey: provider.apiKey !== null, local: provider.local };
    },
  };
  const resolve = (): EmbeddingResolution => resolveEmbedding(deps.settings(), { ...resolveDeps, failing });

  const note = (key: string, error: unknown, fatal: boolean): void => {
    const at = now();
    const before = health.get(key);
    if (error === null) {
      health.set(key, { ok: true, error: null, failures: 0, firstFailure: 0, lastFailure: 0, fatal: false });
      return;
    }
    if (!(error instanceof EmbeddingError) || !error.partDown) return;
    const again = before !== undefined && !before.ok;
    health.set(key, {
      ok: false,
      error: error.message,
      failures: again ? before.failures + 1 : 1,
      firstFailure: again ? before.firstFailure : at,
      lastFailure: at,
      fatal,
    });
  };

  /** The embedder of a target, opened once; every call tells how the target is. */
  const open = (target: Target): Promise<Embedder> => {
    const { key } = target;
    const known = opened.get(key);
    if (known !== undefined && (known.failedAt === null || now() - known.failedAt < OPEN_PAUSE_MS))
      return known.embedder;
    const entry: Opened = {
      failedAt: null,
      embedder: target.open().then(
        (embedder) => {
          note(key, null, false);
          signatures.set(key, embedder.signature);
          return deps.cache.wrap(observed(embedder, key));
        },
        (error: unknown) => {
          entry.failedAt = now();
          note(key, error, target.source !== "remote");
          throw error;
        },
      ),
    };
    entry.embedder.catch(() => undefined);
    opened.set(key, entry);
    return entry.embedder;
  };

  const observed = (embedder: Embedder, key: string): Embedder => ({
    ...embedder,
    async embed(texts, signal) {
      try {
        const vectors = await embedder.embed(texts, signal);
        note(key, null, false);
        return vectors;
      } catch (error) {
        note(key, error, false);
        throw error;
      }
    },
  });

  /** Only the model of the settings stays in memory; one that was asked for by name too, until the settings change. */
  const settle = (key: string | null): void => {
    if (key === currentKey) return;
    const before = currentKey;
    currentKey = key;
    const left = before === null ? undefined : opened.get(before);
    if (before === null || left === undefined) return;
    opened.delete(before);
    left.embedder.then((embedder) => embedder.close()).catch(() => undefined);
  };

  return {
    async current() {
      const { source, model } = resolve();
      const target = source === null || model === null ? null : targetOf(source, model);
      settle(target?.key ?? null);
      return target === null ? null : await open(target);
    },
    async named(model) {
      if (model === "local/static" || model === "local/transformers") {
        return await open(local(model === "local/static" ? "static" : "transformers"));
      }
      return await open(ofProvider(model));
    },
    status() {
      const resolution = resolve();
      const { source, model } = resolution;
      const key = source === null || model === null ? "" : targetOf(source, model).key;
      const state = health.get(key);
      const signature = signatures.get(key) ?? null;
      return {
        ...resolution,
        dimensions: signature === null ? null : Number(signature.slice(signature.lastIndexOf(":") + 1)),
        signature,
        available: state?.ok ?? null,
        error: state?.error ?? null,
        cache: deps.cache.stats(),
      };
    },
    reset() {
      for (const [key, entry] of opened) if (entry.failedAt !== null) opened.delete(key);
      for (const [key, state] of health) if (!state.ok) health.delete(key);
    },
    async close() {
      const all = [...opened.values()];
      opened.clear();
      for (const { embedder } of all) await embedder.then((one) => one.close()).catch(() => undefined);
    },
  };
}

function down(message: string): EmbeddingError {
  return new EmbeddingError(message, { partDown: true });
}
