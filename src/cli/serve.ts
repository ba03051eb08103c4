/** `recollect serve`: the appliance. */
import { notifySystemd } from "../notify.ts";
import type { Server } from "../server.ts";
import { VERSION } from "../version.ts";
import { startThread } from "../worker/thread.ts";
import type { Thread } from "../worker/thread.ts";
import { exit, expectArgs, stringFlag } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";
import type { Config } from "../config.ts";

export const verb: Verb = {
  usage: [
    "recollect serve [--host HOST] [--port PORT] [--data-dir DIR] [--upstream URL] [--memory] [--demo] [--open]",
    "",
    "  --upstream URL  add this model server as a provider and make it the default",
    "  --memory        memory on, unless it was set before (each chat then carries up to maxTokens more)",
    "  --demo          add the built-in provider demo, to try the whole loop without a model; memory on",
    "  --open          listen beyond loopback although REQUIRE_API_KEY is false",
  ],
  options: {
    host: { type: "string" },
    port: { type: "string" },
    upstream: { type: "string" },
    memory: { type: "boolean" },
    demo: { type: "boolean" },
    open: { type: "boolean" },
  },
  async run(call) {
    expectArgs(call);
    // It loads the engine while this thread reads the configuration, loads the server and opens the database.
    const thread = startThread();
    try {
      return await run(call, thread);
    } catch (error) {
      thread.worker.terminate();
      throw error;
    }
  },
};

async function run(call: Call, thread: Thread): Promise<number> {
  const config = call.config();
  const upstream = stringFlag(call, "upstream");
  // From here on a signal ends the server in order, also one that comes while it starts.
  const ended = call.world.ended();
  const { serve } = await import("../server.ts");
  const server = await serve({
    config,
    log: call.log(config),
    pid: call.world.pid,
    memory: call.flags["memory"] === true,
    demo: call.flags["demo"] === true,
    open: call.flags["open"] === true,
    thread,
    ...(upstream === undefined ? {} : { upstream }),
  });
  banner(call, config, server);
  const socket = call.world.env["NOTIFY_SOCKET"];
  await notifySystemd(socket, "READY=1");
  await ended;
  await notifySystemd(socket, "STOPPING=1");
  await server.stop();
  return exit.ok;
}

function banner(call: Call, config: Config, server: Server): void {
  const { first } = server;
  const lines = [
    `Recollect ${VERSION}`,
    "",
    `  Studio      ${server.signIn}`,
    "              (this link works once, within 30 minutes; recollect sign-in prints another)",
    `  API         ${server.url}/v1`,
    ...(first.apiKey ? [`  API key     ${first.apiKey.secret}  (shown once)`] : []),
    ...(first.managementToken ? [`  Management  ${first.managementToken}  (shown once)`] : []),
    `  Data        ${config.dataDir}`,
    `  Memory      ${server.memoryOn ? "on" : "off (turn it on in the Studio, or start with --memory on an empty folder)"}`,
    "",
  ];
  for (const line of lines) call.print(line);
  if (call.flags["demo"] === true) for (const line of tryIt(call, config, server)) call.print(line);
}

/** What to type to see the first recall. */
function tryIt(call: Call, config: Config, server: Server): string[] {
  const secret = server.first.apiKey?.secret;
  // In double quotes: the shell puts the variable in.
  const key =
    secret === undefined ? '"Authorization: Bearer $RECOLLECT_API_KEY"' : `'Authorization: Bearer ${secret}'`;
  const create = `${call.world.self.map(quoted).join(" ")} key create demo --data-dir ${quoted(config.dataDir)}`;
  const chat = (text: string) =>
    `  curl -s ${server.url}/v1/chat/completions -H ${key} -H 'Content-Type: application/json' \\\n` +
    `    -d '{"model":"demo/echo","messages":[{"role":"user","content":"${text}"}]}'`;
  return [
    ...(secret === undefined
      ? [
          "The API key was shown at the first start; this makes another:",
          "",
          `  export RECOLLECT_API_KEY=$(${create})`,
          "",
        ]
      : []),
    "Tell it something, then ask in a new conversation:",
    "",
    chat("My favourite editor is Helix."),
    "",
    chat("Which editor is my favourite?"),
    "",
  ];
}

/** As a word of a shell. */
const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
