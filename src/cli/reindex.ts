/** `recollect reindex`: embeds what has no vector yet, with progress. */
import { withEngine } from "./engine.ts";
import type { CliEngine } from "./engine.ts";
import { exit, expectArgs } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect reindex [--force]",
    "",
    "  --force  embed everything anew, not only what is missing; make the copy of texts for lists with q anew",
  ],
  options: { force: { type: "boolean" } },
  async run(call) {
    expectArgs(call);
    return withEngine(call, (engine) => reindex(call, engine), { jobs: true });
  },
};

async function reindex(call: Call, engine: CliEngine): Promise<number> {
  const embedding = await engine.models.embedding();
  if (embedding.source === null) {
    call.world.stderr.write(
      `recollect: ${embedding.reason} Turn a source on in the settings, then call this again.\n`,
    );
    return exit.failed;
  }
  let progress = await engine.index.start({ force: call.flags["force"] === true });
  const total = progress.pending;
  let shown = "";
  while (progress.pending > 0) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    progress = await engine.index.progress();
    const line = `${Math.max(0, total - progress.pending)} of ${total}`;
    if (call.world.stderr.terminal && line !== shown) call.world.stderr.write(`\r${line} `);
    shown = line;
    const { reason, available } = await engine.models.embedding();
    if (!available && progress.pending > 0 && /not on this machine|keeps failing|failed/i.test(reason)) {
      call.world.stderr.write(`recollect: ${reason} What waits is embedded once it works.\n`);
      return exit.failed;
    }
  }
  if (call.world.stderr.terminal) call.world.stderr.write("\r");
  call.print(`${progress.current} of ${progress.rows} rows have a current vector.`);
  if (progress.setAside.count > 0) {
    call.world.stderr.write(
      `recollect: ${progress.setAside.count} were set aside: ${progress.setAside.reason}\n`,
    );
    return exit.failed;
  }
  return exit.ok;
}
