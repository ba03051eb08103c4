/** What a person can ask of the mirror: is it well, does it find, clean it up, compare both sides and repair. */
import { countOutbox, dueNow } from "../../db/mirror.ts";
import { QdrantError } from "../../search/qdrant/client.ts";
import type { Qdrant } from "../../search/qdrant/client.ts";
import { aliasesOf, dimensionOf, infoOf } from "../../search/qdrant/collections.ts";
import { outdatedFilter, ownPoints } from "../../search/qdrant/points.ts";
import { AppError } from "../../error.ts";
import type { Mirror } from "./mirror.ts";
import { OUTBOX } from "./mirror.ts";
import type { MirrorRow, MirrorSource } from "./source.ts";
import { fetchPayloads, samePayload, upsert } from "./work.ts";

export type QdrantHealth = {
  ok: boolean;
  latencyMs: number;
  error?: string;
  collection?: string;
  dimension?: number;
};
export type QdrantSearchTest = {
  ok: boolean;
  latencyMs: number;
  results: { id: string; score: number; payload: Record<string, unknown> }[];
  error?: string;
};
export type Reconciled = { missing: number; stale: number; orphaned: number; repaired: number };
export type QdrantStatus = {
  enabled: boolean;
  healthy: boolean;
  latencyMs: number | null;
  error: string | null;
  pending: number;
};
export type QdrantProof = "confirmed" | "pending" | "off";

const PAGE = 500;
const message = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

export function createOperations(mirror: Mirror) {
  const { deps } = mirror;
  let last: { at: number; health: QdrantHealth } | null = null;

  const need = async (): Promise<Qdrant> => {
    const q = await mirror.connect();
    if (!q) throw new AppError("unavailable", "No Qdrant host is set.");
    return q;
  };

  /** `/readyz`, the collection, its size, and one real search in it. */
  async function health(): Promise<QdrantHealth> {
    const started = performance.now();
    const took = (): number => Math.round((performance.now() - started) * 100) / 100;
    try {
      const q = await mirror.connect();
      if (!q) return { ok: false, latencyMs: 0, error: "not_configured" };
      await q.ready();
      const { collection } = deps.connection();
      const name = mirror.filled("memory")?.physical ?? (await aliasesOf(q)).get(collection) ?? collection;
      const info = await infoOf(q, name);
      if (!info) return { ok: false, latencyMs: took(), error: `There is no collection ${collection} yet.` };
      const { embeddingModel } = deps.connection();
      // A store that nothing can be compared with is not well, however ready the server is.
      if (!(await deps.embedder(embeddingModel))) {
        const error =
          embeddingModel === null
            ? "There is no model that makes vectors for Qdrant."
            : `The model ${embeddingModel} of Qdrant is not usable.`;
        return { ok: false, latencyMs: took(), error, collection };
      }
      const dimension = dimensionOf(info);
      if (dimension !== null)
        await q.call("search", (api, init) =>
          api.queryPoints(
            {
              collection_name: name,
              query: Array.from({ length: dimension }, (_, i) => (i === 0 ? 1 : 0)),
              limit: 1,
            },
            init,
          ),
        );
      return { ok: true, latencyMs: took(), collection, ...(dimension === null ? {} : { dimension }) };
    } catch (thrown) {
      return { ok: false, latencyMs: took(), error: message(thrown) };
    }
  }

  /** The search test of the settings page: over every owner, with payloads. */
  async function searchTest(input: { query: string; topK: number }): Promise<QdrantSearchTest> {
    const started = performance.now();
    const took = (): number => Math.round((performance.now() - started) * 100) / 100;
    try {
      const connection = deps.connection();
      const q = await mirror.connect();
      if (!q) return { ok: false, latencyMs: 0, results: [], error: "not_configured" };
      const embedder = await deps.embedder(connection.embeddingModel);
      if (!embedder) throw new Error("There is no model that makes vectors for Qdrant.");
      const [vector] = await embedder.embed([input.query]);
      const name = mirror.filled("memory")?.physical ?? connection.collection;
      const { points } = await q.call("search", (api, init) =>
        api.queryPoints(
          {
            collection_name: name,
            query: Array.from(vector!),
            filter: ownPoints("omniroute_memory", deps.boxId),
            limit: input.topK,
            with_payload: true,
          },
          init,
        ),
      );
      const results = points.map((p) => ({ id: String(p.id), score: p.score, payload: p.payload ?? {} }));
      return { ok: true, latencyMs: took(), results };
    } catch (thrown) {
      return { ok: false, latencyMs: took(), results: [], error: message(thrown) };
    }
  }

  /** Deletes this box's points that no search gives any more: expired or past retention. Counted first. */
  async function cleanup(): Promise<{ ok: true; deletedCount: number; retentionDays: number }> {
    const q = await need();
    const retentionDays = deps.retentionDays();
    let deletedCount = 0;
    for (const source of mirror.deps.sources) {
      const collection = mirror.filled(source.kind)?.physical;
      // Exchanges and what is made of them have no times of their own that a filter knows.
      if (collection === undefined || source.kind !== "memory") continue;
      const filter = outdatedFilter(source.payloadKind, deps.boxId, retentionDays, deps.now());
      const { count } = await q.call("write", (api, init) =>
        api.countPoints({ collection_name: collection, filter, exact: true }, init),
      );
      if (count === 0) continue;
      await q.call("write", (api, init) =>
        api.deletePoints({ collection_name: collection, wait: true, filter }, init),
      );
      deletedCount += count;
    }
    return { ok: true, deletedCount, retentionDays };
  }

  /** Compares both sides and repairs: missing and stale points are written, orphaned ones deleted. */
  async function reconcile(input: { dryRun: boolean }): Promise<Reconciled> {
    const q = await need();
    const connection = deps.connection();
    if (!connection.enabled)
      throw new AppError("conflict", "Qdrant is not enabled; there is nothing to compare.");
    const embedder = await deps.embedder(connection.embeddingModel);
    if (!embedder) throw new AppError("unavailable", "There is no model that makes vectors for Qdrant.");
    const total: Reconciled = { missing: 0, stale: 0, orphaned: 0, repaired: 0 };
    /** What is counted and repaired of one kind. */
    async function compare(source: MirrorSource): Promise<void> {
      const { physical } = await mirror.open(q, source, embedder!);
      const write = async (rows: MirrorRow[]): Promise<void> => {
        // As they are now: a row may have gone while its page was compared.
        const now = source.load(rows.map((r) => ({ pointId: r.pointId, row: r.cursor })));
        if (now.length > 0) await upsert(q, physical, embedder!, now);
        total.repaired += rows.length;
      };
      await compareRows(q, physical, source, total, input.dryRun ? null : write);
      await compareOrphans(q, physical, source, total, input.dryRun);
    }
    for (const source of mirror.deps.sources) {
      try {
        await compare(source);
      } catch (thrown) {
        if (!(thrown instanceof QdrantError)) throw thrown;
        if (thrown.fault !== "not_found")
          throw new AppError("unavailable", thrown.message, { cause: thrown });
        // Removed behind our back: made anew, and everything is missing.
        mirror.forget(source);
        await compare(source);
      }
    }
    return total;
  }

  async function compareRows(
    q: Qdrant,
    physical: string,
    source: MirrorSource,
    total: Reconciled,
    write: ((rows: MirrorRow[]) => Promise<void>) | null,
  ): Promise<void> {
    for (let after = 0; ;) {
      const rows = source.page(after, PAGE);
      if (rows.length === 0) return;
      after = rows.at(-1)!.cursor;
      const stored = await fetchPayloads(
        q,
        physical,
        rows.map((r) => r.pointId),
      );
      const wrong = rows.filter((row) => !samePayload(stored.get(row.pointId), row.payload));
      for (const row of wrong) total[stored.has(row.pointId) ? "stale" : "missing"]++;
      if (write && wrong.length > 0) await write(wrong);
    }
  }

  async function compareOrphans(
    q: Qdrant,
    physical: string,
    source: MirrorSource,
    total: Reconciled,
    dryRun: boolean,
  ): Promise<void> {
    const filter = ownPoints(source.payloadKind, deps.boxId);
    let offset: string | number | undefined;
    for (;;) {
      const page = await q.call("write", (api, init) =>
        api.scrollPoints(
          {
            collection_name: physical,
            filter,
            limit: PAGE,
            with_payload: ["rowId"],
            ...(offset === undefined ? {} : { offset }),
          },
          init,
        ),
      );
      const ids = page.points.map((p) => p.id);
      const refs = page.points.map((p) => {
        const row = p.payload?.["rowId"];
        return { pointId: String(p.id), row: typeof row === "number" ? row : null };
      });
      const known = new Set(source.load(refs).map((row) => row.pointId));
      const orphans = ids.filter((id) => !known.has(String(id)));
      total.orphaned += orphans.length;
      if (orphans.length > 0 && !dryRun) {
        await q.call("write", (api, init) =>
          api.deletePoints({ collection_name: physical, wait: true, points: orphans }, init),
        );
        total.repaired += orphans.length;
      }
      const next = page.next_page_offset;
      if (typeof next !== "string" && typeof next !== "number") return;
      offset = next;
    }
  }

  /** Whether a deleted memory's point is gone; waits up to `ms` for the outbox. */
  async function proof(id: string, ms = 5000): Promise<QdrantProof> {
    const connection = deps.connection();
    const collection = mirror.filled("memory")?.physical;
    if (connection.url === null || collection === undefined) return "off";
    const end = performance.now() + ms;
    // Somebody waits: what is put off is tried at once.
    dueNow(deps.db, [OUTBOX], deps.now());
    deps.jobs.wake();
    while (countOutbox(deps.db, OUTBOX, `memory:${id}`) > 0) {
      if (performance.now() > end) return "pending";
      await Bun.sleep(20);
    }
    try {
      const q = await need();
      return (await fetchPayloads(q, collection, [id])).size === 0 ? "confirmed" : "pending";
    } catch (thrown) {
      if (thrown instanceof QdrantError) return "pending";
      throw thrown;
    }
  }

  /** Asks for the health again and keeps it for the status page. */
  async function watch(): Promise<void> {
    const { enabled, embeddingModel } = deps.connection();
    last = enabled ? { at: deps.now(), health: await health() } : null;
    if (enabled) mirror.check((await deps.embedder(embeddingModel))?.signature ?? null);
  }

  /** `healthy` means that a real search worked, within the last 30 s. */
  async function status(): Promise<QdrantStatus> {
    const { enabled } = deps.connection();
    if (!enabled) return { enabled, healthy: false, latencyMs: null, error: null, pending: mirror.pending() };
    if (last === null || deps.now() - last.at > 30_000) await watch();
    const { ok, latencyMs, error } = last?.health ?? { ok: false, latencyMs: 0, error: "not asked yet" };
    const progress = mirror
      .filling()
      .filter(({ total }) => total > 0)
      .map(({ kind, done, total }) => `${done} of ${total} rows of kind ${kind} are filled in.`);
    const said = [...(error === undefined ? [] : [error]), ...mirror.notes(), ...progress].join(" ");
    return {
      enabled,
      healthy: ok,
      latencyMs,
      error: said === "" ? null : said,
      pending: mirror.pending(),
    };
  }

  return { health, searchTest, cleanup, reconcile, proof, watch, status };
}
