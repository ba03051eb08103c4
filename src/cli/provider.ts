/** `recollect provider add|list|test|remove`: the model servers that requests are forwarded to. */
import { openSeal } from "../seal.ts";
import { newProvider } from "../schemas/providers.ts";
import { createProviders } from "../upstream/providers.ts";
import type { Providers } from "../upstream/providers.ts";
import { check } from "../validate.ts";
import { exit, expectCount, stringFlag, UsageError } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect provider add ID URL [--key-env VAR] [--default]",
    "recollect provider list [--json]",
    "recollect provider test ID",
    "recollect provider remove ID",
    "",
    "  --key-env VAR  the variable that holds the provider's key, so that it stands in no shell history",
  ],
  options: { "key-env": { type: "string" }, default: { type: "boolean" }, json: { type: "boolean" } },
  async run(call) {
    const [action, ...args] = call.args;
    const wanted: Record<string, number> = { add: 2, list: 0, test: 1, remove: 1 };
    if (action === undefined || wanted[action] === undefined) {
      throw new UsageError("This takes: add ID URL, list, test ID, remove ID.");
    }
    expectCount(verb.usage, "provider", action, args, wanted[action]);
    const apiKey = action === "add" ? keyOf(call) : undefined;
    const { db, config } = call.database();
    try {
      const providers = createProviders({ db, seal: openSeal(config.dataDir) });
      if (action === "add") add(call, providers, args[0]!, args[1]!, apiKey);
      else if (action === "remove") {
        providers.remove(args[0]!);
        call.print(`Removed ${args[0]}.`);
      } else if (action === "test") return await test(call, providers, args[0]!);
      else list(call, providers);
      return exit.ok;
    } finally {
      db.close();
    }
  },
};

function keyOf(call: Call): string | undefined {
  const name = stringFlag(call, "key-env");
  if (name === undefined) return undefined;
  const key = call.world.env[name];
  if (!key) throw new UsageError(`--key-env names ${name}, which is not set.`);
  return key;
}

function add(
  call: Call,
  providers: Providers,
  id: string,
  baseUrl: string,
  apiKey: string | undefined,
): void {
  const provider = providers.create(
    check(newProvider, {
      id,
      baseUrl,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(call.flags["default"] === true ? { default: true } : {}),
    }),
  );
  call.print(`${provider.id}  ${provider.resolvedUrl}${provider.default ? "  (default)" : ""}`);
  call.world.stderr.write(`Added. Try it with: recollect provider test ${provider.id}\n`);
}

function list(call: Call, providers: Providers): void {
  const all = providers.list();
  if (call.flags["json"] === true) return call.print(JSON.stringify(all, null, 2));
  if (all.length === 0) call.print("No providers yet. Add one with: recollect provider add ID URL");
  for (const one of all) {
    const state = [one.enabled ? "" : "disabled", one.default ? "default" : ""].filter(Boolean).join(", ");
    call.print(
      `${one.id}  ${one.resolvedUrl}  key ${one.apiKeyMasked ?? "none"}${state ? `  (${state})` : ""}`,
    );
  }
}

async function test(call: Call, providers: Providers, id: string): Promise<number> {
  const upstream = providers.upstream(id);
  const { createTransport } = await import("../upstream/transport.ts");
  const { probe } = await import("../upstream/probe.ts");
  const transport = createTransport();
  const result = await probe(transport, upstream, AbortSignal.timeout(60_000));
  transport.close();
  if (!result.ok) {
    call.world.stderr.write(`recollect: ${id} does not work: ${result.error}\n`);
    return exit.failed;
  }
  call.print(
    `${id} works, ${result.latencyMs} ms${result.model === undefined ? "" : `, model ${result.model}`}.`,
  );
  return exit.ok;
}
