/** `recollect token rotate`: a new management token. */
import { rotateToken } from "../db/access.ts";
import { exit, expectArgs, UsageError } from "./verb.ts";
import type { Verb } from "./verb.ts";

export const verb: Verb = {
  usage: ["recollect token rotate"],
  async run(call) {
    const [action] = expectArgs(call, "rotate");
    if (action !== "rotate") throw new UsageError(`There is no action ${action}.`);
    const { db, config } = call.database();
    if (config.RECOLLECT_MANAGEMENT_TOKEN !== null) {
      throw new UsageError("RECOLLECT_MANAGEMENT_TOKEN fixes the token. Change that variable instead.");
    }
    call.print(rotateToken(db));
    call.world.stderr.write(
      "This is the new management token. It is not shown again; the old one and every Studio session ended.\n",
    );
    db.close();
    return exit.ok;
  },
};
