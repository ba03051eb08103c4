/** The engine over a thread of its own. A thread that dies is started again; calls in flight fail with a clear error, jobs survive. */
import type { Config } from "../config.ts";
import type { Engine } from "../engine.ts";
import { AppError, reviveError } from "../error.ts";
import type { Log } from "../log.ts";
import { SERVER_LEASE } from "./protocol.ts";
import type { FromWorker, ToWorker } from "./protocol.ts";
import { startThread } from "./thread.ts";
import type { Thread } from "./thread.ts";

/** Restarts of a thread that keeps dying are spaced out up to this. */
const MAX_RESTART_MS = 10_000;

type Waiting = { resolve: (value: unknown) => void; reject: (error: unknown) => void };

export type EngineThread = {
  engine: Engine;
  /** Resolves when the engine is open; rejects with the sentence when it cannot open. */
  ready: Promise<void>;
  stop(): Promise<void>;
  /** Starts of the thread so far; tests and metrics read it. */
  starts(): number;
  /** Ends the thread as a crash would. For tests. */
  crash(): void;
};

/**
 * Opens the engine in a thread, `early` when that was started before. Calls made before it is open wait for it.
 * `leaseName`: in job leases.
 */
export function startEngine(
  config: Config,
  log: Log,
  { leaseName = SERVER_LEASE, early }: { leaseName?: string; early?: Thread | undefined } = {},
): EngineThread {
  let worker: Worker | null = null;
  let starts = 0;
  let nextId = 1;
  let stopping: (() => void) | null = null;
  let restart: ReturnType<typeof setTimeout> | undefined;
  let open: Promise<void>;
  const waiting = new Map<number, Waiting>();

  function post(message: ToWorker): void {
    worker?.postMessage(message);
  }

  function start({ worker: thread, lost: threadLost }: Thread): Promise<void> {
    starts++;
    worker = thread;
    const opened = Promise.withResolvers<void>();
    opened.promise.catch(() => {});
    let gone = false;
    const lost = (reason: string) => {
      if (gone) return;
      gone = true;
      if (worker === thread) worker = null;
      const error = new AppError("unavailable", "The memory engine stopped and is being started again.");
      for (const one of waiting.values()) one.reject(error);
      waiting.clear();
      opened.reject(error);
      if (stopping) return stopping();
      log.error("engine.thread.lost", { reason, starts });
      open = new Promise((resolve, reject) => {
        const wait = Math.min(100 * 2 ** (starts - 1), MAX_RESTART_MS);
        restart = setTimeout(() => start(startThread()).then(resolve, reject), wait);
      });
      open.catch(() => {});
    };
    thread.onmessage = (event: MessageEvent<FromWorker>) => {
      const message = event.data;
      switch (message.kind) {
        case "ready":
          return opened.resolve();
        case "failed":
          return opened.reject(reviveError(message.error));
        case "value":
          waiting.get(message.id)?.resolve(message.value);
          waiting.delete(message.id);
          return;
        case "error":
          waiting.get(message.id)?.reject(reviveError(message.error));
          waiting.delete(message.id);
          return;
        case "log":
          return log[message.level](message.event, message.fields);
        case "stopped":
          return stopping?.();
      }
    };
    void threadLost.then(lost);
    thread.postMessage({ kind: "open", config, leaseName } satisfies ToWorker);
    return opened.promise;
  }

  async function call(group: string, method: string, input: unknown): Promise<unknown> {
    await open;
    const id = nextId++;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      post({ kind: "call", id, group, method, input });
    });
  }

  open = start(early ?? startThread());
  const first = open;
  return {
    engine: remote(call),
    ready: first,
    async stop() {
      if (!worker) {
        // Lost just now: it must not come back and keep the process alive.
        stopping = () => {};
        clearTimeout(restart);
        return;
      }
      const thread = worker;
      const { promise, resolve } = Promise.withResolvers<void>();
      stopping = resolve;
      post({ kind: "stop" });
      await promise;
      thread.terminate();
    },
    starts: () => starts,
    crash() {
      const thread = worker;
      thread?.terminate();
    },
  };
}

/** An Engine whose every `group.method(input)` is one call. */
function remote(call: (group: string, method: string, input: unknown) => Promise<unknown>): Engine {
  const groups = new Map<string, unknown>();
  return new Proxy({} as Engine, {
    get(_, group) {
      if (typeof group !== "string" || group === "then") return undefined;
      let methods = groups.get(group);
      if (!methods) {
        const cached = new Map<string, (input: unknown) => Promise<unknown>>();
        methods = new Proxy(
          {},
          {
            get(_target, method) {
              if (typeof method !== "string") return undefined;
              let found = cached.get(method);
              if (!found) cached.set(method, (found = (input) => call(group, method, input)));
              return found;
            },
          },
        );
        groups.set(group, methods);
      }
      return methods;
    },
  });
}
