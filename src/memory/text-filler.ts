/** Keeps the text filter's copy of memories near the rows, in the background: it may lag, so this is no durable job. */
import type { Database } from "bun:sqlite";
import type { Log } from "../log.ts";
import { fillTexts, wantsFilling } from "../search/texts/fill.ts";
import { clearTexts } from "../search/texts/tables.ts";
import { breathe } from "./breathe.ts";

/** How long after a change it is looked whether there is enough to do. */
const LATER_MS = 2000;

export type TextFillerDeps = {
  db: Database;
  log: Log;
  /** Lets what waits for this thread go first; by default one turn of the loop. */
  giveWay?: () => Promise<void>;
};

export function createTextFiller({ db, log, giveWay = breathe }: TextFillerDeps) {
  let started = false;
  let stopped = false;
  let anew = false;
  let timer: ReturnType<typeof setTimeout> | null = null;
  let running: Promise<void> = Promise.resolve();

  function wake(): void {
    if (!started || stopped || timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      running = running.then(work).catch((error: unknown) => {
        log.warn("texts.failed", { error });
        // It is not as it was written; nothing is lost with it.
        if (error instanceof RangeError) anew = true;
        wake();
      });
    }, LATER_MS);
    timer.unref();
  }

  async function work(): Promise<void> {
    if (anew) clearTexts(db);
    anew = false;
    if (!wantsFilling(db)) return;
    for (const _step of fillTexts(db)) {
      if (stopped) return;
      await giveWay();
    }
  }

  return {
    /** Has the whole copy made anew, soon. */
    reset(): void {
      anew = true;
      wake();
    },
    /** Looks soon whether there is enough to do; called after every change. */
    wake,
    start(): void {
      started = true;
      wake();
    },
    async stop(): Promise<void> {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      await running;
    },
  };
}
