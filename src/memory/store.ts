/**
 * The writing primitives under every writer (API, MCP, extraction, import, summaries). Each runs inside the caller's
 * transaction, keeps history, and tells the hooks, so that no writer can forget an index.
 */
import type { Database } from "bun:sqlite";
import {
  activeByKey,
  changeMemory,
  insertMemory,
  keepVersion,
  memoryBySeq,
  removeMemory,
} from "../db/memories.ts";
import type { MemoryChange, MemoryRow } from "../db/memories.ts";
import { AppError } from "../error.ts";
import { estimateTokens } from "./budget.ts";
import type { JsonObject, MemoryOrigin, MemoryStatus, MemoryType } from "./types.ts";

/** Called inside the transaction that changes a row: outboxes and embedding jobs are written with it. */
export type StoreHooks = {
  changed(db: Database, row: MemoryRow): void;
  /** Only `confirmedAt` moved: the same was said again. */
  confirmed?(db: Database, row: MemoryRow): void;
  removed(db: Database, row: MemoryRow): void;
  /** The exchange a deleted memory came from: never recalled again (`mute`), or deleted with its text everywhere. */
  dropEpisode(db: Database, episode: { owner: number; id: number; row: "mute" | "delete" }): void;
  /** What it said no longer holds: corrected, forgotten or, where `after` is null, deleted. */
  unsaid?(db: Database, before: MemoryRow, after: MemoryRow | null): void;
};

/** Causes of a status by which a memory is taken back, not only put away. */
const TAKEN_BACK: ReadonlySet<string> = new Set(["correction", "forget"]);

export type Put = {
  ownerId: number;
  /** Kept on import; made otherwise. */
  id?: string | undefined;
  sessionId?: string | null | undefined;
  type?: MemoryType | undefined;
  key: string | null;
  content: string;
  metadata: JsonObject;
  origin: MemoryOrigin;
  status?: MemoryStatus | undefined;
  pinned?: boolean | undefined;
  byHand?: boolean | undefined;
  episodeId?: number | null | undefined;
  expiresAt?: number | null | undefined;
  createdAt?: number | undefined;
  /** What the version that is left is called in the history. */
  cause?: string | undefined;
};

export type Stored = { row: MemoryRow; created: boolean };

export type Store = ReturnType<typeof createStore>;

/** Slots that, like instructions and pinned memories, apply to every request. */
const standingKeys = new Set(["identity:name", "identity:language", "identity:role"]);

export function isStanding(key: string | null, metadata: JsonObject): boolean {
  return metadata["category"] === "instruction" || (key !== null && standingKeys.has(key));
}

/** What had expired and is said again holds again: else the new word would stay hidden, and go with the old one. */
export function heldAgain({ expires_at }: MemoryRow, at: number): MemoryChange {
  return expires_at !== null && expires_at <= at ? { expires_at: null } : {};
}

export function createStore(deps: { db: Database; hooks: StoreHooks; now: () => number }) {
  const { db, hooks, now } = deps;

  function reload(row: Pick<MemoryRow, "owner_id" | "seq">): MemoryRow {
    return memoryBySeq(db, row.owner_id, row.seq)!;
  }

  /** Changes a row, keeping what it was as a version. Only columns that differ are written. */
  function edit(row: MemoryRow, change: MemoryChange, cause: string): MemoryRow {
    const real = Object.fromEntries(
      Object.entries(change).filter(
        ([name, value]) => value !== undefined && row[name as keyof MemoryRow] !== value,
      ),
    ) as MemoryChange;
    const at = now();
    if (Object.keys(real).length === 0) {
      changeMemory(db, row.seq, { confirmed_at: change.confirmed_at ?? at });
      const same = reload(row);
      hooks.confirmed?.(db, same);
      return same;
    }
    if (real.content !== undefined) real.tokens = estimateTokens(real.content);
    const metadata = JSON.parse(real.metadata ?? row.metadata) as JsonObject;
    real.standing = Number(isStanding(real.key === undefined ? row.key : real.key, metadata));
    if (real.standing === row.standing) delete real.standing;
    keepVersion(db, row.seq, cause, at);
    changeMemory(db, row.seq, {
      confirmed_at: change.confirmed_at ?? at,
      ...real,
      version: row.version + 1,
      updated_at: at,
    });
    const next = reload(row);
    hooks.changed(db, next);
    const takenBack = real.status !== undefined && real.status !== "active" && TAKEN_BACK.has(cause);
    if (takenBack) hooks.unsaid?.(db, row, null);
    else if (real.content !== undefined) hooks.unsaid?.(db, row, next);
    return next;
  }

  /** Inserts, or updates the active memory that holds the key: content replaced, metadata merged, id and createdAt kept. */
  function put(input: Put): Stored {
    const holder =
      input.key !== null && (input.status ?? "active") === "active"
        ? activeByKey(db, input.ownerId, input.key)
        : null;
    if (holder) {
      const metadata = { ...(JSON.parse(holder.metadata) as JsonObject), ...input.metadata };
      const change: MemoryChange = {
        content: input.content,
        metadata: JSON.stringify(metadata),
        ...heldAgain(holder, now()),
        ...(input.type === undefined ? {} : { type: input.type }),
        ...(input.sessionId === undefined ? {} : { session_id: input.sessionId }),
        ...(input.expiresAt === undefined ? {} : { expires_at: input.expiresAt }),
        ...(input.pinned === undefined ? {} : { pinned: Number(input.pinned) }),
        ...(input.byHand ? { by_hand: 1 } : {}),
        ...(input.episodeId == null ? {} : { episode_id: input.episodeId }),
      };
      return { row: edit(holder, change, input.cause ?? "upsert"), created: false };
    }
    const at = now();
    const seq = insertMemory(db, {
      id: input.id ?? crypto.randomUUID(),
      ownerId: input.ownerId,
      sessionId: input.sessionId ?? null,
      type: input.type ?? "factual",
      key: input.key,
      content: input.content,
      metadata: input.metadata,
      origin: input.origin,
      status: input.status ?? "active",
      pinned: input.pinned ?? false,
      standing: isStanding(input.key, input.metadata),
      byHand: input.byHand ?? false,
      episodeId: input.episodeId ?? null,
      tokens: estimateTokens(input.content),
      createdAt: input.createdAt ?? at,
      updatedAt: at,
      confirmedAt: at,
      expiresAt: input.expiresAt ?? null,
    });
    const row = reload({ owner_id: input.ownerId, seq });
    hooks.changed(db, row);
    return { row, created: true };
  }

  /** Moves a row between states. Activating one whose key another active memory holds is a conflict. */
  function setStatus(
    row: MemoryRow,
    status: MemoryStatus,
    cause: string,
    supersededBy: string | null = null,
  ): MemoryRow {
    if (status === "active" && row.status !== "active" && row.key !== null) {
      const holder = activeByKey(db, row.owner_id, row.key);
      if (holder && holder.seq !== row.seq) {
        throw new AppError(
          "conflict",
          `Another active memory holds the key ${row.key}. Archive that one, or edit it instead.`,
          {
            param: "key",
            details: [{ field: "key", message: `held by ${holder.id}` }],
          },
        );
      }
    }
    // A restatement sets confirmedAt; putting a memory away does not.
    const confirmed = status === "active" ? {} : { confirmed_at: row.confirmed_at };
    return edit(row, { status, superseded_by: supersededBy, ...confirmed }, cause);
  }

  /** Removes the row and its history for good, and everything the hooks keep of it; `into` says it from now on. */
  function purge(row: MemoryRow, into: MemoryRow | null = null): void {
    hooks.removed(db, row);
    hooks.unsaid?.(db, row, into);
    removeMemory(db, row.seq);
  }

  /** Gives a row to another owner, index rows included. */
  function move(row: MemoryRow, ownerId: number): void {
    hooks.removed(db, row);
    changeMemory(db, row.seq, { owner_id: ownerId });
    hooks.changed(db, reload({ owner_id: ownerId, seq: row.seq }));
  }

  const dropEpisode = (episode: { owner: number; id: number; row: "mute" | "delete" }) =>
    hooks.dropEpisode(db, episode);

  return { put, edit, setStatus, purge, move, dropEpisode };
}
