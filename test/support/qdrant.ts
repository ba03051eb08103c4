// A stand-in for a Qdrant server on loopback: the subset of its REST API that the product uses, strict about paths,
// bodies, ids, vector sizes and `wait`, with the statuses and error bodies of the real one (compared with 1.18.3), and
// as little order as that promises: what ties comes in any. Faults are put in front of it with flaky.ts, so that the
// same tests run against a real server.
import type { z } from "zod";
import * as schema from "./qdrant-schema.ts";
import type { PointId } from "./qdrant-schema.ts";
import { byChance, byId, checkNames, matches, readVectors, Refusal, runQuery } from "./qdrant-store.ts";
import type { Collection, Point, Scored } from "./qdrant-store.ts";

export interface QdrantStandIn {
  url: string;
  collections: Map<string, Collection>;
  aliases: Map<string, string>;
  /** Every request so far: `PUT /collections/x/points`. */
  requests: string[];
  stop(): Promise<void>;
}

const missing = (name: string): Refusal =>
  new Refusal(404, `Not found: Collection \`${name}\` doesn't exist!`);

function parse<T extends z.ZodType>(type: T, body: unknown): z.infer<T> {
  const result = type.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const [path, message] = [issue?.path.join(".") ?? "", issue?.message ?? "invalid"];
  if (path === "points" && issue?.code === "too_small")
    throw new Refusal(400, "Bad request: Empty update request");
  // What can be read and is out of bounds is told apart from what cannot be read.
  if (issue && ["too_small", "too_big", "custom"].includes(issue.code))
    throw new Refusal(422, `Validation error in JSON body: [${path}: ${message}]`);
  throw new Refusal(400, `Format error in JSON body: ${path}: ${message}`);
}

function pickPayload(payload: Record<string, unknown>, pick: unknown): Record<string, unknown> | undefined {
  if (pick === undefined || pick === false) return undefined;
  if (pick === true) return payload;
  const include = Array.isArray(pick) ? (pick as string[]) : (pick as { include?: string[] }).include;
  const exclude = Array.isArray(pick) ? undefined : (pick as { exclude?: string[] }).exclude;
  return Object.fromEntries(
    Object.entries(payload).filter(([k]) => (include ? include.includes(k) : !exclude?.includes(k))),
  );
}

function pickVector(point: Point, pick: unknown): unknown {
  if (pick === undefined || pick === false) return undefined;
  if (point.vectors.size === 1 && point.vectors.has("")) return point.vectors.get("");
  const names = Array.isArray(pick) ? (pick as string[]) : [...point.vectors.keys()];
  return Object.fromEntries(names.flatMap((n) => (point.vectors.has(n) ? [[n, point.vectors.get(n)]] : [])));
}

const record = (point: Point, withPayload: unknown, withVector: unknown): object => ({
  id: point.id,
  payload: pickPayload(point.payload, withPayload),
  vector: pickVector(point, withVector),
});

function scroll(collection: Collection, body: z.infer<typeof schema.scroll>): unknown {
  const limit = body.limit ?? 10;
  let rows = [...collection.points.values()].filter((p) => matches(collection, body.filter, p));
  if (body.order_by !== undefined) {
    const order = typeof body.order_by === "string" ? { key: body.order_by } : body.order_by;
    if (collection.indexes.get(order.key) !== "integer")
      throw new Refusal(
        400,
        `Wrong input: No range index for \`order_by\` key: \`${order.key}\`. Please create one to use \`order_by\`. Check https://qdrant.tech/documentation/concepts/indexing/#payload-index to see which payload schemas support Range conditions`,
      );
    if (body.offset != null)
      throw new Refusal(400, "Wrong input: Cannot use an `offset` when using `order_by`.");
    const sign = "direction" in order && order.direction === "desc" ? -1 : 1;
    const at = (p: Point): number => Number(p.payload[order.key]);
    rows = rows
      .filter((p) => Number.isInteger(p.payload[order.key]))
      .toSorted((a, b) => sign * (at(a) - at(b)) || byChance(a.id, b.id, limit));
    return {
      points: rows.slice(0, limit).map((p) => ({
        ...record(p, body.with_payload ?? true, body.with_vector),
        order_value: at(p),
      })),
      next_page_offset: null,
    };
  }
  rows.sort((a, b) => byId(a.id, b.id));
  const offset = body.offset;
  if (offset != null) rows = rows.filter((p) => byId(p.id, offset) >= 0);
  return {
    points: rows.slice(0, limit).map((p) => record(p, body.with_payload ?? true, body.with_vector)),
    next_page_offset: rows[limit]?.id ?? null,
  };
}

function facet(collection: Collection, body: z.infer<typeof schema.facet>): unknown {
  if (!collection.indexes.has(body.key))
    throw new Refusal(
      400,
      `Wrong input: No appropriate index for faceting: \`${body.key}\`. Please create one to facet on this field. Check https://qdrant.tech/documentation/concepts/indexing/#payload-index to see which payload schemas support Match conditions`,
    );
  const counts = new Map<unknown, number>();
  for (const p of collection.points.values()) {
    const value = p.payload[body.key];
    if (value != null && matches(collection, body.filter, p)) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const hits = [...counts].map(([value, count]) => ({ value, count })).toSorted((a, b) => b.count - a.count);
  return { hits: hits.slice(0, body.limit ?? 10) };
}

function info(collection: Collection): unknown {
  const { config } = collection;
  return {
    status: "green",
    optimizer_status: "ok",
    points_count: collection.points.size,
    indexed_vectors_count: 0,
    segments_count: 1,
    config: {
      params: {
        vectors: config.vectors,
        sparse_vectors: config.sparse_vectors,
        shard_number: 1,
        replication_factor: 1,
      },
      hnsw_config: { m: 16, ef_construct: 100, full_scan_threshold: 10_000, ...config.hnsw_config },
      optimizer_config: { deleted_threshold: 0.2, vacuum_min_vector_number: 1000, default_segment_number: 0 },
      quantization_config: config.quantization_config ?? null,
      metadata: config.metadata,
    },
    payload_schema: Object.fromEntries(
      [...collection.indexes].map(([k, t]) => [k, { data_type: t, points: 0 }]),
    ),
  };
}

/** Starts a stand-in on a free port of 127.0.0.1. Without `apiKey` it asks for none. */
export function startQdrant(options: { apiKey?: string } = {}): QdrantStandIn {
  const collections = new Map<string, Collection>();
  const aliases = new Map<string, string>();
  const requests: string[] = [];

  const resolve = (name: string): Collection => {
    const found = collections.get(aliases.get(name) ?? name);
    if (!found) throw missing(name);
    return found;
  };

  /** Applies a write; without `wait=true` only later, as the real server's queue may. */
  const write = async (collection: Collection, wait: boolean, apply: () => void): Promise<unknown> => {
    const operation_id = collection.operation++;
    if (wait) apply();
    else setTimeout(apply, 50);
    return { operation_id, status: wait ? "completed" : "acknowledged" };
  };

  /** One after the other; when one is refused, those before it stay done. */
  const changeAliases = (body: z.infer<typeof schema.changeAliases>): boolean => {
    for (const action of body.actions) {
      if ("create_alias" in action) {
        const { alias_name, collection_name } = action.create_alias;
        if (!collections.has(collection_name)) throw missing(collection_name);
        if (collections.has(alias_name))
          throw new Refusal(409, `Wrong input: Collection \`${alias_name}\` already exists!`);
        aliases.set(alias_name, collection_name);
      } else if ("delete_alias" in action) {
        aliases.delete(action.delete_alias.alias_name);
      } else {
        const { old_alias_name, new_alias_name } = action.rename_alias;
        const target = aliases.get(old_alias_name);
        if (target === undefined)
          throw new Refusal(404, `Not found: Alias ${old_alias_name} does not exists!`);
        aliases.delete(old_alias_name);
        aliases.set(new_alias_name, target);
      }
    }
    return true;
  };

  const create = (name: string, body: z.infer<typeof schema.createCollection>): boolean => {
    if (collections.has(name)) throw new Refusal(409, `Wrong input: Collection \`${name}\` already exists!`);
    if (aliases.has(name))
      throw new Refusal(
        400,
        `Wrong input: Can't create collection with name ${name}. Alias with the same name already exists`,
      );
    collections.set(name, { config: body, indexes: new Map(), points: new Map(), operation: 0 });
    return true;
  };

  const remove = (name: string): boolean => {
    if (!collections.delete(name)) return false;
    for (const [alias, target] of aliases) if (target === name) aliases.delete(alias);
    return true;
  };

  const points = async (
    collection: Collection,
    method: string,
    action: string,
    wait: boolean,
    body: unknown,
  ): Promise<unknown> => {
    switch (`${method} ${action}`) {
      case "PUT index": {
        const { field_name, field_schema } = parse(schema.createIndex, body);
        const type = typeof field_schema === "string" ? field_schema : field_schema.type;
        return write(collection, wait, () => collection.indexes.set(field_name, type));
      }
      case "PUT points": {
        const { points: given } = parse(schema.upsert, body);
        const rows = given.map((p) => ({
          id: p.id,
          vectors: readVectors(collection, p.vector),
          payload: p.payload ?? {},
        }));
        return write(collection, wait, () => {
          for (const row of rows) collection.points.set(row.id, { ...row, version: collection.operation });
        });
      }
      case "POST points": {
        const { ids, with_payload, with_vector } = parse(schema.retrieve, body);
        checkNames(collection, with_vector);
        // Each once, and without payload unless it is asked for.
        return [...new Set(ids)].flatMap((id) => {
          const point = collection.points.get(id);
          return point ? [record(point, with_payload ?? false, with_vector)] : [];
        });
      }
      case "POST points/payload": {
        const { points: ids, payload } = parse(schema.setPayload, body);
        const absent = ids.find((id) => !collection.points.has(id));
        if (absent !== undefined && wait)
          throw new Refusal(404, `Not found: No point with id ${absent} found`);
        return write(collection, wait, () => {
          for (const id of ids) {
            const merged = { ...collection.points.get(id)?.payload, ...payload };
            // A null takes the field away here, other than in a point that is written whole.
            const kept = Object.entries(merged).filter(([name]) => payload[name] !== null);
            const point = collection.points.get(id);
            if (point) point.payload = Object.fromEntries(kept);
          }
        });
      }
      case "POST points/delete": {
        const selector = parse(schema.deletePoints, body);
        const ids: PointId[] =
          "points" in selector
            ? selector.points
            : [...collection.points.values()]
                .filter((p) => matches(collection, selector.filter, p))
                .map((p) => p.id);
        return write(collection, wait, () => {
          for (const id of ids) collection.points.delete(id);
        });
      }
      case "POST points/scroll":
        return scroll(collection, parse(schema.scroll, body));
      case "POST points/count": {
        const { filter } = parse(schema.count, body);
        let n = 0;
        for (const p of collection.points.values()) if (matches(collection, filter, p)) n++;
        return { count: n };
      }
      case "POST facet":
        return facet(collection, parse(schema.facet, body));
      case "POST points/query": {
        const parsed = parse(schema.query, body);
        checkNames(collection, parsed.with_vector);
        const scored: Scored[] = runQuery(collection, parsed);
        return {
          points: scored.map(({ point, score }) => ({
            ...record(point, parsed.with_payload, parsed.with_vector),
            version: point.version,
            score,
          })),
        };
      }
      default:
        throw new Refusal(404, "");
    }
  };

  const handle = async (
    method: string,
    path: string[],
    query: URLSearchParams,
    body: unknown,
  ): Promise<unknown> => {
    for (const name of query.keys())
      if (!["wait", "timeout", "ordering", "consistency"].includes(name))
        throw new Refusal(400, `Format error in query: unknown field \`${name}\``);
    if (!["true", "false", null].includes(query.get("wait")))
      throw new Refusal(
        400,
        "Deserialize error in query parameters: provided string was not `true` or `false`",
      );
    const wait = query.get("wait") === "true";
    if (path[0] === "aliases" && method === "GET" && path.length === 1)
      return {
        aliases: [...aliases].map(([alias_name, collection_name]) => ({ alias_name, collection_name })),
      };
    if (path[0] !== "collections") throw new Refusal(404, "");
    if (path.length === 1 && method === "GET")
      return { collections: [...collections.keys()].map((name) => ({ name })) };
    const name = path[1] ?? "";
    const wrong = /[<>:"/\\|?*\0\u001f]/.exec(name)?.[0];
    if (wrong !== undefined)
      throw new Refusal(
        422,
        `Validation error in path parameters: [collection_name: collection name cannot contain "${wrong}" char]`,
      );
    if (name.length > 255)
      throw new Refusal(
        422,
        `Validation error in path parameters: [collection_name: value "${name}" invalid, must be from 1 to 255 characters]`,
      );
    if (name === "aliases" && method === "POST" && path.length === 2)
      return changeAliases(parse(schema.changeAliases, body));
    if (path.length === 2) {
      if (method === "GET") return info(resolve(name));
      if (method === "PUT") return create(name, parse(schema.createCollection, body));
      if (method === "DELETE") return remove(aliases.get(name) ?? name);
      if (method === "PATCH") {
        const collection = resolve(name);
        const { quantization_config, hnsw_config, metadata } = parse(schema.updateCollection, body);
        if (quantization_config !== undefined)
          collection.config.quantization_config =
            quantization_config === "Disabled" ? null : quantization_config;
        if (hnsw_config) collection.config.hnsw_config = { ...collection.config.hnsw_config, ...hnsw_config };
        if (metadata) collection.config.metadata = { ...collection.config.metadata, ...metadata };
        return true;
      }
    }
    if (path.length === 3 && path[2] === "exists" && method === "GET")
      return { exists: collections.has(aliases.get(name) ?? name) };
    return points(resolve(name), method, path.slice(2).join("/"), wait, body);
  };

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: 33_554_432,
    async fetch(request) {
      const url = new URL(request.url);
      const path = url.pathname.split("/").filter(Boolean).map(decodeURIComponent);
      requests.push(`${request.method} ${url.pathname}`);
      if (request.method === "GET" && path.length === 1 && /^(readyz|healthz|livez)$/.test(path[0] ?? ""))
        return new Response("all shards are ready");
      if (options.apiKey !== undefined) {
        const given =
          request.headers.get("api-key") ?? request.headers.get("authorization")?.replace(/^Bearer /, "");
        if (given == null)
          return new Response("Must provide an API key or an Authorization bearer token", { status: 401 });
        if (given !== options.apiKey) return new Response("Invalid API key or JWT", { status: 401 });
      }
      if (path.length === 0)
        return Response.json({ title: "qdrant - vector search engine", version: "1.18.3" });
      try {
        let body: unknown;
        if (request.method !== "GET" && request.method !== "DELETE") {
          if (!request.headers.get("content-type")?.startsWith("application/json"))
            throw new Refusal(415, "Content type error");
          body = await request.json().catch(() => {
            throw new Refusal(400, "Format error in JSON body: EOF while parsing a value at line 1 column 0");
          });
        }
        const result = await handle(request.method, path, url.searchParams, body);
        const answer = JSON.stringify({ result, status: "ok", time: 0.0001 });
        const headers = { "content-type": "application/json" };
        // Packed whenever the client takes it, as the real server does.
        return request.headers.get("accept-encoding")?.includes("gzip")
          ? new Response(Bun.gzipSync(answer, { level: 1 }), {
              headers: { ...headers, "content-encoding": "gzip" },
            })
          : new Response(answer, { headers });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        if (error.status === 404 && error.message === "") return new Response(null, { status: 404 });
        return Response.json({ status: { error: error.message }, time: 0.0001 }, { status: error.status });
      }
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    collections,
    aliases,
    requests,
    stop: () => server.stop(true),
  };
}
