/** Middleware order and every mount, on one screen. Faces that are not on the hot path are loaded when first called. */
import type { Database } from "bun:sqlite";
import { Hono } from "hono";
import { identify } from "./auth.ts";
import type { Auth, Env } from "./auth.ts";
import type { Config } from "./config.ts";
import type { Engine } from "./engine.ts";
import { AppError } from "./error.ts";
import { hostCheck } from "./host.ts";
import type { Log } from "./log.ts";
import type { MemorySettings } from "./memory/settings.ts";
import { errorResponse } from "./respond.ts";
import type { Seal } from "./seal.ts";
import { VERSION } from "./version.ts";

export type AppDeps = {
  config: Config;
  log: Log;
  /** The main thread's connection: identity, settings, providers. */
  db: Database;
  seal: Seal;
  engine: Engine;
  auth: Auth;
  /** The memory settings in force now. */
  settings: () => MemorySettings;
};

export function createApp(deps: AppDeps): Hono<Env> {
  const app = new Hono<Env>();
  const knownHost = hostCheck(deps.config);
  const started = performance.now();

  app.onError((error) => {
    if (!(error instanceof AppError) || error.code === "internal")
      deps.log.error("request.failed", { error });
    return errorResponse(error);
  });
  app.notFound((c) => errorResponse(new AppError("not_found", `There is no ${c.req.method} ${c.req.path}.`)));

  app.use(async (c, next) => {
    if (!knownHost(c.req.header("host") ?? null)) {
      throw new AppError(
        "wrong_host",
        "This host name is not one of this server's. Add it to ALLOWED_HOSTS.",
      );
    }
    await next();
  });
  app.get("/health", (c) =>
    c.json({
      status: "ok",
      version: VERSION,
      uptimeSeconds: Math.floor((performance.now() - started) / 1000),
    }),
  );
  app.use(identify(deps.auth));
  return app;
}
