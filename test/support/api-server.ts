/** The JSON routes over a real engine, file and authentication, on a port of their own, with two keys and a token. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAdmin } from "../../src/admin.ts";
import { createApi } from "../../src/api/app.ts";
import type { Document } from "../../src/api/document.ts";
import { createKeyLimit } from "../../src/limit.ts";
import { createAuth } from "../../src/auth.ts";
import { resolveConfig } from "../../src/config.ts";
import { rotateToken } from "../../src/db/access.ts";
import { writeBackup } from "../../src/db/backup.ts";
import { AppError } from "../../src/error.ts";
import { openDatabase } from "../../src/db/open.ts";
import { createMetrics } from "../../src/metrics.ts";
import { openEngine } from "../../src/memory/engine.ts";
import { createModels } from "../../src/upstream/models.ts";
import { createProviders } from "../../src/upstream/providers.ts";
import { createTransport } from "../../src/upstream/transport.ts";
import { openSeal } from "../../src/seal.ts";
import { registerFtsText } from "../../src/search/lexical-tables.ts";

export type ApiServer = Awaited<ReturnType<typeof startApi>>;
export type Answer = { status: number; headers: Headers; text: string; json: Any };
/** JSON whose shape the test knows: reading what is not there gives undefined and fails the test on its value. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Any = any;

type ApiOptions = {
  /** Compare every answer with its schema: a wrong one is a 500. */
  checkAnswers?: boolean;
  env?: Record<string, string>;
};

const silent = { debug() {}, info() {}, warn() {}, error() {} };

export async function startApi({ checkAnswers = true, env = {} }: ApiOptions = {}) {
  const dir = mkdtempSync(join(tmpdir(), "recollect-api-"));
  const config = resolveConfig({ flags: {}, env: { DATA_DIR: dir, ...env } }, {});
  const engine = openEngine({ config, log: silent, leaseName: "test" });
  const db = openDatabase(join(dir, "recollect.db"));
  registerFtsText(db);
  const seal = openSeal(dir);
  const transport = createTransport();
  const providers = createProviders({ db, seal });
  const admin = createAdmin({ db, seal });
  const token = rotateToken(db);
  const anna = admin.keys.create({ name: "Anna", id: "anna" });
  const bert = admin.keys.create({ name: "Bert", id: "bert" });
  const errors: unknown[] = [];
  const api = createApi({
    engine: engine.engine,
    admin,
    auth: createAuth({ db, config }),
    version: "0.0.0-test",
    admitKey: createKeyLimit(),
    metrics: createMetrics(),
    providers,
    models: createModels({ providers, transport }),
    transport,
    control: {
      async backup(withSecretKey) {
        const file = join(dir, "backups", `${crypto.randomUUID()}.tar`);
        writeBackup({ dataDir: dir, file, version: "0", withSecretKey });
        return file;
      },
      restore: () => Promise.reject(new AppError("not_supported", "This server is not to be restored.")),
    },
    dataDir: dir,
    log: { error: (_event, fields) => void errors.push(fields?.["error"]) },
    checkAnswers,
  });
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request) =>
      api.fetch(request, { address: request.headers.get("x-test-address") ?? "127.0.0.1", secure: false }),
  });
  const url = `http://127.0.0.1:${server.port}`;

  async function send(
    secret: string | null,
    method: string,
    path: string,
    init: RequestInit = {},
  ): Promise<Answer> {
    const headers = new Headers(init.headers);
    if (secret !== null) headers.set("authorization", `Bearer ${secret}`);
    const response = await fetch(url + path, { ...init, method, headers });
    const text = await response.text();
    const isJson = (response.headers.get("content-type") ?? "").startsWith("application/json");
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson && text !== "" ? JSON.parse(text) : null,
    };
  }

  /** Calls with a JSON body when one is given. */
  const as = (secret: string | null) => (method: string, path: string, body?: unknown) =>
    send(
      secret,
      method,
      path,
      body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } },
    );

  return {
    url,
    dir,
    db,
    engine: engine.engine,
    admin,
    token,
    secrets: { anna: anna.secret, bert: bert.secret },
    /** Runs background work, which otherwise waits. */
    startJobs: () => engine.start(),
    /** Internal errors that routes answered 500 for. */
    errors,
    send,
    as,
    anna: as(anna.secret),
    bert: as(bert.secret),
    management: as(token),
    anonymous: as(null),
    document: async () => (await as(null)("GET", "/openapi.json")).json as Document,
    async stop() {
      await server.stop(true);
      transport.close();
      db.close();
      await engine.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
