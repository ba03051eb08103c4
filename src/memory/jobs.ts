/**
 * The runner of durable jobs: one at a time in this process, but for those that wait for something outside. Between jobs
 * the thread answers whatever waits.
 */
import { breathe } from "./breathe.ts";
import type { Database } from "bun:sqlite";
import {
  claim,
  countJobs,
  enqueue,
  extendLease,
  finish,
  freeLeases,
  groupJobs,
  jobById,
  listJobs,
  LONGEST_WAIT_MS,
  nextDue,
  putBack,
  retryFailedJobs,
  retryJob,
} from "../db/jobs.ts";
import type { Job, JobCounts, JobGroup, JobRow, NewJob } from "../db/jobs.ts";
import { ownerId } from "../db/owners.ts";
import { notFound } from "../error.ts";
import type { Log } from "../log.ts";

/** Tries per job before it is set aside with its reason. */
const TRIES = 5;
/** A lease is renewed while its job runs, so it is short: what a dead process held is free soon. */
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
/** Jobs that may wait for something outside (a model) run beside the others, at most so many. */
const WAITING = 4;
const POLL_MS = 1000;

/**
 * Does one job. It writes its results and calls `done()` in one transaction; a handler that returns without `done()` has
 * its job ended afterwards. `slice()` gives way to waiting calls; call it in long work.
 */
export type JobHandler = (
  job: { id: number; ownerId: number | null; payload: unknown; attempt: number },
  run: JobRun,
) => Promise<void>;
export type JobRun = { done(): void; slice(): Promise<void>; signal: AbortSignal };

/** A part is down, so waiting is no fault of this job: it costs no try. */
export class PartDown extends Error {
  readonly retryAfterMs: number;
  constructor(message: string, retryAfterMs = 15_000) {
    super(message);
    this.name = "PartDown";
    this.retryAfterMs = retryAfterMs;
  }
}

/** `leaseName` names this process; what the one before it of the same name held is free at once. */
export type JobsDeps = {
  db: Database;
  log: Log;
  now: () => number;
  leaseName: string;
  /** Lets what waits for this thread go first; by default one turn of the loop. */
  giveWay?: () => Promise<void>;
};
export type Jobs = ReturnType<typeof createJobs>;

export function createJobs(deps: JobsDeps) {
  const { db, log, now } = deps;
  const handlers = new Map<string, { run: JobHandler; tries: number; waits: boolean }>();
  const waiting = new Set<Promise<void>>();
  const self = deps.leaseName;
  const giveWay = deps.giveWay ?? breathe;
  const stopping = new AbortController();
  let wake: (() => void) | null = null;
  let loop: Promise<void> | null = null;
  /** Work that is accepted but has no row yet (a captured exchange, a download) counts as running. */
  let pendingWork = 0;

  /**
   * Registers the handler of a job type. `tries: Infinity` is for work that must never be set aside; `waits` for work that
   * may wait for an answer from outside, which no other job then waits for.
   */
  function handle(type: string, run: JobHandler, options: { tries?: number; waits?: boolean } = {}): void {
    handlers.set(type, { run, tries: options.tries ?? TRIES, waits: options.waits ?? false });
  }

  /** Types that may be taken now. */
  function open(): string[] {
    if (waiting.size < WAITING) return [...handlers.keys()];
    return [...handlers].filter(([, handler]) => !handler.waits).map(([type]) => type);
  }

  /** Queues a job in the caller's transaction and wakes the runner. */
  function queue(job: NewJob): void {
    enqueue(db, job, now());
    wake?.();
  }

  async function runOne(row: JobRow): Promise<void> {
    const handler = handlers.get(row.type)!;
    let ended = false;
    const renewal = setInterval(() => extendLease(db, row.id, now() + LEASE_MS), RENEW_MS);
    const run: JobRun = {
      done() {
        finish(db, row.id);
        ended = true;
      },
      slice: giveWay,
      signal: stopping.signal,
    };
    try {
      await handler.run(
        {
          id: row.id,
          ownerId: row.owner_id,
          payload: JSON.parse(row.payload) as unknown,
          attempt: row.attempts,
        },
        run,
      );
      if (!ended) finish(db, row.id);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (error instanceof PartDown) {
        const wait = Math.min(error.retryAfterMs, LONGEST_WAIT_MS);
        putBack(db, row.id, now() + wait, message, { free: true });
        return;
      }
      const failed = row.attempts >= handler.tries;
      const delay = Math.min(1000 * 2 ** (row.attempts - 1), 60_000);
      putBack(db, row.id, now() + delay, message, { failed });
      log.warn(row.type === "extract" ? "memory.extraction.background.failed" : "job.failed", {
        job: row.id,
        type: row.type,
        attempt: row.attempts,
        error,
      });
    } finally {
      clearInterval(renewal);
    }
  }

  async function work(): Promise<void> {
    while (!stopping.signal.aborted) {
      let wait = POLL_MS;
      try {
        const row = claim(db, open(), { by: self, until: now() + LEASE_MS }, now());
        if (row) {
          const ended = runOne(row);
          if (handlers.get(row.type)!.waits) {
            const one = ended.finally(() => {
              waiting.delete(one);
              wake?.();
            });
            waiting.add(one);
            await Promise.race([one, breathe()]);
          } else {
            await ended;
            await giveWay();
          }
          continue;
        }
        const due = nextDue(db);
        if (due !== null) wait = Math.min(POLL_MS, Math.max(20, due - now()));
      } catch (error) {
        // The database itself is in trouble (full disk, for one); the jobs wait in it.
        log.error("job.runner.failed", { error });
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, wait);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      wake = null;
      await giveWay();
    }
  }

  async function counts(input: { owner: string | null }): Promise<JobCounts> {
    const owner = input.owner === null ? null : (ownerId(db, input.owner) ?? -1);
    const counts = countJobs(db, owner, now());
    return { ...counts, running: counts.running + pendingWork };
  }
  async function list(input: {
    state?: JobRow["state"];
    limit: number;
    offset: number;
  }): Promise<{ data: Job[]; total: number }> {
    return listJobs(db, input);
  }
  async function retry(input: { id: number }): Promise<Job> {
    if (!retryJob(db, null, input.id, now())) throw notFound("failed job");
    wake?.();
    return jobById(db, input.id)!;
  }

  /** All jobs by type, for the person who runs the box. */
  async function groups(): Promise<JobGroup[]> {
    return groupJobs(db, now());
  }
  async function retryFailed(): Promise<{ retried: number }> {
    const retried = retryFailedJobs(db, now());
    if (retried > 0) wake?.();
    return { retried };
  }

  return {
    handle,
    queue,
    /** Looks for due jobs now, after something outside made them due. */
    wake: () => wake?.(),
    /** Starts the runner; it takes up what earlier processes left. */
    start(): void {
      freeLeases(db, self);
      loop ??= work();
    },
    /** Ends after the job at hand. */
    async stop(): Promise<void> {
      stopping.abort();
      wake?.();
      await loop;
      await Promise.allSettled(waiting);
    },
    /** Counts work that has no row yet until the returned function is called. */
    track(): () => void {
      pendingWork++;
      return () => void pendingWork--;
    },
    calls: { counts, list, retry, groups, retryFailed },
  };
}
