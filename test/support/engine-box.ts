// The engine in this process on a temporary folder, with its jobs running: what faces call, without HTTP in between.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAdmin } from "../../src/admin.ts";
import { resolveConfig } from "../../src/config.ts";
import type { VariableName } from "../../src/config.ts";
import { openDatabase } from "../../src/db/open.ts";
import { silentLog } from "../../src/log.ts";
import { openEngine } from "../../src/memory/engine.ts";
import type { MemorySettingsPatch } from "../../src/memory/settings.ts";
import { openSeal } from "../../src/seal.ts";

export type EngineBox = {
  engine: ReturnType<typeof openEngine>["engine"];
  /** As `PUT /api/settings/memory` does. */
  settings(patch: MemorySettingsPatch): Promise<void>;
  stop(): Promise<void>;
};

export function openBox(env: Partial<Record<VariableName, string>> = {}): EngineBox {
  const dir = mkdtempSync(join(tmpdir(), "engine-"));
  const config = resolveConfig({ flags: { DATA_DIR: dir }, env }, {});
  const opened = openEngine({ config, log: silentLog, leaseName: "test" });
  const db = openDatabase(join(dir, "recollect.db"));
  const admin = createAdmin({ db, seal: openSeal(dir) });
  admin.settings.write({ enabled: true });
  opened.start();
  return {
    engine: opened.engine,
    async settings(patch) {
      admin.settings.write(patch);
      // The engine looks for writes of other connections once a turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
    },
    async stop() {
      await opened.stop();
      db.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
