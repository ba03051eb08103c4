/** Everything over one opened data folder, wired: database, engine thread, application. `server.ts` opens and ends it. */
import { join } from "node:path";
import { createApp } from "./app.ts";
import type { AppDeps } from "./app.ts";
import { createAuth } from "./auth.ts";
import type { Config } from "./config.ts";
import { touchKeys } from "./db/keys.ts";
import { migrate } from "./db/migrate.ts";
import { emptyLog, openDatabase } from "./db/open.ts";
import { seedMemorySetting, settingsReader } from "./db/settings.ts";
import { createWatch } from "./db/watch.ts";
import type { Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { openSeal } from "./seal.ts";
import { createModels } from "./upstream/models.ts";
import { createProviders } from "./upstream/providers.ts";
import { createTransport } from "./upstream/transport.ts";
import { startEngine } from "./worker/client.ts";
import type { Thread } from "./worker/thread.ts";

export type PartsOptions = { config: Config; log: Log; memory?: boolean; upstream?: string; demo?: boolean };

/** Opens and migrates the database and starts the engine, which is ready when `thread.ready` says so. */
export function openParts(options: PartsOptions, control: AppDeps["control"], early?: Thread) {
  const { config, log } = options;
  const db = openDatabase(join(config.dataDir, "recollect.db"));
  const { from, to, copy } = migrate(db, join(config.dataDir, "backups"));
  if (copy) log.info("database.migrated", { from, to, copy });
  const thread = startEngine(config, log, { early });
  try {
    return { db, thread, ...wire(options, control, db, thread) };
  } catch (error) {
    void thread.stop().catch(() => {});
    db.close();
    throw error;
  }
}

function wire(
  options: PartsOptions,
  control: AppDeps["control"],
  db: ReturnType<typeof openDatabase>,
  thread: ReturnType<typeof startEngine>,
) {
  const { config, log } = options;
  const seal = openSeal(config.dataDir);
  if (options.memory || options.demo) seedMemorySetting(db, "enabled", true);
  // What is known may be a quarter of a millisecond old: no other process can tell, and the app forgets it after every
  // request that may have changed it.
  const watch = createWatch(db, 0.25);
  const auth = createAuth({ db, config, watch });
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
    watch,
    metrics: createMetrics(),
    settings: () => settings.read(),
    control,
  });
  const touchUsed = () => {
    const used = auth.takeUsed();
    if (used.size > 0) touchKeys(db, used);
  };
  const touch = setInterval(touchUsed, 30_000);
  return {
    fetch: app.fetch,
    memoryOn: () => settings.read().enabled,
    /** Ends what runs in the background and closes the database, once no request is left. */
    async end(): Promise<void> {
      clearInterval(touch);
      touchUsed();
      for (const end of ends) await end();
      await thread.stop();
      emptyLog(db);
      db.close();
    },
  };
}
