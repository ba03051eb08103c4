/** The built-in backend: the rows of this box's own database. */
import type { Database } from "bun:sqlite";
import {
  activeByKey,
  changeMemory,
  insertMemory,
  memoriesBySeqs,
  memoryById,
  toMemory,
} from "../db/memories.ts";
import type { MemoryChange } from "../db/memories.ts";
import { countMemories, listMemories } from "../db/memory-list.ts";
import { transact } from "../db/open.ts";
import { ensureOwner, ownerId } from "../db/owners.ts";
import { ms } from "../db/time.ts";
import { estimateTokens } from "../memory/budget.ts";
import { isStanding } from "../memory/store.ts";
import type { Store } from "../memory/store.ts";
import type { Memory } from "../memory/types.ts";
import type {
  Found,
  Health,
  MemoryBackend,
  MemoryFilter,
  MemoryPage,
  MemoryPatch,
  SearchConfig,
} from "./types.ts";

export type SqliteDeps = {
  db: Database;
  store: Store;
  /** The engine's own retrieval. */
  search: (config: SearchConfig) => Promise<Found[]>;
};

/** An owner that is not known yet has nothing. */
const NOBODY = -1;

export class SqliteBackend implements MemoryBackend {
  readonly id = "sqlite";
  readonly displayName = "SQLite";
  readonly whole = true;
  readonly #deps: SqliteDeps;

  constructor(deps: SqliteDeps) {
    this.#deps = deps;
  }

  async create(memory: Memory): Promise<Memory> {
    const { db } = this.#deps;
    transact(db, () => insertWhole(db, memory));
    return memory;
  }

  async get(owner: string | null, id: string): Promise<Memory | null> {
    const row = memoryById(this.#deps.db, this.#owner(owner), id);
    return row ? toMemory(row) : null;
  }

  async byKey(owner: string, key: string): Promise<Memory | null> {
    const row = activeByKey(this.#deps.db, this.#owner(owner) ?? NOBODY, key);
    return row ? toMemory(row) : null;
  }

  async update(owner: string, id: string, patch: MemoryPatch): Promise<boolean> {
    const { db } = this.#deps;
    return transact(db, () => {
      const row = memoryById(db, this.#owner(owner), id);
      if (!row) return false;
      changeMemory(db, row.seq, columns({ ...toMemory(row), ...patch }));
      return true;
    });
  }

  async delete(owner: string, id: string): Promise<boolean> {
    const { db, store } = this.#deps;
    return transact(db, () => {
      const row = memoryById(db, this.#owner(owner), id);
      if (row) store.purge(row);
      return row !== null;
    });
  }

  async list(filter: MemoryFilter): Promise<MemoryPage> {
    const { db } = this.#deps;
    const { apiKeyId, limit, offset, orderBy, orderDir, ...rest } = filter;
    const where = { ...rest, ownerId: this.#owner(apiKeyId) };
    const { total, byType } = countMemories(db, where);
    const rows = listMemories(db, where, {
      limit,
      offset,
      sort: orderBy ?? "createdAt",
      order: orderDir ?? "desc",
    });
    const present = Object.entries(byType).filter(([, n]) => n > 0);
    return { data: rows.map(toMemory), total, byType: Object.fromEntries(present) };
  }

  search(config: SearchConfig): Promise<Found[]> {
    return this.#deps.search(config);
  }

  async health(): Promise<Health> {
    const started = performance.now();
    try {
      this.#deps.db.query("SELECT 1 FROM memories LIMIT 1").get();
      return { ok: true, latencyMs: performance.now() - started };
    } catch {
      return { ok: false, latencyMs: performance.now() - started, error: "The database cannot be read." };
    }
  }

  #owner(name: string | null): number | null {
    return name === null ? null : (ownerId(this.#deps.db, name) ?? NOBODY);
  }
}

/** The search of this backend over the engine's own ranking of rows. */
export function searchBy(
  db: Database,
  rank: (input: {
    owner: number;
    kind: "memory";
    query: string;
    limit: number;
    mode: "hybrid";
    session: string | null;
  }) => Promise<{ candidates: { id: number; score: number | null }[] }>,
): (config: SearchConfig) => Promise<Found[]> {
  return async ({ query, apiKeyId, limit, sessionId, type }) => {
    const owner = ownerId(db, apiKeyId);
    if (owner === null) return [];
    const { candidates } = await rank({
      owner,
      kind: "memory",
      query,
      limit,
      mode: "hybrid",
      session: sessionId ?? null,
    });
    const rows = memoriesBySeqs(
      db,
      owner,
      candidates.map((one) => one.id),
    );
    return candidates
      .flatMap(({ id, score }) => {
        const row = rows.get(id);
        return row && (type === undefined || row.type === type) ? [{ memory: toMemory(row), score }] : [];
      })
      .slice(0, limit);
  };
}

/** Every settable column of a row as the memory has it. */
export function columns(memory: Memory): MemoryChange {
  return {
    session_id: memory.sessionId,
    type: memory.type,
    key: memory.key,
    content: memory.content,
    metadata: JSON.stringify(memory.metadata),
    status: memory.status,
    superseded_by: memory.supersededBy,
    pinned: Number(memory.pinned),
    standing: Number(isStanding(memory.key, memory.metadata)),
    episode_id: memory.episodeId,
    version: memory.version,
    tokens: estimateTokens(memory.content),
    origin: memory.origin,
    updated_at: ms(memory.updatedAt),
    confirmed_at: ms(memory.confirmedAt),
    expires_at: memory.expiresAt === null ? null : ms(memory.expiresAt),
  };
}

/** Inserts a memory as it is: id, times and version are kept. */
export function insertWhole(db: Database, memory: Memory): void {
  const seq = insertMemory(db, {
    id: memory.id,
    ownerId: ensureOwner(db, memory.apiKeyId),
    sessionId: memory.sessionId,
    type: memory.type,
    key: memory.key,
    content: memory.content,
    metadata: memory.metadata,
    origin: memory.origin,
    status: memory.status,
    pinned: memory.pinned,
    standing: isStanding(memory.key, memory.metadata),
    byHand: false,
    // An exchange of another box has its own numbers.
    episodeId: null,
    tokens: estimateTokens(memory.content),
    createdAt: ms(memory.createdAt),
    updatedAt: ms(memory.updatedAt),
    confirmedAt: ms(memory.confirmedAt),
    expiresAt: memory.expiresAt === null ? null : ms(memory.expiresAt),
  });
  changeMemory(db, seq, { version: memory.version, superseded_by: memory.supersededBy });
}
