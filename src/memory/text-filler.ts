/** Keeps the text filter's copy of memories near the rows, in the background: it may lag, so this is no durable job. */
import type { Database } from "bun:sqlite";
import type { Log } from "../log.ts";
import { fillTexts, wantsFilling } from "../search/texts/fill.ts";
import { clearTexts } from "../search/texts/tables.ts";
import { breathe } from "./breathe.ts";

/** How long after a change it is looked whether there is enough to do. */
const SOON_MS = 2000;
/** How long little may wait: what was changed or deleted is out of the copy by then. */
const LATER_MS = 60_000;

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
  /** Since when little waits. */
  let little: number | null = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  let due = 0;
  let running: Promise<void> = Promise.resolve();

  function wake(after = SOON_MS): void {
    if (!started || stopped) return;
    const at = performance.now() + after;
    if (timer !== null) {
      if (due <= at) return;
      clearTimeout(timer);
    }
    due = at;
    timer = setTimeout(() => {
      timer = null;
      running = running.then(work).catch((error: unknown) => {
        log.warn("texts.failed", { error });
        // It is not as it was written; nothing is lost with it.
        if (error instanceof RangeError) anew = true;
        wake();
      });
    }, after);
    timer.unref();
  }

  async function work(): Promise<void> {
    if (anew) clearTexts(db);
    anew = false;
    const wanted = wantsFilling(db);
    if (wanted === "later") {
      little ??= performance.now();
      const left = little + LATER_MS - performance.now();
      if (left > 0) return wake(left);
    }
    little = null;
    if (wanted === null) return;
    for (const _step of fillTexts(db, wanted === "now" ? "all" : "changes")) {
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
    wake: () => wake(),
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
