/** Merges a lexical index after many deletions, so that the deleted words leave the file: at once, and by a job should this process end before. */
import type { Checkpoints } from "../db/checkpoints.ts";
import { emptyLog } from "../db/open.ts";
import { breathe } from "./breathe.ts";
import type { Database } from "bun:sqlite";
import { purge, withMarks, type LexicalIndex } from "../search/purge.ts";
import type { Jobs } from "./jobs.ts";

export type Purge = {
  /** Deletes many rows inside the caller's transaction, and makes sure that a purge follows. */
  marking(indexes: readonly LexicalIndex[], deletions: () => void): void;
  /** Between two transactions of a long deletion: other calls get their turn, and the log is not let grow without end. */
  rest(): Promise<void>;
  /** Does what is due now, in short steps; nothing where no deletion was marked. */
  finish(indexes: readonly LexicalIndex[]): Promise<void>;
};

export type PurgeDeps = {
  db: Database;
  jobs: Jobs;
  now: () => number;
  /** Writes the log back beside the work; null: that happens in the work. */
  checkpoints: Pick<Checkpoints, "pace" | "empty"> | null;
};

/** The job is for a process that died; in this one the purge runs when its deletions are done. */
const LATER_MS = 60_000;

export function createPurge({ db, jobs, now, checkpoints }: PurgeDeps): Purge {
  /** Deletions marked so far: a merge that began before the last of them leaves its words. */
  const marked = { memories: 0, episodes: 0 };
  let turn: Promise<unknown> = Promise.resolve();

  async function rest(): Promise<void> {
    await checkpoints?.pace();
    await breathe();
  }

  /** One merge at a time. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const mine = turn.then(work);
    turn = mine.catch(() => {});
    return mine;
  }

  async function merge(index: LexicalIndex): Promise<void> {
    for (const _step of purge(db, index)) await rest();
  }

  /** Nothing deleted is left in the log. Other calls are answered meanwhile, where a thread does it. */
  async function empty(): Promise<void> {
    if ((await checkpoints?.empty()) !== true) emptyLog(db);
  }

  jobs.handle(
    "purge",
    async (job) => {
      await inTurn(() => merge((job.payload as { index: LexicalIndex }).index));
      await empty();
    },
    { tries: Infinity },
  );

  return {
    marking(indexes, deletions) {
      for (const index of indexes) {
        marked[index]++;
        jobs.queue({
          type: "purge",
          ownerId: null,
          payload: { index },
          dedupe: index,
          runAt: now() + LATER_MS,
        });
      }
      const [first, second] = indexes;
      if (first === undefined) deletions();
      else if (second === undefined) withMarks(db, first, deletions);
      else withMarks(db, first, () => withMarks(db, second, deletions));
    },
    rest,
    async finish(indexes) {
      const job = "type = 'purge' AND dedupe = ? AND state = 'queued'";
      const isDue = (index: LexicalIndex) => db.query(`SELECT 1 FROM jobs WHERE ${job}`).get(index) !== null;
      const due = indexes.filter(isDue);
      for (const index of due) {
        await inTurn(async () => {
          // Somebody else's merge may have taken it along.
          if (!isDue(index)) return;
          const before = marked[index];
          await merge(index);
          if (marked[index] === before) db.query(`DELETE FROM jobs WHERE ${job}`).run(index);
        });
      }
      if (due.length > 0) await empty();
    },
  };
}
