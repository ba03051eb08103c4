/** `/mcp`: Streamable HTTP, one JSON-RPC message a POST, no sessions to keep: every request brings its credentials. */
import { readJson } from "../body.ts";
import { AppError, toAppError } from "../error.ts";
import { checkSameOrigin } from "../origin.ts";
import { createMcpServer, type McpDeps } from "./server.ts";
import { mcpCaller, type CallerDeps } from "./caller.ts";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";

export type McpHttpDeps = McpDeps & CallerDeps;

/** The handler of `/mcp` for every method. Errors before a message is read are JSON-RPC errors with their HTTP status. */
export function createMcpHandler(deps: McpHttpDeps) {
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
      return await answer(
        request,
        createMcpServer(deps, () => caller),
      );
    } catch (thrown) {
      return rpcError(thrown, deps);
    }
  };
}

async function answer(request: Request, server: ReturnType<typeof createMcpServer>): Promise<Response> {
  const parsedBody = await readJson(request);
  // Progress needs a stream; without it one JSON answer is simpler for everybody.
  const transport = new WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: !wantsProgress(parsedBody),
  });
  await server.connect(transport);
  return transport.handleRequest(request, { parsedBody });
}

function wantsProgress(body: unknown): boolean {
  return (Array.isArray(body) ? body : [body]).some(
    (message: { params?: { _meta?: { progressToken?: unknown } } } | null) =>
      message?.params?._meta?.progressToken !== undefined,
  );
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
