/** Merges a lexical index after many deletions, so that the deleted words leave the file: at once, and by a job should this process end before. */
import { emptyLog } from "../db/open.ts";
import { breathe } from "./breathe.ts";
import type { Database } from "bun:sqlite";
import { purge, withMarks, type LexicalIndex } from "../search/purge.ts";
import type { Jobs } from "./jobs.ts";

export type Purge = {
  /** Deletes many rows inside the caller's transaction, and makes sure that a purge follows. */
  marking(indexes: readonly LexicalIndex[], deletions: () => void): void;
  /** Does what is due now, in short steps; nothing where no deletion was marked. */
  finish(indexes: readonly LexicalIndex[]): Promise<void>;
};

/** The job is for a process that died; in this one the purge runs when its deletions are done. */
const LATER_MS = 60_000;

export function createPurge({ db, jobs, now }: { db: Database; jobs: Jobs; now: () => number }): Purge {
  async function merge(index: LexicalIndex): Promise<void> {
    for (const _step of purge(db, index)) await breathe();
  }

  jobs.handle("purge", (job) => merge((job.payload as { index: LexicalIndex }).index), { tries: Infinity });

  return {
    marking(indexes, deletions) {
      for (const index of indexes) {
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
    async finish(indexes) {
      const due = db.query("SELECT 1 FROM jobs WHERE type = 'purge' AND dedupe = ? AND state = 'queued'");
      for (const index of indexes) {
        if (due.get(index) === null) continue;
        await merge(index);
        db.query("DELETE FROM jobs WHERE type = 'purge' AND dedupe = ? AND state = 'queued'").run(index);
        emptyLog(db);
      }
    },
  };
}
