/** `recollect restore FILE`: a backup, or a copy made before an upgrade, becomes the database. */
import { resolve } from "node:path";
import { dataDirOf } from "../config.ts";
import { makeDataDir } from "../db/folder.ts";
import { lockFolder } from "../db/lock.ts";
import { exit, expectArgs } from "./verb.ts";
import type { Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect restore FILE [--force] [--json]",
    "",
    "  --force  replace the database that is there; it is kept in DATA_DIR/backups",
  ],
  options: { force: { type: "boolean" }, json: { type: "boolean" } },
  async run(call) {
    const [file] = expectArgs(call, "FILE");
    const { restoreBackup } = await import("../db/restore.ts");
    const dataDir = dataDirOf(call.inputs);
    makeDataDir(dataDir);
    const lock = lockFolder(dataDir, { pid: call.world.pid });
    try {
      const done = restoreBackup({ dataDir, file: resolve(file!), force: call.flags["force"] === true });
      if (call.flags["json"] === true) call.print(JSON.stringify(done));
      else {
        call.print(
          `Restored ${done.rows["memories"] ?? 0} memories and ${done.rows["episodes"] ?? 0} episodes to ${dataDir}.`,
        );
        if (done.schema.from < done.schema.to)
          call.print(`Brought from version ${done.schema.from} to ${done.schema.to}.`);
        if (done.kept !== null)
          call.print(
            `What was there before is kept in ${done.kept}; put it back with: recollect restore ${done.kept} --force`,
          );
        if (done.secretKey === "missing")
          call.world.stderr.write("There is no secret.key here: enter the providers' keys again.\n");
      }
      return exit.ok;
    } finally {
      lock.release();
    }
  },
};
