/** A real server in this process (main thread, engine thread, SQLite file) in front of a strict upstream. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig } from "../../src/config.ts";
import { createKey } from "../../src/db/keys.ts";
import type { KeyFields } from "../../src/db/keys.ts";
import { openDatabase } from "../../src/db/open.ts";
import { writeMemorySettings } from "../../src/db/settings-write.ts";
import { createLog } from "../../src/log.ts";
import type { MemorySettingsPatch } from "../../src/memory/settings.ts";
import { openSeal } from "../../src/seal.ts";
import { serve } from "../../src/server.ts";
import { createProviders } from "../../src/upstream/providers.ts";
import type { NewProvider } from "../../src/upstream/providers.ts";

export type TestProxy = Awaited<ReturnType<typeof startProxy>>;

export async function startProxy(
  options: {
    providers?: NewProvider[];
    settings?: MemorySettingsPatch;
    demo?: boolean;
    env?: Record<string, string>;
  } = {},
) {
  const dataDir = mkdtempSync(join(tmpdir(), "recollect-proxy-"));
  const config = resolveConfig(
    {
      flags: { PORT: "0", DATA_DIR: dataDir },
      env: { RECOLLECT_MANAGEMENT_TOKEN: "test-management-token", ...options.env },
    },
    {},
  );
  // What goes wrong inside must be seen by whoever reads a failing test.
  const log = createLog({
    level: "warn",
    terminal: false,
    write: (line) => void process.stderr.write(`${line}\n`),
  });
  const server = await serve({
    config,
    log,
    pid: process.pid,
    memory: true,
    ...(options.demo ? { demo: true } : {}),
  });
  // A second connection, as another process of the same folder would have.
  const db = openDatabase(join(dataDir, "recollect.db"));
  const providers = createProviders({ db, seal: openSeal(dataDir) });
  for (const one of options.providers ?? []) providers.create(one);
  if (options.settings) writeMemorySettings(db, options.settings);

  const key = (fields: KeyFields & { id?: string } = {}): string =>
    createKey(db, { ...fields, name: fields.name ?? "test" }).secret;
  const secret = server.first.apiKey!.secret;

  return {
    url: server.url,
    v1: `${server.url}/v1`,
    dataDir,
    db,
    providers,
    secret,
    keyId: server.first.apiKey!.id,
    key,
    settings: (patch: MemorySettingsPatch) => writeMemorySettings(db, patch),
    /** POSTs JSON. */
    post(path: string, body: unknown, headers: Record<string, string> = {}, init: RequestInit = {}) {
      return fetch(`${server.url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json", ...headers },
        body:
          typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
        ...init,
      });
    },
    get: (path: string, headers: Record<string, string> = {}) =>
      fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${secret}`, ...headers } }),
    rows: <T = Record<string, unknown>>(sql: string, ...values: (string | number)[]): T[] =>
      db.query<T, (string | number)[]>(sql).all(...values),
    /** Resolves when everything that was said has been recorded and learned from. */
    async settled(): Promise<void> {
      await waitFor(async () => {
        const { queued, running } = await server.thread.engine.jobs.counts({ owner: null });
        return queued + running === 0;
      });
    },
    engine: server.thread.engine,
    async stop(): Promise<void> {
      db.close();
      await server.stop(1000);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Waits for a condition; fails after some seconds. */
export async function waitFor(condition: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error("waited too long");
    await Bun.sleep(5);
  }
}
