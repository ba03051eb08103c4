/** `/api/backup` and `/api/restore`: the whole box as one file, out and in. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { AppError, invalid } from "../error.ts";
import { count } from "../schemas/common.ts";
import { operation, type Operation } from "./operation.ts";

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

const base = { tag: "Box", access: "management", method: "post" } as const;
const types = ["application/x-tar", "application/octet-stream", "application/vnd.sqlite3"];

export function backupOperations(control: BackupControl, dataDir: string): Operation[] {
  return [
    operation({
      ...base,
      path: "/api/backup",
      summary: "Download a consistent, verified backup",
      description:
        "`withSecretKey` adds the key that opens providers' secrets: whoever has the file then has those.",
      body: z.strictObject({ withSecretKey: z.boolean().default(false) }),
      answer: { type: "application/x-tar", description: "the backup" },
      exclusive: "backup",
      handle: async ({ body }) => download(await control.backup(body.withSecretKey)),
    }),
    operation({
      ...base,
      path: "/api/restore",
      summary: "Replace everything on this box with a backup",
      description:
        "The server lets running requests end, swaps the database, and goes on; what was there before is kept. A damaged file changes nothing.",
      rawBody: {
        type: "application/x-tar",
        description: "A backup, or a database that was copied before an upgrade.",
      },
      answer: z.strictObject({
        success: z.literal(true),
        rows: z.record(z.string(), count),
        schema: z.strictObject({ from: z.int(), to: z.int() }),
        kept: z.string().nullable().meta({ description: "Where the database that was there before is now." }),
        secretKey: z.enum(["restored", "here", "missing"]),
      }),
      exclusive: "backup",
      handle: async ({ request }) => {
        const file = await receive(request, dataDir);
        try {
          const { rows, schema, kept, secretKey } = await control.restore(file);
          return { success: true as const, rows, schema, kept, secretKey };
        } catch (error) {
          if (!(error instanceof AppError) || error.code !== "unavailable") throw error;
          throw invalid("file", error.message.replaceAll(file, "The file"));
        } finally {
          rmSync(file, { force: true });
        }
      },
    }),
  ];
}

/** Sends the file and removes it, however the sending ends. */
function download(path: string): Response {
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

/** Writes the body to a file in the data folder, piece by piece. */
async function receive(request: Request, dataDir: string): Promise<string> {
  const type = (request.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
  if (!types.includes(type)) {
    throw new AppError("unsupported_media_type", "Send the backup as content type application/x-tar.");
  }
  if (!request.body) throw invalid("file", "send a backup as the body");
  const folder = join(dataDir, "backups");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `upload-${crypto.randomUUID()}`);
  const writer = Bun.file(path).writer();
  try {
    for await (const chunk of request.body as ReadableStream<Uint8Array>) {
      await writer.write(chunk);
    }
    await writer.end();
    return path;
  } catch (error) {
    await Promise.resolve(writer.end()).catch(() => {});
    rmSync(path, { force: true });
    throw error;
  }
}
