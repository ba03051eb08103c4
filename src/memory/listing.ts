/** Which memories are meant: pages of them with their counts, and walks over all of them in short transactions. */
import { breathe } from "./breathe.ts";
import type { Database } from "bun:sqlite";
import { memoryById } from "../db/memories.ts";
import type { MemoryRow } from "../db/memories.ts";
import { countMemories, listMemories, memoriesAfter, memoriesAmong, memoryRows } from "../db/memory-list.ts";
import type { Counts, MemoryFilter, Page } from "../db/memory-list.ts";
import { ownerId } from "../db/owners.ts";
import { ms } from "../db/time.ts";
import type { Found, TextFinder, Wanted } from "../search/texts/find.ts";
import type { Memory, MemoryOrigin, MemoryStatus, MemoryType } from "./types.ts";

/** An owner's name, or null for management, which sees every owner. Always given: there is no read without it. */
export type Caller = { owner: string | null };

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

/** Rows a walk changes in one transaction: short enough that a search never waits long for it. */
const BATCH = 200;
/** With fewer matches than this a text filter reads most rows before a page is full. */
const RARE = 2000;
/** So many rows of an index are walked for a page that other filters thin out. */
const LONG_WALK = 5000;
/** A person whose owner has no row yet has nothing. */
const NOBODY = -1;

/** The owner's number; null for management. */
export function callerId(db: Database, caller: Caller): number | null {
  return caller.owner === null ? null : (ownerId(db, caller.owner) ?? NOBODY);
}

export function filterOf(
  db: Database,
  caller: Caller,
  input: Omit<ListInput, keyof Caller | "limit" | "offset">,
): MemoryFilter {
  return {
    ownerId: callerId(db, caller),
    type: input.type,
    status: input.status,
    origin: input.origin,
    sessionId: input.sessionId,
    q: input.q,
    olderThan: input.olderThan === undefined ? undefined : ms(input.olderThan),
  };
}

/** `find`: what filters let through, by the copy of the texts; null: the rows are to be read. */
export function createListing({ db, find }: { db: Database; find: TextFinder["find"] }) {
  /** A page and the counts of all matches, of one moment, whoever writes meanwhile. */
  function page(input: ListInput): { counts: Counts; rows: MemoryRow[] } {
    return db.transaction(() => pageNow(filterOf(db, input, input), input))();
  }

  function pageNow(filter: MemoryFilter, input: ListInput): { counts: Counts; rows: MemoryRow[] } {
    const { limit, offset, sort = "createdAt", order = "desc" } = input;
    const page = { limit, offset, order };
    if (sort === "lastAccessedAt") {
      // What changes with every recall is in no index.
      const found = filter.q ? find(filter, "all") : null;
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
    if (filter.q || page.sort === "updatedAt") return find(filter, page);
    if (filter.sessionId !== undefined) return null;
    if (filter.type === undefined && filter.origin === undefined) return null;
    const matches = countMemories(db, filter).total;
    const walked = countMemories(db, { ownerId: filter.ownerId, status: filter.status }).total;
    const share = Math.min(1, (page.offset + page.limit) / Math.max(1, matches));
    return share * walked > LONG_WALK ? find(filter, page) : null;
  }

  const countMatches = (filter: MemoryFilter): number =>
    (filter.q ? find(filter, "counts") : null)?.counts.total ?? countMemories(db, filter).total;

  /** Walks every match in pages of one short transaction each, so that nothing waits long and counts are true. */
  async function walk(
    caller: Caller,
    write: (work: () => void) => void,
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
              const row = memoryById(db, callerId(db, caller), id);
              if (row) handle(row);
            }
          }),
        );
        await breathe();
      }
      return { matched, acted };
    }
    const filter = { ...filterOf(db, caller, selection), ...(skipPinned ? { pinned: false } : {}) };
    if (!act) return { matched: countMatches(filter), acted };
    const found = filter.q ? find(filter, "all") : null;
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
      let rows: MemoryRow[] = [];
      write(() => {
        rows = memoriesAfter(db, filter, after, Math.min(BATCH, max - acted));
        around(() => rows.forEach(handle));
      });
      if (rows.length < BATCH || acted >= max) return { matched, acted };
      after = rows.at(-1)!.seq;
      await breathe();
    }
  }

  return { page, countMatches, walk };
}
