/** Writes and checks backups in a thread of their own, so that neither streams nor searches wait. */
import type { BackupOptions } from "./backup.ts";
import { AppError, reviveError } from "../error.ts";
import type { ErrorData } from "../error.ts";
import { threadAddress } from "../threads.ts";

export type BackupRequest =
  | ({ kind: "write" } & Omit<BackupOptions, "now">)
  | { kind: "check"; file: string };
export type BackupAnswer = { rows: Record<string, number> } | { error: ErrorData };

/** Rows by table of what was written or checked. Rejects with the sentence of what is wrong. */
export function backupThread(request: BackupRequest): Promise<Record<string, number>> {
  const thread = new Worker(threadAddress("db/backup-thread.ts"));
  return new Promise<Record<string, number>>((resolve, reject) => {
    thread.onmessage = ({ data }: MessageEvent<BackupAnswer>) => {
      if ("error" in data) reject(reviveError(data.error));
      else resolve(data.rows);
    };
    thread.onerror = (event) => {
      event.preventDefault?.();
      reject(new AppError("unavailable", "The thread for backups ended."));
    };
    thread.postMessage(request);
  }).finally(() => thread.terminate());
}
