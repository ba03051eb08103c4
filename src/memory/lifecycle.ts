/** What can be done with memories from outside: the engine's `memories` group. Every call names its owner, or null for management. */
import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import { activeByKey, memoryById, toMemory, toVersion, versionsOf } from "../db/memories.ts";
import type { MemoryChange, MemoryRow } from "../db/memories.ts";
import { emptyLog, transact } from "../db/open.ts";
import { ensureOwner } from "../db/owners.ts";
import { countQuality } from "../db/quality.ts";
import { ms } from "../db/time.ts";
import { conflict, invalid, notFound } from "../error.ts";
import { deleteForGood, proveDeletion } from "./delete.ts";
import type { DeletionProof, IndexProbe, QdrantProof } from "./delete.ts";
import { cleanContent, cleanKey, cleanMetadata } from "./fields.ts";
import type { Redact } from "./fields.ts";
import type { HushDeps } from "./hush.ts";
import { MANY_ROWS } from "../search/purge.ts";
import type { TextFinder } from "../search/texts/find.ts";
import { callerId, createListing, filterOf } from "./listing.ts";
import type { Caller, ListInput, ListResult, Selection } from "./listing.ts";
import type { Purge } from "./purge.ts";
import { createReview } from "./review.ts";
import type { Store } from "./store.ts";
import type { JsonObject, Memory, MemoryOrigin, MemoryType, MemoryVersion } from "./types.ts";
import { wipeBlocks } from "./wipe.ts";

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

export type MemoriesDeps = {
  db: Database;
  store: Store;
  redact: Redact;
  now: () => number;
  probe: IndexProbe;
  /** For deletions of many rows. */
  purge: Purge;
  told: HushDeps["told"];
  /** What filters let through, by the copy of the texts; null: the rows are to be read. */
  find: TextFinder["find"];
  /** What the outbox says of a deleted memory, after waiting for it (5 s at most). */
  qdrantProof: (id: string) => Promise<QdrantProof>;
};

/** A memory that goes takes its exchange out of the index as well. */
const INDEXES = ["memories", "episodes"] as const;
export function createMemories(deps: MemoriesDeps) {
  const { db, store, now } = deps;
  const cache = new LRUCache<string, Memory>({ max: 500, ttl: 60_000 });
  let hits = 0;
  let misses = 0;
  let seenVersion = dataVersion(db);
  const listing = createListing({ db, find: deps.find });

  function find(caller: Caller, id: string): MemoryRow {
    const row = memoryById(db, callerId(db, caller), id);
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
        // Out of recall at once, in conversations that were given it as well.
        wipeBlocks(db, row.owner_id, row.id);
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

  /** Deletes for good by ids, or by a filter (pinned ones stay); at most `limit` of a filter's matches, when given. */
  async function bulkDelete(
    input: Caller & { selection: Selection; dryRun: boolean; limit?: number; partOfMany?: boolean },
  ): Promise<{ matched: number; deleted: number; dryRun: boolean }> {
    const act = input.dryRun
      ? null
      : (row: MemoryRow) => deleteForGood(db, store, row, { episode: "mute", at: now() });
    if (input.dryRun && "ids" in input.selection) {
      const known = input.selection.ids.filter((id) => memoryById(db, callerId(db, input), id));
      return { matched: new Set(known).size, deleted: 0, dryRun: true };
    }
    // Many rows leave marks in the index, which then is merged once; few are taken out of it one by one.
    const many =
      act !== null &&
      ("ids" in input.selection
        ? input.selection.ids.length
        : listing.countMatches(filterOf(db, input, input.selection))) >= MANY_ROWS;
    const around = many ? (batch: () => void) => deps.purge.marking(INDEXES, batch) : undefined;
    const { matched, acted } = await listing.walk(
      input,
      write,
      input.selection,
      true,
      act,
      input.limit,
      around,
    );
    // Whoever deletes page by page has the index merged once, with the last page.
    const more = input.partOfMany === true || (input.limit !== undefined && acted >= input.limit);
    if (!more) await deps.purge.finish(INDEXES);
    if (acted > 0) {
      countQuality(db, "deletedByUser", acted, now());
      emptyLog(db);
    }
    return { matched, deleted: acted, dryRun: input.dryRun };
  }

  async function list(input: ListInput): Promise<ListResult> {
    const { counts, rows } = listing.page(input);
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
      // Whoever takes back what was approved since has seen it: it does not go back to the inbox.
      const status = version.status === "pending" && row.status !== "pending" ? "active" : version.status;
      if (key !== null && status === "active") {
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
          status,
          superseded_by: status === "superseded" ? row.superseded_by : null,
          by_hand: 1,
        },
        "restore",
      );
      if (row.status !== "active") wipeBlocks(db, row.owner_id, row.id);
      return toMemory(row);
    });
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
    ...createReview({ db, store, now, find, write, told: deps.told }),
    cacheStats,
  };
}

function dataVersion(db: Database): number {
  return db.query<{ data_version: number }, []>("PRAGMA data_version").get()!.data_version;
}
