/** The OpenAI-compatible door: every route below `/v1`. */
import { Hono } from "hono";
import type { Env } from "../auth.ts";
import { AppError } from "../error.ts";
import { headerMap } from "../upstream/headers.ts";
import { countUsage, createUsageBuffer } from "./account.ts";
import { getModelRoute, listModelsRoute } from "./catalogue.ts";
import { createByteBudget } from "./body.ts";
import { conversationRoute } from "./conversation.ts";
import type { ProxyDeps } from "./deps.ts";
import type { DirectRoutes } from "./direct.ts";
import { embeddingsRoute, rerankRoute } from "./embeddings.ts";
import { passthroughRoute } from "./passthrough.ts";
import { wireError, wireOf } from "./wire.ts";

/**
 * Routes for mounting at `/v1`, behind `edge()` and the middleware that sets `principal`; those that `direct()` answers by
 * their whole paths. `flush` writes what waits.
 */
export function proxyRoutes(deps: ProxyDeps): {
  app: Hono<Env>;
  direct: DirectRoutes;
  flush: () => Promise<void>;
} {
  const app = new Hono<Env>();
  const usage = createUsageBuffer(
    (rows) => {
      countUsage(deps.metrics, rows);
      return deps.engine.exchange.addUsage({ rows });
    },
    (error) => deps.log.error("usage.write.failed", { error }),
  );
  const budget = createByteBudget();
  const conversations = {
    "/chat/completions": { wire: "chat" },
    "/responses": { wire: "responses" },
    "/messages": { wire: "messages" },
    "/messages/count_tokens": { wire: "messages", counting: true },
  } as const;
  const direct = new Map(
    Object.entries(conversations).map(([path, route]) => {
      const handle = conversationRoute(deps, usage, budget, route);
      app.post(path, (c) => handle(c.get("principal"), c.req.raw, headerMap(c.req.raw)));
      return [`/v1${path}`, { wire: route.wire, handle }];
    }),
  );
  app.post("/embeddings", embeddingsRoute(deps, usage));
  app.post("/rerank", rerankRoute(deps, usage));
  app.get("/models", listModelsRoute(deps));
  app.get("/models/*", getModelRoute(deps));
  for (const path of [...Object.keys(conversations), "/embeddings", "/rerank"]) {
    // A response can be fetched, cancelled and deleted by id; the collections themselves only take POST.
    app.all(path, (c) => {
      const error = wireError(
        wireOf(c.req.path),
        new AppError("method_not_allowed", `${c.req.path} takes POST.`),
      );
      error.headers.set("allow", "POST, OPTIONS");
      return error;
    });
  }
  app.all("*", passthroughRoute(deps, usage));
  return { app, direct, flush: usage.flush };
}
