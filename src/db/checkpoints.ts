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

/** The thread starts with the first changes that are worth it: a box that only forwards never has one. */
export function createCheckpoints(db: Database, file: string) {
  const changes = db.prepare<{ n: number }, []>("SELECT total_changes() AS n");
  let timer: ReturnType<typeof setTimeout> | null = null;
  let thread: Worker | null = null;
  let busy = false;
  let done = changes.get()!.n;
  let seen = done;
  let wait = EVERY_MS;

  function look(): void {
    const { n } = changes.get()!;
    wait = n === seen && n - done < CHANGES ? Math.min(wait * 2, REST_MS) : EVERY_MS;
    seen = n;
    timer = setTimeout(look, wait);
    if (busy || n - done < CHANGES) return;
    done = n;
    busy = true;
    thread ??= open();
    thread.postMessage({ file });
  }

  function open(): Worker {
    const made = new Worker(threadAddress("db/checkpoint-thread.ts"), { smol: true });
    made.onmessage = () => {
      busy = false;
    };
    made.onerror = (event) => {
      event.preventDefault?.();
      // Back to SQLite's own way.
      stop();
    };
    db.run(`PRAGMA wal_autocheckpoint = ${MOST_PAGES}`);
    return made;
  }

  function stop(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    thread?.terminate();
    db.run("PRAGMA wal_autocheckpoint = 1000");
  }

  return {
    start(): void {
      timer = setTimeout(look, EVERY_MS);
    },
    stop,
  };
}
