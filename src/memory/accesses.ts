/** How often memories were given out. */
import type { Database } from "bun:sqlite";
import { countAccess } from "../db/memories.ts";
import type { Loaded } from "./lines.ts";

/** Counters are written after the answer, a second's worth at a time. */
const EVERY_MS = 1000;

export function createAccesses(db: Database, now: () => number) {
  const counted = new Map<number, number>();
  let flushing: ReturnType<typeof setTimeout> | null = null;

  function count(rows: readonly Loaded[]): void {
    for (const row of rows)
      if (row.kind === "memory" && row.seq >= 0) counted.set(row.seq, (counted.get(row.seq) ?? 0) + 1);
    if (counted.size > 0) flushing ??= setTimeout(flush, EVERY_MS);
  }

  /** Writes the counters that wait. */
  function flush(): void {
    if (flushing !== null) clearTimeout(flushing);
    flushing = null;
    if (counted.size === 0) return;
    const seqs = [...counted].flatMap(([seq, times]) => Array.from({ length: times }, () => seq));
    counted.clear();
    try {
      db.transaction(() => countAccess(db, seqs, now())).immediate();
    } catch {
      // A statistic: when the database cannot be written now, these accesses stay uncounted.
    }
  }

  return { count, flush };
}
