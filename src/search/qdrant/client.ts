/** Calls to one Qdrant server: a deadline on each, a circuit breaker around all, errors in one sentence. */
import type { QdrantClient, Schemas } from "@qdrant/js-client-rest";
import { createBreaker } from "./breaker.ts";
import type { BreakerChange } from "./breaker.ts";

export type QdrantAddress = {
  /** `http(s)://host:port[/prefix]`. */
  url: string;
  apiKey: string | null;
  /** Rejects when the address may not be called; asked before every call. */
  allowed?: (url: URL) => Promise<void>;
};

/** What went wrong, so that callers can tell a part that is down from a request that is wrong. */
export type QdrantFault =
  | "unreachable"
  | "timeout"
  | "unauthorized"
  | "busy"
  | "full"
  | "server"
  | "not_found"
  | "conflict"
  | "refused"
  | "open";

export class QdrantError extends Error {
  readonly fault: QdrantFault;
  readonly status: number | null;
  constructor(fault: QdrantFault, message: string, status: number | null = null) {
    super(message);
    this.name = "QdrantError";
    this.fault = fault;
    this.status = status;
  }
  /** The server as a whole cannot be used now; no fault of this request. */
  get partDown(): boolean {
    return !["not_found", "conflict", "refused"].includes(this.fault);
  }
}

type Api = ReturnType<QdrantClient["api"]>;
type Answer<T> = Promise<{ data: { result?: T } }>;

export type Qdrant = {
  /** One call. `search` has 2 s, `write` 10 s; `signal` ends it sooner. Throws QdrantError, or the signal's reason. */
  call<T>(
    kind: "search" | "write",
    ask: (api: Api, init: RequestInit) => Answer<T>,
    signal?: AbortSignal,
  ): Promise<T>;
  /** `/readyz`, past the breaker: milliseconds it took. */
  ready(): Promise<number>;
  readonly open: boolean;
  readonly reason: string | null;
  close(): void;
};

export type QdrantOptions = {
  searchTimeoutMs?: number;
  writeTimeoutMs?: number;
  probeEveryMs?: number;
  onBreaker?: (change: BreakerChange) => void;
  /** A call worked after at least one that did not. */
  onRecovered?: () => void;
};

export async function connectQdrant(address: QdrantAddress, options: QdrantOptions = {}): Promise<Qdrant> {
  const { searchTimeoutMs = 2000, writeTimeoutMs = 10_000, probeEveryMs, onBreaker, onRecovered } = options;
  const { QdrantClient } = await import("@qdrant/js-client-rest");
  const url = new URL(address.url);
  const client = new QdrantClient({
    url: url.origin,
    port: Number(url.port || (url.protocol === "https:" ? 443 : 80)),
    ...(url.pathname === "/" ? {} : { prefix: url.pathname.replace(/\/+$/, "") }),
    headers: {
      // A packed answer comes in two pieces, and the second waits 40 ms for the first to be acknowledged.
      "accept-encoding": "identity",
      // As a header and not as `apiKey`, with which the client writes a warning to the console for plain http.
      ...(address.apiKey === null ? {} : { "api-key": address.apiKey }),
    },
    // Deadlines are ours: the client's replaces the caller's signal.
    timeout: Number.POSITIVE_INFINITY,
    checkCompatibility: false,
  });
  const api = client.api();

  const attempt = async <T>(
    limit: number,
    ask: (init: RequestInit) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> => {
    const deadline = AbortSignal.timeout(limit);
    const init: RequestInit = {
      signal: signal ? AbortSignal.any([deadline, signal]) : deadline,
      // A redirect would carry the key to another server.
      redirect: "manual",
    };
    try {
      await address.allowed?.(url);
      // A connection that was kept open may have ended meanwhile; every call here may be made twice.
      return await ask(init).catch((thrown: unknown) => {
        if (hasStatus(thrown) || init.signal?.aborted) throw thrown;
        return ask(init);
      });
    } catch (thrown) {
      if (signal?.aborted && !isTimeout(signal.reason)) throw signal.reason;
      throw toQdrantError(thrown, deadline.aborted || signal?.aborted === true, limit);
    }
  };

  const ready = async (): Promise<number> => {
    const started = performance.now();
    await attempt(searchTimeoutMs, async (init) => api.readyz({}, init));
    return performance.now() - started;
  };

  const breaker = createBreaker({
    // A ready server that refuses the key is still of no use, so the probe asks for something that needs it.
    probe: () => attempt(searchTimeoutMs, async (init) => api.getCollections({}, init)),
    ...(onBreaker ? { onChange: onBreaker } : {}),
    ...(onRecovered ? { onRecovered } : {}),
    ...(probeEveryMs === undefined ? {} : { probeEveryMs }),
  });

  return {
    async call(kind, ask, signal) {
      if (breaker.open)
        throw new QdrantError(
          "open",
          `Qdrant is not asked for now: ${breaker.reason ?? "it failed repeatedly"}`,
        );
      try {
        const limit = kind === "search" ? searchTimeoutMs : writeTimeoutMs;
        const { data } = await attempt(limit, (init) => ask(api, init), signal);
        breaker.succeeded();
        if (data.result === undefined)
          throw new QdrantError("server", "Qdrant gave an answer without a result.");
        return data.result;
      } catch (thrown) {
        if (thrown instanceof QdrantError) {
          if (thrown.partDown) breaker.failed(thrown.message);
          else breaker.succeeded();
        }
        throw thrown;
      }
    },
    ready,
    get open() {
      return breaker.open;
    },
    get reason() {
      return breaker.reason;
    },
    close: () => breaker.stop(),
  };
}

const hasStatus = (thrown: unknown): boolean => typeof (thrown as { status?: unknown }).status === "number";

const isTimeout = (reason: unknown): boolean => reason instanceof Error && reason.name === "TimeoutError";

/** The server's own words only where they are about sizes and names, never where they may repeat what was sent. */
const harmless =
  /^(?:Wrong input: (?:Vector dimension error|Collection `|Not existing vector name|Can't create collection)|Not found: Collection|Bad request: Index required)/;

function toQdrantError(thrown: unknown, timedOut: boolean, limit: number): QdrantError {
  const { status, data } = thrown as { status?: unknown; data?: unknown };
  if (typeof status !== "number") {
    return timedOut
      ? new QdrantError("timeout", `Qdrant did not answer within ${limit} ms.`)
      : new QdrantError("unreachable", "Qdrant cannot be reached.");
  }
  const said = (data as { status?: { error?: unknown } } | null)?.status?.error;
  const detail = typeof said === "string" && harmless.test(said) ? ` (${said.slice(0, 200)})` : "";
  const make = (fault: QdrantFault, sentence: string): QdrantError =>
    new QdrantError(fault, `${sentence}${detail}`, status);
  switch (status) {
    case 401:
    case 403:
      return make("unauthorized", `Qdrant refused the API key with status ${status}.`);
    case 404:
      return make("not_found", "Qdrant does not have what was asked for.");
    case 408:
      return make("timeout", "Qdrant gave up on the request with status 408.");
    case 409:
      return make("conflict", "Qdrant has that name already.");
    case 429:
      return make("busy", "Qdrant asks to slow down with status 429.");
    case 507:
      return make("full", "Qdrant's storage is full (status 507).");
    default:
      // A server whose disk is full says so in words.
      if (status === 500 && typeof said === "string" && said.includes("No space left on device"))
        return make("full", "Qdrant's storage is full (status 500).");
      return status >= 500 || status < 400
        ? make("server", `Qdrant answered with status ${status}.`)
        : make("refused", `Qdrant refused the request with status ${status}.`);
  }
}

export type QdrantFilter = Schemas["Filter"];
export type QdrantCondition = Schemas["Condition"];
export type Prefetch = Schemas["Prefetch"];
export type StoredPoint = Schemas["Record"];
export type CollectionInfo = Schemas["CollectionInfo"];
