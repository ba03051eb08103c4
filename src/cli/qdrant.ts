/** `recollect qdrant reconcile`: compares the memories here with the points there and repairs. */
import { openEngine } from "../memory/engine.ts";
import { exit, UsageError } from "./verb.ts";
import type { Verb } from "./verb.ts";

export const verb: Verb = {
  usage: ["recollect qdrant reconcile [--dry-run] [--json]"],
  options: { "dry-run": { type: "boolean" }, json: { type: "boolean" } },
  async run(call) {
    const [action, ...rest] = call.args;
    if (action !== "reconcile" || rest.length > 0) throw new UsageError("This takes: reconcile.");
    const dryRun = call.flags["dry-run"] === true;
    const { db, config } = call.database();
    db.close();
    const opened = openEngine({ config, log: call.log(config), leaseName: `cli-${crypto.randomUUID()}` });
    try {
      const result = await opened.engine.qdrant.reconcile({ dryRun });
      if (call.flags["json"] === true) call.print(JSON.stringify(result));
      else
        call.print(
          `${result.missing} missing, ${result.stale} stale, ${result.orphaned} orphaned; ${dryRun ? "nothing was changed" : `${result.repaired} repaired`}.`,
        );
    } finally {
      await opened.stop();
    }
    return exit.ok;
  },
};
