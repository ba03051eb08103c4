/** `recollect version`. */
import { VERSION } from "../version.ts";
import { exit, expectArgs } from "./verb.ts";
import type { Verb } from "./verb.ts";

export const verb: Verb = {
  usage: ["recollect version"],
  async run(call) {
    expectArgs(call);
    call.print(`recollect ${VERSION}`);
    return exit.ok;
  },
};
