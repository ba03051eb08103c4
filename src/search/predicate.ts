/** The rows a search may see, as SQL: one text for every channel, so that none can forget a rule. */
import type { Database } from "bun:sqlite";
import { DAY_MS } from "../db/time.ts";
import type { Kind, Predicate } from "./types.ts";

/** Tables by kind: `terms` and `fts` of the lexical index, and the alias and key of the rows themselves. */
export const tables = {
  memory: { index: "memories", columns: ["text"] },
  episode: { index: "episodes", columns: ["said", "reply"] },
  entity: { index: "entities", columns: ["text"] },
  summary: { index: "summaries", columns: ["text"] },
} as const satisfies Record<Kind, { index: string; columns: readonly string[] }>;

/** A join and condition that keep what may be seen; the row's id is `idSql`. `values` fill the marks in order. */
export interface Live {
  readonly join: string;
  readonly where: string;
  readonly values: (string | number)[];
}

/** SQL that joins the rows of `kind` to the id expression `idSql` and applies the whole base predicate. */
export function live(kind: Kind, idSql: string, predicate: Predicate): Live {
  const values: (string | number)[] = [predicate.owner];
  const { session, retentionDays, now, type } = predicate;
  let join: string;
  let where = "r.owner_id = ?";
  switch (kind) {
    case "memory":
      join = `JOIN memories r ON r.seq = ${idSql}`;
      where += " AND r.status = 'active' AND (r.expires_at IS NULL OR r.expires_at > ?)";
      values.push(now);
      if (retentionDays > 0) {
        where += " AND (r.pinned = 1 OR r.confirmed_at > ?)";
        values.push(now - retentionDays * DAY_MS);
      }
      if (session !== null) {
        where += " AND (r.session_id IS NULL OR r.session_id = ?)";
        values.push(session);
      }
      if (type !== undefined) {
        where += " AND r.type = ?";
        values.push(type);
      }
      break;
    case "episode":
      join = `JOIN episodes r ON r.id = ${idSql} JOIN sessions s ON s.id = r.session_id`;
      where += " AND r.recall = 1";
      if (retentionDays > 0) {
        where += " AND (s.pinned = 1 OR r.stored_at > ?)";
        values.push(now - retentionDays * DAY_MS);
      }
      if (session !== null) {
        where += " AND s.external_id = ?";
        values.push(session);
      }
      break;
    case "entity":
      join = `JOIN entities r ON r.id = ${idSql}`;
      break;
    case "summary":
      join = `JOIN summaries r ON r.id = ${idSql} JOIN sessions s ON s.id = r.session_id`;
      where += " AND r.stale = 0";
      if (session !== null) {
        where += " AND s.external_id = ?";
        values.push(session);
      }
      break;
  }
  if (predicate.before !== undefined && kind !== "memory") {
    where += " AND r.created_at <= ?";
    values.push(predicate.before);
  }
  return { join, where, values };
}

/** Which of the ids may be seen. */
export function visibleOf(
  db: Database,
  kind: Kind,
  predicate: Predicate,
  ids: readonly number[],
): Set<number> {
  if (ids.length === 0) return new Set();
  const { join, where, values } = live(kind, "j.value", predicate);
  // Asked the other way round: few may not, and every row that comes back costs.
  const hidden = db
    .query<[number], (string | number)[]>(
      `SELECT j.value FROM json_each(?) j WHERE NOT EXISTS (SELECT 1 FROM (SELECT 1) ${join} WHERE ${where})`,
    )
    .values(JSON.stringify(ids), ...values) as [number][];
  const visible = new Set(ids);
  for (const [id] of hidden) visible.delete(id);
  return visible;
}
