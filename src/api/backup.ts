/** `/api/backup` and `/api/restore`: the whole box as one file, out and in. */
import { rmSync } from "node:fs";
import { z } from "zod";
import { type BackupControl, refusedFile, receiveBackup, sendBackup } from "../backup-file.ts";
import { AppError, invalid } from "../error.ts";
import { count } from "../schemas/common.ts";
import { operation, type Operation } from "./operation.ts";

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
      handle: async ({ body }) => sendBackup(await control.backup(body.withSecretKey)),
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
        const type = (request.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
        if (!types.includes(type)) {
          throw new AppError("unsupported_media_type", "Send the backup as content type application/x-tar.");
        }
        if (!request.body) throw invalid("file", "send a backup as the body");
        const file = await receiveBackup(request.body, dataDir);
        try {
          const { rows, schema, kept, secretKey } = await control.restore(file);
          return { success: true as const, rows, schema, kept, secretKey };
        } catch (error) {
          throw refusedFile(error, file);
        } finally {
          rmSync(file, { force: true });
        }
      },
    }),
  ];
}
