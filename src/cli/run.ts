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
    if (error instanceof UsageError) {
      const sentence = /[.?!]$/.test(error.message) ? error.message : `${error.message}.`;
      return fail(exit.usage, `${sentence} See: recollect help${name === "help" ? "" : ` ${name}`}`);
    }
    if (error instanceof ConfigError) return fail(exit.config, ...error.problems);
    if (error instanceof AppError && error.code !== "internal") return fail(exit.failed, error.message);
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const known = storageSentence(code);
    if (known !== null) return fail(exit.failed, known);
    return fail(exit.failed, error instanceof Error ? error.message : String(error));
  }
}

/** What the disk or SQLite refused, in words; null for other codes. */
function storageSentence(code: string): string | null {
  if (
    [
      "SQLITE_FULL",
      "ENOSPC",
      "EDQUOT",
      "SQLITE_IOERR_WRITE",
      "SQLITE_IOERR_SHMSIZE",
      "SQLITE_IOERR_FSYNC",
    ].includes(code)
  ) {
    return "The disk is full. Free some space and try again; nothing was changed.";
  }
  if (code === "SQLITE_CORRUPT" || code === "SQLITE_NOTADB") {
    return "The database is damaged; it was left as it is. Bring a backup back with: recollect restore FILE --force";
  }
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)/.test(code) || ["EACCES", "EPERM", "EROFS"].includes(code)) {
    return `The files in the data folder cannot be written (${code}). Give them to this user (chown), or use another folder with --data-dir.`;
  }
  return null;
}
