/** `recollect backup FILE`: a consistent, verified copy, also while the server runs. */
import { resolve } from "node:path";
import { VERSION } from "../version.ts";
import { exit, expectArgs } from "./verb.ts";
import type { Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect backup FILE [--with-secret-key] [--json]",
    "",
    "  --with-secret-key  also the key that opens providers' secrets; whoever has the file then has those",
  ],
  options: { "with-secret-key": { type: "boolean" }, json: { type: "boolean" } },
  async run(call) {
    const [file] = expectArgs(call, "FILE");
    const { writeBackup } = await import("../db/backup.ts");
    const path = resolve(file!);
    const manifest = writeBackup({
      dataDir: call.config().dataDir,
      file: path,
      version: VERSION,
      withSecretKey: call.flags["with-secret-key"] === true,
    });
    if (call.flags["json"] === true) call.print(JSON.stringify({ file: path, ...manifest }));
    else {
      const rows = `${manifest.rows["memories"] ?? 0} memories, ${manifest.rows["episodes"] ?? 0} episodes`;
      call.print(`${path}: ${(manifest.bytes / 1e6).toFixed(1)} MB, ${rows}; read back and found good.`);
      if (!manifest.secretKey) {
        call.world.stderr.write(
          "Providers' keys are sealed and cannot be opened elsewhere without secret.key (--with-secret-key).\n",
        );
      }
    }
    return exit.ok;
  },
};
