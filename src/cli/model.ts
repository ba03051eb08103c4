/** `recollect model pull|import|list|remove`: the embedding models on this box. */
import { join } from "node:path";
import type { ModelName } from "../embed/model-files.ts";
import type { Models, ModelStatus } from "../embed/models.ts";
import { exit, UsageError } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect model pull static|transformers",
    "recollect model import DIR [static|transformers]",
    "recollect model list [--json]",
    "recollect model remove static|transformers",
    "",
    "  import takes a folder with the files of a model, or one that holds it as REPO/FILE: for boxes without network",
  ],
  options: { json: { type: "boolean" } },
  async run(call) {
    const [action, ...args] = call.args;
    const models = await openModels(call);
    if (action === "list" && args.length === 0) {
      list(call, models.list());
    } else if (action === "pull" && args.length === 1) {
      const status = await models.pull(nameOf(args[0]), progress(call));
      if (call.world.stderr.terminal) call.world.stderr.write("\n");
      call.print(ready(status));
    } else if (action === "import" && (args.length === 1 || args.length === 2)) {
      const status = await models.importFrom(
        args[0]!,
        ...(args.length === 2 ? ([nameOf(args[1])] as const) : []),
      );
      call.print(ready(status));
    } else if (action === "remove" && args.length === 1) {
      const name = nameOf(args[0]);
      call.print(models.remove(name) ? `Removed ${name}.` : `${name} was not there.`);
    } else {
      throw new UsageError("This takes: pull NAME, import DIR, list, remove NAME.");
    }
    return exit.ok;
  },
};

async function openModels(call: Call): Promise<Models> {
  const { createModels } = await import("../embed/models.ts");
  const config = call.config();
  return createModels({
    modelsDir: config.MEMORY_STATIC_CACHE_DIR ?? join(config.dataDir, "embeddings"),
    dataDir: config.dataDir,
    repos: { static: config.MEMORY_STATIC_MODEL, transformers: config.MEMORY_TRANSFORMERS_MODEL },
    hub: { endpoint: config.HF_ENDPOINT, token: config.HF_TOKEN },
  });
}

function nameOf(text: string | undefined): ModelName {
  if (text === "static" || text === "transformers") return text;
  throw new UsageError(`There is no model ${text}; known: static, transformers.`);
}

function list(call: Call, all: ModelStatus[]): void {
  if (call.flags["json"] === true) {
    call.print(JSON.stringify({ data: all }, null, 2));
    return;
  }
  for (const one of all) {
    const size = one.bytes > 0 ? `  ${(one.bytes / 1e6).toFixed(1)} MB` : "";
    const dimensions = one.dimensions === null ? "" : `  ${one.dimensions} dimensions`;
    call.print(
      `${one.name.padEnd(12)}  ${one.state}${size}${dimensions}  ${one.repo}${one.error ? `  ${one.error}` : ""}`,
    );
  }
}

/** A line that is drawn over on a terminal; a line every tenth elsewhere. */
function progress(call: Call): (status: ModelStatus) => void {
  let tenth = -1;
  return ({ name, bytes, totalBytes }) => {
    const share = totalBytes > 0 ? bytes / totalBytes : 0;
    const text = `${name}  ${(bytes / 1e6).toFixed(1)} of ${(totalBytes / 1e6).toFixed(1)} MB  ${Math.floor(share * 100)} %`;
    if (call.world.stderr.terminal) call.world.stderr.write(`\r${text}`);
    else if (Math.floor(share * 10) > tenth) {
      tenth = Math.floor(share * 10);
      call.world.stderr.write(`${text}\n`);
    }
  };
}

function ready({ name, repo, dimensions, bytes }: ModelStatus): string {
  return `${name} is ready: ${repo}, ${dimensions} dimensions, ${(bytes / 1e6).toFixed(1)} MB.`;
}
