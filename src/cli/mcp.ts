/** `recollect mcp`: MCP over stdio for one API key, also while the server runs. */
import type { Database } from "bun:sqlite";
import { findKey, keyBySecret } from "../db/keys.ts";
import type { ApiKey } from "../db/keys.ts";
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
    const thread = startEngine(config, call.log(config), {
      leaseName: `mcp-${crypto.randomUUID()}`,
    });
    try {
      await thread.ready;
      const { serveStdio } = await import("../mcp/stdio.ts");
      await serveStdio(
        { engine: thread.engine, version: VERSION, log: call.log(config) },
        () => callerOf(call, db, id),
        { stdin: call.world.stdin(), write: (text) => call.world.stdout.write(text) },
        call.world.ended(),
      );
    } finally {
      await thread.stop();
      db.close();
    }
    return exit.ok;
  },
};

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
