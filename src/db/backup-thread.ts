/** A thread for copying and checking databases, which takes as long as the database is large. One message, one answer. */
import { examine, writeBackup } from "./backup.ts";
import { unpackTo } from "./backup-archive.ts";
import { errorData } from "../error.ts";
import { rmSync } from "node:fs";
import type { BackupAnswer, BackupRequest } from "./backup-call.ts";

declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<BackupRequest>) => {
  let answer: BackupAnswer;
  try {
    answer = { rows: data.kind === "write" ? writeBackup(data).rows : check(data.file) };
  } catch (error) {
    answer = { error: errorData(error) };
  }
  self.postMessage(answer);
};

/** Unpacks a backup beside itself and looks at what is in it; throws the sentence of what is wrong. */
function check(file: string): Record<string, number> {
  const copy = `${file}.check.db`;
  try {
    const { manifest } = unpackTo(file, copy);
    return examine(copy, manifest?.rows).rows;
  } finally {
    for (const tail of ["", "-wal", "-shm"]) rmSync(copy + tail, { force: true });
  }
}
