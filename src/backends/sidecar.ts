/** The sidecar of a foreign primary: the rows of SQLite that hold what it cannot, brought up to date as it is read. */
import type { Database } from "bun:sqlite";
import { activeByKey, memoryById, toMemory } from "../db/memories.ts";
import type { MemoryRow } from "../db/memories.ts";
import { countOutbox } from "../db/mirror.ts";
import { transact } from "../db/open.ts";
import { ownerId } from "../db/owners.ts";
import type { Store } from "../memory/store.ts";
import type { Memory } from "../memory/types.ts";
import { columns, insertWhole } from "./sqlite.ts";
import type { MemoryBackend } from "./types.ts";
import { SYNC } from "./writes.ts";
import type { Writes } from "./writes.ts";

export function createSidecar(deps: { db: Database; store: () => Store; quietly: Writes["quietly"] }) {
  const { db, quietly } = deps;

  /**
   * Takes over what a primary says about a memory, and gives the memory as faces show it; null when it was deleted here
   * and the primary has only not heard of it yet.
   */
  function absorb(backend: MemoryBackend, memory: Memory): Memory | null {
    return transact(db, () =>
      quietly(() => {
        const row = memoryById(db, null, memory.id);
        // A change of ours that is still on its way is newer than what was read.
        const onItsWay = countOutbox(db, SYNC, `${backend.id}:${memory.id}`) > 0;
        if (!row) {
          if (onItsWay) return null;
          if (memory.status !== "active" || heldBy(memory) === null) insertWhole(db, memory);
          return memory;
        }
        if (row.owner !== memory.apiKeyId) return memory;
        if (onItsWay) return toMemory(row);
        const shown = backend.whole ? memory : { ...memory, ...sidecar(row) };
        const clash = shown.status === "active" && row.key !== shown.key && heldBy(shown) !== null;
        if (clash || same(row, shown)) return { ...shown, ...counted(row) };
        const { version: _, updated_at: __, episode_id: ___, ...change } = columns(shown);
        return { ...shown, ...counted(deps.store().edit(row, change, "backend")) };
      }),
    );
  }

  /** The active row here that holds a memory's key. */
  function heldBy(memory: Memory): MemoryRow | null {
    const owner = ownerId(db, memory.apiKeyId);
    return owner === null || memory.key === null ? null : activeByKey(db, owner, memory.key);
  }

  return { absorb };
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

/** The base predicate, for a row that another system gave. */
export function visible(
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
