/** What crosses between the server's thread and the engine's. Everything is structured-cloneable. */
import type { Config } from "../config.ts";
import type { ErrorData } from "../error.ts";
import type { Fields, Level } from "../log.ts";

export type ToWorker =
  | { kind: "open"; config: Config; leaseName: string }
  | { kind: "call"; id: number; group: string; method: string; input: unknown }
  | { kind: "stop" };

export type FromWorker =
  | { kind: "ready" }
  | { kind: "failed"; error: ErrorData }
  | { kind: "value"; id: number; value: unknown }
  | { kind: "error"; id: number; error: ErrorData }
  | { kind: "log"; level: Level; event: string; fields: Fields }
  | { kind: "stopped" };

/** The lease name of a server's engine: what an earlier server of this folder was doing is free when the next one starts. */
export const SERVER_LEASE = "server";
