/**
 * The conversation routes for callers with a key, past the router: its chain of middleware costs more than the request's
 * own work. The steps are those of `app.ts`, in their order; whatever is out of the ordinary goes the long way.
 */
import type { Auth, Env, Principal } from "../auth.ts";
import { AppError } from "../error.ts";
import type { Log } from "../log.ts";
import type { Wire } from "../memory/conversation.ts";
import type { Metrics } from "../metrics.ts";
import { headerMap } from "../upstream/headers.ts";
import type { HeaderMap } from "../upstream/headers.ts";
import { readable } from "./edge.ts";
import { wireError } from "./wire.ts";

/** Answers one request of a caller; throws what `wireError` shows. */
export type Handler = (principal: Principal, request: Request, headers: HeaderMap) => Promise<Response>;

/** What answers POST on a path. */
export type DirectRoutes = ReadonlyMap<string, { wire: Wire; handle: Handler }>;

interface DirectDeps {
  auth: Auth;
  knownHost: (host: string | null) => boolean;
  log: Log;
  metrics: Metrics;
  routes: DirectRoutes;
}

/** Null: not one of these; the request has not been touched. */
export function direct(deps: DirectDeps) {
  const { auth, knownHost, metrics } = deps;
  const counts = new Map<string, (seconds: number) => void>();

  function count(route: string, status: number, since: number): void {
    const name = `${status} ${route}`;
    let add = counts.get(name);
    if (!add) {
      const requests = metrics.counter("recollect_requests_total", { route, status });
      const seconds = metrics.histogram("recollect_request_seconds", { route });
      counts.set(
        name,
        (add = (value) => {
          requests();
          seconds(value);
        }),
      );
    }
    add((performance.now() - since) / 1000);
  }

  async function answer(
    path: string,
    { wire, handle }: { wire: Wire; handle: Handler },
    request: Request,
    headers: HeaderMap,
    address: string,
  ): Promise<Response> {
    const started = performance.now();
    let response: Response;
    try {
      response = await handle(
        auth.fromHeaders((name) => headers[name], address),
        request,
        headers,
      );
    } catch (error) {
      if (!(error instanceof AppError) || error.code === "internal")
        deps.log.error("request.failed", { error });
      response = readable(wireError(wire, error));
    }
    count(path, response.status, started);
    return response;
  }

  return (request: Request, env: Env["Bindings"]): Promise<Response> | null => {
    if (request.method !== "POST") return null;
    const path = pathOf(request.url);
    const route = deps.routes.get(path);
    if (!route) return null;
    const headers = headerMap(request);
    if (!knownHost(headers["host"] ?? null)) return null;
    if (!headers["authorization"] && !headers["x-api-key"] && !headers["x-recollect-key"]) return null;
    return answer(path, route, request, headers, env.address);
  };
}

/** What stands between the host and the query. */
function pathOf(url: string): string {
  const from = url.indexOf("/", url.indexOf("://") + 3);
  const to = url.indexOf("?", from);
  return to < 0 ? url.slice(from) : url.slice(from, to);
}
