/**
 * Memories that live in a Qdrant cluster, so that any number of appliances share them: the payload is the memory, a
 * dense and a BM25 vector find it, and the server fuses the two lists itself.
 */
import type { Embedder } from "../embed/types.ts";
import type { Memory } from "../memory/types.ts";
import { QdrantError } from "../search/qdrant/client.ts";
import type { Prefetch, Qdrant, QdrantCondition, QdrantFilter } from "../search/qdrant/client.ts";
import { infoOf, openCollection, switchAlias } from "../search/qdrant/collections.ts";
import type { OpenedCollection, Quantization } from "../search/qdrant/collections.ts";
import { baseFilter, MEMORY_KIND } from "../search/qdrant/points.ts";
import { embedItem } from "../embed/windows.ts";
import {
  DENSE,
  fullPayload,
  indexes,
  patchedPayload,
  readPayload,
  SPARSE,
  sparseOfMemory,
  sparseQuery,
} from "./qdrant-payload.ts";
import type { Sparse } from "./qdrant-payload.ts";
import { settleTies } from "./qdrant-order.ts";
import { passes, searchText } from "./rank.ts";
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

export type QdrantBackendDeps = {
  connect: () => Promise<Qdrant | null>;
  /** Null: no model, so that words alone find. */
  embedder: () => Promise<Embedder | null>;
  /** The alias that all appliances use. */
  collection: string;
  quantization: Quantization;
  efConstruct: number | null;
  boxId: string;
  retentionDays?: () => number;
};

const PAGE = 1000;
const NO_MODEL = "none";
/** Candidates of each of the two lists that are fused. */
const PREFETCH = 50;

type Open = { q: Qdrant; embedder: Embedder | null; state: OpenedCollection; signature: string };

export class QdrantBackend implements MemoryBackend {
  readonly id: string;
  readonly displayName: string;
  readonly whole = true;
  readonly #deps: QdrantBackendDeps;
  #opened: Promise<Open> | null = null;

  constructor(id: string, displayName: string, deps: QdrantBackendDeps) {
    this.id = id;
    this.displayName = displayName;
    this.#deps = deps;
  }

  async initialize(): Promise<void> {
    await this.#ask((open) => Promise.resolve(open));
  }

  create(memory: Memory): Promise<Memory> {
    return this.#ask(async (open) => {
      await this.#upsert(open, this.#home(open), memory);
      return memory;
    });
  }

  get(owner: string | null, id: string): Promise<Memory | null> {
    return this.#ask(async (open) => {
      const memory = await this.#read(open, id);
      return owner === null || memory?.apiKeyId === owner ? memory : null;
    });
  }

  update(owner: string, id: string, patch: MemoryPatch): Promise<boolean> {
    return this.#ask(async (open) => {
      const before = await this.#read(open, id);
      if (before?.apiKeyId !== owner) return false;
      const after = { ...before, ...patch };
      if (searchText(after) !== searchText(before)) {
        await this.#upsert(open, this.#home(open), after);
        return true;
      }
      const payload = patchedPayload(before, patch, this.#deps.boxId);
      if (Object.keys(payload).length === 0) return true;
      try {
        await open.q.call("write", (api, init) =>
          api.setPayload({ collection_name: this.#home(open), wait: true, payload, points: [id] }, init),
        );
      } catch (thrown) {
        // The server refuses a point that is not there: another appliance deleted it since it was read.
        if (!(thrown instanceof QdrantError) || thrown.fault !== "not_found") throw thrown;
        if (await this.#read(open, id)) throw thrown;
        return false;
      }
      return true;
    });
  }

  delete(owner: string, id: string): Promise<boolean> {
    return this.#ask(async (open) => {
      if ((await this.#read(open, id))?.apiKeyId !== owner) return false;
      const { physical, old } = open.state;
      for (const collection of new Set([physical, old ?? physical]))
        await open.q.call("write", (api, init) =>
          api.deletePoints({ collection_name: collection, wait: true, points: [id] }, init),
        );
      return true;
    });
  }

  /** The active memory of this owner that holds a key. */
  byKey(owner: string, key: string): Promise<Memory | null> {
    return this.#ask(async (open) => {
      const { points } = await open.q.call("search", (api, init) =>
        api.scrollPoints(
          {
            collection_name: this.#home(open),
            filter: { must: [...must({ apiKeyId: owner, key, status: "active" })] },
            limit: 1,
            with_payload: true,
          },
          init,
        ),
      );
      return readPayload(points[0]?.payload);
    });
  }

  list(filter: MemoryFilter): Promise<MemoryPage> {
    return this.#ask(async (open) => {
      const collection_name = this.#home(open);
      const { apiKeyId, type, sessionId, status, q } = filter;
      const where: QdrantFilter = { must: must({ apiKeyId, type, sessionId, status }) };
      const key = filter.orderBy === "updatedAt" ? "updatedAtMs" : "createdAtMs";
      const end = filter.offset + filter.limit;
      const whole = filter.offset === 0;
      if (q !== undefined) return page(await this.#matching(open, where, filter), filter);
      const [{ count }, { hits }, { points }] = await Promise.all([
        open.q.call("write", (api, init) =>
          api.countPoints({ collection_name, filter: where, exact: true }, init),
        ),
        open.q.call("write", (api, init) =>
          api.facet({ collection_name, key: "type", filter: where, limit: 100, exact: true }, init),
        ),
        // An ordered scroll has no offset: the ids before the page are fetched without their payloads. One more than
        // the page tells whether its last moment goes on behind it.
        open.q.call("write", (api, init) =>
          api.scrollPoints(
            {
              collection_name,
              filter: where,
              order_by: { key, direction: filter.orderDir ?? "desc" },
              limit: end + 1,
              with_payload: whole,
            },
            init,
          ),
        ),
      ]);
      const settled = await settleTies(points, end, async (value, limit) => {
        const must = [...(where.must as QdrantCondition[]), { key, range: { gte: value, lte: value } }];
        const ties = await open.q.call("write", (api, init) =>
          api.scrollPoints({ collection_name, filter: { must }, limit, with_payload: whole }, init),
        );
        return ties.points;
      });
      const wanted = settled.slice(filter.offset, end);
      const rows = whole
        ? wanted.map((p) => readPayload(p.payload))
        : await this.#readAll(
            open,
            wanted.map((p) => String(p.id)),
          );
      const byType = Object.fromEntries(hits.map((hit) => [String(hit.value), hit.count]));
      return { data: rows.filter((m) => m !== null), total: count, byType };
    });
  }

  search(config: SearchConfig): Promise<Found[]> {
    return this.#ask(async (open) => {
      const scope = {
        owner: config.apiKeyId,
        session: config.sessionId ?? null,
        retentionDays: this.#deps.retentionDays?.() ?? 0,
        now: Date.now(),
      };
      const base = baseFilter(MEMORY_KIND, scope).must as QdrantCondition[];
      const filter = { must: [...base, ...must({ status: "active", type: config.type })] };
      const limit = Math.max(PREFETCH, config.limit);
      const sparse = sparseQuery(config.query);
      const lists: Prefetch[] = [];
      if (sparse.indices.length > 0) lists.push({ query: sparse, using: SPARSE, filter, limit });
      // While another model's vectors are built, the words of the query find alone.
      if (open.embedder && open.state.old === null) {
        const [vector] = await open.embedder.embed([config.query], config.signal);
        const quantized = this.#deps.quantization !== "none";
        lists.push({
          query: Array.from(vector!),
          using: DENSE,
          filter,
          limit,
          ...(quantized ? { params: { quantization: { rescore: true, oversampling: 2 } } } : {}),
        });
      }
      if (lists.length === 0) return [];
      const { points } = await open.q.call(
        "search",
        (api, init) =>
          api.queryPoints(
            {
              collection_name: this.#home(open),
              prefetch: lists,
              query: { fusion: "rrf" },
              limit: config.limit,
              with_payload: true,
            },
            init,
          ),
        config.signal,
      );
      return points.flatMap((point) => {
        const memory = readPayload(point.payload);
        return memory ? [{ memory, score: point.score }] : [];
      });
    });
  }

  async health(): Promise<Health> {
    const started = performance.now();
    const took = (): number => performance.now() - started;
    try {
      const q = await this.#deps.connect();
      if (!q) return { ok: false, latencyMs: 0, error: "No Qdrant host is set." };
      await q.ready();
      if (this.#opened && !(await infoOf(q, this.#home(await this.#opened))))
        return { ok: false, latencyMs: took(), error: `${this.displayName} has lost its collection.` };
      return { ok: true, latencyMs: took() };
    } catch (thrown) {
      return { ok: false, latencyMs: took(), error: (thrown as Error).message };
    }
  }

  /**
   * Builds the collection of another model from the old one and switches when nothing is left to copy. Rows that change
   * meanwhile are written to the old one, so the last pass takes what is newer than the pass before it.
   */
  migrate(): Promise<boolean> {
    return this.#ask(async (open) => {
      const { old, physical, aliased } = open.state;
      if (old === null || !aliased) return false;
      for (let since = 0; ;) {
        const started = Date.now();
        let copied = 0;
        for await (const memory of this.#walk(open, old, { key: "updatedAtMs", range: { gte: since } })) {
          await this.#upsert(open, physical, memory);
          copied++;
        }
        if (copied === 0 || since > 0) break;
        since = started - 1000;
      }
      await switchAlias(open.q, this.#deps.collection, old, physical);
      this.#opened = null;
      return true;
    });
  }

  /** Where rows are read and written: the old collection until the new one is complete. */
  #home(open: Open): string {
    return open.state.old ?? open.state.physical;
  }

  async #ask<T>(work: (open: Open) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#open());
    } catch (thrown) {
      if (!(thrown instanceof QdrantError)) throw thrown;
      if (thrown.fault === "not_found") this.#opened = null;
      throw new BackendError(thrown.message, { status: thrown.status, cause: thrown });
    }
  }

  async #open(): Promise<Open> {
    const embedder = await this.#deps.embedder();
    const signature = embedder?.signature ?? NO_MODEL;
    const known = await this.#opened?.catch(() => null);
    if (known?.signature === signature) return known;
    const opening = this.#openCollection(embedder, signature);
    this.#opened = opening;
    opening.catch(() => {
      if (this.#opened === opening) this.#opened = null;
    });
    return opening;
  }

  async #openCollection(embedder: Embedder | null, signature: string): Promise<Open> {
    const q = await this.#deps.connect();
    if (!q) throw new BackendError("No Qdrant host is set.");
    const { collection, quantization, efConstruct } = this.#deps;
    const state = await openCollection(q, {
      name: collection,
      shape: { vectors: embedder ? { [DENSE]: embedder.dimensions } : {}, sparse: SPARSE, indexes },
      signature,
      quantization,
      efConstruct,
    });
    return { q, embedder, state, signature };
  }

  async #upsert(open: Open, collection: string, memory: Memory): Promise<void> {
    const vector: Record<string, number[] | Sparse> = {};
    const sparse = sparseOfMemory(memory);
    if (sparse.indices.length > 0) vector[SPARSE] = sparse;
    if (open.embedder && collection === open.state.physical) {
      const windows = await embedItem(open.embedder, searchText(memory));
      vector[DENSE] = Array.from(windows[0]!, (_, i) => windows.reduce((sum, w) => sum + w[i]!, 0));
    }
    const point = { id: memory.id, vector, payload: fullPayload(memory, this.#deps.boxId) };
    await open.q.call("write", (api, init) =>
      api.upsertPoints({ collection_name: collection, wait: true, points: [point] }, init),
    );
  }

  async #read(open: Open, id: string): Promise<Memory | null> {
    return (await this.#readAll(open, [id]))[0] ?? null;
  }

  /** In the order of the ids; what is gone is left out. */
  async #readAll(open: Open, ids: string[]): Promise<Memory[]> {
    if (ids.length === 0) return [];
    const points = await open.q.call("write", (api, init) =>
      api.getPoints({ collection_name: this.#home(open), ids, with_payload: true, with_vector: false }, init),
    );
    const found = new Map(points.map((p) => [String(p.id), readPayload(p.payload)]));
    return ids.map((id) => found.get(id) ?? null).filter((m) => m !== null);
  }

  async #matching(open: Open, where: QdrantFilter, filter: MemoryFilter): Promise<Memory[]> {
    const rows: Memory[] = [];
    for await (const memory of this.#walk(open, this.#home(open), where))
      if (passes(memory, filter)) rows.push(memory);
    return rows;
  }

  async *#walk(open: Open, collection: string, condition: QdrantCondition): AsyncGenerator<Memory> {
    let offset: string | number | undefined;
    do {
      const answer = await open.q.call("write", (api, init) =>
        api.scrollPoints(
          {
            collection_name: collection,
            filter: { must: [condition] },
            limit: PAGE,
            with_payload: true,
            ...(offset === undefined ? {} : { offset }),
          },
          init,
        ),
      );
      for (const point of answer.points) {
        const memory = readPayload(point.payload);
        if (memory) yield memory;
      }
      const next = answer.next_page_offset;
      offset = typeof next === "string" || typeof next === "number" ? next : undefined;
    } while (offset !== undefined);
  }
}

/** Equal fields; null and undefined ask for nothing. Always of our kind, since a collection may hold others. */
function must(fields: Record<string, string | null | undefined>): QdrantCondition[] {
  return Object.entries({ kind: MEMORY_KIND, ...fields }).flatMap(([key, value]) =>
    value == null ? [] : [{ key, match: { value } }],
  );
}

function page(rows: Memory[], filter: MemoryFilter): MemoryPage {
  const by = filter.orderBy ?? "createdAt";
  const sign = filter.orderDir === "asc" ? 1 : -1;
  const sorted = rows.toSorted((a, b) => sign * (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0));
  const byType: Record<string, number> = {};
  for (const row of rows) byType[row.type] = (byType[row.type] ?? 0) + 1;
  return { data: sorted.slice(filter.offset, filter.offset + filter.limit), total: rows.length, byType };
}
