/**
 * Writes SQLite's log back into the database beside the work. Left to itself SQLite does so in the middle of a commit, and
 * on a slow disk whoever asks meanwhile waits for it.
 */
import type { Database } from "bun:sqlite";
import { threadAddress } from "../threads.ts";

/** Looked at so often while there are changes, and written back after so many changed rows. */
const EVERY_MS = 250;
const CHANGES = 300;
/** While there are none every wait is twice the last, up to this: `MOST_PAGES` take longer to write. */
const REST_MS = 1000;
/** Pages of the log from which on a commit writes it back after all, should the thread not keep up: 64 MB. */
const MOST_PAGES = 16_000;
/** The same while work paces itself, and from where on it waits for the thread: 192 MB, 160 MB. */
const MOST_PACED_PAGES = 48_000;
const LONG_PAGES = 40_000;

export type Checkpoints = ReturnType<typeof createCheckpoints>;

/** The thread starts with the first changes that are worth it: a box that only forwards never has one. */
export function createCheckpoints(db: Database, file: string) {
  const changes = db.prepare<{ n: number }, []>("SELECT total_changes() AS n");
  let timer: ReturnType<typeof setTimeout> | null = null;
  let thread: Worker | null = null;
  let pass: PromiseWithResolvers<boolean> | null = null;
  let done = changes.get()!.n;
  let seen = done;
  let wait = EVERY_MS;
  let most = 0;
  let paced = false;

  function look(): void {
    const { n } = changes.get()!;
    wait = n === seen && n - done < CHANGES ? Math.min(wait * 2, REST_MS) : EVERY_MS;
    seen = n;
    timer = setTimeout(look, wait);
    if (thread !== null && !paced) limit(MOST_PAGES);
    paced = false;
    if (pass === null && n - done >= CHANGES) void begin();
  }

  function begin(empty = false): Promise<boolean> {
    done = changes.get()!.n;
    pass = Promise.withResolvers();
    const { promise } = pass;
    thread ??= open();
    thread.postMessage({ file, empty });
    return promise;
  }

  function ended(emptied: boolean): void {
    pass?.resolve(emptied);
    pass = null;
  }

  function open(): Worker {
    const made = new Worker(threadAddress("db/checkpoint-thread.ts"), { smol: true });
    made.onmessage = ({ data }) => ended(data === true);
    made.onerror = (event) => {
      event.preventDefault?.();
      // Back to SQLite's own way.
      stop();
    };
    limit(MOST_PAGES);
    return made;
  }

  function stop(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    thread?.terminate();
    ended(false);
    limit(1000);
  }

  function limit(pages: number): void {
    if (pages === most) return;
    most = pages;
    db.run(`PRAGMA wal_autocheckpoint = ${pages}`);
  }

  // SQLite before 3.51 takes it for PASSIVE, which is right as well and slower.
  const length = db.prepare<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)");
  /** Pages of the log when the thread last caught up; they count again once the log has begun anew. */
  let caughtUp = 0;

  /** Has the thread write back what the log holds now, and empty it. False: it could not, or there is none. */
  async function empty(): Promise<boolean> {
    // A pass that is under way may have begun before the last change.
    while (pass !== null) await pass.promise;
    return timer !== null && (await begin(true));
  }

  /** Waits until the thread has written back what the log holds now; the next write then begins the log anew. */
  async function catchUp(): Promise<void> {
    await pass?.promise;
    if (timer !== null) await (pass?.promise ?? begin());
    if (timer !== null) caughtUp = length.get()!.log;
  }

  /** Call it between two commits of long work: none of them then writes back a log that grew long. */
  async function pace(): Promise<void> {
    if (timer === null) return;
    if (thread === null || wait > EVERY_MS) {
      // Not yet at work, or resting: it begins now.
      if (pass === null) void begin();
      clearTimeout(timer);
      wait = EVERY_MS;
      timer = setTimeout(look, wait);
    }
    const { log } = length.get()!;
    if (log < caughtUp) caughtUp = 0;
    if (log - caughtUp > LONG_PAGES) await catchUp();
    if (timer === null) return;
    paced = true;
    limit(MOST_PACED_PAGES);
  }

  return {
    start(): void {
      timer = setTimeout(look, EVERY_MS);
    },
    stop,
    pace,
    empty,
  };
}
