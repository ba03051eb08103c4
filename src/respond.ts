/** How every JSON face says that something went wrong. */
import { errorBody, toAppError } from "./error.ts";

/** The response for any thrown value, in the one error shape, with the headers that belong to its status. */
export function errorResponse(thrown: unknown, headers: Record<string, string> = {}): Response {
  const error = toAppError(thrown);
  return new Response(JSON.stringify(errorBody(error)), {
    status: error.status,
    headers: {
      "Content-Type": "application/json",
      "Cache-Control": "no-store",
      ...(error.status === 401 ? { "WWW-Authenticate": "Bearer" } : {}),
      ...(error.retryAfter === undefined
        ? {}
        : { "Retry-After": String(Math.max(1, Math.ceil(error.retryAfter))) }),
      ...headers,
    },
  });
}
