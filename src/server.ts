/** The composition root: opens, wires, serves, drains. */
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { ConfigError, isLoopback } from "./config.ts";
import type { Config } from "./config.ts";
import { createLink, hasToken, noteConfiguredToken, rotateToken } from "./db/access.ts";
import { makeDataDir, removeRemains } from "./db/folder.ts";
import { createKey, listKeys } from "./db/keys.ts";
import { lockFolder } from "./db/lock.ts";
import type { openDatabase } from "./db/open.ts";
import { restoreBackup } from "./db/restore.ts";
import type { Restored } from "./db/restore.ts";
import { AppError } from "./error.ts";
import { peerOf } from "./host.ts";
import type { Log } from "./log.ts";
import { openParts } from "./parts.ts";
import { portHolder } from "./port-holder.ts";
import { errorResponse } from "./respond.ts";
import { baseUrl } from "./server-url.ts";
import { VERSION } from "./version.ts";
import { backupThread } from "./db/backup-call.ts";
import type { EngineThread } from "./worker/client.ts";
import type { Thread } from "./worker/thread.ts";

export type ServeOptions = {
  config: Config;
  log: Log;
  pid: number;
  /** First values: memory on; a provider; the built-in demo provider. */
  memory?: boolean;
  upstream?: string;
  demo?: boolean;
  /** Listen beyond loopback although keyless requests are let through. */
  open?: boolean;
  /** A thread for the engine that was started already. */
  thread?: Thread;
};

export type FirstRun = { apiKey: { id: string; secret: string } | null; managementToken: string | null };

export type Server = {
  url: string;
  port: number;
  /** One-time link to the Studio. */
  signIn: string;
  /** What was made because the folder was empty; secrets that are shown once. */
  first: FirstRun;
  memoryOn: boolean;
  /** Another one after a restore. */
  readonly thread: EngineThread;
  /** Refuses new connections, lets running requests end for at most `drainMs`, then closes. A second call is at once. */
  stop(drainMs?: number): Promise<void>;
};

/** How long a stop waits for running requests and streams. */
const DRAIN_MS = 10_000;

export async function serve(options: ServeOptions): Promise<Server> {
  const { config, log } = options;
  if (!isLoopback(config.HOST) && !config.REQUIRE_API_KEY && !options.open) {
    throw new AppError(
      "invalid_request",
      `HOST ${config.HOST} can be reached by others and REQUIRE_API_KEY is false. Set REQUIRE_API_KEY=true, or start with --open if that is meant.`,
    );
  }
  makeDataDir(config.dataDir);
  const lock = lockFolder(config.dataDir, { pid: options.pid });
  try {
    removeRemains(config.dataDir);
    return await start(options, lock, log);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function start(options: ServeOptions, lock: ReturnType<typeof lockFolder>, log: Log): Promise<Server> {
  const { config } = options;
  const gate = createGate();
  const control = {
    backup: (withSecretKey: boolean) => writeCopy(config, withSecretKey),
    restore: (file: string) => restore(file),
  };
  let parts = openParts(options, control, options.thread);
  let listening: ReturnType<typeof listen>["server"];
  let first: FirstRun;
  try {
    listening = listen(config, (request, peer) => gate.enter() ?? parts.fetch(request, peer)).server;
    try {
      await parts.thread.ready;
      // Last, since secrets that were made and then not shown would be lost.
      first = firstRun(config, parts.db);
    } catch (error) {
      await listening.stop(true);
      throw error;
    }
  } catch (error) {
    await parts.end().catch(() => {});
    throw error;
  }
  const server = listening;
  const port = server.port ?? config.PORT;
  const url = baseUrl(config, port);
  lock.note({ pid: options.pid, url });

  /** Swaps the database under the running server; what fails leaves the one that was there. The caller's request waits. */
  async function restore(file: string): Promise<Restored> {
    await backupThread({ kind: "check", file });
    gate.close();
    try {
      const end = performance.now() + DRAIN_MS;
      // The request that asked for this is one of them.
      while (server.pendingRequests > 1 && performance.now() < end) await Bun.sleep(20);
      await parts.end();
      try {
        const restored = restoreBackup({ dataDir: config.dataDir, file, force: true });
        log.info("database.restored");
        return restored;
      } finally {
        parts = openParts(options, control);
        await parts.thread.ready;
        noteConfiguredToken(parts.db, config.RECOLLECT_MANAGEMENT_TOKEN);
      }
    } finally {
      gate.open();
    }
  }

  let stopped: Promise<void> | null = null;
  return {
    url,
    port,
    signIn: `${url}/sign-in?token=${createLink(parts.db)}`,
    first,
    memoryOn: parts.memoryOn(),
    get thread() {
      return parts.thread;
    },
    stop(drainMs = DRAIN_MS) {
      if (stopped) return server.stop(true);
      stopped = (async () => {
        const drained = server.stop();
        const late = setTimeout(() => void server.stop(true), drainMs);
        await drained;
        clearTimeout(late);
        await parts.end();
        lock.release();
      })();
      return stopped;
    },
  };
}

/** Turns requests away while the parts behind the server are exchanged. */
function createGate() {
  let closed = false;
  return {
    close: () => void (closed = true),
    open: () => void (closed = false),
    enter: (): Response | null =>
      closed
        ? errorResponse(
            new AppError("unavailable", "A backup is being restored; try again shortly.", { retryAfter: 2 }),
          )
        : null,
  };
}

/** A verified backup in a file of its own, which the caller removes. */
async function writeCopy(config: Config, withSecretKey: boolean): Promise<string> {
  const file = join(config.dataDir, "backups", `download-${crypto.randomUUID()}.tar`);
  await backupThread({ kind: "write", dataDir: config.dataDir, file, version: VERSION, withSecretKey });
  return file;
}

type Fetch = (request: Request, env: { address: string; secure: boolean }) => Response | Promise<Response>;

function listen(config: Config, fetch: Fetch) {
  const tls =
    config.TLS_CERT === null || config.TLS_KEY === null
      ? null
      : { cert: pemFile("TLS_CERT", config.TLS_CERT), key: pemFile("TLS_KEY", config.TLS_KEY) };
  try {
    const server = Bun.serve({
      hostname: config.HOST,
      port: config.PORT,
      // Bodies are limited route by route, while they are read.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: 30,
      ...(tls === null ? {} : { tls }),
      fetch(request, bun) {
        // A model may think for minutes before its first byte: the proxy has timeouts of its own.
        bun.timeout(request, 0);
        return fetch(request, peerOf(request, bun.requestIP(request)?.address ?? "", config));
      },
    });
    return { server };
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : null;
    if (code === "EADDRINUSE") {
      const by = portHolder(config.PORT);
      throw new AppError(
        "conflict",
        `Port ${config.PORT} on ${config.HOST} is in use${by === null ? "" : ` by ${by.name} (process ${by.pid})`}. Stop what listens there, or choose another with --port.`,
        { cause },
      );
    }
    if (code === "EACCES") {
      throw new AppError(
        "conflict",
        `Port ${config.PORT} needs rights this user does not have. Choose one above 1023 with --port.`,
        { cause },
      );
    }
    if (code === "EADDRNOTAVAIL" || code === "EINVAL" || code === "ENOTFOUND") {
      // Not a ConfigError: an address may come a moment after the machine did, and the service tries again.
      throw new AppError(
        "conflict",
        `HOST is "${config.HOST}", which is no address of this machine. Use 127.0.0.1, 0.0.0.0 for all of them, or one of its own.`,
        { cause },
      );
    }
    if (tls !== null && cause instanceof Error && /SSL|PEM|X509/i.test(cause.message)) {
      throw new ConfigError([
        `TLS_CERT and TLS_KEY must be a certificate and its private key in PEM (${cause.message}).`,
      ]);
    }
    throw cause;
  }
}

function pemFile(name: "TLS_CERT" | "TLS_KEY", path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new ConfigError([
      `${name} is "${path}", which cannot be read (${(error as { code?: string }).code}).`,
    ]);
  }
}

/** Makes what an empty folder lacks: one API key and the management token. */
function firstRun(config: Config, db: ReturnType<typeof openDatabase>): FirstRun {
  noteConfiguredToken(db, config.RECOLLECT_MANAGEMENT_TOKEN);
  const made = listKeys(db).length === 0 ? createKey(db, { name: "default" }) : null;
  const token = config.RECOLLECT_MANAGEMENT_TOKEN === null && !hasToken(db) ? rotateToken(db) : null;
  return {
    apiKey: made ? { id: made.key.id, secret: made.secret } : null,
    managementToken: token,
  };
}
