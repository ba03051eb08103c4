/** The engine's own thread: SQLite and tokenisers are synchronous, and no stream may wait for them. */
import { AppError, errorData } from "../error.ts";
import type { Fields, Level, Log } from "../log.ts";
import { openEngine } from "../memory/engine.ts";
import type { FromWorker, ToWorker } from "./protocol.ts";

declare const self: Worker;

type Calls = Record<string, Record<string, (input: unknown) => unknown>>;

const send = (message: FromWorker) => self.postMessage(message);
const logTo =
  (level: Level) =>
  (event: string, fields: Fields = {}) =>
    send({ kind: "log", level, event, fields: plain(fields) });
const log: Log = { debug: logTo("debug"), info: logTo("info"), warn: logTo("warn"), error: logTo("error") };

let opened: ReturnType<typeof openEngine> | null = null;

type CallMessage = Extract<ToWorker, { kind: "call" }>;

/**
 * What was said must be in the file soon after its reply, however many questions wait: these run as their message
 * arrives, everything else one a turn of the loop.
 */
const AT_ONCE = new Set(["exchange.record", "exchange.addUsage"]);
/** Jobs wait until no call came for a moment, since the next request often follows the last reply at once; but not longer. */
const QUIET_MS = 3;
const GIVE_WAY_MS = 20;
const waiting: CallMessage[] = [];
let draining = false;
let lastCall = 0;

self.onmessage = (event: MessageEvent<ToWorker>) => void receive(event.data);

async function receive(message: ToWorker): Promise<void> {
  switch (message.kind) {
    case "open":
      try {
        const { config, leaseName } = message;
        opened = openEngine({ config, log, leaseName, giveWay, ownThread: true });
        opened.start();
        send({ kind: "ready" });
      } catch (error) {
        send({ kind: "failed", error: errorData(error) });
      }
      return;
    case "call":
      lastCall = performance.now();
      if (AT_ONCE.has(`${message.group}.${message.method}`)) return answer(message);
      waiting.push(message);
      if (!draining) setImmediate(next);
      draining = true;
      return;
    case "stop":
      while (waiting.length > 0) await answer(waiting.shift()!);
      await opened?.stop();
      opened = null;
      send({ kind: "stopped" });
      return;
  }
}

function next(): void {
  const message = waiting.shift();
  if (message) void answer(message);
  draining = waiting.length > 0;
  if (draining) setImmediate(next);
}

/** Resolves once no call waits or came just now, but soon: jobs must go on under load, too. */
function giveWay(): Promise<void> {
  const until = performance.now() + GIVE_WAY_MS;
  return new Promise((resolve) => {
    const look = () => {
      const at = performance.now();
      if (at > until || (waiting.length === 0 && at - lastCall >= QUIET_MS)) resolve();
      else if (waiting.length > 0) setImmediate(look);
      else setTimeout(look, 1);
    };
    setImmediate(look);
  });
}

async function answer(message: CallMessage): Promise<void> {
  try {
    const value = await call(message.group, message.method, message.input);
    send({ kind: "value", id: message.id, value });
  } catch (error) {
    if (!(error instanceof AppError))
      log.error("engine.call.failed", { call: `${message.group}.${message.method}`, error });
    send({ kind: "error", id: message.id, error: errorData(error) });
  }
}

function call(group: string, method: string, input: unknown): unknown {
  if (!opened) throw new AppError("unavailable", "The engine is not running.");
  const found = (opened.engine as unknown as Calls)[group]?.[method];
  if (!found) throw new AppError("internal", `The engine has no ${group}.${method}.`);
  return found(input);
}

/** Errors do not survive being cloned with their stacks in every case; the log wants text. */
function plain(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      value instanceof Error ? (value.stack ?? value.message) : value,
    ]),
  );
}
