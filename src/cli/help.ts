/** `recollect help [VERB]`. */
import { VERSION } from "../version.ts";
import { exit, UsageError } from "./verb.ts";
import type { Verb } from "./verb.ts";
import { verbs } from "./verbs.ts";

export const verb: Verb = {
  usage: ["recollect help [VERB]"],
  async run(call) {
    const [name] = call.args;
    call.print(name === undefined ? overview() : await helpOf(name));
    return exit.ok;
  },
};

function overview(): string {
  const width = Math.max(...Object.keys(verbs).map((name) => name.length));
  return [
    `Recollect ${VERSION}: a long-term memory for any OpenAI-compatible application.`,
    "",
    "  recollect [serve] [--host HOST] [--port PORT] [--data-dir DIR] [--upstream URL] [--memory] [--demo]",
    "  recollect VERB …",
    "",
    ...Object.entries(verbs).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`),
    "",
    "Verbs on data take --data-dir DIR and --key ID (or its name), also while the server runs.",
    "More on one: recollect help VERB. Variables and where their values come from: recollect config show",
  ].join("\n");
}

/** Usage lines and summary of one verb. */
export async function helpOf(name: string): Promise<string> {
  const entry = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (!entry) throw new UsageError(`There is no verb ${name}.`);
  const { verb: found } = await entry.load();
  return [`${name}: ${entry.summary}`, "", ...found.usage.map((line) => `  ${line}`)].join("\n");
}
