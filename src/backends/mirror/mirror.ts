/**
 * Tier 2: keeps a Qdrant server in step with the rows of SQLite, which stay the truth. Every change queues a job in its
 * own transaction (the outbox); a job carries the row's state at the time it runs, so that order and repetition do not
 * matter. What was there before is filled in behind, and searches are answered here only when that is complete.
 */
import type { Database } from "bun:sqlite";
import type { BreakerChange } from "../../search/qdrant/breaker.ts";
import { connectQdrant, QdrantError } from "../../search/qdrant/client.ts";
import type { Qdrant, QdrantCondition, QdrantFilter } from "../../search/qdrant/client.ts";
import { openCollection, switchAlias } from "../../search/qdrant/collections.ts";
import { baseFilter, MEMORY_KIND, ownBox, recordFilter } from "../../search/qdrant/points.ts";
import type { Scope } from "../../search/qdrant/points.ts";
import { getMeta, setMeta } from "../../db/meta.ts";
import { countOutbox, dueNow } from "../../db/mirror.ts";
import type { Embedder } from "../../embed/types.ts";
import type { Log } from "../../log.ts";
import type { Jobs } from "../../memory/jobs.ts";
import type { Kind } from "../../memory/types.ts";
import type { QdrantConnection } from "./settings.ts";
import type { MirrorSource, PointRef } from "./source.ts";

export const OUTBOX = "qdrant";
export const FILL = "qdrant-fill";

export type MirrorDeps = {
  db: Database;
  log: Log;
  now: () => number;
  jobs: Pick<Jobs, "queue" | "wake">;
  boxId: string;
  connection: () => QdrantConnection;
  retentionDays: () => number;
  /** The embedder of a `qdrantEmbeddingModel`; null: the engine's own. Null when there is none. */
  embedder: (model: string | null) => Promise<Embedder | null>;
  sources: readonly MirrorSource[];
  /** Rejects when the address may not be called. */
  allowed?: (url: URL) => Promise<void>;
  /** For tests. */
  probeEveryMs?: number;
  searchTimeoutMs?: number;
};

/** What this box knows about its collection of one kind, kept in `meta`. */
export type Filled = {
  physical: string;
  /** The collection that the alias still points at while this one is filled beside it. */
  old: string | null;
  signature: string;
  complete: boolean;
  cursor: number;
  done: number;
};

export type Opened = Filled & {
  source: MirrorSource;
  aliased: boolean;
  name: string;
  note: string | null;
  /** Made in this run, so that a fill need not look what is there. */
  fresh: boolean;
};

export type MirrorSearch = Scope & {
  kind: Kind;
  text: string;
  /** The query's vector by the engine's own embedder. */
  vector: Float32Array;
  signature: string;
  limit: number;
  signal?: AbortSignal;
};
/** Point ids with their cosine, best first; or why Qdrant did not answer. */
export type MirrorAnswer = { hits: (PointRef & { score: number })[] } | { reason: string };

export type Mirror = ReturnType<typeof createMirror>;

export function createMirror(deps: MirrorDeps) {
  const { db, log, now, jobs, sources } = deps;
  let client: { key: string; q: Promise<Qdrant> } | null = null;
  /** Notes and old collections of this run, by kind. */
  const opened = new Map<Kind, Opened>();
  /** Settles when the last search for a kind's collection has ended. */
  const opening = new Map<Kind, Promise<void>>();

  const metaName = (name: string): string => `qdrant:${name}`;
  const filled = (source: MirrorSource, connection: QdrantConnection): Filled | null => {
    const value = getMeta(db, metaName(source.collection(connection.collection)));
    return typeof value === "string" ? (JSON.parse(value) as Filled) : null;
  };
  const remember = (one: Opened): void => {
    const { physical, old, signature, complete, cursor, done } = one;
    setMeta(db, metaName(one.name), JSON.stringify({ physical, old, signature, complete, cursor, done }));
  };

  const onBreaker = ({ open, reason }: BreakerChange): void => {
    log[open ? "warn" : "info"]("qdrant.breaker", { open, reason });
  };
  const onRecovered = (): void => {
    dueNow(db, [OUTBOX, FILL], now());
    jobs.wake();
  };

  /** The client of the address that is set, or null while there is none. */
  async function connect(): Promise<Qdrant | null> {
    const { url, apiKey } = deps.connection();
    const key = JSON.stringify([url, apiKey]);
    if (client?.key !== key) {
      await disconnect();
      if (url === null) return null;
      const { probeEveryMs, searchTimeoutMs } = deps;
      const q = connectQdrant(
        { url, apiKey, ...(deps.allowed ? { allowed: deps.allowed } : {}) },
        {
          onBreaker,
          onRecovered,
          ...(probeEveryMs === undefined ? {} : { probeEveryMs }),
          ...(searchTimeoutMs === undefined ? {} : { searchTimeoutMs }),
        },
      );
      client = { key, q };
    }
    return client.q;
  }

  async function disconnect(): Promise<void> {
    const before = client;
    client = null;
    opened.clear();
    if (before) (await before.q).close();
  }

  /** The collection that rows of a kind are written to now; queues the fill that is due. */
  async function open(q: Qdrant, source: MirrorSource, embedder: Embedder): Promise<Opened> {
    const connection = deps.connection();
    const name = source.collection(connection.collection);
    const known = opened.get(source.kind);
    if (known?.name === name && known.signature === embedder.signature) return known;
    // The outbox and the fill come here at the same time, and a collection is made once.
    const turn = (opening.get(source.kind) ?? Promise.resolve()).then(() => {
      const now = opened.get(source.kind);
      return now?.name === name && now.signature === embedder.signature
        ? now
        : find(q, source, embedder, connection, name);
    });
    const settled = turn.then(
      () => {},
      () => {},
    );
    opening.set(source.kind, settled);
    return turn;
  }

  async function find(
    q: Qdrant,
    source: MirrorSource,
    embedder: Embedder,
    connection: QdrantConnection,
    name: string,
  ): Promise<Opened> {
    const before = filled(source, connection);
    const found = await openCollection(q, {
      name,
      shape: source.shape(embedder.dimensions),
      signature: embedder.signature,
      quantization: connection.quantization,
      efConstruct: connection.efConstruct,
      remembered: before,
    });
    const same =
      before?.physical === found.physical && before.signature === embedder.signature && !found.created;
    const state: Opened = {
      ...(same
        ? before
        : { physical: found.physical, signature: embedder.signature, complete: false, cursor: 0, done: 0 }),
      source,
      name,
      old: found.old,
      aliased: found.aliased,
      note: found.note,
      fresh: found.created,
    };
    opened.set(source.kind, state);
    remember(state);
    if (!state.complete) queueFill(source.kind);
    return state;
  }

  function queueFill(kind: Kind): void {
    jobs.queue({ type: FILL, ownerId: null, payload: { kind }, dedupe: kind });
  }

  /** The collection is gone or was never complete: forget what was known and fill again. */
  function forget(source: MirrorSource): void {
    const one = opened.get(source.kind);
    opened.delete(source.kind);
    const name = one?.name ?? source.collection(deps.connection().collection);
    db.query("DELETE FROM meta WHERE name = ?").run(metaName(name));
    queueFill(source.kind);
  }

  /** Everything behind is filled: the alias moves in one step, the old collection goes. */
  async function complete(q: Qdrant, one: Opened): Promise<void> {
    if (one.aliased && one.old !== null) await switchAlias(q, one.name, one.old, one.physical);
    one.old = null;
    one.complete = true;
    remember(one);
    log.info("qdrant.filled", { kind: one.source.kind, points: one.done });
  }

  const sourceOf = (kind: Kind): MirrorSource | null => sources.find((s) => s.kind === kind) ?? null;

  /** Queues what a changed or removed row means for its point, in the caller's transaction. */
  function touch(kind: Kind, row: string | number): void {
    const source = sourceOf(kind);
    const pointId = typeof row === "string" ? row : (source?.pointId(row) ?? null);
    if (!source || pointId === null) return;
    const connection = deps.connection();
    if (connection.url === null) return;
    // While it is off, only points that were once written matter: a deletion must still reach them.
    if (!connection.enabled && !filled(source, connection)) return;
    const payload = { kind, id: pointId, ...(typeof row === "number" ? { row } : {}) };
    jobs.queue({ type: OUTBOX, ownerId: null, payload, dedupe: `${kind}:${pointId}` });
  }

  /** Memories of this box: those of another appliance on the same server have no rows here. */
  function mirrorFilter(scope: Scope): QdrantFilter {
    const { must } = baseFilter(MEMORY_KIND, scope);
    return { must: [...(must as QdrantCondition[]), ownBox(deps.boxId)] };
  }

  async function search(input: MirrorSearch): Promise<MirrorAnswer> {
    const connection = deps.connection();
    const source = sourceOf(input.kind);
    if (!connection.enabled || !source) return { reason: "Qdrant is not chosen." };
    if (connection.url === null) return { reason: "Qdrant is chosen but has no host." };
    const state = opened.get(input.kind) ?? filled(source, connection);
    if (!state) {
      queueFill(input.kind);
      return { reason: "Qdrant is being set up." };
    }
    try {
      let { vector, signature } = input;
      if (connection.embeddingModel !== null) {
        const embedder = await deps.embedder(connection.embeddingModel);
        if (!embedder) return { reason: `The model ${connection.embeddingModel} of Qdrant is not usable.` };
        ({ signature } = embedder);
        vector = (await embedder.embed([input.text], input.signal))[0]!;
      }
      if (state.signature !== signature || !state.complete) {
        queueFill(input.kind);
        return { reason: `Qdrant is being filled for this model (${state.done} of ${source.count()}).` };
      }
      const q = await connect();
      if (!q) return { reason: "Qdrant is chosen but has no host." };
      const { points } = await q.call(
        "search",
        (api, init) =>
          api.queryPoints(
            {
              collection_name: state.physical,
              query: Array.from(vector),
              ...(source.using === undefined ? {} : { using: source.using }),
              filter:
                input.kind === "memory"
                  ? mirrorFilter(input)
                  : recordFilter(source.payloadKind, deps.boxId, input),
              limit: input.limit,
              with_payload: input.kind === "memory" ? false : ["rowId"],
              ...(connection.quantization === "none"
                ? {}
                : { params: { quantization: { rescore: true, oversampling: 2 } } }),
            },
            init,
          ),
        input.signal,
      );
      const hits = points.map((p) => {
        const row = p.payload?.["rowId"];
        return { pointId: String(p.id), row: typeof row === "number" ? row : null, score: p.score };
      });
      return { hits };
    } catch (thrown) {
      if (!(thrown instanceof QdrantError)) throw thrown;
      if (thrown.fault === "not_found") forget(source);
      return { reason: thrown.message };
    }
  }

  /** Looks whether something has to be filled: at the start, after a change of settings or model, and now and then. */
  function check(signature: string | null = null): void {
    const connection = deps.connection();
    if (!connection.enabled || connection.url === null) return;
    for (const source of sources) {
      const known = opened.get(source.kind);
      if (!known?.complete || (signature !== null && known.signature !== signature)) queueFill(source.kind);
    }
  }

  /** Rows that are not filled in yet, by what they are and how many there are. */
  function filling(): { kind: Kind; done: number; total: number }[] {
    const connection = deps.connection();
    if (!connection.enabled || connection.url === null) return [];
    return sources.flatMap((source) => {
      const known = filled(source, connection);
      if (known?.complete) return [];
      const total = source.count();
      return [{ kind: source.kind, done: Math.min(known?.done ?? 0, total), total }];
    });
  }

  /** Everything that Qdrant has not heard of yet. */
  const pending = (): number =>
    filling().reduce((sum, { done, total }) => sum + total - done, 0) +
    countOutbox(db, OUTBOX) +
    countOutbox(db, FILL);

  return {
    deps,
    connect,
    disconnect,
    open,
    forget,
    complete,
    remember,
    sourceOf,
    touch,
    search,
    check,
    filling,
    pending,
    /** Notes of the collections, for the status page. */
    notes: (): string[] => [...opened.values()].flatMap((o) => (o.note === null ? [] : [o.note])),
    filled: (kind: Kind): Filled | null => {
      const source = sourceOf(kind);
      return source ? filled(source, deps.connection()) : null;
    },
    /** Settings changed: other address, collection or quantisation. */
    changed(): void {
      opened.clear();
      check();
    },
  };
}
