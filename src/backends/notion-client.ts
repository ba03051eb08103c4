/**
 * Calls to the Notion API, version 2026-03-11: at most three at once, and all of them wait when Notion says so (429 and
 * 529 with Retry-After), as its page on request limits asks.
 */
import { join, parseJson, send } from "./request.ts";
import type { Endpoint } from "./request.ts";
import { BackendError } from "./types.ts";

export const NOTION_VERSION = "2026-03-11";
const AT_ONCE = 3;
const TRIES = 5;

export type NotionClient = {
  /** Null for 404. */
  call(
    method: "GET" | "POST" | "PATCH",
    path: string,
    body?: unknown,
    signal?: AbortSignal,
  ): Promise<Record<string, unknown> | null>;
};

export function createNotionClient(endpoint: Endpoint): NotionClient {
  let running = 0;
  const waiting: (() => void)[] = [];
  let resumeAt = 0;

  const enter = async (): Promise<void> => {
    if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
  };
  const leave = (): void => {
    const next = waiting.shift();
    if (next) next();
    else running--;
  };

  return {
    async call(method, path, body, signal) {
      await enter();
      try {
        for (let attempt = 1; ; attempt++) {
          await pause(resumeAt - performance.now(), signal);
          try {
            const answer = await send(endpoint, method, join(endpoint.baseUrl, path), {
              ...(body === undefined ? {} : { json: body }),
              ...(signal ? { signal } : {}),
            });
            return answer.status === 404 ? null : (parseJson(endpoint, answer) as Record<string, unknown>);
          } catch (thrown) {
            const slow = thrown instanceof BackendError && (thrown.status === 429 || thrown.status === 529);
            if (!slow || attempt === TRIES) throw thrown;
            resumeAt = Math.max(resumeAt, performance.now() + (thrown.retryAfterMs ?? 1000));
          }
        }
      } finally {
        leave();
      }
    },
  };
}

async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0) return;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      },
      { once: true },
    );
  });
}
