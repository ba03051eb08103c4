/** The JSON routes: `/api`, the conversation routes, `/health`, `/ready`, `/metrics`, `/openapi.json` and `/docs`. */
import { Hono } from "hono";
import type { Admin } from "../admin.ts";
import { identify, type Auth, type Env } from "../auth.ts";
import type { Engine } from "../engine.ts";
import { AppError, toAppError } from "../error.ts";
import type { Log } from "../log.ts";
import { countRequests, type Metrics } from "../metrics.ts";
import { errorResponse } from "../respond.ts";
import type { Models } from "../upstream/models.ts";
import type { Providers } from "../upstream/providers.ts";
import type { Transport } from "../upstream/transport.ts";
import type { BackupControl } from "../backup-file.ts";
import { backupOperations } from "./backup.ts";
import { boxOperations } from "./box.ts";
import { conversationOperations } from "./conversations.ts";
import { docsOperations } from "./docs.tsx";
import { dataOperations } from "./data.ts";
import { document } from "./document.ts";
import { jobOperations } from "./jobs.ts";
import { keyOperations } from "./keys.ts";
import { memoryOperations } from "./memory.ts";
import { modelOperations } from "./models.ts";
import { mount } from "./mount.ts";
import type { ApiKey, Operation } from "./operation.ts";
import { qdrantOperations } from "./qdrant.ts";
import { providerOperations } from "./providers.ts";
import { receiptOperations } from "./receipts.ts";
import { retrievalOperations } from "./retrieval.ts";
import { usageOperations } from "./usage.ts";
import { settingsOperations } from "./settings.ts";

export type ApiDeps = {
  engine: Engine;
  admin: Admin;
  auth: Auth;
  version: string;
  /** Throws 429 when a key has sent too much; the proxy counts with the same. */
  admitKey: (key: ApiKey) => void;
  metrics: Metrics;
  providers: Providers;
  models: Models;
  transport: Transport;
  control: BackupControl;
  dataDir: string;
  log: Pick<Log, "error">;
  /** Compares every answer with its schema (tests). */
  checkAnswers?: boolean;
};

/** Made on the first request, since schemas cost time to build. */
export function createApi(deps: ApiDeps): Hono<Env> {
  const app = new Hono<Env>();
  const operations = allOperations(deps);
  operations.push(...docsOperations(() => document(operations, deps.version)));
  app.use(countRequests(deps.metrics));
  app.use(identify(deps.auth));
  mount(app, operations, {
    ownerExists: deps.admin.ownerExists,
    admitKey: deps.admitKey,
    checkAnswers: deps.checkAnswers ?? false,
  });
  app.notFound((c) =>
    errorResponse(new AppError("not_found", `There is no route ${c.req.path}; see /docs.`)),
  );
  app.onError((error) => {
    if (toAppError(error).code === "internal") deps.log.error("request.failed", { error });
    return errorResponse(error);
  });
  return app;
}

function allOperations(deps: ApiDeps): Operation[] {
  const { engine, admin, metrics, version, providers, models, transport } = deps;
  return [
    ...memoryOperations(engine),
    ...retrievalOperations({ engine, providers, models }),
    ...receiptOperations(engine),
    ...dataOperations(engine),
    ...conversationOperations(engine),
    ...keyOperations(admin, engine),
    ...settingsOperations(admin),
    ...providerOperations(providers, transport),
    ...qdrantOperations(engine, providers, models),
    ...modelOperations(engine),
    ...usageOperations(engine),
    ...jobOperations(engine),
    ...boxOperations({ engine, metrics, version }),
    ...backupOperations(deps.control, deps.dataDir),
  ];
}
