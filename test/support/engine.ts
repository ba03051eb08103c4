/** An engine in this process on a temporary folder. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig } from "../../src/config.ts";
import type { VariableName } from "../../src/config.ts";
import { openDatabase } from "../../src/db/open.ts";
import { writeMemorySettings } from "../../src/db/settings-write.ts";
import { silentLog } from "../../src/log.ts";
import type { Log } from "../../src/log.ts";
import { openEngine } from "../../src/memory/engine.ts";
import type { MemorySettingsPatch } from "../../src/memory/settings.ts";

export type TestEngine = ReturnType<typeof startTestEngine>;

/** `clock.now` may be moved; jobs run only after `start()`. */
export function startTestEngine(
  options: {
    settings?: MemorySettingsPatch;
    env?: Partial<Record<VariableName, string>>;
    dataDir?: string;
    log?: Log;
  } = {},
) {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "recollect-engine-"));
  const config = resolveConfig({ flags: { DATA_DIR: dataDir }, env: options.env ?? {} }, {});
  const clock = { offset: 0, now: () => Date.now() + clock.offset };
  const opened = openEngine({ config, log: options.log ?? silentLog, leaseName: "test", now: clock.now });
  /** A second connection to the same file, as another process has it. */
  const db = openDatabase(join(dataDir, "recollect.db"));
  if (options.settings) writeMemorySettings(db, options.settings);
  return {
    dataDir,
    config,
    clock,
    db,
    engine: opened.engine,
    start: () => opened.start(),
    async stop({ keep = false } = {}): Promise<void> {
      db.close();
      await opened.stop();
      if (!keep) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
