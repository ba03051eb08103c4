/**
 * The threads of this program, each a file of its own. This module lies at the root of `src` as theirs do in the
 * executable, where all modules are a few files at the root beside the entries that `build.ts` makes of these.
 */
export const THREADS = ["worker/main.ts", "db/backup-thread.ts", "db/checkpoint-thread.ts"] as const;

/** What `new Worker` takes to run that file, from the sources and in the executable. */
export function threadAddress(file: (typeof THREADS)[number]): string {
  return new URL(file, import.meta.url).href;
}
