/** A backup as it comes in and goes out through a face, and what stands in the data folder. */
import { mkdirSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { AppError, invalid } from "./error.ts";

/** What only the server itself can do. */
export type BackupControl = {
  /** Writes a verified backup and gives its path; the caller removes the file. */
  backup: (withSecretKey: boolean) => Promise<string>;
  /** Checks the file, drains, puts it in the place of the database, starts again. A bad file changes nothing. */
  restore: (file: string) => Promise<{
    rows: Readonly<Record<string, number>>;
    schema: { readonly from: number; readonly to: number };
    kept: string | null;
    secretKey: "restored" | "here" | "missing";
  }>;
};

/** Sends the file and removes it, however the sending ends. */
export function sendBackup(path: string): Response {
  const reader = Bun.file(path).stream().getReader();
  const remove = () => rmSync(path, { force: true });
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (!done) return controller.enqueue(value);
      remove();
      controller.close();
    },
    async cancel(reason) {
      await reader.cancel(reason);
      remove();
    },
  });
  const day = new Date().toISOString().slice(0, 10);
  return new Response(body, {
    headers: {
      "Content-Type": "application/x-tar",
      "Content-Disposition": `attachment; filename="recollect-${day}.tar"`,
      "Cache-Control": "no-store",
    },
  });
}

/** Writes a body to a file in the data folder, piece by piece. */
export async function receiveBackup(body: ReadableStream<Uint8Array>, dataDir: string): Promise<string> {
  const folder = join(dataDir, "backups");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `upload-${crypto.randomUUID()}`);
  const writer = Bun.file(path).writer();
  try {
    for await (const chunk of body) await writer.write(chunk);
    await writer.end();
    return path;
  } catch (error) {
    await Promise.resolve(writer.end()).catch(() => {});
    rmSync(path, { force: true });
    throw error;
  }
}

/** What a file that is no good backup becomes: an error of the field `file`, without the path it was put under. */
export function refusedFile(error: unknown, path: string): unknown {
  if (!(error instanceof AppError) || error.code !== "unavailable") return error;
  return invalid("file", error.message.replaceAll(path, "The file"));
}

export type FolderFacts = {
  databaseBytes: number | null;
  lastBackup: string | null;
  freeBytes: number | null;
};

/** Size of the database, time of the newest backup in the folder, room on its disk. Null where it cannot be read. */
export function folderFacts(dataDir: string): FolderFacts {
  const facts: FolderFacts = { databaseBytes: null, lastBackup: null, freeBytes: null };
  try {
    facts.databaseBytes = statSync(join(dataDir, "recollect.db")).size;
    const { bavail, bsize } = statfsSync(dataDir);
    facts.freeBytes = bavail * bsize;
    const times = readdirSync(join(dataDir, "backups")).map(
      (file) => statSync(join(dataDir, "backups", file)).mtimeMs,
    );
    if (times.length > 0) facts.lastBackup = new Date(Math.max(...times)).toISOString();
  } catch {
    // No backups yet, or a file that went away meanwhile: what is known is shown.
  }
  return facts;
}
