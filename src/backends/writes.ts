/**
 * Writes on their way to other systems. A foreign primary is asked first: a write is tried out here and rolled back, sent,
 * and then made. What nobody waits for (extraction, summaries, fallbacks) goes by job, which carries the row's state at
 * the time it runs.
 */
import type { Database } from "bun:sqlite";
import { memoryById, toMemory } from "../db/memories.ts";
import { countOutbox } from "../db/mirror.ts";
import type { MemoryRow } from "../db/memories.ts";
import { AppError } from "../error.ts";
import { PartDown } from "../memory/jobs.ts";
import type { Jobs } from "../memory/jobs.ts";
import type { MemorySettings } from "../memory/settings.ts";
import type { Memory } from "../memory/types.ts";
import { BackendError } from "./types.ts";
import type { MemoryBackend, MemoryPatch } from "./types.ts";

/** Jobs that tell a backend of one memory. */
export const SYNC = "backend";
const WAIT_MS = 15_000;
/** A primary that is down for long is not asked about each write that failed meanwhile. */
const MOST_WITHDRAWN = 100;

type Change = { row: MemoryRow; removed: boolean };
/** `missing`: the row is brought only where the primary has none of its id; what it has may be newer. */
type SyncPayload = { backend: string; owner: string; id: string; missing?: true };

export type WritesDeps = {
  db: Database;
  jobs: Jobs;
  settings: () => MemorySettings;
  /** Follows the settings before anything is asked. */
  configure: () => Promise<void>;
  /** The foreign primary, or null; throws while it is named but not there. */
  foreign: () => MemoryBackend | null;
  fallback: (id: string) => MemoryBackend | null;
};

export type Writes = ReturnType<typeof createWrites>;

export function createWrites(deps: WritesDeps) {
  const { db, jobs, configure, foreign } = deps;
  /** Set while a change is tried out, or taken over from the primary: the hooks tell no one. */
  let capture: Change[] | null = null;
  /** What the primary took already, by id, while it is made here. */
  let expected: Map<string, string> | null = null;
  const queues = new Map<string, Promise<unknown>>();

  function queue(payload: SyncPayload): void {
    const dedupe = `${payload.backend}:${payload.id}${payload.missing ? ":missing" : ""}`;
    jobs.queue({ type: SYNC, ownerId: null, payload, dedupe });
  }

  /** A row that somebody imports and that is here already: a foreign primary need not have it. */
  function kept(row: MemoryRow): void {
    const { primaryBackend } = deps.settings();
    if (primaryBackend !== "sqlite")
      queue({ backend: primaryBackend, owner: row.owner, id: row.id, missing: true });
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

  jobs.handle(SYNC, async (job) => {
    const { backend: id, owner, id: memoryId, missing } = job.payload as SyncPayload;
    await configure();
    const { primaryBackend, fallbackBackends } = deps.settings();
    if (id !== primaryBackend && !fallbackBackends.includes(id)) return;
    const backend = id === primaryBackend ? foreign() : deps.fallback(id);
    if (!backend) return;
    const row = memoryById(db, null, memoryId);
    try {
      if (missing && (row === null || id !== primaryBackend || (await backend.get(owner, memoryId)) !== null))
        return;
      if (id === primaryBackend)
        await push(backend, { row: row ?? ghost(owner, memoryId), removed: row === null });
      else if (row) await backend.update(owner, memoryId, patchOf(toMemory(row)));
      else await backend.delete(owner, memoryId);
    } catch (thrown) {
      if (thrown instanceof BackendError && thrown.partDown)
        throw new PartDown(thrown.message, thrown.retryAfterMs ?? WAIT_MS);
      throw thrown;
    }
  });

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
        if (sent.size > 0) continue;
        if (!change.removed && mayBeThere(thrown)) withdraw(primary, change.row);
        throw unavailable(primary, thrown);
      }
    }
    return sent;
  }

  /** A creation whose answer was lost: the caller hears that nothing was stored, so that nothing may stay over there. */
  function withdraw(primary: MemoryBackend, { id, owner }: MemoryRow): void {
    if (memoryById(db, null, id) === null && countOutbox(db, SYNC) < MOST_WITHDRAWN)
      queue({ backend: primary.id, owner, id });
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

  /** Runs a change of rows that no other system has to hear of. */
  function quietly<T>(work: () => T): T {
    capture = [];
    try {
      return work();
    } finally {
      capture = null;
    }
  }

  return { queue, touched, kept, through, removeThrough, quietly };
}

/** All that a memory can change. */
function patchOf(memory: Memory): MemoryPatch {
  const { id: _, apiKeyId: __, createdAt: ___, ...patch } = memory;
  return patch;
}

export const sentence = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);

/** Whether a backend may have done what it did not answer. */
const mayBeThere = (thrown: unknown): boolean =>
  thrown instanceof BackendError && (thrown.status === null || thrown.status === 408 || thrown.status >= 500);

/** What a caller is told when a primary failed. */
export function unavailable(backend: MemoryBackend, thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  const down = !(thrown instanceof BackendError) || thrown.partDown;
  const message = `The memory backend ${backend.displayName} ${down ? "cannot be used now" : "refused this"}: ${sentence(thrown)}`;
  return new AppError(down ? "unavailable" : "upstream_failed", message, { cause: thrown });
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
