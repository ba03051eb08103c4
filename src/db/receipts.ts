/** Rows of `receipts`: what was injected into one request, and why. */
import type { Database } from "bun:sqlite";
import type { Kind } from "../memory/types.ts";
import { iso } from "./time.ts";

export interface ReceiptCandidate {
  kind: Kind;
  id: string;
  tier: string | null;
  score: number | null;
  ftsRank: number | null;
  ftsScore: number | null;
  vecRank: number | null;
  vecScore: number | null;
  tokens: number;
  injected: boolean;
  /** Why it was dropped; null when it was not. */
  reason: string | null;
}

export interface Receipt {
  id: string;
  createdAt: string;
  apiKeyId: string | null;
  sessionId: string | null;
  provider: string | null;
  model: string | null;
  injected: number;
  tokens: number;
  placement: string | null;
  reason: string | null;
  latencyMs: number;
  fallbacks: string[];
  candidates: ReceiptCandidate[];
}

/** The receipt with what only its own page shows. */
export interface ReceiptDetail extends Receipt {
  /** The injected text; null once something in it was deleted for good. */
  text: string | null;
  redacted: number;
  learned: { id: string; action: string }[];
  episodeId: number | null;
}

export interface NewReceipt {
  id: string;
  owner: number;
  sessionId: string | null;
  provider: string | null;
  model: string | null;
  injected: number;
  tokens: number;
  placement: string | null;
  reason: string | null;
  latencyMs: number;
  fallbacks: readonly string[];
  candidates: readonly ReceiptCandidate[];
  text: string | null;
  redacted: number;
  episodeId: number | null;
}

export function insertReceipt(db: Database, receipt: NewReceipt, now: number): void {
  db.query(
    `INSERT OR REPLACE INTO receipts (id, owner_id, session_id, provider, model, injected, tokens, placement, reason, latency_ms,
       fallbacks, candidates, text, redacted, episode_id, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    receipt.id,
    receipt.owner,
    receipt.sessionId,
    receipt.provider,
    receipt.model,
    receipt.injected,
    receipt.tokens,
    receipt.placement,
    receipt.reason,
    receipt.latencyMs,
    JSON.stringify(receipt.fallbacks),
    JSON.stringify(receipt.candidates),
    receipt.text,
    receipt.redacted,
    receipt.episodeId,
    now,
  );
  const used = receipt.candidates.filter((one) => one.injected).map((one) => [one.kind, one.id]);
  if (used.length === 0) return;
  db.query(
    `INSERT OR IGNORE INTO receipt_uses (kind, ref, receipt_id)
     SELECT value ->> 0, value ->> 1, ?2 FROM json_each(?1)`,
  ).run(JSON.stringify(used), receipt.id);
}

type Row = {
  id: string;
  owner: string | null;
  session_id: string | null;
  provider: string | null;
  model: string | null;
  injected: number;
  tokens: number;
  placement: string | null;
  reason: string | null;
  latency_ms: number;
  fallbacks: string;
  candidates: string;
  text: string | null;
  redacted: number;
  learned: string;
  episode_id: number | null;
  created_at: number;
};

const SELECT = "SELECT r.*, o.name AS owner FROM receipts r LEFT JOIN owners o ON o.id = r.owner_id";

/** One receipt of this owner (null: any owner, for management). */
export function receiptById(db: Database, owner: number | null, id: string): ReceiptDetail | null {
  const row = db
    .query<Row, [string, number | null]>(`${SELECT} WHERE r.id = ?1 AND (?2 IS NULL OR r.owner_id = ?2)`)
    .get(id, owner);
  return row ? detail(row) : null;
}

/** Newest first. */
export function listReceipts(
  db: Database,
  owner: number | null,
  filter: { sessionId?: string | undefined; limit: number; offset: number },
): { data: Receipt[]; total: number } {
  const session = filter.sessionId ?? null;
  const where = "(?1 IS NULL OR r.owner_id = ?1) AND (?2 IS NULL OR r.session_id = ?2)";
  const data = db
    .query<Row, [number | null, string | null, number, number]>(
      `${SELECT} WHERE ${where} ORDER BY r.created_at DESC, r.id DESC LIMIT ?3 OFFSET ?4`,
    )
    .all(owner, session, filter.limit, filter.offset)
    .map(show);
  const { n } = db
    .query<{ n: number }, [number | null, string | null]>(
      `SELECT count(*) AS n FROM receipts r WHERE ${where}`,
    )
    .get(owner, session)!;
  return { data, total: n };
}

/** A receipt in a list: with the beginning of the person's words, from the exchange where it is kept. */
export interface ReceiptLine {
  id: string;
  createdAt: string;
  apiKeyId: string | null;
  injected: number;
  tokens: number;
  reason: string | null;
  query: string | null;
}

const LINE_QUERY = 300;

/** Newest first; `since` (milliseconds) leaves older ones out. */
export function listReceiptLines(
  db: Database,
  owner: number | null,
  filter: { since: number; limit: number; offset: number },
): { data: ReceiptLine[]; total: number } {
  const where = owner === null ? "r.created_at >= $since" : "r.owner_id = $owner AND r.created_at >= $since";
  const values = { since: filter.since, ...(owner === null ? {} : { owner }) };
  const data = db
    .query<Omit<ReceiptLine, "createdAt"> & { created_at: number }, [Record<string, number>]>(
      `SELECT r.id, r.created_at, o.name AS apiKeyId, r.injected, r.tokens, r.reason,
         substr(e.user_message, 1, ${LINE_QUERY}) AS query
       FROM receipts r LEFT JOIN owners o ON o.id = r.owner_id LEFT JOIN episodes e ON e.id = r.episode_id
       WHERE ${where} ORDER BY r.created_at DESC, r.id DESC LIMIT $limit OFFSET $offset`,
    )
    .all({ ...values, limit: filter.limit, offset: filter.offset })
    .map(({ created_at, ...line }) => ({ ...line, createdAt: iso(created_at) }));
  const { n } = db
    .query<{ n: number }, [Record<string, number>]>(`SELECT count(*) AS n FROM receipts r WHERE ${where}`)
    .get(values)!;
  return { data, total: n };
}

/** The newest receipt of each of these episodes that has one. */
export function receiptsOfEpisodes(
  db: Database,
  episodeIds: readonly number[],
): { episodeId: number; id: string; injected: number }[] {
  return db
    .query<{ episodeId: number; id: string; injected: number }, [string]>(
      `SELECT r.episode_id AS episodeId, r.id, r.injected, max(r.created_at) AS at FROM receipts r
       WHERE r.episode_id IN (SELECT value FROM json_each(?)) GROUP BY r.episode_id`,
    )
    .all(JSON.stringify(episodeIds));
}

/** How many receipts hold a memory or an exchange. */
export function countReceiptsUsing(db: Database, kind: Kind, ref: string): number {
  return db
    .query<{ n: number }, [string, string]>(
      "SELECT count(*) AS n FROM receipt_uses WHERE kind = ? AND ref = ?",
    )
    .get(kind, ref)!.n;
}

/** Newest receipts in which this memory or exchange was injected. */
export function receiptsUsing(
  db: Database,
  owner: number | null,
  kind: Kind,
  ref: string,
  limit: number,
): Receipt[] {
  return db
    .query<Row, [string, string, number | null, number]>(
      `${SELECT} JOIN receipt_uses u ON u.receipt_id = r.id
       WHERE u.kind = ?1 AND u.ref = ?2 AND (?3 IS NULL OR r.owner_id = ?3) ORDER BY r.created_at DESC LIMIT ?4`,
    )
    .all(kind, ref, owner, limit)
    .map(show);
}

function show(row: Row): Receipt {
  return {
    id: row.id,
    createdAt: iso(row.created_at),
    apiKeyId: row.owner,
    sessionId: row.session_id,
    provider: row.provider,
    model: row.model,
    injected: row.injected,
    tokens: row.tokens,
    placement: row.placement,
    reason: row.reason,
    latencyMs: row.latency_ms,
    fallbacks: JSON.parse(row.fallbacks) as string[],
    candidates: JSON.parse(row.candidates) as ReceiptCandidate[],
  };
}

function detail(row: Row): ReceiptDetail {
  return {
    ...show(row),
    text: row.text,
    redacted: row.redacted,
    learned: JSON.parse(row.learned) as ReceiptDetail["learned"],
    episodeId: row.episode_id,
  };
}
