/** The job table: queued in the transaction that makes them necessary, leased, retried with back-off. */
import type { Database } from "bun:sqlite";
import { transact } from "./open.ts";
import { AHEAD_MS, iso } from "./time.ts";

export type JobRow = {
  id: number;
  type: string;
  owner_id: number | null;
  state: "queued" | "running" | "failed";
  payload: string;
  attempts: number;
  last_error: string | null;
  run_at: number;
  lease_by: string | null;
  lease_until: number | null;
  dedupe: string | null;
  created_at: number;
};

export type NewJob = {
  type: string;
  ownerId: number | null;
  payload: unknown;
  runAt?: number;
  /** While a job of this type with the same value waits, no second one is queued. */
  dedupe?: string;
};

export type Job = {
  id: number;
  type: string;
  state: JobRow["state"];
  apiKeyId: string | null;
  attempts: number;
  lastError: string | null;
  runAt: string;
};

/** Queues a job inside the caller's transaction. */
export function enqueue(db: Database, job: NewJob, now: number): void {
  db.query(
    "INSERT INTO jobs (type, owner_id, payload, run_at, dedupe, created_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
  ).run(job.type, job.ownerId, JSON.stringify(job.payload), job.runAt ?? now, job.dedupe ?? null, now);
}

/** No job waits longer than this, in milliseconds. */
export const LONGEST_WAIT_MS = 24 * 3_600_000;

/**
 * Takes the oldest job that is due, or one whose lease ran out. Jobs of one owner and type run one at a time and in
 * order: while an earlier one of them waits or runs, a later one is not due. What was queued while the clock was ahead
 * is due at once: else it would hold up the others until that time.
 */
export function claim(
  db: Database,
  types: readonly string[],
  lease: { by: string; until: number },
  now: number,
): JobRow | null {
  if (types.length === 0) return null;
  const marks = types.map((_, at) => `?${at + 6}`).join(",");
  return db
    .query<JobRow, (string | number)[]>(
      `UPDATE jobs SET state = 'running', lease_by = ?1, lease_until = ?2, attempts = attempts + 1, created_at = min(created_at, ?3)
       WHERE id = (
         SELECT j.id FROM jobs j
         WHERE j.type IN (${marks})
           AND ((j.state = 'queued' AND (j.run_at <= ?3 OR j.created_at > ?4 OR j.run_at > ?5))
             OR (j.state = 'running' AND (j.lease_until < ?3 OR (j.lease_until > ?5 AND j.lease_by <> ?1))))
           AND NOT EXISTS (
             SELECT 1 FROM jobs e WHERE e.owner_id = j.owner_id AND e.type = j.type AND e.id < j.id AND e.state <> 'failed')
         ORDER BY j.run_at, j.id LIMIT 1)
       RETURNING *`,
    )
    .get(lease.by, lease.until, now, now + AHEAD_MS, now + LONGEST_WAIT_MS, ...types);
}

export function extendLease(db: Database, id: number, until: number): void {
  db.query("UPDATE jobs SET lease_until = ? WHERE id = ?").run(until, id);
}

/** A job of the same type and value, which waits: it does the work of `j`. */
const TWIN = "t.type = j.type AND t.dedupe = j.dedupe AND t.id <> j.id";

/** Frees what an ended process of this name was doing. What waits to be done once more anyway is done once. */
export function freeLeases(db: Database, by: string): void {
  transact(db, () => {
    db.query(
      `DELETE FROM jobs WHERE id IN (SELECT j.id FROM jobs j JOIN jobs t ON ${TWIN}
       WHERE j.state = 'running' AND j.lease_by = ?1
         AND (t.state = 'queued' OR (t.state = 'running' AND t.lease_by = ?1 AND t.id < j.id)))`,
    ).run(by);
    db.query(
      "UPDATE jobs SET state = 'queued', lease_by = NULL, lease_until = NULL WHERE state = 'running' AND lease_by = ?",
    ).run(by);
  });
}

/** Ends a job. Call it in the transaction of the job's last write, so that it is done exactly once. */
export function finish(db: Database, id: number): void {
  db.query("DELETE FROM jobs WHERE id = ?").run(id);
}

/**
 * Puts a job back: later with its error, or aside (`failed`) when it has no tries left. Where another of the same value
 * was queued meanwhile, that one is left alone.
 */
export function putBack(
  db: Database,
  id: number,
  runAt: number,
  error: string,
  options: { failed?: boolean; free?: boolean },
): void {
  transact(db, () => {
    if (!options.failed) {
      const { changes } = db
        .query(
          `DELETE FROM jobs WHERE id IN (SELECT j.id FROM jobs j JOIN jobs t ON ${TWIN} WHERE j.id = ? AND t.state = 'queued')`,
        )
        .run(id);
      if (changes > 0) return;
    }
    db.query(
      "UPDATE jobs SET state = ?, run_at = ?, last_error = ?, lease_by = NULL, lease_until = NULL, attempts = attempts - ? WHERE id = ?",
    ).run(options.failed ? "failed" : "queued", runAt, error, Number(options.free ?? false), id);
  });
}

/** Failed jobs take the place of those of the same value that were queued since, and of later ones that failed, too. */
function yieldToFailed(db: Database, id: number | null): void {
  db.query(
    `DELETE FROM jobs WHERE id IN (SELECT j.id FROM jobs j JOIN jobs t ON ${TWIN}
     WHERE t.state = 'failed' AND (?1 IS NULL OR t.id = ?1)
       AND (j.state = 'queued' OR (?1 IS NULL AND j.state = 'failed' AND t.id < j.id)))`,
  ).run(id);
}

/** Puts a failed job back in the queue; false when there is none of this id (and owner). */
export function retryJob(db: Database, owner: number | null, id: number, now: number): boolean {
  return transact(db, () => {
    if (owner === null) yieldToFailed(db, id);
    const { changes } = db
      .query(
        "UPDATE jobs SET state = 'queued', attempts = 0, run_at = ?, lease_by = NULL, lease_until = NULL WHERE id = ? AND state = 'failed' AND (?3 IS NULL OR owner_id = ?3)",
      )
      .run(now, id, owner);
    return changes > 0;
  });
}

export function listJobs(
  db: Database,
  filter: { state?: JobRow["state"] | undefined; limit: number; offset: number },
): { data: Job[]; total: number } {
  const state = filter.state ?? null;
  const rows = db
    .query<JobRow & { owner: string | null }, [string | null, number, number]>(
      `SELECT j.*, o.name AS owner FROM jobs j LEFT JOIN owners o ON o.id = j.owner_id
       WHERE (?1 IS NULL OR j.state = ?1) ORDER BY j.id DESC LIMIT ?2 OFFSET ?3`,
    )
    .all(state, filter.limit, filter.offset);
  const { n } = db
    .query<{ n: number }, [string | null]>("SELECT count(*) AS n FROM jobs WHERE (?1 IS NULL OR state = ?1)")
    .get(state)!;
  return { data: rows.map(toJob), total: n };
}

export function jobById(db: Database, id: number): Job | null {
  const row = db
    .query<JobRow & { owner: string | null }, [number]>(
      "SELECT j.*, o.name AS owner FROM jobs j LEFT JOIN owners o ON o.id = j.owner_id WHERE j.id = ?",
    )
    .get(id);
  return row ? toJob(row) : null;
}

function toJob(row: JobRow & { owner: string | null }): Job {
  return {
    id: row.id,
    type: row.type,
    state: row.state,
    apiKeyId: row.owner,
    attempts: row.attempts,
    lastError: row.last_error,
    runAt: iso(row.run_at),
  };
}

export type JobCounts = { queued: number; running: number; failed: number; oldestSeconds: number };

/** Counts of an owner's jobs (null: of all). `oldestSeconds` is the age of the oldest that still has to happen. */
export function countJobs(db: Database, owner: number | null, now: number): JobCounts {
  const rows = db
    .query<{ state: JobRow["state"]; n: number; oldest: number }, [number | null]>(
      "SELECT state, count(*) AS n, min(created_at) AS oldest FROM jobs WHERE (?1 IS NULL OR owner_id = ?1) GROUP BY state",
    )
    .all(owner);
  const counts: JobCounts = { queued: 0, running: 0, failed: 0, oldestSeconds: 0 };
  for (const row of rows) {
    counts[row.state] = row.n;
    if (row.state !== "failed")
      counts.oldestSeconds = Math.max(counts.oldestSeconds, Math.round((now - row.oldest) / 1000));
  }
  return counts;
}

/** When the next waiting job is due (ms), or null. */
export function nextDue(db: Database): number | null {
  return db
    .query<{ at: number | null }, []>("SELECT min(run_at) AS at FROM jobs WHERE state = 'queued'")
    .get()!.at;
}

export type JobGroup = {
  type: string;
  queued: number;
  running: number;
  failed: number;
  /** Age of the oldest that still has to happen; null when none has. */
  oldestSeconds: number | null;
  /** Why the last one that failed or waits for another try did. */
  lastError: string | null;
};

/** Jobs of every owner by type, in the order of the alphabet. */
export function groupJobs(db: Database, now: number): JobGroup[] {
  return db
    .query<Omit<JobGroup, "oldestSeconds"> & { oldest: number | null; error_at: number | null }, []>(
      `SELECT type, sum(state = 'queued') AS queued, sum(state = 'running') AS running, sum(state = 'failed') AS failed,
         min(iif(state = 'failed', NULL, created_at)) AS oldest, last_error AS lastError,
         max(iif(last_error IS NULL, NULL, id)) AS error_at
       FROM jobs GROUP BY type ORDER BY type`,
    )
    .all()
    .map(({ oldest, error_at, ...group }) => ({
      ...group,
      // SQLite takes bare columns from the row that holds the maximum; without any error they are some row's.
      lastError: error_at === null ? null : group.lastError,
      oldestSeconds: oldest === null ? null : Math.max(0, Math.round((now - oldest) / 1000)),
    }));
}

/** Puts every failed job back in the queue and returns how many. */
export function retryFailedJobs(db: Database, now: number): number {
  return transact(db, () => {
    yieldToFailed(db, null);
    return db
      .query(
        "UPDATE jobs SET state = 'queued', attempts = 0, run_at = ?, lease_by = NULL, lease_until = NULL WHERE state = 'failed'",
      )
      .run(now).changes;
  });
}
