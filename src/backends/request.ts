/** One HTTP call to a backend: a deadline, no redirects, a bounded answer, and errors that repeat nothing of it. */
import { BackendError } from "./types.ts";

export type Endpoint = {
  /** Named in errors. */
  displayName: string;
  baseUrl: string;
  headers: Record<string, string>;
  timeoutMs: number;
  /** Throws when the address may not be called; asked before every call. */
  allowed?: (url: URL) => Promise<void>;
};

export type Answer = { status: number; headers: Headers; text: string };

const MAX_ANSWER = 256 * 1024 * 1024;

/** Joins, keeping the base's own path: `http://h/api` and `/memories` make `http://h/api/memories`. */
export function join(
  baseUrl: string,
  path: string,
  query: Record<string, string | number | null | undefined> = {},
): URL {
  const base = new URL(baseUrl);
  const url = new URL(`${base.origin}${base.pathname.replace(/\/+$/, "")}/${path.replace(/^\/+/, "")}`);
  for (const [name, value] of Object.entries(query))
    if (value != null) url.searchParams.set(name, String(value));
  return url;
}

/** Sends one request. 404 is an answer; every other status that is not 2xx throws a BackendError with it. */
export async function send(
  endpoint: Endpoint,
  method: string,
  url: URL,
  options: { json?: unknown; body?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Answer> {
  const { displayName, timeoutMs } = endpoint;
  const deadline = AbortSignal.timeout(timeoutMs);
  const body = options.json === undefined ? options.body : JSON.stringify(options.json);
  await endpoint.allowed?.(url);
  let answer: Answer;
  try {
    const response = await fetch(url, {
      method,
      redirect: "manual",
      headers: {
        accept: "application/json",
        ...(options.json === undefined ? {} : { "content-type": "application/json" }),
        ...endpoint.headers,
        ...options.headers,
      },
      ...(body === undefined ? {} : { body }),
      signal: options.signal ? AbortSignal.any([deadline, options.signal]) : deadline,
    });
    answer = { status: response.status, headers: response.headers, text: await bounded(response) };
  } catch (cause) {
    if (cause instanceof BackendError) throw cause;
    if (options.signal?.aborted) throw options.signal.reason;
    throw new BackendError(
      deadline.aborted
        ? `${displayName} did not answer within ${timeoutMs} ms.`
        : `${displayName} cannot be reached.`,
      { cause },
    );
  }
  if (answer.status === 404 || (answer.status >= 200 && answer.status < 300)) return answer;
  const wait = Number(answer.headers.get("retry-after"));
  throw new BackendError(`${displayName} answered with status ${answer.status}.`, {
    status: answer.status,
    retryAfterMs: answer.headers.has("retry-after") && wait >= 0 ? wait * 1000 : null,
  });
}

async function bounded(response: Response): Promise<string> {
  if (!response.body) return "";
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.byteLength;
    if (size > MAX_ANSWER) throw new BackendError("The backend's answer is larger than 256 MiB.");
    parts.push(decoder.decode(chunk, { stream: true }));
  }
  parts.push(decoder.decode());
  return parts.join("");
}

/** Parses an answer, or throws a sentence. */
export function parseJson(endpoint: Endpoint, answer: Answer): unknown {
  try {
    return JSON.parse(answer.text) as unknown;
  } catch {
    throw new BackendError(`${endpoint.displayName} gave an answer that is not JSON.`);
  }
}
