/** The jobs of the mirror: carrying the outbox to Qdrant in batches, and filling in what was there before. */
import { finish, putBack } from "../../db/jobs.ts";
import { takeAlong } from "../../db/mirror.ts";
import { transact } from "../../db/open.ts";
import { EmbeddingError } from "../../embed/types.ts";
import type { Embedder } from "../../embed/types.ts";
import { embedItems } from "../../embed/windows.ts";
import { PartDown } from "../../memory/jobs.ts";
import type { JobHandler } from "../../memory/jobs.ts";
import type { Kind } from "../../memory/types.ts";
import { QdrantError } from "../../search/qdrant/client.ts";
import type { Qdrant, StoredPoint } from "../../search/qdrant/client.ts";
import type { Mirror, Opened } from "./mirror.ts";
import { FILL, OUTBOX } from "./mirror.ts";
import type { MirrorRow, PointRef } from "./source.ts";

/** Points in one request: about 1.5 MB at 256 dimensions. */
const BATCH = 256;
/** A fill gives way to other jobs after so long. */
const SLICE_MS = 400;
const LEASE_MS = 60_000;
/** Characters that one step of a fill embeds: other calls wait while a local model works. */
const MOST_CHARACTERS = 100_000;

type Change = PointRef & { jobId: number; kind: Kind };

/** Sends what changed. All waiting changes that fit go along in one request; a refused one is found by halving. */
export function outboxHandler(mirror: Mirror, leaseName: string): JobHandler {
  const { db, now } = mirror.deps;
  return async (job, run) => {
    const extra = takeAlong(db, OUTBOX, { by: leaseName, until: now() + LEASE_MS }, now(), BATCH - 1);
    const changes: Change[] = [{ id: job.id, payload: job.payload }, ...extra].map((one) => {
      const { kind, id, row } = (typeof one.payload === "string" ? JSON.parse(one.payload) : one.payload) as {
        kind: Kind;
        id: string;
        row?: number;
      };
      return { jobId: one.id, kind, pointId: id, row: row ?? null };
    });
    const attempts = new Map(extra.map((e) => [e.id, e.attempts]));
    const failed = new Map<number, unknown>();
    try {
      for (const kind of new Set(changes.map((c) => c.kind)))
        await send(
          mirror,
          kind,
          changes.filter((c) => c.kind === kind),
          failed,
        );
    } catch (thrown) {
      transact(db, () => {
        for (const one of extra) putBack(db, one.id, now() + 15_000, sentence(thrown), { free: true });
      });
      throw asPartDown(thrown);
    }
    transact(db, () => {
      for (const change of changes) {
        if (change.jobId === job.id || !attempts.has(change.jobId)) continue;
        const error = failed.get(change.jobId);
        if (error === undefined) finish(db, change.jobId);
        else putBack(db, change.jobId, now() + backOff(attempts.get(change.jobId) ?? 1), sentence(error), {});
      }
      if (!failed.has(job.id)) run.done();
    });
    if (failed.has(job.id)) throw failed.get(job.id);
  };
}

const backOff = (attempts: number): number => Math.min(1000 * 2 ** Math.max(0, attempts - 1), 60_000);
const sentence = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

function isDown(thrown: unknown): boolean {
  return (thrown instanceof QdrantError || thrown instanceof EmbeddingError) && thrown.partDown;
}
function asPartDown(thrown: unknown): unknown {
  if (!isDown(thrown)) return thrown;
  const retry = thrown instanceof EmbeddingError ? thrown.retryAfterMs : null;
  return new PartDown(sentence(thrown), retry ?? 15_000);
}

/** Brings the points of these rows to their rows' state. Part-down errors throw; a row that is refused goes to `failed`. */
async function send(
  mirror: Mirror,
  kind: Kind,
  changes: Change[],
  failed: Map<number, unknown>,
): Promise<void> {
  const source = mirror.sourceOf(kind);
  const q = await mirror.connect();
  if (!source || !q) return;
  const { enabled, embeddingModel } = mirror.deps.connection();
  const rows = new Map(source.load(changes).map((row) => [row.pointId, row]));
  const gone = changes.filter((c) => !rows.has(c.pointId)).map((c) => c.pointId);
  const kept = enabled ? changes.filter((c) => rows.has(c.pointId)) : [];
  try {
    const known = mirror.filled(kind);
    // Deleting needs no model, so it does not wait for one.
    if (gone.length > 0 && known)
      for (const collection of [known.physical, known.old]) if (collection) await remove(q, collection, gone);
    if (kept.length === 0) return;
    const embedder = await mirror.deps.embedder(embeddingModel);
    if (!embedder)
      throw new EmbeddingError("There is no model that makes vectors for Qdrant.", { partDown: true });
    const opened = await mirror.open(q, source, embedder);
    await halve(
      kept,
      async (part) => {
        await upsert(
          q,
          opened.physical,
          embedder,
          part.map((c) => rows.get(c.pointId)!),
        );
      },
      failed,
    );
  } catch (thrown) {
    if (!(thrown instanceof QdrantError) || thrown.fault !== "not_found") throw thrown;
    mirror.forget(source);
    throw new QdrantError("server", "Qdrant lost the collection; it is made and filled again.");
  }
}

/** Runs `work` on all; where that is refused, on halves, down to the one that is at fault. */
async function halve(
  changes: Change[],
  work: (part: Change[]) => Promise<void>,
  failed: Map<number, unknown>,
): Promise<void> {
  try {
    await work(changes);
  } catch (thrown) {
    const ofOne =
      (thrown instanceof QdrantError && thrown.fault === "refused") ||
      (thrown instanceof EmbeddingError && !thrown.partDown);
    if (!ofOne) throw thrown;
    if (changes.length === 1) {
      failed.set(changes[0]!.jobId, thrown);
      return;
    }
    const middle = changes.length >> 1;
    await halve(changes.slice(0, middle), work, failed);
    await halve(changes.slice(middle), work, failed);
  }
}

async function remove(q: Qdrant, collection: string, pointIds: string[]): Promise<void> {
  await q.call("write", (api, init) =>
    api.deletePoints({ collection_name: collection, wait: true, points: pointIds }, init),
  );
}

/** Embeds and writes rows. A text of several windows gets the mean of their vectors: a point has one vector a name. */
export async function upsert(
  q: Qdrant,
  collection: string,
  embedder: Embedder,
  rows: readonly MirrorRow[],
): Promise<void> {
  const texts = rows.flatMap((row) => Object.entries(row.texts).map(([name, text]) => ({ row, name, text })));
  const made = await embedItems(
    embedder,
    texts.map((one) => one.text),
  );
  const vectors = new Map<MirrorRow, Record<string, number[]>>();
  texts.forEach(({ row, name }, i) => {
    const named = vectors.get(row) ?? {};
    vectors.set(row, named);
    named[name] = sum(made[i]!);
  });
  const points = rows.map((row) => {
    const named = vectors.get(row) ?? {};
    return { id: row.pointId, vector: named[""] ?? named, payload: row.payload };
  });
  for (const part of bySize(points, embedder.dimensions))
    await q.call("write", (api, init) =>
      api.upsertPoints({ collection_name: collection, wait: true, points: part }, init),
    );
}

/** A server takes 32 MB at once unless it is told otherwise. */
const MOST_BYTES = 16_000_000;

/** Cuts points into requests of a bearable size, counted from above: 22 bytes a number, 3 a character. */
function bySize<P extends { payload: Record<string, unknown> }>(
  points: readonly P[],
  dimensions: number,
): P[][] {
  const parts: P[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const point of points) {
    const { content } = point.payload;
    const bytes = 44 * dimensions + 3 * (typeof content === "string" ? content.length : 0) + 20_000;
    if (size + bytes > MOST_BYTES) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)!.push(point);
    size += bytes;
  }
  return parts;
}

/** The server makes cosine vectors of unit length, so a sum points where the mean does. */
function sum(windows: readonly Float32Array[]): number[] {
  const [first, ...rest] = windows;
  const total = Array.from(first!);
  for (const window of rest) for (let i = 0; i < total.length; i++) total[i]! += window[i]!;
  return total;
}

/** The first rows whose texts together are not long to embed; at least one. */
function withinLength(rows: MirrorRow[]): MirrorRow[] {
  let length = 0;
  const end = rows.findIndex((row) => {
    for (const text of Object.values(row.texts)) length += text.length;
    return length > MOST_CHARACTERS;
  });
  return end === -1 ? rows : rows.slice(0, Math.max(1, end));
}

/** One slice of filling in the rows of a kind that have no current point; queues the next until all are there. */
export function fillHandler(mirror: Mirror): JobHandler {
  const { db, now, jobs } = mirror.deps;
  return async (job, run) => {
    const { kind } = job.payload as { kind: Kind };
    const source = mirror.sourceOf(kind);
    const connection = mirror.deps.connection();
    if (!source || !connection.enabled) return;
    try {
      const q = await mirror.connect();
      if (!q) return;
      const embedder = await mirror.deps.embedder(connection.embeddingModel);
      if (!embedder)
        throw new EmbeddingError("There is no model that makes vectors for Qdrant.", { partDown: true });
      const opened = await mirror.open(q, source, embedder);
      if (opened.complete) return;
      const until = performance.now() + SLICE_MS;
      for (;;) {
        const rows = withinLength(source.page(opened.cursor, BATCH));
        if (rows.length === 0) {
          await mirror.complete(q, opened);
          return;
        }
        const missing = opened.fresh ? rows : await outdated(q, opened.physical, rows);
        if (missing.length > 0) await upsertAll(q, opened, embedder, missing);
        opened.cursor = rows.at(-1)!.cursor;
        opened.done += rows.length;
        if (performance.now() > until || run.signal.aborted) {
          next(opened, kind, () => run.done());
          return;
        }
        mirror.remember(opened);
        await run.slice();
      }
    } catch (thrown) {
      if (thrown instanceof QdrantError && thrown.fault === "not_found") mirror.forget(source);
      throw asPartDown(thrown);
    }
  };

  async function outdated(q: Qdrant, collection: string, rows: MirrorRow[]): Promise<MirrorRow[]> {
    const current = await fetchPayloads(
      q,
      collection,
      rows.map((r) => r.pointId),
    );
    return rows.filter((row) => !samePayload(current.get(row.pointId), row.payload));
  }

  /** Rows that are refused are left to the outbox, which tries each again; the others must not wait for them. */
  async function upsertAll(q: Qdrant, opened: Opened, embedder: Embedder, rows: MirrorRow[]): Promise<void> {
    const failed = new Map<number, unknown>();
    const changes = rows.map((row, at) => ({
      jobId: at,
      kind: opened.source.kind,
      pointId: row.pointId,
      row: at,
    }));
    await halve(
      changes,
      (part) =>
        upsert(
          q,
          opened.physical,
          embedder,
          part.map((c) => rows[c.jobId]!),
        ),
      failed,
    );
    for (const at of failed.keys()) {
      const row = rows[at]!;
      mirror.touch(opened.source.kind, opened.source.kind === "memory" ? row.pointId : row.cursor);
    }
  }

  function next(opened: Opened, kind: Kind, done: () => void): void {
    transact(db, () => {
      mirror.remember(opened);
      done();
      jobs.queue({ type: FILL, ownerId: null, payload: { kind }, dedupe: kind, runAt: now() });
    });
  }
}

export async function fetchPayloads(
  q: Qdrant,
  collection: string,
  pointIds: string[],
): Promise<Map<string, StoredPoint["payload"]>> {
  const points = await q.call("write", (api, init) =>
    api.getPoints(
      { collection_name: collection, ids: pointIds, with_payload: true, with_vector: false },
      init,
    ),
  );
  return new Map(points.map((p) => [String(p.id), p.payload]));
}

/** Equal as JSON, whatever the order of fields. */
export function samePayload(
  stored: StoredPoint["payload"] | undefined,
  wanted: Record<string, unknown>,
): boolean {
  return stored != null && Bun.deepEquals(stored, wanted);
}
