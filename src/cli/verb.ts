/** What a verb of the command line is, and what it is given. Nothing here touches `process`. */
import { parseArgs } from "node:util";
import type { ParseArgsOptionsConfig } from "node:util";
import { join } from "node:path";
import { existsSync } from "node:fs";
import type { Database } from "bun:sqlite";
import { dataDirOf, resolveConfig } from "../config.ts";
import type { Config, Inputs, VariableName } from "../config.ts";
import { readStoredConfig } from "../db/settings.ts";
import { listKeys } from "../db/keys.ts";
import { migrate } from "../db/migrate.ts";
import { openDatabase } from "../db/open.ts";
import { makeDataDir } from "../db/folder.ts";
import { SHARED_OWNER } from "../db/owners.ts";
import { AppError } from "../error.ts";
import { createLog } from "../log.ts";
import type { Log } from "../log.ts";

/** Exit codes of the program. */
export const exit = { ok: 0, failed: 1, usage: 2, config: 78 } as const;

/** What the surroundings give a verb. */
export type World = {
  env: Record<string, string | undefined>;
  stdout: { write(text: string): void; terminal: boolean };
  stderr: { write(text: string): void; terminal: boolean };
  stdin(): ReadableStream<Uint8Array>;
  pid: number;
  /** Resolves once when the process is asked to end (SIGTERM, SIGINT); a second signal ends it at once. */
  ended(): Promise<void>;
  /** Path and leading arguments that start this program. */
  self: string[];
};

export type Flags = Record<string, string | boolean | undefined>;

export type Verb = {
  /** `recollect key create NAME [--scope …]`, a line each. */
  usage: string[];
  /** Options of its own; `--data-dir`, `--help` are everybody's. */
  options?: ParseArgsOptionsConfig;
  run(call: Call): Promise<number>;
};

/** A mistake in how the program was called: exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UsageError";
  }
}

export type Call = {
  world: World;
  args: string[];
  flags: Flags;
  inputs: Inputs;
  print(line: string): void;
  /** The configuration with stored settings, without opening a server. */
  config(): Config;
  log(config: Config): Log;
  /** Opens the database of the data folder, migrated; the folder is made when it is not there. */
  database(): { db: Database; config: Config };
};

const common = { "data-dir": { type: "string" }, help: { type: "boolean", short: "h" } } as const;

/** Flags that stand for a variable. */
const flagVariables: Record<string, VariableName | "DATA_DIR"> = {
  host: "HOST",
  port: "PORT",
  "data-dir": "DATA_DIR",
};

/** Parses a verb's arguments. Throws UsageError with one sentence. */
export function callOf(verb: Verb, argv: string[], world: World): Call {
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({
      args: argv,
      options: { ...common, ...verb.options },
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message.split(". To specify")[0]! : String(error));
  }
  const flags = parsed.values as Flags;
  const inputs: Inputs = { flags: {}, env: world.env };
  for (const [name, variable] of Object.entries(flagVariables)) {
    if (typeof flags[name] === "string") inputs.flags[variable] = flags[name];
  }
  const config = () => {
    const path = join(dataDirOf(inputs), "recollect.db");
    if (!existsSync(path)) return resolveConfig(inputs, {});
    const db = openDatabase(path, { readonly: true });
    try {
      return resolveConfig(inputs, tablesExist(db) ? readStoredConfig(db) : {});
    } finally {
      db.close();
    }
  };
  return {
    world,
    args: parsed.positionals,
    flags,
    inputs,
    print: (line) => world.stdout.write(`${line}\n`),
    config,
    log: (resolved) =>
      createLog({
        level: resolved.LOG_LEVEL,
        terminal: world.stderr.terminal,
        write: (line) => world.stderr.write(`${line}\n`),
      }),
    database() {
      const resolved = config();
      makeDataDir(resolved.dataDir);
      const db = openDatabase(join(resolved.dataDir, "recollect.db"));
      migrate(db, join(resolved.dataDir, "backups"));
      return { db, config: resolved };
    },
  };
}

function tablesExist(db: Database): boolean {
  return db.query("SELECT 1 FROM sqlite_master WHERE name = 'settings'").get() !== null;
}

/** Exactly `count` arguments, or a usage error that names them. */
export function expectArgs(call: Call, ...names: string[]): string[] {
  if (call.args.length !== names.length) {
    const wanted = names.length === 0 ? "no arguments" : names.join(" ");
    throw new UsageError(`This takes ${wanted}; ${call.args.length} given.`);
  }
  return call.args;
}

/** A usage error unless `action` was given as many arguments as its usage line names. */
export function expectCount(
  usage: readonly string[],
  verb: string,
  action: string,
  args: readonly string[],
  count: number,
): void {
  if (args.length === count) return;
  const line = usage.find((one) => one.startsWith(`recollect ${verb} ${action}`)) ?? "";
  const wanted = line
    .split(" ")
    .slice(3, 3 + count)
    .join(" ");
  throw new UsageError(`${verb} ${action} takes ${wanted || "no arguments"}; ${args.length} given.`);
}

export function stringFlag(call: Call, name: string): string | undefined {
  const value = call.flags[name];
  return typeof value === "string" ? value : undefined;
}

/**
 * The owner a data verb works for: `--key` (an id, `id:person`, `shared`, or the name of one key), else the only key
 * there is. Anything else is an error: what is written for nobody would never be found again.
 */
export function ownerFlag(call: Call, db: Database): string {
  const keys = listKeys(db);
  if (keys.length === 0)
    throw new UsageError("There is no API key yet. Make one with: recollect key create NAME");
  const known = `Known: ${keys.map((key) => `${key.id} (${key.name})`).join(", ")}.`;
  const given = stringFlag(call, "key");
  if (given === undefined) {
    if (keys.length === 1) return keys[0]!.id;
    throw new UsageError(`There are ${keys.length} keys; say which with --key. ${known}`);
  }
  const colon = given.indexOf(":");
  const id = colon < 0 ? given : given.slice(0, colon);
  if (given === SHARED_OWNER || keys.some((key) => key.id === id)) return given;
  const named = keys.filter((key) => key.name === given);
  if (named.length === 1) return named[0]!.id;
  if (named.length > 1)
    throw new UsageError(`${named.length} keys have the name ${given}; give an id. ${known}`);
  throw new AppError("not_found", `There is no key ${given}. ${known}`);
}
