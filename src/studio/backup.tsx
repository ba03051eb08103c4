/** `/dashboard/settings/backup`: the box as one file, out and in. */
import type { Hono } from "hono";
import { rmSync } from "node:fs";
import type { Env } from "../auth.ts";
import { folderFacts, receiveBackup, refusedFile, sendBackup } from "../backup-file.ts";
import { AppError, invalid } from "../error.ts";
import { BackupPage } from "../../views/backup.tsx";
import type { Errors } from "../../views/fields.tsx";
import { chromeOf, errorsOf, show, type StudioContext, type StudioDeps } from "./context.tsx";
import { settingsCounts } from "./settings.tsx";

const BASE = "/dashboard/settings/backup";
/** A file that a browser sends is held in memory; larger ones go by the command line. */
const FILE_LIMIT = 1024 * 1024 * 1024;

export function backupRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { dataDir } = deps.config;

  const page = async (c: StudioContext, errors: Errors, status = 200) =>
    show(
      c,
      <BackupPage
        chrome={await chromeOf(c, deps)}
        counts={settingsCounts(deps)}
        {...folderFacts(dataDir)}
        dataDir={dataDir}
        errors={errors}
      />,
      { status },
    );

  app.get(BASE, (c) => page(c, {}));

  app.post(`${BASE}/download`, async () => sendBackup(await deps.control.backup(false)));

  app.post(`${BASE}/restore`, async (c) => {
    try {
      if (Number(c.req.header("content-length") ?? 0) > FILE_LIMIT) {
        throw invalid("file", "is larger than 1 GB. Use the command recollect restore");
      }
      const form = await c.req.formData().catch(() => {
        throw new AppError("invalid_request", "The form could not be read.");
      });
      const given = form.get("file");
      if (!(given instanceof File) || given.size === 0)
        throw invalid("file", "choose a file that is not empty");
      if (form.get("sure") !== "true") throw invalid("sure", "tick this to go on");
      const file = await receiveBackup(given.stream(), dataDir);
      try {
        const { rows } = await deps.control.restore(file);
        // Sessions are part of what was replaced, so everybody signs in again.
        return c.redirect(`/sign-in?restored=${rows["memories"] ?? 0}`, 303);
      } catch (error) {
        throw refusedFile(error, file);
      } finally {
        rmSync(file, { force: true });
      }
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      return page(c, errors, status);
    }
  });
}
