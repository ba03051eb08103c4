// A stand-in for the Notion API, version 2026-03-11: databases, data sources and pages as far as they are used, strict
// about paths, the version header, property types, sizes (2,000 characters a piece, 100 pieces, 500 kB a body), pages of
// at most 100 results and the rate limit, with Notion's error bodies.
import { z } from "zod";

export interface NotionStandIn {
  url: string;
  databaseId: string;
  /** Pages by id. A test changes them as a person would. */
  pages: Map<string, NotionPage>;
  /** Properties of the data source. */
  schema: Record<string, { id: string; name: string; type: string }>;
  requests: string[];
  /** A page that was there already. */
  seed(properties: Record<string, unknown>): void;
  /** Refused for the rate limit so far. */
  limited: number;
  stop(): Promise<void>;
}

type Value =
  | { type: "title"; title: Piece[] }
  | { type: "rich_text"; rich_text: Piece[] }
  | { type: "select"; select: { name: string } | null }
  | { type: "checkbox"; checkbox: boolean }
  | { type: "number"; number: number | null }
  | { type: "date"; date: { start: string; end: null; time_zone: null } | null };
interface Piece {
  type: "text";
  text: { content: string; link: null };
  plain_text: string;
}
export interface NotionPage {
  object: "page";
  id: string;
  in_trash: boolean;
  properties: Record<string, Value>;
}

class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}
const invalid = (message: string): Refusal =>
  new Refusal(400, "validation_error", `body failed validation: ${message}`);

const piece = z.strictObject({
  type: z.literal("text"),
  text: z.strictObject({ content: z.string().max(2000) }),
});
const pieces = z.array(piece).max(100);
const values: Record<string, z.ZodType> = {
  title: z.strictObject({ title: pieces }),
  rich_text: z.strictObject({ rich_text: pieces }),
  select: z.strictObject({ select: z.strictObject({ name: z.string().min(1).max(100) }).nullable() }),
  checkbox: z.strictObject({ checkbox: z.boolean() }),
  number: z.strictObject({ number: z.number().nullable() }),
  date: z.strictObject({ date: z.strictObject({ start: z.iso.datetime({ offset: true }) }).nullable() }),
};
const createPage = z.strictObject({
  parent: z.strictObject({ type: z.literal("data_source_id"), data_source_id: z.string() }),
  properties: z.record(z.string(), z.unknown()),
});
const updatePage = z.strictObject({
  properties: z.record(z.string(), z.unknown()).optional(),
  in_trash: z.boolean().optional(),
});
const updateSource = z.strictObject({
  properties: z.record(
    z.string(),
    z.union([
      z.strictObject({ rich_text: z.strictObject({}) }),
      z.strictObject({ select: z.strictObject({}) }),
      z.strictObject({ checkbox: z.strictObject({}) }),
      z.strictObject({ number: z.strictObject({}) }),
      z.strictObject({ date: z.strictObject({}) }),
    ]),
  ),
});
const leaf = z.union([
  z.strictObject({
    property: z.string(),
    rich_text: z.union([
      z.strictObject({ equals: z.string().max(2000) }),
      z.strictObject({ contains: z.string().max(2000) }),
    ]),
  }),
  z.strictObject({ property: z.string(), select: z.strictObject({ equals: z.string() }) }),
  z.strictObject({
    property: z.string(),
    date: z.union([
      z.strictObject({ on_or_before: z.string() }),
      z.strictObject({ on_or_after: z.string() }),
    ]),
  }),
]);
type Leaf = z.infer<typeof leaf>;
const queryBody = z.strictObject({
  filter: z
    .strictObject({ and: z.array(z.union([leaf, z.strictObject({ or: z.array(leaf).max(100) })])).max(100) })
    .optional(),
  sorts: z
    .array(z.strictObject({ property: z.string(), direction: z.enum(["ascending", "descending"]) }))
    .optional(),
  start_cursor: z.string().optional(),
  page_size: z.number().int().min(1).max(100).optional(),
});

function parse<T extends z.ZodType>(schema: T, body: unknown): z.infer<T> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw invalid(`body.${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`);
}

const textOf = (value: Value | undefined): string =>
  value?.type === "rich_text" ? value.rich_text.map((p) => p.plain_text).join("") : "";
const dateOf = (value: Value | undefined): string =>
  value?.type === "date" ? (value.date?.start ?? "") : "";

function holds(one: Leaf, page: NotionPage): boolean {
  const value = page.properties[one.property];
  if (!value) throw invalid(`Could not find property with name or id: ${one.property}`);
  if ("rich_text" in one) {
    const text = textOf(value).toLowerCase();
    return "equals" in one.rich_text
      ? text === one.rich_text.equals.toLowerCase()
      : text.includes(one.rich_text.contains.toLowerCase());
  }
  if ("select" in one) return value.type === "select" && value.select?.name === one.select.equals;
  const date = dateOf(value);
  return "on_or_before" in one.date ? date <= one.date.on_or_before : date >= one.date.on_or_after;
}

export interface NotionOptions {
  apiKey: string;
  /** Requests in a window of `windowMs`. */
  budget?: number;
  windowMs?: number;
  /** Most results of one query, 10,000 without it. */
  resultLimit?: number;
}

export function startNotion(options: NotionOptions): NotionStandIn {
  const { apiKey, budget = Number.POSITIVE_INFINITY, windowMs = 60_000, resultLimit = 10_000 } = options;
  const databaseId = crypto.randomUUID();
  const sourceId = crypto.randomUUID();
  const pages = new Map<string, NotionPage>();
  const schema: NotionStandIn["schema"] = { Name: { id: "title", name: "Name", type: "title" } };
  const requests: string[] = [];
  const standIn = { limited: 0 };
  let window = { from: performance.now(), used: 0 };

  function readProperties(given: Record<string, unknown>): Record<string, Value> {
    const out: Record<string, Value> = {};
    for (const [name, value] of Object.entries(given)) {
      const property = schema[name];
      if (!property) throw invalid(`${name} is not a property that exists.`);
      const parsed = parse(values[property.type]!, value) as Record<string, unknown>;
      const inner = parsed[property.type];
      const stored =
        property.type === "title" || property.type === "rich_text"
          ? (inner as { text: { content: string } }[]).map((p) => ({
              type: "text",
              text: { content: p.text.content, link: null },
              plain_text: p.text.content,
            }))
          : property.type === "date" && inner !== null
            ? { ...(inner as object), end: null, time_zone: null }
            : inner;
      out[name] = { type: property.type, [property.type]: stored } as Value;
    }
    return out;
  }

  const empty = (): Record<string, Value> =>
    Object.fromEntries(
      Object.values(schema).map(({ name, type }) => [
        name,
        {
          type,
          [type]: type === "checkbox" ? false : type === "title" || type === "rich_text" ? [] : null,
        } as unknown as Value,
      ]),
    );

  function add(properties: Record<string, unknown>): NotionPage {
    const page: NotionPage = {
      object: "page",
      id: crypto.randomUUID(),
      in_trash: false,
      properties: { ...empty(), ...readProperties(properties) },
    };
    pages.set(page.id, page);
    return page;
  }

  function query(body: z.infer<typeof queryBody>): unknown {
    const { filter, sorts = [], start_cursor, page_size = 100 } = body;
    let found = [...pages.values()].filter(
      (page) =>
        !page.in_trash &&
        (filter?.and ?? []).every((one) =>
          "or" in one ? one.or.some((l) => holds(l, page)) : holds(one, page),
        ),
    );
    const [sort] = sorts;
    if (sort) {
      const sign = sort.direction === "ascending" ? 1 : -1;
      const at = (page: NotionPage): string => dateOf(page.properties[sort.property]);
      found = found.toSorted(
        (a, b) => sign * (at(a) < at(b) ? -1 : at(a) > at(b) ? 1 : 0) || (a.id < b.id ? -1 : 1),
      );
    }
    const limited = found.length > resultLimit;
    found = found.slice(0, resultLimit);
    const offset = start_cursor === undefined ? 0 : Number(Buffer.from(start_cursor, "base64url").toString());
    if (!Number.isInteger(offset)) throw invalid("The start_cursor provided is invalid");
    const end = offset + page_size;
    const more = end < found.length;
    return {
      object: "list",
      type: "page_or_data_source",
      page_or_data_source: {},
      results: found.slice(offset, end),
      has_more: more,
      next_cursor: more ? Buffer.from(String(end)).toString("base64url") : null,
      ...(limited && !more
        ? { request_status: { type: "incomplete", incomplete_reason: "query_result_limit_reached" } }
        : {}),
    };
  }

  function handle(method: string, path: string[], body: unknown): unknown {
    const [kind, id = "", action] = path;
    const missing = new Refusal(404, "object_not_found", `Could not find ${kind} with ID: ${id}.`);
    switch (`${method} ${kind}${action === undefined ? "" : `/${action}`}`) {
      case "GET databases":
        if (id !== databaseId) throw missing;
        return {
          object: "database",
          id,
          data_sources: [{ id: sourceId, name: "Memories" }],
          in_trash: false,
        };
      case "GET data_sources":
        if (id !== sourceId) throw missing;
        return { object: "data_source", id, properties: schema };
      case "PATCH data_sources": {
        if (id !== sourceId) throw missing;
        for (const [name, value] of Object.entries(parse(updateSource, body).properties)) {
          schema[name] = { id: crypto.randomUUID().slice(0, 4), name, type: Object.keys(value)[0]! };
          for (const page of pages.values()) page.properties[name] ??= empty()[name]!;
        }
        return { object: "data_source", id, properties: schema };
      }
      case "POST data_sources/query":
        if (id !== sourceId) throw missing;
        return query(parse(queryBody, body));
      case "POST pages": {
        if (id !== "") throw missing;
        const { parent, properties } = parse(createPage, body);
        if (parent.data_source_id !== sourceId) throw missing;
        return add(properties);
      }
      case "PATCH pages": {
        const page = pages.get(id);
        if (!page) throw missing;
        const { properties, in_trash } = parse(updatePage, body);
        if (page.in_trash && in_trash !== false)
          throw invalid("Can't edit block that is archived. You must unarchive the block before editing.");
        Object.assign(page.properties, readProperties(properties ?? {}));
        if (in_trash !== undefined) page.in_trash = in_trash;
        return page;
      }
      default:
        throw new Refusal(400, "invalid_request_url", "Invalid request URL.");
    }
  }

  const error = (
    status: number,
    code: string,
    message: string,
    headers: Record<string, string> = {},
  ): Response =>
    Response.json(
      { object: "error", status, code, message, request_id: crypto.randomUUID() },
      { status, headers },
    );

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const url = new URL(request.url);
      requests.push(`${request.method} ${url.pathname}`);
      if (request.headers.get("authorization") !== `Bearer ${apiKey}`)
        return error(401, "unauthorized", "API token is invalid.");
      const version = request.headers.get("notion-version");
      if (version === null) return error(400, "missing_version", "Notion-Version header should be defined.");
      if (version !== "2026-03-11")
        return error(400, "validation_error", `Notion-Version header failed validation: ${version}`);
      const now = performance.now();
      if (now - window.from >= windowMs) window = { from: now, used: 0 };
      if (++window.used > budget) {
        standIn.limited++;
        const wait = String(Math.ceil((windowMs - (now - window.from)) / 1000));
        return error(429, "rate_limited", "You have been rate limited. Please try again in a few minutes.", {
          "retry-after": wait,
        });
      }
      const [prefix, ...path] = url.pathname.split("/").filter(Boolean);
      if (prefix !== "v1") return error(400, "invalid_request_url", "Invalid request URL.");
      try {
        let body: unknown;
        if (request.method !== "GET") {
          const text = await request.text();
          if (Buffer.byteLength(text) > 500_000)
            return error(413, "validation_error", "The request body is too large.");
          if (request.headers.get("content-type") !== "application/json")
            throw new Refusal(400, "invalid_json", "Error parsing JSON body.");
          body = JSON.parse(text) as unknown;
        }
        return Response.json(handle(request.method, path, body));
      } catch (thrown) {
        if (thrown instanceof Refusal) return error(thrown.status, thrown.code, thrown.message);
        throw thrown;
      }
    },
  });
  return Object.assign(standIn, {
    url: `http://127.0.0.1:${server.port}/v1`,
    databaseId,
    pages,
    schema,
    requests,
    seed: (properties: Record<string, unknown>) => void add(properties),
    stop: () => server.stop(true),
  });
}
