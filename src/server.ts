/** The composition root: opens, wires, serves, drains. */
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { createApp } from "./app.ts";
import { createAuth } from "./auth.ts";
import { isLoopback } from "./config.ts";
import type { Config } from "./config.ts";
import { createLink, hasToken, rotateToken } from "./db/access.ts";
import { makeDataDir } from "./db/folder.ts";
import { createKey, listKeys, touchKeys } from "./db/keys.ts";
import { lockFolder } from "./db/lock.ts";
import { migrate } from "./db/migrate.ts";
import { openDatabase } from "./db/open.ts";
import { seedMemorySetting, settingsReader } from "./db/settings.ts";
import { createWatch } from "./db/watch.ts";
import { AppError } from "./error.ts";
import { peerOf } from "./host.ts";
import type { Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { portHolder } from "./port-holder.ts";
import { openSeal } from "./seal.ts";
import { baseUrl } from "./server-url.ts";
import { createModels } from "./upstream/models.ts";
import { createProviders } from "./upstream/providers.ts";
import { createTransport } from "./upstream/transport.ts";
import { startEngine } from "./worker/client.ts";
import type { EngineThread } from "./worker/client.ts";

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
  thread: EngineThread;
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
    return await start(options, lock, log);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function start(options: ServeOptions, lock: ReturnType<typeof lockFolder>, log: Log): Promise<Server> {
  const { config } = options;
  const db = openDatabase(join(config.dataDir, "recollect.db"));
  const { from, to, copy } = migrate(db, join(config.dataDir, "backups"));
  if (copy) log.info("database.migrated", { from, to, copy });
  const thread = startEngine(config, log);
  try {
    return await wire(options, lock, db, thread);
  } catch (error) {
    await thread.stop().catch(() => {});
    db.close();
    throw error;
  }
}

/** What is left running when this fails is the thread alone. */
async function wire(
  options: ServeOptions,
  lock: ReturnType<typeof lockFolder>,
  db: ReturnType<typeof openDatabase>,
  thread: EngineThread,
): Promise<Server> {
  const { config, log } = options;
  const seal = openSeal(config.dataDir);
  if (options.memory || options.demo) seedMemorySetting(db, "enabled", true);
  // A quarter of a millisecond: the steps of one request agree, and no caller can tell. Keys are always asked for anew.
  const watch = createWatch(db, 0.25);
  const auth = createAuth({ db, config });
  const settings = settingsReader(db, undefined, watch);
  const transport = createTransport();
  const ends: (() => void | Promise<void>)[] = [() => transport.close()];
  const providers = createProviders({ db, seal, watch, demo: options.demo === true });
  if (options.upstream !== undefined) providers.ensure(options.upstream);
  const app = createApp({
    providers,
    models: createModels({ providers, transport }),
    transport,
    atEnd: (work) => ends.push(work),
    config,
    log,
    db,
    seal,
    engine: thread.engine,
    auth,
    metrics: createMetrics(),
    settings: () => settings.read(),
  });

  const signInToken = createLink(db);
  const { server } = listen(config, app.fetch);
  let first: FirstRun;
  try {
    await thread.ready;
    // Last, since secrets that were made and then not shown would be lost.
    first = firstRun(config, db);
  } catch (error) {
    await server.stop(true);
    throw error;
  }
  const port = server.port ?? config.PORT;
  const url = baseUrl(config, port);
  lock.note({ pid: options.pid, url });

  const touch = setInterval(() => touchUsed(), 30_000);
  const touchUsed = () => {
    const used = auth.takeUsed();
    if (used.size > 0) touchKeys(db, used);
  };
  let stopped: Promise<void> | null = null;
  return {
    url,
    port,
    signIn: `${url}/sign-in?token=${signInToken}`,
    first,
    memoryOn: settings.read().enabled,
    thread,
    stop(drainMs = DRAIN_MS) {
      if (stopped) return server.stop(true);
      stopped = (async () => {
        clearInterval(touch);
        const drained = server.stop();
        const late = setTimeout(() => void server.stop(true), drainMs);
        await drained;
        clearTimeout(late);
        touchUsed();
        for (const end of ends) await end();
        await thread.stop();
        db.run("PRAGMA wal_checkpoint(TRUNCATE)");
        db.close();
        lock.release();
      })();
      return stopped;
    },
  };
}

type Fetch = (request: Request, env: { address: string; secure: boolean }) => Response | Promise<Response>;

function listen(config: Config, fetch: Fetch) {
  try {
    const server = Bun.serve({
      hostname: config.HOST,
      port: config.PORT,
      // Bodies are limited route by route, while they are read.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: 30,
      ...(config.TLS_CERT !== null && config.TLS_KEY !== null
        ? { tls: { cert: readFileSync(config.TLS_CERT), key: readFileSync(config.TLS_KEY) } }
        : {}),
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
    throw cause;
  }
}

/** Makes what an empty folder lacks: one API key and the management token. */
function firstRun(config: Config, db: ReturnType<typeof openDatabase>): FirstRun {
  const made = listKeys(db).length === 0 ? createKey(db, { name: "default" }) : null;
  const token = config.RECOLLECT_MANAGEMENT_TOKEN === null && !hasToken(db) ? rotateToken(db) : null;
  return {
    apiKey: made ? { id: made.key.id, secret: made.secret } : null,
    managementToken: token,
  };
}
