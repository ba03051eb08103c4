/** The Studio: `/`, `/sign-in` and `/dashboard`. Made on its first request, since views and styles cost time to load. */
import { Hono } from "hono";
import type { Admin } from "../admin.ts";
import { createAssets } from "../assets.ts";
import { type Auth, type Env, identify } from "../auth.ts";
import type { BackupControl } from "../backup-file.ts";
import type { Config } from "../config.ts";
import type { Engine } from "../engine.ts";
import { AppError, toAppError } from "../error.ts";
import type { Log } from "../log.ts";
import { countRequests, type Metrics } from "../metrics.ts";
import type { Models } from "../upstream/models.ts";
import type { Providers } from "../upstream/providers.ts";
import type { Transport } from "../upstream/transport.ts";
import { Partial, Toast } from "../../views/actions.tsx";
import { ErrorPage } from "../../views/error.tsx";
import { backendsRoutes } from "./backends.tsx";
import { backupRoutes } from "./backup.tsx";
import { compactRoutes } from "./compact.tsx";
import { connectRoutes, isNew, welcome } from "./connect.tsx";
import { chromeOf, isPart, show, type StudioContext, type StudioDeps } from "./context.tsx";
import { type EngineExtras, enginePage, engineRoutes } from "./engine.tsx";
import { entitiesRoutes } from "./entities.tsx";
import { mayEnter, ownPagesOnly, pageHeaders, signedIn } from "./guard.ts";
import { keysRoutes } from "./keys.tsx";
import { memoriesRoutes } from "./memories.tsx";
import { memoryList } from "./memory-list.tsx";
import { memoryRoutes } from "./memory.tsx";
import { playground } from "./playground.tsx";
import { providersRoutes } from "./providers.tsx";
import { qdrantRoutes } from "./qdrant.tsx";
import { receiptsRoutes } from "./receipts.tsx";
import { reviewRoutes } from "./review.tsx";
import { sessionsRoutes } from "./sessions.tsx";
import { settingsRoutes } from "./settings.tsx";
import { signInRoutes } from "./sign-in.tsx";
import { transferRoutes } from "./transfer.tsx";
import { usageRoutes } from "./usage.tsx";

export type StudioOptions = {
  engine: Engine;
  admin: Admin;
  auth: Auth;
  config: Config;
  log: Log;
  version: string;
  metrics: Metrics;
  providers: Providers;
  models: Models;
  transport: Transport;
  control: BackupControl;
};

export function createStudio(options: StudioOptions): Hono<Env> {
  const deps: StudioDeps = {
    ...options,
    assets: createAssets(),
    health: { last: null },
    memo: { at: 0, week: null },
  };
  const app = new Hono<Env>();

  app.get("/assets/*", async (c) => {
    const file = await deps.assets.serve(c.req.path, c.req.header("accept-encoding"));
    return file ?? c.body(null, 404);
  });
  app.use(countRequests(options.metrics));
  app.use(pageHeaders);
  app.use(identify(deps.auth));
  app.get("/", (c) => c.redirect("/dashboard/memory", 303));
  app.use("/dashboard/*", ownPagesOnly);
  app.use("/dashboard/*", signedIn);
  signInRoutes(app, deps);

  app.get("/dashboard", (c) => c.redirect("/dashboard/memory", 303));
  app.get("/dashboard/memory", async (c) => {
    if (c.req.query("tab") === "playground") return playground(c, deps);
    if (c.req.query("tab") === "engine") return enginePage(c, deps);
    if (!isPart(c) && (await isNew(deps))) return welcome(c, deps);
    return memoryList(c, deps);
  });
  memoriesRoutes(app, deps);
  compactRoutes(app, deps);
  transferRoutes(app, deps);
  reviewRoutes(app, deps);
  connectRoutes(app, deps);
  settingsRoutes(app, deps);
  keysRoutes(app, deps);
  providersRoutes(app, deps);
  backupRoutes(app, deps);
  const engine = (c: StudioContext, extras: EngineExtras) => enginePage(c, deps, extras);
  engineRoutes(app, deps);
  qdrantRoutes(app, deps, engine);
  backendsRoutes(app, deps, engine);
  app.get("/dashboard/activity", (c) => c.redirect("/dashboard/activity/receipts", 303));
  receiptsRoutes(app, deps);
  usageRoutes(app, deps);
  sessionsRoutes(app, deps);
  entitiesRoutes(app, deps);
  // Its paths end in a parameter, so it comes after every literal path.
  memoryRoutes(app, deps);

  app.notFound((c) => failed(c, deps, new AppError("not_found", "There is no such page.")));
  app.onError((error, c) => failed(c, deps, error));
  return app;
}

const titles: Record<number, string> = {
  403: "This is refused",
  404: "There is no such page",
  413: "This is too large",
  429: "Too many tries",
  501: "This cannot be done here",
  503: "A part is down",
  507: "The disk is full",
};

/** An error as a page, or with htmx as a toast over a page that stays as it was. */
async function failed(c: StudioContext, deps: StudioDeps, thrown: unknown): Promise<Response> {
  const error = toAppError(thrown);
  const requestId = c.res.headers.get("x-request-id") ?? c.req.header("x-request-id") ?? null;
  const internal = error.code === "internal";
  if (internal) deps.log.error("request.failed", { error: error.cause ?? error, path: c.req.path });
  const text = internal
    ? "Something went wrong here. Nothing was changed; the log says what it was."
    : error.message;
  const principal = c.get("principal") as Env["Variables"]["principal"] | undefined;
  if (error.retryAfter !== undefined) c.header("Retry-After", String(Math.ceil(error.retryAfter)));
  if (isPart(c)) {
    return show(
      c,
      <Partial target="#toasts" swap="beforeend">
        <Toast text={text} />
      </Partial>,
      { status: error.status, headers: { "HX-Reswap": "none" } },
    );
  }
  if (!principal || !mayEnter(principal)) return c.text(text, error.status as 400);
  const missing = error.code === "not_found" && /memory/.test(error.message);
  const title = missing ? "There is no such memory" : (titles[error.status] ?? "Something went wrong");
  const explained = missing
    ? "It was deleted, or the address is not complete. What was deleted cannot be shown again."
    : error.code === "not_found"
      ? "The address is not complete, or what it named is gone."
      : text;
  // The shell asks the engine; when that is what failed, the sentence alone is better than nothing.
  const chrome = await chromeOf(c, deps).catch(() => null);
  if (chrome === null) return c.text(text, error.status as 500);
  return show(
    c,
    <ErrorPage
      chrome={chrome}
      status={error.status}
      title={title}
      text={explained}
      requestId={internal ? requestId : null}
    />,
    { status: error.status },
  );
}
