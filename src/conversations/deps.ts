/** What the conversation side of the engine is given, and the few steps that all of it shares. */
import type { Database } from "bun:sqlite";
import { ownerId } from "../db/owners.ts";
import { invalid } from "../error.ts";
import type { Redact } from "../memory/fields.ts";
import type { Purge } from "../memory/purge.ts";
import { limits, type JsonObject } from "../memory/types.ts";
import type { Rank } from "./search.ts";

export type RecordKind = "episode" | "entity" | "summary";

/** Called inside the transaction that changes a row, so that its embedding job and outbox are written with it. */
export type RecordHooks = {
  changed(db: Database, kind: RecordKind, row: { owner: number; id: number }): void;
  removed(db: Database, kind: RecordKind, row: { owner: number; id: number }): void;
};

export type ConversationDeps = {
  db: Database;
  redact: Redact;
  now: () => number;
  hooks: RecordHooks;
  /** Queues learning from an episode, inside the transaction that stores it; does nothing while memory is off. */
  teach(db: Database, row: { owner: number; episodeId: number }): void;
  /** Deletes for good what was learned from an episode, inside the caller's transaction. */
  unlearn(db: Database, row: { owner: number; episodeId: number }): void;
  /** An import is at work: what can wait does. */
  hold(): void;
  /** For deletions of many rows. */
  purge: Purge;
  /** Ranks rows of one kind, best first. */
  rank: Rank;
  /** A summary by the model of `extractionModel`; null when none is set or it failed. */
  write?: (input: { text: string; maxTokens: number }) => Promise<string | null>;
};

/** An owner's name, or null for management, which sees every owner. */
export type Caller = { owner: string | null };

export type Paging = { limit: number; offset: number };

/** A person whose owner has no row yet has nothing. */
const NOBODY = -1;

/** The owner's number for a read; null for every owner. */
export function readAs(db: Database, caller: Caller): number | null {
  return caller.owner === null ? null : (ownerId(db, caller.owner) ?? NOBODY);
}

/** Shallow merge, new values win; 400 when the whole becomes too large. */
export function mergeMetadata(before: JsonObject, added: JsonObject): JsonObject {
  const merged = { ...before, ...added };
  if (Buffer.byteLength(JSON.stringify(merged)) > limits.metadataBytes) {
    throw invalid(
      "metadata",
      `must be at most ${limits.metadataBytes} bytes of JSON together with what is there`,
    );
  }
  return merged;
}

/** How long one batch may hold the thread and the write lock, in milliseconds: a search that waits is still quick. */
const SLICE_MS = 6;

/** Sizes the next batch so that it takes about `sliceMs`, by what the last one took. */
export function nextBatch(size: number, tookMs: number, max: number, sliceMs = SLICE_MS): number {
  const fit = tookMs <= 0 ? max : Math.floor((size * sliceMs) / tookMs);
  return Math.max(1, Math.min(max, size * 2, fit));
}
