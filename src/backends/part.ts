/**
 * The backends as a part of the engine. With primary `sqlite` nothing is in the way and the fallbacks are told of changes
 * by job. With a foreign primary the rows of SQLite are its sidecar: a write goes to the primary first and then to the
 * row, what extraction and summaries change follows by job, and what is read there is taken over here, so that history,
 * tombstones, review and receipts work the same for any primary.
 */
import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import { countOutbox, dueNow } from "../db/mirror.ts";
import { AppError, notFound } from "../error.ts";
import type { Log } from "../log.ts";
import type { Jobs } from "../memory/jobs.ts";
import type { MemorySettings } from "../memory/settings.ts";
import type { PrimaryMemories } from "../memory/primary-rows.ts";
import type { Store } from "../memory/store.ts";
import type { Memory, MemoryType } from "../memory/types.ts";
import type { KnownDeps } from "./known.ts";
import { MemoryManager } from "./manager.ts";
import type { BackendHealth } from "./manager.ts";
import { MappedBackend } from "./mapped.ts";
import { createSidecar, visible } from "./sidecar.ts";
import type { Found, MemoryBackend, SearchConfig } from "./types.ts";
import { createWrites, sentence, SYNC, unavailable } from "./writes.ts";

/** How often every backend is asked how it is. */
const WATCH_MS = 30_000;
/** Rows of one page when all are taken over. */
const TAKEN = 200;

export type BackendsDeps = {
  db: Database;
  log: Log;
  now: () => number;
  jobs: Jobs;
  settings: () => MemorySettings;
  known: KnownDeps;
  /** The backend `sqlite`, once the store exists. */
  sqlite: () => MemoryBackend;
  /** The backend `qdrant` of the Qdrant settings, or null while no host is set. */
  qdrant: () => MemoryBackend | null;
  /** Changes when those settings do. */
  qdrantKey: () => string;
  store: () => Store;
  /** Opens a sealed secret. */
  openConfigs: (configs: MemorySettings["backendConfigs"]) => MemorySettings["backendConfigs"];
};

export type BackendStatus = { primary: string; fallbacks: string[]; health: BackendHealth[] };

export type Backends = ReturnType<typeof createBackends>;

export function createBackends(deps: BackendsDeps) {
  const { db, log, now, jobs } = deps;
  const manager = new MemoryManager({
    now,
    synchronise: (backend, owner, id) => writes.queue({ backend, owner, id }),
  });
  const timers: ReturnType<typeof setInterval>[] = [];
  let configured = "";
  /** Why the settings could not be followed, for the status page. */
  let problem: string | null = null;
  const writes = createWrites({
    db,
    jobs,
    settings: deps.settings,
    configure,
    foreign,
    fallback: (id) => manager.fallbacks.find((one) => one.id === id) ?? null,
  });
  const { absorb } = createSidecar({ db, store: deps.store, quietly: writes.quietly });

  /** Follows the settings; cheap when nothing changed. */
  async function configure(): Promise<void> {
    // Most boxes have none, and their schemas take milliseconds to load.
    const some = Object.keys(deps.settings().backendConfigs).length > 0;
    const open = some ? (await import("./known.ts")).openBackend : () => null;
    const { primaryBackend, fallbackBackends, backendConfigs } = deps.settings();
    const wanted = [...new Set([primaryBackend, ...fallbackBackends])];
    const qdrant = wanted.includes("qdrant") ? deps.qdrantKey() : null;
    const key = JSON.stringify([primaryBackend, fallbackBackends, backendConfigs, qdrant]);
    if (key === configured && manager.has(primaryBackend)) return;
    configured = key;
    problem = null;
    for (const id of manager.ids()) if (id !== "sqlite") await manager.unregister(id);
    if (!manager.has("sqlite")) manager.register(deps.sqlite());
    const configs = deps.openConfigs(backendConfigs);
    for (const id of wanted) {
      if (manager.has(id)) continue;
      const configured = configs[id] ? open(id, configs[id], deps.known) : null;
      const backend = configured ?? (id === "qdrant" ? deps.qdrant() : null);
      if (backend) manager.register(new MappedBackend(db, backend));
      else problem = `The backend ${id} is not configured.`;
    }
    if (manager.has(primaryBackend)) {
      const fallbacks = fallbackBackends.filter((id) => manager.has(id));
      manager.configure(primaryBackend, fallbacks);
      // Nobody waits for it: a primary that is down answers each call with its own error.
      for (const backend of [manager.primary, ...manager.fallbacks])
        void backend.initialize?.().catch((error: unknown) => {
          log.warn("backend.down", { backend: backend.id, reason: sentence(error) });
        });
    }
    void manager.check();
  }

  /** The primary when it is not this box's own database. Throws 503 while it is named but not configured. */
  function foreign(): MemoryBackend | null {
    const { primaryBackend } = deps.settings();
    if (primaryBackend === "sqlite") return null;
    if (!manager.has(primaryBackend) || manager.primary.id !== primaryBackend)
      throw new AppError("unavailable", problem ?? `The backend ${primaryBackend} is being opened.`);
    return manager.primary;
  }

  function foreignOrNull(): MemoryBackend | null {
    try {
      return foreign();
    } catch {
      return null;
    }
  }

  /** Reads one memory through the manager; falls back as its table says. */
  async function get(owner: string | null, id: string): Promise<Memory> {
    const primary = foreign()!;
    try {
      const found = await manager.get(owner, id);
      if (!found) throw notFound("memory");
      const memory = found.from === primary.id ? absorb(primary, found.memory) : found.memory;
      if (!memory) throw notFound("memory");
      return memory;
    } catch (thrown) {
      throw thrown instanceof AppError ? thrown : unavailable(primary, thrown);
    }
  }

  /** Brings the sidecar up to date with all that a foreign primary has of an owner (null: of all), for walks over every row. */
  async function takeOver(owner: string | null): Promise<void> {
    await configure();
    const primary = foreign();
    if (!primary) return;
    try {
      for (let offset = 0; ; offset += TAKEN) {
        const { data } = await primary.list({ apiKeyId: owner, limit: TAKEN, offset, orderDir: "asc" });
        for (const memory of data) absorb(primary, memory);
        if (data.length < TAKEN) return;
      }
    } catch (thrown) {
      throw unavailable(primary, thrown);
    }
  }

  /** Searches in the primary, else in a fallback; rows that the owner may not see now are left out. */
  async function search(
    config: SearchConfig & { retentionDays: number },
  ): Promise<{ found: Found[]; from: string; failed: string[] }> {
    const { retentionDays, ...asked } = config;
    const primary = foreign()!;
    const answer = await manager.search(asked);
    const found = answer.found.flatMap(({ memory: given, score }) => {
      const memory = answer.from === primary.id ? absorb(primary, given) : given;
      return memory && visible(memory, config, retentionDays, now()) ? [{ memory, score }] : [];
    });
    return { ...answer, found };
  }

  /** When a primary was last seen to have a memory, so that standing ones are not asked for at every request. */
  const seen = new LRUCache<string, true>({ max: 10_000, ttl: 60_000 });

  /** A foreign primary as retrieval sees it. */
  const forRetrieval: PrimaryMemories = {
    active: () => deps.settings().primaryBackend !== "sqlite",
    async search({ owner, query, sessionId, type, limit, retentionDays, signal }) {
      await configure();
      const { found, failed } = await search({
        query,
        apiKeyId: owner,
        sessionId,
        limit,
        retentionDays,
        signal,
        ...(type === undefined ? {} : { type: type as MemoryType }),
      });
      return { found, failed };
    },
    async newest({ owner, sessionId, limit, retentionDays }) {
      await configure();
      const primary = foreign()!;
      const { data } = await primary.list({ apiKeyId: owner, status: "active", limit, offset: 0 });
      return data
        .map((memory) => absorb(primary, memory))
        .filter((memory) => memory !== null)
        .filter((memory) => visible(memory, { apiKeyId: owner, sessionId }, retentionDays, now()))
        .map((memory) => ({ memory, score: null }));
    },
    async still(owner, ids, signal) {
      await configure();
      const primary = foreign()!;
      const there = await before(
        signal,
        Promise.all(
          ids.map(async (id) => {
            if (seen.has(id)) return id;
            const memory = await primary.get(owner, id);
            if (!memory || !absorb(primary, memory)) return null;
            seen.set(id, true);
            return id;
          }),
        ),
      );
      return new Set(there.filter((id) => id !== null));
    },
  };

  function status(): BackendStatus {
    const { primaryBackend, fallbackBackends } = deps.settings();
    const health = manager.health();
    if (problem === null) return { primary: primaryBackend, fallbacks: fallbackBackends, health };
    const checkedAt = new Date(now()).toISOString();
    const missing = {
      id: primaryBackend,
      displayName: primaryBackend,
      ok: false,
      latencyMs: 0,
      error: problem,
      checkedAt,
    };
    return { primary: primaryBackend, fallbacks: fallbackBackends, health: [...health, missing] };
  }

  /** For the proof of a deletion: whether a foreign primary has it still. */
  async function proof(id: string): Promise<"confirmed" | "pending"> {
    try {
      return (await foreign()!.get(null, id)) === null ? "confirmed" : "pending";
    } catch {
      return "pending";
    }
  }

  let watching: Promise<void> | null = null;
  /** Asks every backend how it is; a second call joins the first. */
  function watch(): Promise<void> {
    watching ??= look().finally(() => {
      watching = null;
    });
    return watching;
  }

  async function look(): Promise<void> {
    await configure();
    const before = new Map(manager.health().map((one) => [one.id, one.ok]));
    let back = false;
    for (const one of await manager.check()) {
      if (!one.ok && before.get(one.id) !== false)
        log.warn("backend.down", { backend: one.id, reason: one.error });
      back ||= one.ok && before.get(one.id) === false;
    }
    for (const backend of [...manager.fallbacks, foreignOrNull()])
      await backend?.migrate?.().catch((error: unknown) => {
        log.warn("backend.migrate.failed", { backend: backend.id, reason: sentence(error) });
      });
    if (!back) return;
    dueNow(db, [SYNC], now());
    jobs.wake();
  }

  return {
    manager,
    configure,
    foreign,
    touched: writes.touched,
    kept: writes.kept,
    through: writes.through,
    removeThrough: writes.removeThrough,
    /** Waits until the primary was told of everything, at most `ms`; false when something is left. */
    async drained(ms = 5000): Promise<boolean> {
      const end = performance.now() + ms;
      while (countOutbox(db, SYNC) > 0) {
        if (performance.now() > end) return false;
        jobs.wake();
        await Bun.sleep(10);
      }
      return true;
    },
    absorb,
    takeOver,
    get,
    forRetrieval,
    status,
    proof,
    watch,
    start(): void {
      const again = (): void => {
        void watch().catch((error: unknown) => log.warn("backend.watch.failed", { error }));
      };
      timers.push(setInterval(again, WATCH_MS));
      again();
    },
    async stop(): Promise<void> {
      for (const timer of timers) clearInterval(timer);
      await manager.shutdown();
    },
  };
}

/** The result, unless the signal comes first. */
async function before<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const leave = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
