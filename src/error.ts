/**
 * One short list of error codes and one table to types and statuses. Anything else is "internal":
 * logged whole, shown as two words.
 */

const table = {
  invalid_request: [400, "invalid_request_error"],
  invalid_json: [400, "invalid_request_error"],
  owner_required: [400, "invalid_request_error"],
  wire_not_supported: [400, "invalid_request_error"],
  url_refused: [400, "invalid_request_error"],
  invalid_api_key: [401, "authentication_error"],
  insufficient_scope: [403, "permission_error"],
  model_not_allowed: [403, "permission_error"],
  forbidden_origin: [403, "permission_error"],
  not_found: [404, "not_found_error"],
  model_not_found: [404, "not_found_error"],
  method_not_allowed: [405, "invalid_request_error"],
  conflict: [409, "conflict_error"],
  body_too_large: [413, "invalid_request_error"],
  unsupported_media_type: [415, "invalid_request_error"],
  unsupported_encoding: [415, "invalid_request_error"],
  wrong_host: [421, "invalid_request_error"],
  validation_failed: [422, "invalid_request_error"],
  rate_limited: [429, "rate_limit_error"],
  busy: [429, "rate_limit_error"],
  internal: [500, "internal_error"],
  not_supported: [501, "invalid_request_error"],
  upstream_failed: [502, "upstream_error"],
  no_provider: [503, "upstream_error"],
  unavailable: [503, "internal_error"],
  model_not_downloaded: [503, "invalid_request_error"],
  storage_full: [507, "internal_error"],
  upstream_timeout: [504, "timeout_error"],
  client_closed: [499, "upstream_error"],
} as const satisfies Record<string, readonly [status: number, type: string]>;

export type ErrorCode = keyof typeof table;
export type ErrorDetail = { field: string; message: string };

/** Every code with its HTTP status and type, as docs/api.md lists them. */
export const errorTable: Readonly<Record<ErrorCode, readonly [status: number, type: string]>> = table;

export type ErrorOptions = {
  param?: string | null;
  details?: ErrorDetail[];
  /** Overrides the status of the table (an upstream's own status is kept). */
  status?: number;
  /** Seconds, sent as `Retry-After`. */
  retryAfter?: number;
  cause?: unknown;
};

/** An error that a person may read: `message` is one sentence that says what to do. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  readonly details: ErrorDetail[];
  readonly retryAfter: number | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AppError";
    this.code = code;
    this.status = options.status ?? table[code][0];
    this.type = table[code][1];
    this.param = options.param ?? null;
    this.details = options.details ?? [];
    this.retryAfter = options.retryAfter;
  }
}

/** 400 that names one field. */
export function invalid(field: string, message: string): AppError {
  return new AppError("invalid_request", `${field}: ${message}`, {
    param: field,
    details: [{ field, message }],
  });
}

/** 404 for what is not there or not the caller's; the two are never told apart. */
export function notFound(what: string): AppError {
  return new AppError("not_found", `There is no such ${what}.`);
}

/** 409 with one sentence. */
export function conflict(message: string, field?: string): AppError {
  return new AppError("conflict", message, field ? { param: field, details: [{ field, message }] } : {});
}

/** The one body of every JSON error (OpenAI's shape plus `details`). */
export function errorBody(error: AppError) {
  return {
    error: {
      message: error.message,
      type: error.type,
      code: error.code,
      param: error.param,
      details: error.details,
    },
  };
}

/** What any thrown value becomes at a face. The original of an internal error is its `cause`, for the log alone. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  if (isFull(thrown)) {
    return new AppError("storage_full", "The disk is full. Free some space; nothing was stored.", {
      cause: thrown,
    });
  }
  return new AppError("internal", "Internal error.", { cause: thrown });
}

function isFull(thrown: unknown): boolean {
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : null;
  return code === "SQLITE_FULL" || code === "ENOSPC";
}

/** An AppError as plain data, for crossing a thread; `reviveError` is its inverse. */
export type ErrorData = { code: ErrorCode; message: string; options: ErrorOptions; stack?: string };

export function errorData(thrown: unknown): ErrorData {
  const error = toAppError(thrown);
  const cause = error.cause instanceof Error ? error.cause : null;
  return {
    code: error.code,
    message: error.message,
    options: {
      param: error.param,
      details: error.details,
      status: error.status,
      ...(error.retryAfter === undefined ? {} : { retryAfter: error.retryAfter }),
      ...(cause ? { cause: { message: cause.message, stack: cause.stack ?? "" } } : {}),
    },
  };
}

export function reviveError(data: ErrorData): AppError {
  return new AppError(data.code, data.message, data.options);
}
