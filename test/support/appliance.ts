/** The real appliance on a temporary folder and a free port, with its engine thread. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig } from "../../src/config.ts";
import type { VariableName } from "../../src/config.ts";
import { silentLog } from "../../src/log.ts";
import type { Log } from "../../src/log.ts";
import { serve } from "../../src/server.ts";
import type { Server } from "../../src/server.ts";

export type Appliance = {
  url: string;
  /** Secret and id of the key that the first run made. */
  key: string;
  keyId: string;
  /** The management token. */
  token: string;
  dataDir: string;
  server: Server;
  /** A call as management, or as `key` when given; a JSON body is sent when there is one. */
  call(
    method: string,
    path: string,
    body?: unknown,
    key?: string,
  ): Promise<{ status: number; body: unknown; headers: Headers }>;
  /** Stops the server and removes the folder, unless `keep`. */
  stop(options?: { keep?: boolean }): Promise<void>;
};

export type ApplianceOptions = {
  /** Default: on, with the demo provider. */
  demo?: boolean;
  memory?: boolean;
  upstream?: string;
  dataDir?: string;
  env?: Partial<Record<VariableName, string>>;
  log?: Log;
};

const TOKEN = "test-management-token-0123456789";

export async function startAppliance(options: ApplianceOptions = {}): Promise<Appliance> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "recollect-test-"));
  const env = { RECOLLECT_MANAGEMENT_TOKEN: TOKEN, ...options.env };
  const config = resolveConfig({ flags: { DATA_DIR: dataDir, PORT: "0" }, env }, {});
  const server = await serve({
    config,
    log: options.log ?? silentLog,
    pid: process.pid,
    memory: options.memory ?? true,
    demo: options.demo ?? true,
    ...(options.upstream === undefined ? {} : { upstream: options.upstream }),
  });
  const token = env.RECOLLECT_MANAGEMENT_TOKEN;
  return {
    url: server.url,
    key: server.first.apiKey?.secret ?? "",
    keyId: server.first.apiKey?.id ?? "",
    token,
    dataDir,
    server,
    async call(method, path, body, key = token) {
      const response = await fetch(server.url + path, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const json = response.headers.get("content-type")?.includes("json") ?? false;
      return {
        status: response.status,
        body: json ? (JSON.parse(text) as unknown) : text,
        headers: response.headers,
      };
    },
    async stop({ keep = false } = {}) {
      await server.stop(0);
      if (!keep) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Waits until `probe` gives something other than null, undefined or false; fails with `what` after `ms`. */
export async function until<T>(
  what: string,
  probe: () => Promise<T> | T,
  ms = 10_000,
): Promise<NonNullable<T>> {
  const end = performance.now() + ms;
  for (;;) {
    const value = await probe();
    if (value !== null && value !== undefined && value !== false) return value as NonNullable<T>;
    if (performance.now() > end) throw new Error(`waited ${ms} ms for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
