/** From arguments to an exit code. Errors become one sentence on stderr. */
import { ConfigError } from "../config.ts";
import { AppError } from "../error.ts";
import { callOf, exit, UsageError } from "./verb.ts";
import type { World } from "./verb.ts";
import { verbs } from "./verbs.ts";

/** Runs `argv` (without the program's own name) and resolves to the exit code. */
export async function run(argv: string[], world: World): Promise<number> {
  const [first, ...rest] = argv;
  const named = first !== undefined && !first.startsWith("-");
  let name = named ? first : "serve";
  let args = named ? rest : argv;
  if (first === "--help" || first === "-h") [name, args] = ["help", []];
  if (first === "--version" || first === "-v") [name, args] = ["version", []];
  const fail = (code: number, ...lines: string[]) => {
    for (const line of lines) world.stderr.write(`recollect: ${line}\n`);
    return code;
  };
  const entry = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  if (!entry) return fail(exit.usage, `There is no verb ${name}. See: recollect help`);
  try {
    const { verb } = await entry.load();
    const call = callOf(verb, args, world);
    if (call.flags["help"] === true) {
      const { helpOf } = await import("./help.ts");
      call.print(await helpOf(name));
      return exit.ok;
    }
    return await verb.run(call);
  } catch (error) {
    if (error instanceof UsageError) return fail(exit.usage, `${error.message} See: recollect help ${name}`);
    if (error instanceof ConfigError) return fail(exit.config, ...error.problems);
    if (error instanceof AppError && error.code !== "internal") return fail(exit.failed, error.message);
    const full = error instanceof Error && "code" in error && error.code === "SQLITE_FULL";
    if (full)
      return fail(exit.failed, "The disk is full. Free some space and try again; nothing was changed.");
    const damaged =
      error instanceof Error &&
      "code" in error &&
      (error.code === "SQLITE_CORRUPT" || error.code === "SQLITE_NOTADB");
    if (damaged) {
      return fail(
        exit.failed,
        "The database is damaged; it was left as it is. Bring a backup back with: recollect restore FILE --force",
      );
    }
    return fail(exit.failed, error instanceof Error ? error.message : String(error));
  }
}
