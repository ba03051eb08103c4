/** Middleware order and every mount, on one screen. Faces that are not on the hot path are loaded when first called. */
import type { Database } from "bun:sqlite";
import { Hono } from "hono";
import type { BackupControl } from "./backup-file.ts";
import { identify } from "./auth.ts";
import type { Auth, Env } from "./auth.ts";
import type { Config } from "./config.ts";
import type { Engine } from "./engine.ts";
import { AppError } from "./error.ts";
import { securityHeaders } from "./headers.ts";
import { hostCheck } from "./host.ts";
import { createKeyLimit } from "./limit.ts";
import type { Log } from "./log.ts";
import type { MemorySettings } from "./memory/settings.ts";
import { countRequests } from "./metrics.ts";
import type { Metrics } from "./metrics.ts";
import { errorResponse } from "./respond.ts";
import type { Seal } from "./seal.ts";
import { direct } from "./proxy/direct.ts";
import { edge } from "./proxy/edge.ts";
import { BASE_URL } from "./proxy/passthrough.ts";
import { proxyRoutes } from "./proxy/routes.ts";
import { tokensSince } from "./db/usage.ts";
import type { Watch } from "./db/watch.ts";
import type { Models } from "./upstream/models.ts";
import type { Providers } from "./upstream/providers.ts";
import type { Transport } from "./upstream/transport.ts";
import { VERSION } from "./version.ts";

/** Routes of `/v1` as a client asks for them whose base URL lacks it. */
const MODEL_ROUTE = /^\/(?:chat\/completions|completions|responses|messages|embeddings|rerank|models)\/?$/;

export type AppDeps = {
  config: Config;
  log: Log;
  /** The main thread's connection: identity, settings, providers. */
  db: Database;
  seal: Seal;
  engine: Engine;
  auth: Auth;
  metrics: Metrics;
  /** What keys, settings and providers are believed by. */
  watch: Watch;
  /** The memory settings in force now. */
  settings: () => MemorySettings;
  providers: Providers;
  models: Models;
  transport: Transport;
  /** What only the server itself can do. */
  control: BackupControl;
  /** Called while the engine still runs, once no request is left. */
  atEnd: (work: () => void | Promise<void>) => void;
};

const apiPaths = [
  "/api/*",
  "/sessions/*",
  "/episodes/*",
  "/entities/*",
  "/relationships/*",
  "/summaries/*",
  "/context/*",
  "/health/*",
  "/ready/*",
  "/metrics/*",
  "/openapi.json",
  "/docs/*",
];

const studioPaths = ["/", "/sign-in", "/dashboard/*", "/assets/*"];

export function createApp(deps: AppDeps): {
  fetch: (request: Request, env: Env["Bindings"]) => Response | Promise<Response>;
} {
  const app = new Hono<Env>();
  const knownHost = hostCheck(deps.config);
  const shared = {
    engine: deps.engine,
    auth: deps.auth,
    version: VERSION,
    /** One count for a key, whatever door it comes through. */
    admitKey: createKeyLimit(),
    log: deps.log,
  };
  const admin = lazy(async () => (await import("./admin.ts")).createAdmin({ db: deps.db, seal: deps.seal }));
  const api = lazy(async () =>
    (await import("./api/app.ts")).createApi({
      ...shared,
      admin: await admin(),
      metrics: deps.metrics,
      providers: deps.providers,
      models: deps.models,
      transport: deps.transport,
      control: deps.control,
      dataDir: deps.config.dataDir,
    }),
  );
  const mcp = lazy(async () =>
    (await import("./mcp/http.ts")).createMcpHandler({
      ...shared,
      ownerExists: (await admin()).ownerExists,
    }),
  );

  const studio = lazy(async () =>
    (await import("./studio/app.tsx")).createStudio({
      ...shared,
      admin: await admin(),
      config: deps.config,
      metrics: deps.metrics,
      providers: deps.providers,
      models: deps.models,
      transport: deps.transport,
      control: deps.control,
    }),
  );

  app.onError((error) => {
    if (!(error instanceof AppError) || error.code === "internal")
      deps.log.error("request.failed", { error });
    return errorResponse(error);
  });
  app.notFound((c) => {
    const hint = MODEL_ROUTE.test(c.req.path) ? `: ${BASE_URL}` : ".";
    return errorResponse(new AppError("not_found", `There is no ${c.req.method} ${c.req.path}${hint}`));
  });

  app.use(securityHeaders());
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
      uptimeSeconds: Math.floor(performance.now() / 1000),
    }),
  );
  // These know for themselves who calls, and count their requests by their own routes.
  for (const path of apiPaths) app.all(path, async (c) => (await api()).fetch(c.req.raw, c.env));
  for (const path of studioPaths) app.all(path, async (c) => (await studio()).fetch(c.req.raw, c.env));
  app.all("/mcp", countRequests(deps.metrics), async (c) => (await mcp())(c.req.raw, c.env));

  app.use("/v1/*", edge());
  app.use(countRequests(deps.metrics));
  app.use(identify(deps.auth));
  const proxy = proxyRoutes({
    ...deps,
    admitKey: shared.admitKey,
    tokensSince: (key, since) => tokensSince(deps.db, key, since),
    embedLocal: async ({ source, texts }) => ({
      model: `local/${source}`,
      vectors: (await deps.engine.models.embed({ name: source, texts })).map((vector) => Array.from(vector)),
    }),
    localModels: async () =>
      (await deps.engine.models.list())
        .filter((model) => model.state === "ready")
        .map((model) => ({ id: `local/${model.name}`, created: 0 })),
  });
  deps.atEnd(proxy.flush);
  app.route("/v1", proxy.app);

  const straight = direct({ ...deps, knownHost, routes: proxy.direct });
  return {
    fetch: (request, env) => straight(request, env) ?? theLongWay(request, env),
  };

  /** Whoever was answered here may have changed a key or a setting, and must find it changed at once. */
  async function theLongWay(request: Request, env: Env["Bindings"]): Promise<Response> {
    try {
      return await app.fetch(request, env);
    } finally {
      deps.watch.forget();
    }
  }
}

/** Made on the first call; a failure is tried again on the next. */
function lazy<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    });
    return made;
  };
}
