/** What differs between the three wire formats on our side: paths, error shapes, how a broken stream ends. */
import { errorBody, toAppError } from "../error.ts";
import type { AppError } from "../error.ts";
import type { Wire } from "../memory/conversation.ts";

/** Below the provider's base URL. */
export const endpoints: Record<Wire, string> = {
  chat: "/chat/completions",
  responses: "/responses",
  messages: "/messages",
};

/** The wire format that a path of `/v1` answers in. */
export function wireOf(path: string): Wire {
  if (path.startsWith("/v1/messages")) return "messages";
  return path.startsWith("/v1/responses") ? "responses" : "chat";
}

/** Anthropic's words for our types (its errors page); 413 and 529 have words of their own. */
const anthropicTypes: Record<string, string> = {
  invalid_request_error: "invalid_request_error",
  authentication_error: "authentication_error",
  permission_error: "permission_error",
  not_found_error: "not_found_error",
  rate_limit_error: "rate_limit_error",
  timeout_error: "timeout_error",
};

function shaped(wire: Wire, error: AppError): unknown {
  if (wire !== "messages") return errorBody(error);
  const type = error.status === 413 ? "request_too_large" : (anthropicTypes[error.type] ?? "api_error");
  return { type: "error", error: { type, message: error.message, code: error.code, details: error.details } };
}

/** Any thrown value in the error shape of a wire format. */
export function wireError(wire: Wire, thrown: unknown): Response {
  const error = toAppError(thrown);
  const headers = new Headers({ "content-type": "application/json", "cache-control": "no-store" });
  if (error.status === 401) headers.set("www-authenticate", "Bearer");
  if (error.retryAfter !== undefined)
    headers.set("retry-after", String(Math.max(1, Math.ceil(error.retryAfter))));
  return new Response(JSON.stringify(shaped(wire, error)), { status: error.status, headers });
}

/** The events that end a stream which the provider did not: the client must not wait, nor take it for whole. */
export function brokenStream(wire: Wire, error: AppError, responseId: string | null): string {
  const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  if (wire === "messages") return event("error", shaped(wire, error));
  if (wire === "responses") {
    const response = {
      id: responseId ?? "resp_incomplete",
      object: "response",
      created_at: 0,
      status: "failed",
      error: { code: "server_error", message: error.message },
      incomplete_details: null,
      output: [],
      usage: null,
    };
    return event("response.failed", { type: "response.failed", sequence_number: 1_000_000_000, response });
  }
  return `data: ${JSON.stringify(shaped(wire, error))}\n\ndata: [DONE]\n\n`;
}
