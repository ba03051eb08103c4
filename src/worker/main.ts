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

self.onmessage = (event: MessageEvent<ToWorker>) => void receive(event.data);

async function receive(message: ToWorker): Promise<void> {
  switch (message.kind) {
    case "open":
      try {
        opened = openEngine({ config: message.config, log, leaseName: message.leaseName });
        opened.start();
        send({ kind: "ready" });
      } catch (error) {
        send({ kind: "failed", error: errorData(error) });
      }
      return;
    case "call":
      try {
        const value = await call(message.group, message.method, message.input);
        send({ kind: "value", id: message.id, value });
      } catch (error) {
        if (!(error instanceof AppError))
          log.error("engine.call.failed", { call: `${message.group}.${message.method}`, error });
        send({ kind: "error", id: message.id, error: errorData(error) });
      }
      return;
    case "stop":
      await opened?.stop();
      opened = null;
      send({ kind: "stopped" });
      return;
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
