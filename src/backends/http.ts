/** GenericMemoryBackend: any REST service that keeps memories, by configuration of its paths and names. */
import type { Memory } from "../memory/types.ts";
import { join, parseJson, send } from "./request.ts";
import type { Endpoint } from "./request.ts";
import { readFound, readRow } from "./row.ts";
import { BackendError } from "./types.ts";
import type {
  Found,
  Health,
  MemoryBackend,
  MemoryFilter,
  MemoryPage,
  MemoryPatch,
  SearchConfig,
} from "./types.ts";

export type HttpBackendConfig = {
  baseUrl: string;
  /** Sent as Bearer token. */
  apiKey?: string | undefined;
  headers?: Record<string, string> | undefined;
  /** Milliseconds, 30,000 without it. */
  timeout?: number | undefined;
  /** Shown in status and log. */
  backendType?: string | undefined;
  endpoints?: { [Name in EndpointName]?: string | undefined } | undefined;
  /** Other names for the query parameters. */
  queryParams?: { [Name in QueryName]?: string | undefined } | undefined;
  /** Other names for the placeholders `{id}` and `{memoryId}` in the paths. */
  pathParams?: { id?: string | undefined; memoryId?: string | undefined } | undefined;
};

export type EndpointName = "search" | "create" | "list" | "get" | "update" | "delete" | "health";
export type QueryName =
  | "query"
  | "apiKeyId"
  | "limit"
  | "offset"
  | "strategy"
  | "maxTokens"
  | "type"
  | "sessionId"
  | "orderBy"
  | "orderDir"
  | "options";

const defaults: Record<EndpointName, string> = {
  search: "/memories/search",
  create: "/memories",
  list: "/memories",
  get: "/memories/{id}",
  update: "/memories/{id}",
  delete: "/memories/{id}",
  health: "/health",
};

export class GenericMemoryBackend implements MemoryBackend {
  readonly id: string;
  readonly displayName: string;
  readonly backendType: string;
  readonly #config: HttpBackendConfig;
  readonly #endpoint: Endpoint;

  constructor(id: string, displayName: string, config: HttpBackendConfig, allowed?: Endpoint["allowed"]) {
    this.id = id;
    this.displayName = displayName;
    this.backendType = config.backendType ?? "http";
    this.#config = config;
    this.#endpoint = {
      displayName,
      baseUrl: config.baseUrl,
      headers: { ...(config.apiKey ? { authorization: `Bearer ${config.apiKey}` } : {}), ...config.headers },
      timeoutMs: config.timeout ?? 30_000,
      ...(allowed ? { allowed } : {}),
    };
  }

  async create(memory: Memory): Promise<Memory> {
    const answer = await send(this.#endpoint, "POST", this.#url("create"), { json: memory });
    if (answer.status === 404)
      throw new BackendError(`${this.displayName} answered with status 404.`, { status: 404 });
    const stored = readRow({ ...memory, ...(parseJson(this.#endpoint, answer) as object | null) });
    if (!stored) throw new BackendError(`${this.displayName} answered a creation without a memory.`);
    return stored;
  }

  async get(owner: string | null, id: string): Promise<Memory | null> {
    const answer = await send(this.#endpoint, "GET", this.#url("get", id));
    if (answer.status === 404) return null;
    const memory = readRow(parseJson(this.#endpoint, answer));
    return owner === null || memory?.apiKeyId === owner ? memory : null;
  }

  async update(owner: string, id: string, patch: MemoryPatch): Promise<boolean> {
    if (!(await this.get(owner, id))) return false;
    const answer = await send(this.#endpoint, "PATCH", this.#url("update", id), { json: patch });
    return answer.status !== 404;
  }

  async delete(owner: string, id: string): Promise<boolean> {
    if (!(await this.get(owner, id))) return false;
    const answer = await send(this.#endpoint, "DELETE", this.#url("delete", id));
    return answer.status !== 404;
  }

  async list(filter: MemoryFilter): Promise<MemoryPage> {
    const { status, q } = filter;
    const options = { ...(status === undefined ? {} : { status }), ...(q === undefined ? {} : { q }) };
    const url = this.#url("list", undefined, {
      apiKeyId: filter.apiKeyId,
      limit: filter.limit,
      offset: filter.offset,
      type: filter.type,
      sessionId: filter.sessionId,
      orderBy: filter.orderBy,
      orderDir: filter.orderDir,
      options: Object.keys(options).length > 0 ? JSON.stringify(options) : undefined,
    });
    const answer = await send(this.#endpoint, "GET", url);
    if (answer.status === 404) return { data: [], total: 0, byType: {} };
    const page = parseJson(this.#endpoint, answer) as {
      data?: unknown;
      total?: unknown;
      byType?: unknown;
    } | null;
    if (!Array.isArray(page?.data))
      throw new BackendError(`${this.displayName} answered a list without data.`);
    const data = page.data.map(readRow).filter((m) => m !== null);
    return {
      data: data.filter((m) => filter.apiKeyId === null || m.apiKeyId === filter.apiKeyId),
      total: typeof page.total === "number" ? page.total : data.length,
      byType:
        typeof page.byType === "object" && page.byType !== null
          ? (page.byType as Record<string, number>)
          : {},
    };
  }

  async search(config: SearchConfig): Promise<Found[]> {
    const url = this.#url("search", undefined, {
      query: config.query,
      apiKeyId: config.apiKeyId,
      limit: config.limit,
      strategy: config.strategy,
      maxTokens: config.maxTokens,
      type: config.type,
      sessionId: config.sessionId,
    });
    const answer = await send(this.#endpoint, "GET", url, config.signal ? { signal: config.signal } : {});
    if (answer.status === 404) return [];
    const rows = parseJson(this.#endpoint, answer);
    if (!Array.isArray(rows))
      throw new BackendError(`${this.displayName} answered a search without an array.`);
    return rows
      .map(readFound)
      .filter((f) => f !== null)
      .filter((f) => f.memory.apiKeyId === config.apiKeyId);
  }

  async health(): Promise<Health> {
    const started = performance.now();
    try {
      const answer = await send(this.#endpoint, "GET", this.#url("health"));
      const latencyMs = performance.now() - started;
      return answer.status === 404
        ? { ok: false, latencyMs, error: `${this.displayName} answered with status 404.` }
        : { ok: true, latencyMs };
    } catch (thrown) {
      return { ok: false, latencyMs: performance.now() - started, error: (thrown as Error).message };
    }
  }

  async initialize(): Promise<void> {
    const { ok, error } = await this.health();
    if (!ok) throw new BackendError(error ?? `${this.displayName} is not well.`);
  }

  #url(
    name: EndpointName,
    id?: string,
    query: Partial<Record<QueryName, string | number | null | undefined>> = {},
  ): URL {
    const { endpoints, queryParams, pathParams } = this.#config;
    let path = endpoints?.[name] ?? defaults[name];
    if (id !== undefined)
      for (const placeholder of ["id", "memoryId"] as const)
        path = path.replaceAll(`{${pathParams?.[placeholder] ?? placeholder}}`, encodeURIComponent(id));
    const named = Object.fromEntries(
      Object.entries(query).map(([k, v]) => [queryParams?.[k as QueryName] ?? k, v]),
    );
    return join(this.#endpoint.baseUrl, path, named);
  }
}
