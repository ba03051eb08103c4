/** `recollect memory list|search|add|export|import|delete`: the data of one key, also while the server runs. */
import { memoryTypes } from "../memory/types.ts";
import type { Memory, MemoryType } from "../memory/types.ts";
import { ownerOf, withEngine } from "./engine.ts";
import type { CliEngine } from "./engine.ts";
import { exportTo, formatFlag, importFrom } from "./transfer.ts";
import { exit, expectCount, stringFlag, UsageError } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect memory list [--type TYPE] [--query TEXT] [--limit N] [--json] [--key ID]",
    "recollect memory search QUERY [--limit N] [--json] [--key ID]",
    "recollect memory add CONTENT [--name KEY] [--type TYPE] [--key ID]",
    "recollect memory export FILE [--memories-only] [--key ID]",
    "recollect memory import FILE [--from mem0|chatgpt|claude|omniroute] [--key ID]",
    "recollect memory delete ID [--proof] [--source] [--key ID]",
  ],
  options: {
    key: { type: "string" },
    type: { type: "string" },
    query: { type: "string" },
    limit: { type: "string" },
    name: { type: "string" },
    json: { type: "boolean" },
    proof: { type: "boolean" },
    source: { type: "boolean" },
    "memories-only": { type: "boolean" },
    from: { type: "string" },
  },
  async run(call) {
    const [action, ...args] = call.args;
    const actions: Record<string, [count: number, run: (engine: CliEngine, owner: string) => Promise<void>]> =
      {
        list: [0, (engine, owner) => list(call, engine, owner)],
        search: [1, (engine, owner) => search(call, engine, owner, args[0]!)],
        add: [1, (engine, owner) => add(call, engine, owner, args[0]!)],
        export: [1, (engine, owner) => exportTo(call, engine, owner, args[0]!)],
        import: [1, (engine, owner) => importFrom(call, engine, owner, args[0]!)],
        delete: [1, (engine, owner) => remove(call, engine, owner, args[0]!)],
      };
    const found = action === undefined ? undefined : actions[action];
    if (!found) throw new UsageError(`This takes: ${Object.keys(actions).join(", ")}.`);
    expectCount(verb.usage, "memory", action!, args, found[0]);
    typeFlag(call);
    limitFlag(call);
    // OmniRoute's memories name their own keys.
    const own = formatFlag(call) === "omniroute" && call.flags["key"] === undefined;
    const owner = own ? "" : ownerOf(call);
    await withEngine(call, (engine) => found[1](engine, owner));
    return exit.ok;
  },
};

function typeFlag(call: Call): MemoryType | undefined {
  const type = stringFlag(call, "type");
  if (type !== undefined && !(memoryTypes as readonly string[]).includes(type)) {
    throw new UsageError(`There is no type ${type}; known: ${memoryTypes.join(", ")}.`);
  }
  return type as MemoryType | undefined;
}

function limitFlag(call: Call): number {
  const text = stringFlag(call, "limit") ?? "20";
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > 200)
    throw new UsageError(`--limit is ${text}; give a whole number from 1 to 200.`);
  return limit;
}

function show(call: Call, memory: Memory): void {
  call.print(`${memory.id}  ${memory.type}  ${memory.key ?? "–"}  ${memory.content.replaceAll(/\s+/g, " ")}`);
}

async function list(call: Call, engine: CliEngine, owner: string): Promise<void> {
  const type = typeFlag(call);
  const q = stringFlag(call, "query");
  const { data, total } = await engine.memories.list({
    owner,
    status: "active",
    limit: limitFlag(call),
    offset: 0,
    ...(type === undefined ? {} : { type }),
    ...(q === undefined ? {} : { q }),
  });
  if (call.flags["json"] === true) {
    call.print(JSON.stringify({ data, total }, null, 2));
    return;
  }
  for (const memory of data) show(call, memory);
  call.world.stderr.write(`${data.length} of ${total} memories.\n`);
}

async function search(call: Call, engine: CliEngine, owner: string, query: string): Promise<void> {
  const found = await engine.retrieval.retrieve({
    owner,
    query,
    limit: limitFlag(call),
    mode: "interactive",
    kinds: ["memory"],
  });
  if (call.flags["json"] === true) {
    call.print(JSON.stringify(found, null, 2));
    return;
  }
  for (const result of found.results) {
    if (result.kind !== "memory") continue;
    call.print(
      `${result.score === null ? "–" : result.score.toFixed(3)}  ${result.tier}  ${result.id}  ${result.item.content}`,
    );
  }
  call.world.stderr.write(
    `${found.results.length} found.${found.resolution.fallbackReason ? ` ${found.resolution.fallbackReason}` : ""}\n`,
  );
}

async function add(call: Call, engine: CliEngine, owner: string, content: string): Promise<void> {
  const type = typeFlag(call);
  const key = stringFlag(call, "name");
  const { memory, created, redacted } = await engine.memories.create({
    owner,
    content,
    origin: "api",
    ...(type === undefined ? {} : { type }),
    ...(key === undefined ? {} : { key }),
  });
  call.print(memory.id);
  call.world.stderr.write(
    `${created ? "Added." : "Updated."}${redacted > 0 ? ` ${redacted} secret(s) were redacted.` : ""}\n`,
  );
}

async function remove(call: Call, engine: CliEngine, owner: string, id: string): Promise<void> {
  const proof = call.flags["proof"] === true;
  const result = await engine.memories.remove({ owner, id, proof, source: call.flags["source"] === true });
  call.print(result.proof ? JSON.stringify(result.proof, null, 2) : "Deleted for good.");
}
