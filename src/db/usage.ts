/** Rows of `usage`: one a request, ids and counts only. */
import type { Database } from "bun:sqlite";
import { transact } from "./open.ts";
import { ownerId } from "./owners.ts";

export interface UsageRow {
  /** Owner's name; null for requests without one. */
  owner: string | null;
  keyId: string | null;
  provider: string | null;
  model: string | null;
  /** `chat`, `responses`, `messages`, `embeddings`, `rerank`, `other`. */
  route: string;
  /** 499: the client left. */
  status: number;
  tokensIn: number;
  tokensOut: number;
  tokensInjected: number;
  tokensCached: number;
  /** Counted by us, since the provider did not say. */
  estimated: boolean;
  latencyMs: number;
  ttftMs: number | null;
  cost: number | null;
  receiptId: string | null;
  /** Milliseconds UTC. */
  at: number;
}

export function insertUsage(db: Database, rows: readonly UsageRow[]): void {
  const insert = db.query(
    `INSERT INTO usage (owner_id, key_id, provider, model, route, status, tokens_in, tokens_out, tokens_injected, tokens_cached,
       estimated, latency_ms, ttft_ms, cost, receipt_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  transact(db, () => {
    for (const row of rows) {
      insert.run(
        row.owner === null ? null : ownerId(db, row.owner),
        row.keyId,
        row.provider,
        row.model,
        row.route,
        row.status,
        row.tokensIn,
        row.tokensOut,
        row.tokensInjected,
        row.tokensCached,
        Number(row.estimated),
        row.latencyMs,
        row.ttftMs,
        row.cost,
        row.receiptId,
        row.at,
      );
    }
  });
}

export const usageGroups = ["day", "owner", "model"] as const;
export type UsageGroup = (typeof usageGroups)[number];

export interface UsageSum {
  day?: string;
  owner?: string | null;
  provider?: string | null;
  model?: string | null;
  requests: number;
  tokensIn: number;
  tokensOut: number;
  tokensInjected: number;
  tokensCached: number;
  cost: number;
  errors: number;
}

const columns: Record<UsageGroup, string> = {
  day: "strftime('%Y-%m-%d', u.created_at / 1000, 'unixepoch') AS day",
  owner: "COALESCE(o.name, u.key_id) AS owner",
  model: "u.provider AS provider, u.model AS model",
};
const grouped: Record<UsageGroup, string> = { day: "day", owner: "owner", model: "u.provider, u.model" };

/** Sums between two times (milliseconds, `to` excluded), newest day first, by any of the groups. Days are UTC. */
export function sumUsage(
  db: Database,
  filter: { owner: number | null; from: number; to: number; groupBy: readonly UsageGroup[] },
): UsageSum[] {
  const by = usageGroups.filter((group) => filter.groupBy.includes(group));
  const fields = by.map((group) => `${columns[group]}, `).join("");
  const order = [by.includes("day") ? "day DESC" : "", "requests DESC"].filter(Boolean).join(", ");
  return db
    .query<UsageSum, [number, number, number | null]>(
      `SELECT ${fields}count(*) AS requests, COALESCE(sum(u.tokens_in), 0) AS tokensIn, COALESCE(sum(u.tokens_out), 0) AS tokensOut,
         COALESCE(sum(u.tokens_injected), 0) AS tokensInjected, COALESCE(sum(u.tokens_cached), 0) AS tokensCached,
         COALESCE(sum(u.cost), 0) AS cost, COALESCE(sum(u.status >= 400 AND u.status <> 499), 0) AS errors
       FROM usage u LEFT JOIN owners o ON o.id = u.owner_id
       WHERE u.created_at >= ?1 AND u.created_at < ?2 AND (?3 IS NULL OR u.owner_id = ?3)
       ${by.length > 0 ? `GROUP BY ${by.map((group) => grouped[group]).join(", ")}` : ""} ORDER BY ${order} LIMIT 10000`,
    )
    .all(filter.from, filter.to, filter.owner);
}

/** Tokens in and out of a key since a time, for its daily limit. */
export function tokensSince(db: Database, keyId: string, since: number): number {
  return (
    db
      .query<{ n: number | null }, [string, number]>(
        "SELECT sum(tokens_in + tokens_out) AS n FROM usage WHERE key_id = ? AND created_at >= ?",
      )
      .get(keyId, since)?.n ?? 0
  );
}

/** What one request cost, as its receipt shows it. */
export interface RequestUsage {
  status: number;
  tokensIn: number;
  tokensOut: number;
  tokensCached: number;
  estimated: boolean;
  latencyMs: number;
  ttftMs: number | null;
  cost: number | null;
}

/** A request is written when it ends, at most this long after its receipt. */
const REQUEST_MS = 60 * 60_000;

/** The usage of a receipt that was made at `at` (milliseconds); null when there is none. */
export function usageOfReceipt(db: Database, receiptId: string, at: number): RequestUsage | null {
  const row = db
    .query<Omit<RequestUsage, "estimated"> & { estimated: number }, [number, number, string]>(
      `SELECT status, tokens_in AS tokensIn, tokens_out AS tokensOut, tokens_cached AS tokensCached, estimated,
         latency_ms AS latencyMs, ttft_ms AS ttftMs, cost
       FROM usage WHERE created_at BETWEEN ? AND ? AND receipt_id = ? ORDER BY created_at DESC LIMIT 1`,
    )
    .get(at - REQUEST_MS, at + REQUEST_MS, receiptId);
  return row === null ? null : { ...row, estimated: row.estimated === 1 };
}

/** Means over a period: tokens added to a request that got any, time to the first token, and what memory added to it. */
export interface UsageMeans {
  requests: number;
  withMemory: number;
  tokensIn: number;
  tokensInjected: number;
  ttftMs: number | null;
}

export function usageMeans(db: Database, owner: number | null, from: number, to: number): UsageMeans {
  return db
    .query<UsageMeans, [number, number, number | null]>(
      `SELECT count(*) AS requests, COALESCE(sum(tokens_injected > 0), 0) AS withMemory,
         COALESCE(sum(tokens_in), 0) AS tokensIn, COALESCE(sum(tokens_injected), 0) AS tokensInjected, avg(ttft_ms) AS ttftMs
       FROM usage WHERE created_at >= ?1 AND created_at < ?2 AND (?3 IS NULL OR owner_id = ?3)`,
    )
    .get(from, to, owner)!;
}
