/** The parts of a retrieval that are asked over the network: Qdrant's vectors, and a primary backend of somebody else. */
import type { Database } from "bun:sqlite";
import type { Loaded } from "./lines.ts";
import { rowsOf, type PrimaryMemories } from "./primary-rows.ts";
import type { Left } from "./query-vector.ts";
import type { MemorySettings } from "./settings.ts";
import type { Kind, RetrieveInput } from "./types.ts";

/** Rows of a list that is ordered by time alone. */
export const RECENT = 100;
/** Candidates a kind brings into one list when the caller names no limit. */
export const LIMIT = 30;

export type Owner = { id: number; name: string };

/** Hits of the Qdrant tier by row number, or why it has none. */
export type ForeignVectors = (input: {
  kind: Kind;
  owner: string;
  session: string | null;
  retentionDays: number;
  now: number;
  text: string;
  vector: Float32Array;
  signature: string;
  limit: number;
  deadlineMs: number;
}) => Promise<{ hits: { id: number; cosine: number }[] } | { reason: string }>;

/** What a foreign primary finds, or has newest where the query is null; nothing, with the reason, when it cannot be asked. */
export async function primaryRows(
  db: Database,
  primary: PrimaryMemories,
  ask: {
    owners: readonly Owner[];
    query: string | null;
    input: RetrieveInput;
    settings: MemorySettings;
    left: Left;
    notes: string[];
  },
): Promise<Loaded[]> {
  const { owners, query, input, settings, left, notes } = ask;
  const session = (input.scope ?? settings.scope) === "session" ? (input.sessionId ?? "") : null;
  const limit = Math.min(input.limit ?? LIMIT, RECENT);
  const { retentionDays } = settings;
  const all = await Promise.all(
    owners.map(async (owner) => {
      try {
        const common = { owner: owner.name, sessionId: session, limit, retentionDays };
        if (query === null) return rowsOf(db, owner, await primary.newest(common));
        const type = input.type === undefined ? {} : { type: input.type };
        const signal = AbortSignal.timeout(Math.max(1, left()));
        const { found, failed } = await primary.search({ ...common, ...type, query, signal });
        notes.push(...failed);
        return rowsOf(db, owner, found);
      } catch (thrown) {
        const timedOut = thrown instanceof Error && thrown.name === "TimeoutError";
        notes.push(
          timedOut
            ? "The primary backend did not answer in time, so no memories were searched."
            : `No memories were searched: ${thrown instanceof Error ? thrown.message : "the primary backend failed."}`,
        );
        return [];
      }
    }),
  );
  return all.flat();
}

/** Standing memories are known here; a foreign primary may have lost them meanwhile. */
export async function stillThere(primary: PrimaryMemories, rows: Loaded[], left: Left): Promise<Loaded[]> {
  const signal = AbortSignal.timeout(Math.max(1, left()));
  const kept = await Promise.all(
    [...Map.groupBy(rows, (row) => row.owner)].map(([owner, group]) =>
      primary
        .still(
          owner,
          group.map((row) => row.id),
          signal,
        )
        .catch(() => new Set<string>()),
    ),
  );
  const there = new Set(kept.flatMap((set) => [...set]));
  return rows.filter((row) => there.has(row.id));
}
