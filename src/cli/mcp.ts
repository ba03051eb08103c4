/** `recollect mcp`: MCP over stdio for one API key, also while the server runs. */
import type { Database } from "bun:sqlite";
import { databaseFile } from "../db/folder.ts";
import { findKey, keyBySecret } from "../db/keys.ts";
import type { ApiKey } from "../db/keys.ts";
import type { Engine } from "../engine.ts";
import { AppError } from "../error.ts";
import type { McpCaller } from "../mcp/tools.ts";
import { VERSION } from "../version.ts";
import { startEngine } from "../worker/client.ts";
import { exit, expectArgs, ownerFlag, stringFlag, UsageError } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect mcp [--key ID] [--user NAME]",
    "",
    "  Speaks MCP on stdin and stdout for the API key in RECOLLECT_API_KEY, or of --key, or the only one.",
    "  --user NAME   the person, for a key with many people behind it",
  ],
  options: { key: { type: "string" }, user: { type: "string" } },
  async run(call) {
    expectArgs(call);
    const { db, config } = call.database();
    const id = keyIdOf(call, db);
    callerOf(call, db, id);
    db.close();
    let folder = open(call);
    const log = call.log(config);
    /** After a restore: what is said now belongs into the database that took the place of this one. */
    const follow = () => {
      const file = databaseFile(config.dataDir);
      if (file === null || file === folder.file) return;
      const old = folder;
      folder = open(call);
      void old.close();
      log.info("database.replaced");
    };
    const watch = setInterval(() => {
      try {
        follow();
      } catch (error) {
        log.error("database.replaced.failed", { error });
      }
    }, FOLLOW_MS);
    try {
      await folder.thread.ready;
      const { serveStdio } = await import("../mcp/stdio.ts");
      await serveStdio(
        {
          engine: new Proxy({} as Engine, { get: (_, group) => Reflect.get(folder.thread.engine, group) }),
          version: VERSION,
          log,
        },
        () => {
          follow();
          return callerOf(call, folder.db, id);
        },
        { stdin: call.world.stdin(), write: (text) => call.world.stdout.write(text) },
        call.world.ended(),
      );
    } finally {
      clearInterval(watch);
      await folder.close();
    }
    return exit.ok;
  },
};

/** How often it is looked whether another database is in place, beside every call, in milliseconds. */
const FOLLOW_MS = 1000;

function open(call: Call) {
  const file = databaseFile(call.config().dataDir);
  const { db, config } = call.database();
  const thread = startEngine(config, call.log(config), { leaseName: `mcp-${crypto.randomUUID()}` });
  return {
    file,
    db,
    thread,
    async close(): Promise<void> {
      await thread.stop();
      db.close();
    },
  };
}

function keyIdOf(call: Call, db: Database): string {
  const secret = call.world.env["RECOLLECT_API_KEY"];
  if (!secret || stringFlag(call, "key") !== undefined) return ownerFlag(call, db);
  const key = keyBySecret(db, secret);
  if (!key) throw new AppError("invalid_api_key", "RECOLLECT_API_KEY is no key of this data folder.");
  return key.id;
}

/** The caller as the key stands now. */
function callerOf(call: Call, db: Database, id: string): McpCaller {
  const key = findKey(db, id);
  if (!key) throw new AppError("not_found", `There is no key ${id}.`);
  if (key.revokedAt !== null) throw new AppError("invalid_api_key", `The key ${id} was revoked.`);
  if (key.expiresAt !== null && Date.parse(key.expiresAt) <= Date.now()) {
    throw new AppError("invalid_api_key", `The key ${id} has expired.`);
  }
  return { kind: "key", owner: ownerOf(call, key), sharedPool: key.sharedPool, scopes: key.scopes };
}

function ownerOf(call: Call, key: ApiKey): string {
  const user = stringFlag(call, "user")?.trim();
  const shared = key.userHeader !== null || key.userField !== null;
  if (shared && !user) throw new UsageError(`The key ${key.id} serves many people; say which with --user.`);
  if (!shared && user) throw new UsageError(`The key ${key.id} serves one person; leave --user out.`);
  return shared ? `${key.id}:${user}` : key.id;
}
