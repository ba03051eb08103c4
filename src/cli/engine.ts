/** The engine in this process, for one verb: it works beside a running server, whose jobs see what was written. */
import type { Config } from "../config.ts";
import { databaseFile } from "../db/folder.ts";
import { AppError } from "../error.ts";
import { openEngine } from "../memory/engine.ts";
import { ownerFlag } from "./verb.ts";
import type { Call } from "./verb.ts";

export type CliEngine = ReturnType<typeof openEngine>["engine"];

/** Opens the engine of the data folder for `work` and closes it afterwards. `jobs` runs background work meanwhile. */
export async function withEngine<T>(
  call: Call,
  work: (engine: CliEngine, config: Config) => Promise<T>,
  options: { jobs?: boolean } = {},
): Promise<T> {
  const { db, config } = call.database();
  db.close();
  const file = databaseFile(config.dataDir);
  const opened = openEngine({ config, log: call.log(config), leaseName: `cli-${crypto.randomUUID()}` });
  try {
    if (options.jobs) opened.start();
    const result = await work(opened.engine, config);
    if (databaseFile(config.dataDir) !== file) {
      throw new AppError("conflict", "A backup was restored meanwhile and has none of this; run it again.");
    }
    return result;
  } finally {
    await opened.stop();
  }
}

/** The owner of `--key`, else of the only key; a usage error names the keys when there are several. */
export function ownerOf(call: Call): string {
  const { db } = call.database();
  try {
    return ownerFlag(call, db);
  } finally {
    db.close();
  }
}
