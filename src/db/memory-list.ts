/** Lists of memories: filters, paging, and statistics that come from counters wherever a filter allows it. */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { memoryStatuses } from "../memory/types.ts";
import type { MemoryOrigin, MemoryStatus, MemoryType } from "../memory/types.ts";
import { fold } from "../text/fold.ts";
import { memoryColumns } from "./memories.ts";
import type { MemoryRow } from "./memories.ts";

/** `ownerId` null means every owner (management). A person whose owner is not known yet has no rows: -1. */
export type MemoryFilter = {
  ownerId: number | null;
  type?: MemoryType | undefined;
  status?: MemoryStatus | undefined;
  origin?: MemoryOrigin | undefined;
  sessionId?: string | undefined;
  /** Case-folded substring of content or key, taken literally. */
  q?: string | undefined;
  /** Created before this time (ms). */
  olderThan?: number | undefined;
  pinned?: boolean | undefined;
};

export type Page = {
  limit: number;
  offset: number;
  sort: "createdAt" | "updatedAt" | "lastAccessedAt";
  order: "asc" | "desc";
  /** Few rows match the text filter, so that all are read to find them. */
  rare?: boolean;
  /** All matches, when they are known. */
  among?: readonly number[] | undefined;
};

export type Counts = { total: number; tokens: number; byType: Record<MemoryType, number> };

const column = {
  createdAt: "created_at",
  updatedAt: "updated_at",
  lastAccessedAt: "last_accessed_at",
} as const;

/** Makes `case_fold(text)` known to a connection; `q` needs it. */
export function registerFold(db: Database): void {
  db.function("case_fold", { deterministic: true }, (text) => (text === null ? null : fold(String(text))));
}

export function listMemories(db: Database, filter: MemoryFilter, page: Page): MemoryRow[] {
  const direction = page.order === "asc" ? "ASC" : "DESC";
  const order = (table: string) =>
    `ORDER BY ${table}.${column[page.sort]} ${direction}, ${table}.seq ${direction}`;
  const { sql, values } = pageSql(filter, page, order);
  return db
    .query<MemoryRow, SQLQueryBindings[]>(
      // The page is cut on the index alone: rows that are skipped are never read.
      `SELECT ${memoryColumns} FROM (${sql}) p
       JOIN memories m ON m.seq = p.seq JOIN owners o ON o.id = m.owner_id ${order("m")}`,
    )
    .all(...values);
}

/** The seqs of a page. */
function pageSql(
  filter: MemoryFilter,
  page: Page,
  order: (table: string) => string,
): { sql: string; values: SQLQueryBindings[] } {
  const { limit, offset, sort, rare, among } = page;
  const select = `SELECT m.seq, m.${column[sort]} FROM memories m WHERE`;
  if (among !== undefined) {
    const sql = `${select} m.seq IN (SELECT value FROM json_each(?)) ${order("m")} LIMIT ? OFFSET ?`;
    return { sql, values: [JSON.stringify(among), limit, offset] };
  }
  if (filter.status !== undefined || filter.q || filter.sessionId !== undefined || sort !== "createdAt") {
    const { where, values } = conditions(filter, rare ? "owner" : null);
    return { sql: `${select} ${where} ${order("m")} LIMIT ? OFFSET ?`, values: [...values, limit, offset] };
  }
  // Indexes know the order within a status, so each gives what it may have of the page.
  const each = memoryStatuses.map((status) => conditions({ ...filter, status }));
  const parts = each.map(({ where }) => `SELECT * FROM (${select} ${where} ${order("m")} LIMIT ?)`);
  return {
    sql: `SELECT * FROM (${parts.join(" UNION ALL ")}) s ${order("s")} LIMIT ? OFFSET ?`,
    values: [...each.flatMap(({ values }) => [...values, limit + offset]), limit, offset],
  };
}

/** At most `limit` rows after `seq`, in the order of seq: for walks over all matches that may change rows as they go. */
export function memoriesAfter(db: Database, filter: MemoryFilter, seq: number, limit: number): MemoryRow[] {
  const { where, values } = conditions(filter);
  return db
    .query<MemoryRow, SQLQueryBindings[]>(
      `SELECT ${memoryColumns} FROM memories m JOIN owners o ON o.id = m.owner_id WHERE ${where} AND m.seq > ? ORDER BY m.seq LIMIT ?`,
    )
    .all(...values, seq, limit);
}

/** Those of these rows that match, in the order of seq. */
export function memoriesAmong(db: Database, filter: MemoryFilter, seqs: readonly number[]): MemoryRow[] {
  const { where, values } = conditions(filter, "rows");
  return db
    .query<MemoryRow, SQLQueryBindings[]>(
      `SELECT ${memoryColumns} FROM memories m JOIN owners o ON o.id = m.owner_id
       WHERE m.seq IN (SELECT value FROM json_each(?)) AND ${where} ORDER BY m.seq`,
    )
    .all(JSON.stringify(seqs), ...values);
}

export type MatchingRow = {
  seq: number;
  type: MemoryType;
  tokens: number;
  created_at: number;
  updated_at: number;
};

/** What lists count and order by, of the matches among some rows: those after a seq, or these. */
export function matchingRows(
  db: Database,
  filter: MemoryFilter,
  among: { after: number } | { seqs: readonly number[] },
): MatchingRow[] {
  const { where, values } = conditions(filter, "rows");
  const [part, value] =
    "after" in among
      ? ["m.seq > ?", among.after]
      : ["m.seq IN (SELECT value FROM json_each(?))", JSON.stringify(among.seqs)];
  return db
    .query<MatchingRow, SQLQueryBindings[]>(
      `SELECT m.seq, m.type, m.tokens, m.created_at, m.updated_at FROM memories m WHERE ${part} AND ${where}`,
    )
    .all(value!, ...values);
}

/** Rows by seq, in the order of `seqs`. */
export function memoryRows(db: Database, seqs: readonly number[]): MemoryRow[] {
  const rows = db
    .query<MemoryRow, [string]>(
      `SELECT ${memoryColumns} FROM memories m JOIN owners o ON o.id = m.owner_id
       WHERE m.seq IN (SELECT value FROM json_each(?))`,
    )
    .all(JSON.stringify(seqs));
  const bySeq = new Map(rows.map((row) => [row.seq, row]));
  return seqs.flatMap((seq) => bySeq.get(seq) ?? []);
}

export function countMemories(db: Database, filter: MemoryFilter): Counts {
  const counts: Counts = {
    total: 0,
    tokens: 0,
    byType: { factual: 0, episodic: 0, procedural: 0, semantic: 0 },
  };
  for (const row of countRows(db, filter)) {
    counts.total += row.n;
    counts.tokens += row.tokens;
    counts.byType[row.type] += row.n;
  }
  return counts;
}

type CountRow = { type: MemoryType; n: number; tokens: number };

function countRows(db: Database, filter: MemoryFilter): CountRow[] {
  const { sessionId, q, olderThan, pinned } = filter;
  if (sessionId === undefined && !q && olderThan === undefined && pinned === undefined) {
    const { where, values } = conditions(filter);
    return db
      .query<CountRow, SQLQueryBindings[]>(
        `SELECT m.type, sum(m.n) AS n, sum(m.tokens) AS tokens FROM memory_counts m WHERE ${where} GROUP BY m.type`,
      )
      .all(...values);
  }
  const { where, values } = conditions(filter, q ? "owner" : null);
  return db
    .query<CountRow, SQLQueryBindings[]>(
      `SELECT m.type, count(*) AS n, sum(m.tokens) AS tokens FROM memories m WHERE ${where} GROUP BY m.type`,
    )
    .all(...values);
}

const ASCII = /^[\x00-\x7f]*$/;

/**
 * Rows whose content or key contains `folded`. SQLite compares ASCII by itself, without regard to case; only rows with
 * other letters go through `case_fold`, which is a call out of SQLite for each.
 */
function contains(folded: string): { part: string; values: SQLQueryBindings[] } {
  const columns = ["m.content", "m.key"];
  const other = columns.map(
    (column) => `(octet_length(${column}) > length(${column}) AND instr(case_fold(${column}), ?) > 0)`,
  );
  const values = columns.map(() => folded);
  // What holds other letters after folding is in no row of ASCII alone.
  if (!ASCII.test(folded)) return { part: `(${other.join(" OR ")})`, values };
  const like = columns.map((column) => `${column} LIKE ? ESCAPE '\\'`);
  const pattern = `%${folded.replaceAll(/[\\%_]/g, "\\$&")}%`;
  return {
    part: `(${[...like, ...other].join(" OR ")})`,
    values: [...columns.map(() => pattern), ...values],
  };
}

/**
 * `scan` "owner" for a text filter that reads (nearly) every row of an owner: faster in the order of the table than by an
 * index on status. "rows": the caller names the rows, so no index on a filter may be chosen.
 */
function conditions(
  filter: MemoryFilter,
  scan: "owner" | "rows" | null = null,
): { where: string; values: SQLQueryBindings[] } {
  const parts: string[] = [];
  const values: SQLQueryBindings[] = [];
  const add = (part: string, ...bound: SQLQueryBindings[]) => {
    parts.push(part);
    values.push(...bound);
  };
  if (filter.ownerId !== null) add(scan === "rows" ? "+m.owner_id = ?" : "m.owner_id = ?", filter.ownerId);
  // The index on sessions begins with the owner.
  else if (filter.sessionId !== undefined) add("m.owner_id IN (SELECT id FROM owners)");
  if (filter.status !== undefined) add(scan ? "+m.status = ?" : "m.status = ?", filter.status);
  if (filter.type !== undefined) add("m.type = ?", filter.type);
  if (filter.origin !== undefined) add("m.origin = ?", filter.origin);
  if (filter.sessionId !== undefined) add("m.session_id = ?", filter.sessionId);
  if (filter.olderThan !== undefined) add("m.created_at < ?", filter.olderThan);
  if (filter.pinned !== undefined) add("m.pinned = ?", Number(filter.pinned));
  if (filter.q) {
    const found = contains(fold(filter.q));
    add(found.part, ...found.values);
  }
  return { where: parts.length > 0 ? parts.join(" AND ") : "1", values };
}

/** How many memories of all owners there are in each status. */
export function countByStatus(db: Database): Record<string, number> {
  const rows = db
    .query<{ status: string; n: number }, []>("SELECT status, sum(n) AS n FROM memory_counts GROUP BY status")
    .all();
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
}
