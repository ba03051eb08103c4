/**
 * The backends as a part of the engine. With primary `sqlite` nothing is in the way and the fallbacks are told of changes
 * by job. With a foreign primary the rows of SQLite are its sidecar: a write goes to the primary first and then to the
 * row, what extraction and summaries change follows by job, and what is read there is taken over here, so that history,
 * tombstones, review and receipts work the same for any primary.
 */
import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import { activeByKey, memoryById, toMemory } from "../db/memories.ts";
import type { MemoryRow } from "../db/memories.ts";
import { countOutbox, dueNow } from "../db/mirror.ts";
import { transact } from "../db/open.ts";
import { ownerId } from "../db/owners.ts";
import { AppError, notFound } from "../error.ts";
import type { Log } from "../log.ts";
import { PartDown } from "../memory/jobs.ts";
import type { JobHandler, Jobs } from "../memory/jobs.ts";
import type { MemorySettings } from "../memory/settings.ts";
import type { PrimaryMemories } from "../memory/primary-rows.ts";
import type { Store } from "../memory/store.ts";
import type { Memory, MemoryType } from "../memory/types.ts";
import { readBackendConfig } from "./config.ts";
import { createBackend } from "./known.ts";
import type { KnownDeps } from "./known.ts";
import { MemoryManager } from "./manager.ts";
import type { BackendHealth } from "./manager.ts";
import { MappedBackend } from "./mapped.ts";
import { columns, insertWhole } from "./sqlite.ts";
import { BackendError } from "./types.ts";
import type { Found, MemoryBackend, MemoryPatch, SearchConfig } from "./types.ts";

export const SYNC = "backend";
const WATCH_MS = 30_000;
const WAIT_MS = 15_000;
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
  store: () => Store;
  /** Opens a sealed secret. */
  openConfigs: (configs: MemorySettings["backendConfigs"]) => MemorySettings["backendConfigs"];
};

export type BackendStatus = { primary: string; fallbacks: string[]; health: BackendHealth[] };

type Change = { row: MemoryRow; removed: boolean };
type SyncPayload = { backend: string; owner: string; id: string };

export type Backends = ReturnType<typeof createBackends>;

export function createBackends(deps: BackendsDeps) {
  const { db, log, now, jobs } = deps;
  const manager = new MemoryManager({
    now,
    synchronise: (backend, owner, id) => queue({ backend, owner, id }),
  });
  const timers: ReturnType<typeof setInterval>[] = [];
  let configured = "";
  /** Why the settings could not be followed, for the status page. */
  let problem: string | null = null;
  /** Set while a change is tried out, or made after the primary took it: the hooks tell no one. */
  let capture: Change[] | null = null;
  let expected: Map<string, string> | null = null;
  const queues = new Map<string, Promise<unknown>>();

  function queue(payload: SyncPayload): void {
    jobs.queue({ type: SYNC, ownerId: null, payload, dedupe: `${payload.backend}:${payload.id}` });
  }

  /** Follows the settings; cheap when nothing changed. */
  async function configure(): Promise<void> {
    const { primaryBackend, fallbackBackends, backendConfigs } = deps.settings();
    const wanted = [...new Set([primaryBackend, ...fallbackBackends])];
    const key = JSON.stringify([primaryBackend, fallbackBackends, backendConfigs]);
    if (key === configured && manager.has(primaryBackend)) return;
    configured = key;
    problem = null;
    for (const id of manager.ids()) if (id !== "sqlite") await manager.unregister(id);
    if (!manager.has("sqlite")) manager.register(deps.sqlite());
    const configs = deps.openConfigs(backendConfigs);
    for (const id of wanted) {
      if (manager.has(id)) continue;
      const config = configs[id] ? readBackendConfig(id, configs[id]) : null;
      const backend = config ? createBackend(id, config, deps.known) : id === "qdrant" ? deps.qdrant() : null;
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

  /** As a hook of the store, inside the transaction that changes the row. */
  function touched(row: MemoryRow, removed: boolean): void {
    if (capture) {
      capture.push({ row, removed });
      return;
    }
    const { primaryBackend, fallbackBackends } = deps.settings();
    if (primaryBackend !== "sqlite" && expected?.get(row.id) !== fingerprint(row, removed))
      queue({ backend: primaryBackend, owner: row.owner, id: row.id });
    // What was never written to a fallback has nothing to follow there.
    if (removed || row.version > 1)
      for (const backend of fallbackBackends)
        if (backend !== "sqlite" && backend !== primaryBackend)
          queue({ backend, owner: row.owner, id: row.id });
  }

  const sync: JobHandler = async (job) => {
    const { backend: id, owner, id: memoryId } = job.payload as SyncPayload;
    await configure();
    const { primaryBackend, fallbackBackends } = deps.settings();
    if (id !== primaryBackend && !fallbackBackends.includes(id)) return;
    const backend = id === primaryBackend ? foreign() : manager.fallbacks.find((one) => one.id === id);
    if (!backend) return;
    const row = memoryById(db, null, memoryId);
    try {
      if (id === primaryBackend)
        await push(backend, { row: row ?? ghost(owner, memoryId), removed: row === null });
      else if (row) await backend.update(owner, memoryId, patchOf(toMemory(row)));
      else await backend.delete(owner, memoryId);
    } catch (thrown) {
      if (thrown instanceof BackendError && thrown.partDown)
        throw new PartDown(thrown.message, thrown.retryAfterMs ?? WAIT_MS);
      throw thrown;
    }
  };
  jobs.handle(SYNC, sync);

  /** Brings a primary to a row's state. */
  async function push(backend: MemoryBackend, { row, removed }: Change): Promise<void> {
    if (removed) {
      await backend.delete(row.owner, row.id);
      return;
    }
    const memory = toMemory(row);
    if (await backend.update(row.owner, row.id, patchOf(memory))) return;
    const holder =
      memory.key !== null && memory.status === "active" ? await backend.byKey?.(row.owner, memory.key) : null;
    await backend.create(memory);
    // Another appliance holds the key: the newer statement stands.
    if (holder && holder.id !== memory.id)
      await backend.update(row.owner, holder.id, { status: "superseded", supersededBy: memory.id });
  }

  /**
   * Runs a write of the engine through a foreign primary: tried out and rolled back, so that a mistake is refused before
   * anything is sent; then sent; then made. When the primary is down nothing is stored and the caller gets 503.
   * `work` must write before its first await.
   */
  async function through<T>(owner: string | null, work: () => Promise<T>): Promise<T> {
    await configure();
    const primary = foreign();
    if (!primary) return work();
    return inTurn(owner, async () => make(await send(primary, await tryOut(work)), work));
  }

  /** The same for a deletion, which is known before it is made. */
  async function removeThrough<T>(memory: Memory, work: () => Promise<T>): Promise<T> {
    const primary = foreign()!;
    return inTurn(memory.apiKeyId, async () => {
      const row = memoryById(db, null, memory.id) ?? ghost(memory.apiKeyId, memory.id);
      return make(await send(primary, [{ row, removed: true }]), work);
    });
  }

  /** The rows that a write would leave; its own error when it would fail. */
  async function tryOut(work: () => Promise<unknown>): Promise<Change[]> {
    const changes: Change[] = [];
    let promise: Promise<unknown> | null = null;
    db.run("BEGIN IMMEDIATE");
    capture = changes;
    try {
      promise = work();
      promise.catch(() => {});
    } finally {
      capture = null;
      db.run("ROLLBACK");
    }
    // Its writes were done when it gave its promise, and so was a refusal.
    if (Bun.peek.status(promise) === "rejected") await promise;
    return [...new Map(changes.map((change) => [change.row.id, change])).values()];
  }

  /** Gives what was taken; throws when nothing was. After the first one the rest follows by job. */
  async function send(primary: MemoryBackend, changes: Change[]): Promise<Map<string, string>> {
    const sent = new Map<string, string>();
    for (const change of changes) {
      try {
        await push(primary, change);
        sent.set(change.row.id, fingerprint(change.row, change.removed));
      } catch (thrown) {
        if (sent.size === 0) throw unavailable(primary, thrown);
      }
    }
    return sent;
  }

  /** Makes the write; rows that come out as they were sent need no job. */
  function make<T>(sent: Map<string, string>, work: () => Promise<T>): Promise<T> {
    expected = sent;
    try {
      return work();
    } finally {
      expected = null;
    }
  }

  /** One write of an owner after another, so that what was tried out still holds when it is made. */
  async function inTurn<T>(name: string | null, work: () => Promise<T>): Promise<T> {
    const owner = name ?? "";
    const before = queues.get(owner) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.catch(() => {});
    queues.set(owner, settled);
    void settled.then(() => {
      if (queues.get(owner) === settled) queues.delete(owner);
    });
    return mine;
  }

  /** Takes over what a primary says about a memory, and gives the memory as faces show it. */
  function absorb(backend: MemoryBackend, memory: Memory): Memory {
    return transact(db, () => {
      const row = memoryById(db, null, memory.id);
      capture = [];
      try {
        if (!row) {
          const holder = memory.key === null || memory.status !== "active" ? null : heldBy(memory);
          if (holder === null) insertWhole(db, memory);
          return memory;
        }
        if (row.owner !== memory.apiKeyId) return memory;
        const shown = backend.whole ? memory : { ...memory, ...sidecar(row) };
        // A change of ours that is still on its way is newer than what was read.
        if (countOutbox(db, SYNC, `${backend.id}:${memory.id}`) > 0) return toMemory(row);
        const { key, status } = shown;
        const clash = key !== null && status === "active" && row.key !== key && heldBy(shown) !== null;
        if (!clash && !same(row, shown)) {
          const { version: _, updated_at: __, episode_id: ___, ...change } = columns(shown);
          return { ...shown, ...counted(deps.store().edit(row, change, "backend")) };
        }
        return { ...shown, ...counted(row) };
      } finally {
        capture = null;
      }
    });
  }

  function heldBy(memory: Memory): MemoryRow | null {
    const owner = ownerId(db, memory.apiKeyId);
    return owner === null || memory.key === null ? null : activeByKey(db, owner, memory.key);
  }

  /** Reads one memory through the manager; falls back as its table says. */
  async function get(owner: string | null, id: string): Promise<Memory> {
    const primary = foreign()!;
    try {
      const found = await manager.get(owner, id);
      if (!found) throw notFound("memory");
      return found.from === primary.id ? absorb(primary, found.memory) : found.memory;
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
    const found = answer.found
      .map((one) => (answer.from === primary.id ? { ...one, memory: absorb(primary, one.memory) } : one))
      .filter(({ memory }) => visible(memory, config, retentionDays, now()));
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
            if (!memory) return null;
            absorb(primary, memory);
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
    touched,
    through,
    removeThrough,
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

/** All that a memory can change. */
function patchOf(memory: Memory): MemoryPatch {
  const { id: _, apiKeyId: __, createdAt: ___, ...patch } = memory;
  return patch;
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

const sentence = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

function unavailable(backend: MemoryBackend, thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  const down = !(thrown instanceof BackendError) || thrown.partDown;
  const message = `The memory backend ${backend.displayName} ${down ? "cannot be used now" : "refused this"}: ${sentence(thrown)}`;
  return new AppError(down ? "unavailable" : "upstream_failed", message, { cause: thrown });
}

/** What SQLite knows better than a primary that keeps only some fields. */
function sidecar(row: MemoryRow): Partial<Memory> {
  const { status, pinned, origin, supersededBy, episodeId, createdAt, confirmedAt } = toMemory(row);
  return { status, pinned, origin, supersededBy, episodeId, createdAt, confirmedAt };
}

/** Counters and versions are this box's own. */
function counted(row: MemoryRow): Partial<Memory> {
  const { accessCount, lastAccessedAt, version, episodeId } = toMemory(row);
  return { accessCount, lastAccessedAt, version, episodeId };
}

function same(row: MemoryRow, memory: Memory): boolean {
  const mine = toMemory(row);
  const of = ({ content, key, type, metadata, sessionId, expiresAt, status, pinned }: Memory): unknown => [
    content,
    key,
    type,
    metadata,
    sessionId,
    expiresAt,
    status,
    pinned,
  ];
  return Bun.deepEquals(of(mine), of(memory));
}

/** Tells whether a row is as it was sent. Times are left out: they are taken again when the change is made. */
function fingerprint(row: MemoryRow, removed: boolean): string {
  return JSON.stringify([
    removed,
    row.owner,
    row.session_id,
    row.type,
    row.key,
    row.content,
    row.metadata,
    row.origin,
    row.status,
    row.superseded_by,
    row.pinned,
    row.expires_at,
    row.version,
  ]);
}

/** A row that is gone, as far as deleting it needs one. */
function ghost(owner: string, id: string): MemoryRow {
  return { id, owner } as MemoryRow;
}

function visible(
  memory: Memory,
  config: { apiKeyId: string; sessionId?: string | null; type?: string },
  retentionDays: number,
  now: number,
): boolean {
  const { apiKeyId, sessionId, type } = config;
  return (
    memory.apiKeyId === apiKeyId &&
    memory.status === "active" &&
    (type === undefined || memory.type === type) &&
    (sessionId == null || memory.sessionId === null || memory.sessionId === sessionId) &&
    (memory.expiresAt === null || Date.parse(memory.expiresAt) > now) &&
    (retentionDays === 0 ||
      memory.pinned ||
      Date.parse(memory.confirmedAt) >= now - retentionDays * 86_400_000)
  );
}
