/** `recollect key create|list|rotate|revoke|merge`. */
import { createKey, findKey, keyScopes, listKeys, revokeKey, rotateKey } from "../db/keys.ts";
import type { KeyScope } from "../db/keys.ts";
import { exit, expectCount, UsageError } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect key create NAME [--scope proxy,read:memory,write:memory] [--expires TIME] [--id ID]",
    "recollect key list [--json]",
    "recollect key rotate ID",
    "recollect key revoke ID",
    "recollect key merge FROM TO",
  ],
  options: {
    scope: { type: "string" },
    expires: { type: "string" },
    id: { type: "string" },
    json: { type: "boolean" },
  },
  async run(call) {
    const [action, ...args] = call.args;
    const wanted: Record<string, number> = { create: 1, list: 0, rotate: 1, revoke: 1, merge: 2 };
    if (action === undefined || wanted[action] === undefined) {
      throw new UsageError("This takes: create NAME, list, rotate ID, revoke ID, merge FROM TO.");
    }
    expectCount(verb.usage, "key", action, args, wanted[action]);
    if (action === "create" && args[0]!.trim() === "") throw new UsageError("Give the key a name.");
    if (action === "merge") return merge(call, args[0]!, args[1]!);
    const options = action === "create" ? createOptions(call) : {};
    const { db } = call.database();
    try {
      if (action === "create") {
        const { secret, key } = createKey(db, { name: args[0]!, ...options });
        say(call, secret, `Key ${key.id} (${key.name}). The secret is not shown again.`);
      } else if (action === "rotate") {
        const { secret, key } = rotateKey(db, args[0]!);
        say(call, secret, `New secret of ${key.id}; the old one ended. It is not shown again.`);
      } else if (action === "revoke") {
        const key = revokeKey(db, args[0]!);
        call.print(`Revoked ${key.id}. Its memories stay; rotate brings it back.`);
      } else {
        list(call, listKeys(db));
      }
      return exit.ok;
    } finally {
      db.close();
    }
  },
};

function say(call: Call, secret: string, note: string): void {
  call.print(secret);
  call.world.stderr.write(`${note}\n`);
}

function createOptions(call: Call): { scopes?: KeyScope[]; expiresAt?: string; id?: string } {
  const { scope, expires, id } = call.flags;
  const scopes = typeof scope === "string" ? scope.split(",").map((one) => one.trim()) : undefined;
  const unknown = scopes?.find((one) => !(keyScopes as readonly string[]).includes(one));
  if (unknown !== undefined)
    throw new UsageError(`There is no scope ${unknown}; known: ${keyScopes.join(", ")}.`);
  const at = typeof expires === "string" ? Date.parse(expires) : null;
  if (at !== null && (Number.isNaN(at) || at <= Date.now())) {
    throw new UsageError(
      `--expires is ${String(expires)}; give a time to come, such as 2030-01-31 or 2030-01-31T12:00:00Z.`,
    );
  }
  return {
    ...(scopes ? { scopes: scopes as KeyScope[] } : {}),
    ...(at === null ? {} : { expiresAt: new Date(at).toISOString() }),
    ...(typeof id === "string" ? { id } : {}),
  };
}

function list(call: Call, keys: ReturnType<typeof listKeys>): void {
  if (call.flags["json"] === true) {
    call.print(JSON.stringify(keys, null, 2));
    return;
  }
  if (keys.length === 0) call.print("No keys yet. Make one with: recollect key create NAME");
  for (const key of keys) {
    const state = key.revokedAt
      ? "revoked"
      : key.expiresAt && Date.parse(key.expiresAt) <= Date.now()
        ? "expired"
        : "active";
    call.print(`${key.id}  ${key.prefix}  ${state}  ${key.scopes.join(",")}  ${key.name}`);
  }
}

/** Moves everything of FROM to TO; FROM is revoked. */
async function merge(call: Call, from: string, to: string): Promise<number> {
  const { db, config } = call.database();
  const known = [from, to].filter((id) => !findKey(db, id));
  db.close();
  if (known.length > 0) throw new UsageError(`There is no key ${known.join(" and no key ")}.`);
  if (from === to) throw new UsageError("FROM and TO are the same key.");
  const { openEngine } = await import("../memory/engine.ts");
  const opened = openEngine({ config, log: call.log(config), leaseName: `cli-${crypto.randomUUID()}` });
  try {
    const result = await opened.engine.owners.merge({ from, to });
    call.print(
      `Moved ${result.memories} memories and ${result.sessions} sessions of ${from} to ${to}; ${from} is revoked.`,
    );
  } finally {
    await opened.stop();
  }
  const again = call.database();
  const key = findKey(again.db, from);
  if (key && key.revokedAt === null) revokeKey(again.db, from);
  again.db.close();
  return exit.ok;
}
