/** `recollect sign-in`: a fresh one-time link to the Studio. */
import { createLink } from "../db/access.ts";
import { exit, expectArgs } from "./verb.ts";
import type { Verb } from "./verb.ts";
import { readHolder } from "../db/lock.ts";
import { baseUrl } from "../server-url.ts";

export const verb: Verb = {
  usage: ["recollect sign-in"],
  async run(call) {
    expectArgs(call);
    const { db, config } = call.database();
    const secret = createLink(db);
    // A server on port 0, or started with --port, knows best where it listens.
    const url = readHolder(config.dataDir)?.url ?? baseUrl(config);
    call.print(`${url}/sign-in?token=${secret}`);
    call.print("Works once, within 30 minutes.");
    db.close();
    return exit.ok;
  },
};
