/** `/mcp`: Streamable HTTP, one JSON-RPC message a POST, no sessions to keep: every request brings its credentials. */
import { createMcpHandler as createHandler } from "@modelcontextprotocol/server";
import { readJson } from "../body.ts";
import { AppError, toAppError } from "../error.ts";
import { checkSameOrigin } from "../origin.ts";
import { createMcpServer, type McpDeps } from "./server.ts";
import { mcpCaller, type CallerDeps } from "./caller.ts";
import type { McpCaller } from "./tools.ts";

export type McpHttpDeps = McpDeps & CallerDeps;

/**
 * The handler of `/mcp` for every method. Errors before a message is read are JSON-RPC errors with their HTTP status.
 * Serves the revision 2026-07-28 and, to clients that open with `initialize`, those of 2025.
 */
export function createMcpHandler(deps: McpHttpDeps) {
  const handler = createHandler(({ authInfo }) =>
    createMcpServer(deps, () => authInfo?.extra?.["caller"] as McpCaller),
  );
  return async (request: Request, { address }: { address: string }): Promise<Response> => {
    try {
      checkSameOrigin(request);
      const caller = mcpCaller(deps, request, address);
      if (request.method !== "POST") {
        throw new AppError(
          "method_not_allowed",
          "Send messages by POST; this server opens no streams of its own.",
        );
      }
      const authInfo = { token: "", clientId: "", scopes: [], extra: { caller } };
      const parsedBody = await readJson(request);
      return await handler.fetch(takingBoth(request), { authInfo, parsedBody });
    } catch (thrown) {
      return rpcError(thrown, deps);
    }
  };
}

/** Whoever takes anything takes both kinds of answer; the SDK wants them by name. The body was read. */
function takingBoth(request: Request): Request {
  const accept = request.headers.get("accept");
  if (accept !== null && !accept.includes("*/*")) return request;
  const headers = new Headers(request.headers);
  headers.set("accept", "application/json, text/event-stream");
  return new Request(request.url, { method: "POST", headers, signal: request.signal });
}

/** JSON-RPC has a code for text that is no JSON; -32000 to -32099 are the server's own. */
function rpcError(thrown: unknown, { log }: McpDeps): Response {
  const error = toAppError(thrown);
  if (error.code === "internal") log.error("mcp.failed", { error: error.cause });
  return new Response(
    JSON.stringify({
      jsonrpc: "2.0",
      error: {
        code: error.code === "invalid_json" ? -32_700 : -32_000,
        message: error.message,
        data: { code: error.code },
      },
      id: null,
    }),
    {
      status: error.status,
      headers: {
        "Content-Type": "application/json",
        ...(error.status === 401 ? { "WWW-Authenticate": "Bearer" } : {}),
        ...(error.status === 405 ? { Allow: "POST" } : {}),
        ...(error.retryAfter === undefined ? {} : { "Retry-After": String(error.retryAfter) }),
      },
    },
  );
}
