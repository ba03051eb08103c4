/** Memories as pages of a Notion database, one page each. Deleting moves a page to Notion's trash: its API can do no more. */
import type { Memory } from "../memory/types.ts";
import { createNotionClient, NOTION_VERSION } from "./notion-client.ts";
import type { NotionClient } from "./notion-client.ts";
import { properties, readPage, toProperties } from "./notion-page.ts";
import { passes, rankByWords, wordBeginnings } from "./rank.ts";
import type { Endpoint } from "./request.ts";
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

export type NotionConfig = {
  databaseId: string;
  apiKey: string;
  /** `https://api.notion.com/v1` without it. */
  baseUrl?: string | undefined;
  timeout?: number | undefined;
};

const PAGE_SIZE = 100;
const MAX_WORDS = 12;
/** Pages of results that a search ranks. */
const SEARCH_PAGES = 5;

type Source = { id: string; title: string };
type Filter = Record<string, unknown>;

export class NotionBackend implements MemoryBackend {
  readonly id: string;
  readonly displayName: string;
  readonly whole = true;
  readonly #client: NotionClient;
  readonly #databaseId: string;
  #source: Promise<Source> | null = null;

  constructor(id: string, displayName: string, config: NotionConfig, allowed?: Endpoint["allowed"]) {
    this.id = id;
    this.displayName = displayName;
    this.#databaseId = config.databaseId;
    this.#client = createNotionClient({
      displayName,
      baseUrl: config.baseUrl ?? "https://api.notion.com/v1",
      headers: { authorization: `Bearer ${config.apiKey}`, "notion-version": NOTION_VERSION },
      timeoutMs: config.timeout ?? 30_000,
      ...(allowed ? { allowed } : {}),
    });
  }

  async initialize(): Promise<void> {
    await this.#open();
  }

  async create(memory: Memory): Promise<Memory> {
    const { id, title } = await this.#open();
    const page = await this.#client.call("POST", "/pages", {
      parent: { type: "data_source_id", data_source_id: id },
      properties: toProperties(memory, title),
    });
    if (!page) throw this.#gone();
    return memory;
  }

  async get(owner: string | null, id: string): Promise<Memory | null> {
    return (await this.#find(owner, id))?.memory ?? null;
  }

  async update(owner: string, id: string, patch: MemoryPatch): Promise<boolean> {
    const found = await this.#find(owner, id);
    if (!found) return false;
    const { title } = await this.#open();
    const page = await this.#client.call("PATCH", `/pages/${found.pageId}`, {
      properties: toProperties(patch, title),
    });
    return page !== null;
  }

  async delete(owner: string, id: string): Promise<boolean> {
    const found = await this.#find(owner, id);
    if (!found) return false;
    return (await this.#client.call("PATCH", `/pages/${found.pageId}`, { in_trash: true })) !== null;
  }

  async list(filter: MemoryFilter): Promise<MemoryPage> {
    const by = filter.orderBy ?? "createdAt";
    const ascending = filter.orderDir === "asc";
    const conditions = [
      filter.apiKeyId === null ? null : text("apiKeyId", { equals: filter.apiKeyId }),
      filter.type === undefined ? null : { property: properties.type[0], select: { equals: filter.type } },
      filter.status === undefined
        ? null
        : { property: properties.status[0], select: { equals: filter.status } },
      filter.sessionId === undefined ? null : text("sessionId", { equals: filter.sessionId }),
      filter.q === undefined
        ? null
        : { or: [text("content", { contains: filter.q }), text("key", { contains: filter.q })] },
    ];
    const data: Memory[] = [];
    const byType: Record<string, number> = {};
    let total = 0;
    // Notion counts nothing, so a total is what a walk to the end finds.
    for await (const { memory } of this.#walk(conditions, by, ascending)) {
      if (!passes(memory, filter)) continue;
      if (total >= filter.offset && data.length < filter.limit) data.push(memory);
      total++;
      byType[memory.type] = (byType[memory.type] ?? 0) + 1;
    }
    return { data, total, byType };
  }

  async byKey(owner: string, key: string): Promise<Memory | null> {
    const conditions = [
      text("apiKeyId", { equals: owner }),
      text("key", { equals: key }),
      { property: properties.status[0], select: { equals: "active" } },
    ];
    for await (const { memory } of this.#walk(conditions, "createdAt", false))
      if (memory.apiKeyId === owner && memory.key === key && memory.status === "active") return memory;
    return null;
  }

  async search(config: SearchConfig): Promise<Found[]> {
    const words = wordBeginnings(config.query, MAX_WORDS);
    if (words.length === 0) return [];
    const conditions = [
      text("apiKeyId", { equals: config.apiKeyId }),
      { property: properties.status[0], select: { equals: "active" } },
      config.type === undefined ? null : { property: properties.type[0], select: { equals: config.type } },
      { or: words.flatMap((word) => [text("content", { contains: word }), text("key", { contains: word })]) },
    ];
    const rows: Memory[] = [];
    for await (const { memory } of this.#walk(conditions, "createdAt", false, config.signal)) {
      if (config.sessionId == null || memory.sessionId === null || memory.sessionId === config.sessionId)
        rows.push(memory);
      if (rows.length >= SEARCH_PAGES * PAGE_SIZE) break;
    }
    return rankByWords(config.query, rows, config.limit);
  }

  async health(): Promise<Health> {
    const started = performance.now();
    const took = (): number => performance.now() - started;
    try {
      const database = await this.#client.call("GET", `/databases/${this.#databaseId}`);
      if (database) return { ok: true, latencyMs: took() };
      return { ok: false, latencyMs: took(), error: this.#gone().message };
    } catch (thrown) {
      return { ok: false, latencyMs: took(), error: (thrown as Error).message };
    }
  }

  #gone(): BackendError {
    return new BackendError(
      `${this.displayName} has no database ${this.#databaseId}, or it is not shared with the connection.`,
      { status: 404 },
    );
  }

  #open(): Promise<Source> {
    this.#source ??= this.#prepare().catch((thrown: unknown) => {
      this.#source = null;
      throw thrown;
    });
    return this.#source;
  }

  /** Finds the database's first data source and adds the properties that it lacks. */
  async #prepare(): Promise<Source> {
    const database = await this.#client.call("GET", `/databases/${this.#databaseId}`);
    const id = (database?.["data_sources"] as { id: string }[] | undefined)?.[0]?.id;
    if (id === undefined) throw this.#gone();
    const source = await this.#client.call("GET", `/data_sources/${id}`);
    const known = (source?.["properties"] ?? {}) as Record<string, { type: string }>;
    const title = Object.entries(known).find(([, property]) => property.type === "title")?.[0];
    if (title === undefined) throw new BackendError(`${this.displayName}'s database has no title property.`);
    const missing: Record<string, unknown> = {};
    for (const [name, kind] of Object.values(properties)) {
      const found = known[name]?.type;
      if (found === undefined) missing[name] = { [kind]: {} };
      else if (found !== kind)
        throw new BackendError(
          `The property ${name} of ${this.displayName}'s database is of type ${found}; it must be ${kind}.`,
          { status: 400 },
        );
    }
    if (Object.keys(missing).length > 0)
      await this.#client.call("PATCH", `/data_sources/${id}`, { properties: missing });
    return { id, title };
  }

  async #find(owner: string | null, id: string): Promise<{ memory: Memory; pageId: string } | null> {
    const conditions = [
      text("id", { equals: id }),
      owner === null ? null : text("apiKeyId", { equals: owner }),
    ];
    for await (const found of this.#walk(conditions, "createdAt", false))
      if (found.memory.id === id && (owner === null || found.memory.apiKeyId === owner)) return found;
    return null;
  }

  /** Every page that passes, in order. Where Notion stops at its limit of results, goes on from the last time seen. */
  async *#walk(
    conditions: (Filter | null)[],
    by: "createdAt" | "updatedAt",
    ascending: boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<{ memory: Memory; pageId: string }> {
    const { id } = await this.#open();
    const [property] = properties[by];
    const given = conditions.filter((one) => one !== null);
    /** Pages at the last time seen, which the next window gives again. */
    let seen = new Set<string>();
    let from: string | null = null;
    for (;;) {
      const window: Filter[] =
        from === null
          ? given
          : [...given, { property, date: { [ascending ? "on_or_after" : "on_or_before"]: from } }];
      let cursor: unknown = null;
      let limited = false;
      let last: string | null = null;
      const atLast = new Set<string>();
      do {
        const answer = await this.#client.call(
          "POST",
          `/data_sources/${id}/query`,
          {
            ...(window.length === 0 ? {} : { filter: { and: window } }),
            sorts: [{ property, direction: ascending ? "ascending" : "descending" }],
            page_size: PAGE_SIZE,
            ...(cursor === null ? {} : { start_cursor: cursor }),
          },
          signal,
        );
        if (!answer) throw this.#gone();
        for (const page of answer["results"] as { id: string }[]) {
          const memory = readPage(page);
          if (!memory || seen.has(page.id)) continue;
          if (memory[by] !== last) atLast.clear();
          last = memory[by];
          atLast.add(page.id);
          yield { memory, pageId: page.id };
        }
        const status = answer["request_status"] as { incomplete_reason?: string } | undefined;
        limited = status?.incomplete_reason === "query_result_limit_reached";
        cursor = answer["has_more"] === true ? answer["next_cursor"] : null;
      } while (cursor !== null);
      if (!limited || last === null) return;
      seen = last === from ? seen.union(atLast) : atLast;
      from = last;
    }
  }
}

function text(field: keyof Memory, condition: { equals: string } | { contains: string }): Filter {
  return { property: properties[field][0], rich_text: condition };
}
