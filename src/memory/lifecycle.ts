/** What can be done with memories from outside: the engine's `memories` group. Every call names its owner, or null for management. */
import { breathe } from "./breathe.ts";
import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import { activeByKey, memoryById, toMemory, toVersion, versionsOf } from "../db/memories.ts";
import type { MemoryChange, MemoryRow } from "../db/memories.ts";
import { countMemories, listMemories, memoriesAfter, memoriesAmong, memoryRows } from "../db/memory-list.ts";
import type { Counts, MemoryFilter, Page } from "../db/memory-list.ts";
import { emptyLog, transact } from "../db/open.ts";
import { ensureOwner, ownerId } from "../db/owners.ts";
import { countQuality } from "../db/quality.ts";
import { ms } from "../db/time.ts";
import { AppError, conflict, invalid, notFound } from "../error.ts";
import { deleteForGood, proveDeletion } from "./delete.ts";
import type { DeletionProof, IndexProbe, QdrantProof } from "./delete.ts";
import { cleanContent, cleanKey, cleanMetadata } from "./fields.ts";
import type { Redact } from "./fields.ts";
import { MANY_ROWS } from "../search/purge.ts";
import type { Found, TextFinder, Wanted } from "../search/texts/find.ts";
import type { Purge } from "./purge.ts";
import type { Store } from "./store.ts";
import type { JsonObject, Memory, MemoryOrigin, MemoryStatus, MemoryType, MemoryVersion } from "./types.ts";

/** An owner's name, or null for management, which sees every owner. Always given: there is no read without it. */
export type Caller = { owner: string | null };

export type CreateInput = {
  owner: string;
  /** Of a new memory; made when it is not given. */
  id?: string;
  origin: MemoryOrigin;
  content: string;
  key?: string | null;
  type?: MemoryType;
  sessionId?: string | null;
  metadata?: JsonObject;
  expiresAt?: string | null;
  pinned?: boolean;
};
export type CreateResult = { memory: Memory; created: boolean; redacted: number };

export type UpdatePatch = {
  type?: MemoryType;
  key?: string | null;
  content?: string;
  metadata?: JsonObject;
  expiresAt?: string | null;
  pinned?: boolean;
  status?: "active" | "archived";
};

export type ListInput = Caller & {
  type?: MemoryType;
  status?: MemoryStatus;
  origin?: MemoryOrigin;
  sessionId?: string;
  q?: string;
  /** ISO time. */
  olderThan?: string;
  limit: number;
  offset: number;
  sort?: Page["sort"];
  order?: Page["order"];
};
export type ListResult = {
  data: Memory[];
  total: number;
  stats: { total: number; byType: Record<MemoryType, number>; tokensUsed: number; hitRate: number | null };
};

export type Selection =
  | { ids: string[] }
  | Omit<ListInput, keyof Caller | "limit" | "offset" | "sort" | "order">;

export type MemoriesDeps = {
  db: Database;
  store: Store;
  redact: Redact;
  now: () => number;
  probe: IndexProbe;
  /** For deletions of many rows. */
  purge: Purge;
  /** What filters let through, by the copy of the texts; null: the rows are to be read. */
  find: TextFinder["find"];
  /** What the outbox says of a deleted memory, after waiting for it (5 s at most). */
  qdrantProof: (id: string) => Promise<QdrantProof>;
};

/** A memory that goes takes its exchange out of the index as well. */
const INDEXES = ["memories", "episodes"] as const;
/** Rows a walk changes in one transaction: short enough that a search never waits long for it. */
const BATCH = 200;
/** With fewer matches than this a text filter reads most rows before a page is full. */
const RARE = 2000;
/** So many rows of an index are walked for a page that other filters thin out. */
const LONG_WALK = 5000;
/** A person whose owner has no row yet has nothing. */
const NOBODY = -1;

export function createMemories(deps: MemoriesDeps) {
  const { db, store, now } = deps;
  const cache = new LRUCache<string, Memory>({ max: 500, ttl: 60_000 });
  let hits = 0;
  let misses = 0;
  let seenVersion = dataVersion(db);

  const callerId = (caller: Caller) => (caller.owner === null ? null : (ownerId(db, caller.owner) ?? NOBODY));

  function find(caller: Caller, id: string): MemoryRow {
    const row = memoryById(db, callerId(caller), id);
    if (!row) throw notFound("memory");
    return row;
  }

  /** Runs a write and forgets what the cache holds of the row. */
  function write<T>(work: () => T): T {
    try {
      return transact(db, work);
    } finally {
      cache.clear();
    }
  }

  function filterOf(caller: Caller, input: Omit<ListInput, keyof Caller | "limit" | "offset">): MemoryFilter {
    return {
      ownerId: callerId(caller),
      type: input.type,
      status: input.status,
      origin: input.origin,
      sessionId: input.sessionId,
      q: input.q,
      olderThan: input.olderThan === undefined ? undefined : ms(input.olderThan),
    };
  }

  async function create(input: CreateInput): Promise<CreateResult> {
    const content = cleanContent(input.content, deps.redact);
    const metadata = cleanMetadata(input.metadata ?? {}, deps.redact);
    const key = cleanKey(input.key ?? null, deps.redact);
    const stored = write(() =>
      store.put({
        ownerId: ensureOwner(db, input.owner),
        id: input.id,
        key: key.text,
        content: content.text,
        metadata: metadata.value,
        origin: input.origin,
        type: input.type,
        sessionId: input.sessionId,
        expiresAt: input.expiresAt == null ? input.expiresAt : ms(input.expiresAt),
        pinned: input.pinned,
        byHand: true,
      }),
    );
    return {
      memory: toMemory(stored.row),
      created: stored.created,
      redacted: content.count + metadata.count + key.count,
    };
  }

  async function get(input: Caller & { id: string }): Promise<Memory> {
    const version = dataVersion(db);
    if (version !== seenVersion) {
      cache.clear();
      seenVersion = version;
    }
    const cached = cache.get(input.id);
    if (cached && (input.owner === null || cached.apiKeyId === input.owner)) {
      hits++;
      return cached;
    }
    misses++;
    const memory = toMemory(find(input, input.id));
    cache.set(memory.id, memory);
    return memory;
  }

  async function update(
    input: Caller & { id: string; patch: UpdatePatch },
  ): Promise<{ memory: Memory; redacted: number }> {
    const { patch } = input;
    const content = patch.content === undefined ? null : cleanContent(patch.content, deps.redact);
    const metadata = patch.metadata === undefined ? null : cleanMetadata(patch.metadata, deps.redact);
    const key = patch.key === undefined ? null : cleanKey(patch.key, deps.redact);
    const memory = write(() => {
      let row = find(input, input.id);
      if (row.status === "pending" && patch.status !== undefined) {
        throw conflict("This memory waits for review. Approve or reject it.", "status");
      }
      if (patch.status !== undefined && patch.status !== row.status && patch.status === "archived") {
        row = store.setStatus(row, "archived", "archive");
      }
      if (key?.text != null && key.text !== row.key && (patch.status ?? row.status) === "active") {
        const holder = activeByKey(db, row.owner_id, key.text);
        if (holder && holder.seq !== row.seq) {
          throw conflict(
            `Another active memory holds the key ${key.text}. Choose another key, or edit that one.`,
            "key",
          );
        }
      }
      const change: MemoryChange = {
        ...(content ? { content: content.text } : {}),
        ...(metadata ? { metadata: JSON.stringify(metadata.value) } : {}),
        ...(key ? { key: key.text } : {}),
        ...(patch.type === undefined ? {} : { type: patch.type }),
        ...(patch.expiresAt === undefined
          ? {}
          : { expires_at: patch.expiresAt === null ? null : ms(patch.expiresAt) }),
        ...(patch.pinned === undefined ? {} : { pinned: Number(patch.pinned) }),
      };
      if (Object.keys(change).length > 0) row = store.edit(row, { ...change, by_hand: 1 }, "edit");
      if (patch.status === "active" && row.status !== "active")
        row = store.setStatus(row, "active", "unarchive");
      return toMemory(row);
    });
    return { memory, redacted: (content?.count ?? 0) + (metadata?.count ?? 0) + (key?.count ?? 0) };
  }

  async function remove(
    input: Caller & { id: string; proof?: boolean; source?: boolean },
  ): Promise<{ success: true; proof?: DeletionProof }> {
    const source = input.source ?? false;
    const row = write(() => {
      const found = find(input, input.id);
      deleteForGood(db, store, found, { episode: source ? "delete" : "mute", at: now() });
      countQuality(
        db,
        "deletedByUser",
        Number(found.origin === "user" || found.origin === "assistant"),
        now(),
      );
      return found;
    });
    emptyLog(db);
    if (!input.proof) return { success: true };
    return {
      success: true,
      proof: proveDeletion(db, row, deps.probe, source, await deps.qdrantProof(row.id)),
    };
  }

  async function list(input: ListInput): Promise<ListResult> {
    // Counts and page of one moment, whoever writes meanwhile.
    const { counts, rows } = db.transaction(() => listNow(filterOf(input, input), input))();
    const reads = hits + misses;
    return {
      data: rows.map(toMemory),
      total: counts.total,
      stats: {
        total: counts.total,
        byType: counts.byType,
        tokensUsed: counts.tokens,
        hitRate: reads === 0 ? null : hits / reads,
      },
    };
  }

  function listNow(filter: MemoryFilter, input: ListInput): { counts: Counts; rows: MemoryRow[] } {
    const { limit, offset, sort = "createdAt", order = "desc" } = input;
    const page = { limit, offset, order };
    if (sort === "lastAccessedAt") {
      // What changes with every recall is in no index.
      const found = filter.q ? deps.find(filter, "all") : null;
      const counts = found?.counts ?? countMemories(db, filter);
      return { counts, rows: listMemories(db, filter, { ...page, sort, among: found?.seqs }) };
    }
    const found = pageOf(filter, { ...page, sort });
    if (found !== null) return { counts: found.counts, rows: memoryRows(db, found.seqs) };
    const counts = countMemories(db, filter);
    if (counts.total <= offset) return { counts, rows: [] };
    const rare = Boolean(filter.q) && counts.total < RARE;
    return { counts, rows: listMemories(db, filter, { ...page, sort, rare }) };
  }

  /** The page by the copy of the texts, where rows or an index would be walked for long. */
  function pageOf(filter: MemoryFilter, page: Exclude<Wanted, string>): Found | null {
    if (filter.q || page.sort === "updatedAt") return deps.find(filter, page);
    if (filter.sessionId !== undefined) return null;
    if (filter.type === undefined && filter.origin === undefined) return null;
    const matches = countMemories(db, filter).total;
    const walked = countMemories(db, { ownerId: filter.ownerId, status: filter.status }).total;
    const share = Math.min(1, (page.offset + page.limit) / Math.max(1, matches));
    return share * walked > LONG_WALK ? deps.find(filter, page) : null;
  }

  const countMatches = (filter: MemoryFilter): number =>
    (filter.q ? deps.find(filter, "counts") : null)?.counts.total ?? countMemories(db, filter).total;

  /** Walks every match in pages of one short transaction each, so that nothing waits long and counts are true. */
  async function walk(
    caller: Caller,
    selection: Selection,
    skipPinned: boolean,
    act: ((row: MemoryRow) => void) | null,
    max = Infinity,
    around: (batch: () => void) => void = (batch) => batch(),
  ): Promise<{ matched: number; acted: number }> {
    let matched = 0;
    let acted = 0;
    const handle = (row: MemoryRow) => {
      matched++;
      if (act) {
        act(row);
        acted++;
      }
    };
    if ("ids" in selection) {
      for (let start = 0; start < selection.ids.length; start += BATCH) {
        write(() =>
          around(() => {
            for (const id of selection.ids.slice(start, start + BATCH)) {
              const row = memoryById(db, callerId(caller), id);
              if (row) handle(row);
            }
          }),
        );
        await breathe();
      }
      return { matched, acted };
    }
    const filter = { ...filterOf(caller, selection), ...(skipPinned ? { pinned: false } : {}) };
    if (!act) return { matched: countMatches(filter), acted };
    const found = filter.q ? deps.find(filter, "all") : null;
    const seqs = found?.seqs ?? [];
    for (let start = 0; start < seqs.length && acted < max;) {
      const some = seqs.slice(start, start + Math.min(BATCH, max - acted));
      start += some.length;
      write(() => around(() => memoriesAmong(db, filter, some).forEach(handle)));
      await breathe();
    }
    if (acted >= max) return { matched, acted };
    // What came meanwhile, or all.
    for (let after = found?.newest ?? 0; ;) {
      const rows = write(() => {
        const page = memoriesAfter(db, filter, after, Math.min(BATCH, max - acted));
        around(() => page.forEach(handle));
        return page;
      });
      if (rows.length < BATCH || acted >= max) return { matched, acted };
      after = rows.at(-1)!.seq;
      await breathe();
    }
  }

  /** Deletes for good by ids, or by a filter (pinned ones stay); at most `limit` of a filter's matches, when given. */
  async function bulkDelete(
    input: Caller & { selection: Selection; dryRun: boolean; limit?: number; partOfMany?: boolean },
  ): Promise<{ matched: number; deleted: number; dryRun: boolean }> {
    const act = input.dryRun
      ? null
      : (row: MemoryRow) => deleteForGood(db, store, row, { episode: "mute", at: now() });
    if (input.dryRun && "ids" in input.selection) {
      const known = input.selection.ids.filter((id) => memoryById(db, callerId(input), id));
      return { matched: new Set(known).size, deleted: 0, dryRun: true };
    }
    // Many rows leave marks in the index, which then is merged once; few are taken out of it one by one.
    const many =
      act !== null &&
      ("ids" in input.selection
        ? input.selection.ids.length
        : countMatches(filterOf(input, input.selection))) >= MANY_ROWS;
    const around = many ? (batch: () => void) => deps.purge.marking(INDEXES, batch) : undefined;
    const { matched, acted } = await walk(input, input.selection, true, act, input.limit, around);
    // Whoever deletes page by page has the index merged once, with the last page.
    const more = input.partOfMany === true || (input.limit !== undefined && acted >= input.limit);
    if (!more) await deps.purge.finish(INDEXES);
    if (acted > 0) {
      countQuality(db, "deletedByUser", acted, now());
      emptyLog(db);
    }
    return { matched, deleted: acted, dryRun: input.dryRun };
  }

  async function history(input: Caller & { id: string }): Promise<MemoryVersion[]> {
    const row = find(input, input.id);
    const current = toMemory(row);
    return [
      ...versionsOf(db, row.seq).map(toVersion),
      {
        version: row.version,
        cause: "current",
        at: current.updatedAt,
        type: current.type,
        key: current.key,
        content: current.content,
        metadata: current.metadata,
      },
    ];
  }

  /** Makes an earlier version the current one; what is current now becomes history. Also undoes archive and forget. */
  async function restore(input: Caller & { id: string; version: number }): Promise<Memory> {
    return write(() => {
      let row = find(input, input.id);
      const version = versionsOf(db, row.seq).find((one) => one.version === input.version);
      if (!version) {
        if (input.version !== row.version) throw invalid("version", `there is no version ${input.version}`);
        return toMemory(row);
      }
      const key = version.key;
      if (key !== null && version.status === "active") {
        const holder = activeByKey(db, row.owner_id, key);
        if (holder && holder.seq !== row.seq)
          throw conflict(`Another active memory holds the key ${key}. Archive that one first.`, "key");
      }
      row = store.edit(
        row,
        {
          type: version.type,
          key,
          content: version.content,
          metadata: version.metadata,
          session_id: version.session_id,
          expires_at: version.expires_at,
          status: version.status,
          superseded_by: version.status === "superseded" ? row.superseded_by : null,
          by_hand: 1,
        },
        "restore",
      );
      return toMemory(row);
    });
  }

  /** Approves a pending memory on the current version: where an active one holds its key by now, that one is updated. */
  async function approve(input: Caller & { id: string }): Promise<Memory> {
    return write(() => toMemory(approveRow(pending(input, input.id))));
  }

  async function reject(input: Caller & { id: string }): Promise<{ success: true }> {
    write(() => rejectRow(pending(input, input.id)));
    return { success: true };
  }

  async function review(
    input: Caller & { ids: string[]; action: "approve" | "reject" },
  ): Promise<{ done: number; failed: { id: string; message: string }[] }> {
    const failed: { id: string; message: string }[] = [];
    let done = 0;
    for (const id of input.ids) {
      try {
        write(() => {
          const row = pending(input, id);
          if (input.action === "approve") approveRow(row);
          else rejectRow(row);
        });
        done++;
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        failed.push({ id, message: error.message });
      }
    }
    return { done, failed };
  }

  function pending(caller: Caller, id: string): MemoryRow {
    const row = find(caller, id);
    if (row.status !== "pending") throw conflict("This memory does not wait for review.", "status");
    return row;
  }

  function approveRow(row: MemoryRow): MemoryRow {
    const metadata = JSON.parse(row.metadata) as JsonObject;
    if (metadata["forget"] === true) {
      for (const id of Array.isArray(metadata["matches"]) ? metadata["matches"] : []) {
        const match = typeof id === "string" ? memoryById(db, row.owner_id, id) : null;
        if (match?.status === "active") store.setStatus(match, "archived", "forget");
      }
      return store.setStatus(row, "archived", "approve");
    }
    const holder = row.key === null ? null : activeByKey(db, row.owner_id, row.key);
    if (!holder) return store.edit(store.setStatus(row, "active", "approve"), { by_hand: 1 }, "approve");
    const merged = { ...(JSON.parse(holder.metadata) as JsonObject), ...metadata };
    const updated = store.edit(
      holder,
      { content: row.content, type: row.type, metadata: JSON.stringify(merged), by_hand: 1 },
      "approve",
    );
    store.purge(row);
    return updated;
  }

  function rejectRow(row: MemoryRow): void {
    deleteForGood(db, store, row, { episode: "keep", at: now() });
    countQuality(db, "rejected", 1, now());
  }

  /** Hits and misses of the row cache, as lists show them. */
  const cacheStats = async () => ({ hits, misses, size: cache.size });

  /** Forgets what the row cache holds; called after every change by any writer. */
  const forgetRows = () => cache.clear();

  return {
    forgetRows,
    create,
    get,
    update,
    remove,
    list,
    bulkDelete,
    history,
    restore,
    approve,
    reject,
    review,
    cacheStats,
  };
}

function dataVersion(db: Database): number {
  return db.query<{ data_version: number }, []>("PRAGMA data_version").get()!.data_version;
}
