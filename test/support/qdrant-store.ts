// What one Qdrant collection holds and answers, in memory: the subset that the product uses.
import type { CollectionBody, Condition, Filter, PointId, QueryBody, VectorBody } from "./qdrant-schema.ts";

export interface Sparse {
  indices: number[];
  values: number[];
}
export interface Point {
  id: PointId;
  vectors: Map<string, number[] | Sparse>;
  payload: Record<string, unknown>;
  version: number;
}
export interface Collection {
  config: CollectionBody;
  indexes: Map<string, string>;
  points: Map<PointId, Point>;
  operation: number;
}
export interface Scored {
  point: Point;
  score: number;
}

/** An answer other than 200, as the server words it. */
export class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
const bad = (message: string): Refusal => new Refusal(400, `Wrong input: ${message}`);
const otherForm = "Conversion between sparse and regular vectors failed";

/** Vectors that are asked for by name have to be there. */
export function checkNames(collection: Collection, pick: boolean | string[] | undefined): void {
  if (!Array.isArray(pick)) return;
  const { sparse_vectors = {} } = collection.config;
  const unknown = pick.find((name) => !denseParams(collection.config).has(name) && !(name in sparse_vectors));
  if (unknown !== undefined) throw bad(`Not existing vector name error: ${unknown}`);
}

/** Vector names of a collection; the unnamed one is "". */
export function denseParams(config: CollectionBody): Map<string, { size: number; distance: string }> {
  const vectors = config.vectors;
  if (typeof (vectors as { size?: unknown }).size === "number")
    return new Map([["", vectors as { size: number; distance: string }]]);
  return new Map(Object.entries(vectors as Record<string, { size: number; distance: string }>));
}

const isSparse = (v: unknown): v is Sparse => typeof v === "object" && v !== null && "indices" in v;

function unit(values: number[]): number[] {
  const norm = Math.hypot(...values);
  return norm === 0 ? values : values.map((v) => Math.fround(v / norm));
}

/** Checks a point's vectors against the collection and gives them as they are stored (cosine: unit length). */
export function readVectors(collection: Collection, body: VectorBody): Map<string, number[] | Sparse> {
  const params = denseParams(collection.config);
  const sparse = collection.config.sparse_vectors ?? {};
  const named = Array.isArray(body) ? { "": body } : body;
  const out = new Map<string, number[] | Sparse>();
  for (const [name, value] of Object.entries(named)) {
    if (isSparse(value)) {
      if (params.has(name)) throw bad(otherForm);
      if (!(name in sparse)) throw bad(`Not existing vector name error: ${name}`);
      out.set(name, value);
      continue;
    }
    const param = params.get(name);
    if (!param) throw bad(name in sparse ? otherForm : `Not existing vector name error: ${name}`);
    if (value.length !== param.size) {
      const where = name === "" ? "" : ` for vector '${name}'`;
      throw bad(`Vector dimension error: expected dim: ${param.size}, got ${value.length}${where}`);
    }
    out.set(name, param.distance === "Cosine" ? unit(value) : value);
  }
  return out;
}

const list = (value: Condition | Condition[] | null | undefined): Condition[] =>
  value == null ? [] : Array.isArray(value) ? value : [value];

/** Payload value by path; `metadata.category` reads into objects. */
function field(payload: Record<string, unknown>, key: string): unknown {
  let at: unknown = payload;
  for (const part of key.split("."))
    at = typeof at === "object" && at !== null ? (at as Record<string, unknown>)[part] : undefined;
  return at;
}
const valuesOf = (value: unknown): unknown[] => (value == null ? [] : Array.isArray(value) ? value : [value]);

function needIndex(collection: Collection, key: string, types: string): string {
  const index = collection.indexes.get(key);
  if (index !== undefined) return index;
  throw new Refusal(
    400,
    `Bad request: Index required but not found for "${key}" of one of the following types: [${types}]. Help: Create an index for this key or use a different filter.`,
  );
}

function holds(collection: Collection, condition: Condition, point: Point): boolean {
  if ("has_id" in condition) return condition.has_id.includes(point.id);
  if ("is_empty" in condition) {
    needIndex(collection, condition.is_empty.key, "any");
    return valuesOf(field(point.payload, condition.is_empty.key)).length === 0;
  }
  if ("is_null" in condition) {
    needIndex(collection, condition.is_null.key, "any");
    return field(point.payload, condition.is_null.key) === null;
  }
  if (!("key" in condition)) return matches(collection, condition, point);
  const index = needIndex(collection, condition.key, condition.range ? "integer, float" : "keyword");
  const values = valuesOf(field(point.payload, condition.key));
  const { match, range } = condition;
  if (match) {
    if ("value" in match) return values.includes(match.value);
    if ("any" in match) return values.some((v) => (match.any as unknown[]).includes(v));
    return values.some((v) => !(match.except as unknown[]).includes(v));
  }
  return values.some(
    (v) =>
      typeof v === "number" &&
      (index !== "integer" || Number.isInteger(v)) &&
      (range?.lt == null || v < range.lt) &&
      (range?.lte == null || v <= range.lte) &&
      (range?.gt == null || v > range.gt) &&
      (range?.gte == null || v >= range.gte),
  );
}

/** Whether a point passes. A condition on a field without a payload index is refused, as strict mode does. */
export function matches(collection: Collection, filter: Filter | null | undefined, point: Point): boolean {
  if (filter == null) return true;
  const should = list(filter.should);
  return (
    list(filter.must).every((c) => holds(collection, c, point)) &&
    (should.length === 0 || should.some((c) => holds(collection, c, point))) &&
    !list(filter.must_not).some((c) => holds(collection, c, point))
  );
}

/** Order of ids: numbers first, then UUIDs by value. */
export function byId(a: PointId, b: PointId): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What ties stands in no order that a client may count on: another one for each `salt`. */
export function byChance(a: PointId, b: PointId, salt = 0): number {
  const at = (id: PointId): bigint => Bun.hash.xxHash64(String(id), BigInt(salt));
  return at(a) < at(b) ? -1 : 1;
}

/** Inverse document frequency as Qdrant's `modifier: idf` computes it, over the whole collection. */
function idf(collection: Collection, name: string, index: number): number {
  let df = 0;
  let n = 0;
  for (const point of collection.points.values()) {
    const v = point.vectors.get(name);
    if (!isSparse(v)) continue;
    n++;
    if (v.indices.includes(index)) df++;
  }
  return Math.log(1 + (n - df + 0.5) / (df + 0.5));
}

interface Leaf {
  query: number[] | Sparse;
  using?: string | undefined;
  filter?: Filter | null | undefined;
  score_threshold?: number | undefined;
  limit: number;
}

function nearest(collection: Collection, leaf: Leaf): Scored[] {
  const name = leaf.using ?? "";
  let score: (point: Point) => number | null;
  if (isSparse(leaf.query)) {
    const modifier = collection.config.sparse_vectors?.[name];
    if (denseParams(collection.config).has(name)) throw bad(otherForm);
    if (!modifier) throw bad(`Not existing vector name error: ${name}`);
    const weights = new Map<number, number>();
    leaf.query.indices.forEach((index, i) => {
      const weight = isSparse(leaf.query) ? (leaf.query.values[i] ?? 0) : 0;
      weights.set(index, weight * (modifier.modifier === "idf" ? idf(collection, name, index) : 1));
    });
    score = (point) => {
      const v = point.vectors.get(name);
      if (!isSparse(v)) return null;
      let sum = 0;
      let hit = false;
      v.indices.forEach((index, i) => {
        const weight = weights.get(index);
        if (weight === undefined) return;
        hit = true;
        sum += weight * (v.values[i] ?? 0);
      });
      return hit ? sum : null;
    };
  } else {
    const param = denseParams(collection.config).get(name);
    if (!param && collection.config.sparse_vectors?.[name]) throw bad(otherForm);
    if (!param) throw bad(`Not existing vector name error: ${name}`);
    if (leaf.query.length !== param.size)
      throw bad(`Vector dimension error: expected dim: ${param.size}, got ${leaf.query.length}`);
    const query = unit(leaf.query);
    score = (point) => {
      const v = point.vectors.get(name);
      if (v === undefined || isSparse(v)) return null;
      let sum = 0;
      for (let i = 0; i < query.length; i++) sum += (query[i] ?? 0) * (v[i] ?? 0);
      return sum;
    };
  }
  const out: Scored[] = [];
  for (const point of collection.points.values()) {
    if (!matches(collection, leaf.filter, point)) continue;
    const value = score(point);
    if (value === null || (leaf.score_threshold !== undefined && value <= leaf.score_threshold)) continue;
    out.push({ point, score: value });
  }
  return out.toSorted((a, b) => b.score - a.score || byChance(a.point.id, b.point.id)).slice(0, leaf.limit);
}

/** `POST /collections/{name}/points/query`. Reciprocal rank fusion: 1 / (rank from 0 + k), k = 2 unless given. */
export function runQuery(collection: Collection, body: QueryBody): Scored[] {
  const limit = body.limit ?? 10;
  const offset = body.offset ?? 0;
  const { query } = body;
  if (Array.isArray(query) || isSparse(query) || "nearest" in query) {
    if (body.prefetch) throw bad("a nearest query over prefetches is not part of the used subset");
    const vector = Array.isArray(query) || isSparse(query) ? query : query.nearest;
    return nearest(collection, { ...body, query: vector, limit: limit + offset }).slice(offset);
  }
  if (!body.prefetch || (Array.isArray(body.prefetch) && body.prefetch.length === 0))
    throw bad("Validation failed: cannot apply Fusion without prefetches");
  const k = "rrf" in query ? (query.rrf.k ?? 2) : 2;
  if ("fusion" in query && query.fusion !== "rrf") throw bad("only rrf is part of the used subset");
  const lists = (Array.isArray(body.prefetch) ? body.prefetch : [body.prefetch]).map((p) =>
    nearest(collection, { ...p, limit: p.limit ?? limit + offset }),
  );
  const fused = new Map<PointId, Scored>();
  for (const ranked of lists)
    ranked.forEach(({ point }, rank) => {
      const at = fused.get(point.id) ?? { point, score: 0 };
      at.score += 1 / (rank + k);
      fused.set(point.id, at);
    });
  return [...fused.values()]
    .filter(({ point }) => matches(collection, body.filter, point))
    .toSorted((a, b) => b.score - a.score || byChance(a.point.id, b.point.id))
    .slice(offset, offset + limit);
}
