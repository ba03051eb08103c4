/** Qdrant as a part of the engine: settings, the mirror, its jobs, and the calls that faces make. */
import type { Database } from "bun:sqlite";
import type { Config } from "../../config.ts";
import { boxId } from "../../db/meta.ts";
import { hasRows, recordIds } from "../../db/mirror.ts";
import { transact } from "../../db/open.ts";
import { ownerId } from "../../db/owners.ts";
import { readMemorySettings } from "../../db/settings.ts";
import type { Embedder } from "../../embed/types.ts";
import { invalid } from "../../error.ts";
import type { Log } from "../../log.ts";
import type { Jobs } from "../../memory/jobs.ts";
import { addressOf } from "../address.ts";
import type { QdrantSettings, QdrantSettingsPatch } from "../../schemas/qdrant.ts";
import { visibleOf } from "../../search/predicate.ts";
import type { Seal } from "../../seal.ts";
import { createUrlCheck, urlProblem } from "../allowed.ts";
import { QdrantBackend } from "../qdrant.ts";
import { createMirror, FILL, OUTBOX } from "./mirror.ts";
import type { MirrorSearch } from "./mirror.ts";
import { createOperations } from "./operations.ts";
import { readQdrant, showQdrant } from "./settings.ts";
import type { QdrantConnection } from "./settings.ts";
import type { MirrorSource } from "./source.ts";
import { fillHandler, outboxHandler } from "./work.ts";

export type QdrantDeps = {
  db: Database;
  log: Log;
  now: () => number;
  jobs: Jobs;
  leaseName: string;
  config: Config;
  seal: Seal;
  /** The embedder of `provider/model`, `local/static` or `local/transformers`; null: the engine's own. Null: not usable. */
  embedder: (model: string | null) => Promise<Embedder | null>;
  sources: readonly MirrorSource[];
};

export type NearestInput = Omit<MirrorSearch, "signal"> & { deadlineMs: number };

/** How often the server is asked whether it is well, and how often another process's change of settings is looked for. */
const WATCH_MS = 30_000;
const REFRESH_MS = 1000;
/** An owner that is not known yet has nothing. */
const NOBODY = -1;

export function createQdrant(deps: QdrantDeps) {
  const { db, log, now, jobs, config, seal, leaseName } = deps;
  const version = db.query<{ data_version: number }, []>("PRAGMA data_version");
  let cached: { version: number; value: QdrantConnection } | null = null;

  const connection = (): QdrantConnection => {
    const current = version.get()!.data_version;
    if (cached?.version !== current) cached = { version: current, value: readQdrant(db, config, seal) };
    return cached.value;
  };
  const mirror = createMirror({
    db,
    log,
    now,
    jobs,
    boxId: boxId(db),
    connection,
    retentionDays: () => readMemorySettings(db).retentionDays,
    embedder: deps.embedder,
    sources: deps.sources,
    allowed: createUrlCheck(),
  });
  const operations = createOperations(mirror);
  jobs.handle(OUTBOX, outboxHandler(mirror, leaseName), { tries: Number.POSITIVE_INFINITY });
  jobs.handle(FILL, fillHandler(mirror), { tries: Number.POSITIVE_INFINITY });
  const timers: ReturnType<typeof setInterval>[] = [];
  let seen = "";

  const refresh = (): void => {
    cached = null;
    const value = connection();
    const key = JSON.stringify(value);
    if (key === seen) return;
    seen = key;
    mirror.changed();
  };
  const watch = (): void => {
    refresh();
    void operations.watch().catch((error: unknown) => log.warn("qdrant.watch.failed", { error }));
  };

  return {
    mirror,
    operations,
    /** Rows of exchanges, entities and summaries came to this owner from another, which no hook tells. */
    touchOwner(name: string): void {
      const owner = ownerId(db, name);
      if (owner === null) return;
      transact(db, () => {
        for (const kind of ["episode", "entity", "summary"] as const)
          for (const id of recordIds(db, kind, owner)) mirror.touch(kind, id);
      });
    },
    /** Nearest rows by their numbers, for retrieval; or why not. */
    async nearest(
      input: NearestInput,
    ): Promise<{ hits: { id: number; cosine: number }[] } | { reason: string }> {
      const { deadlineMs, ...asked } = input;
      const answer = await mirror.search({ ...asked, signal: AbortSignal.timeout(deadlineMs) });
      if ("reason" in answer) return answer;
      const numbers = mirror.sourceOf(input.kind)?.numbers(answer.hits) ?? new Map<string, number>();
      const { kind, session, retentionDays, now: at } = input;
      const owner = ownerId(db, input.owner) ?? NOBODY;
      // The rows here are the truth: a point may be older than its row.
      const visible = visibleOf(db, kind, { owner, session, retentionDays, now: at }, [...numbers.values()]);
      const hits = answer.hits.flatMap(({ pointId, score }) => {
        const id = numbers.get(pointId);
        return id === undefined || !visible.has(id) ? [] : [{ id, cosine: score }];
      });
      if (hits.length > 0 || !hasRows(db, kind, owner)) return { hits };
      return { reason: "Qdrant has nothing for this owner." };
    },
    /** Changes with the settings. */
    key: (): string => JSON.stringify(connection()),
    /** The server of these settings as a home of memories; null while no host is set. */
    primary(): QdrantBackend | null {
      const { url, collection, quantization, efConstruct } = connection();
      if (url === null) return null;
      return new QdrantBackend("qdrant", "Qdrant", {
        connect: () => mirror.connect(),
        embedder: () => deps.embedder(connection().embeddingModel),
        collection: `${collection}_primary`,
        quantization,
        efConstruct,
        boxId: boxId(db),
        retentionDays: () => readMemorySettings(db).retentionDays,
      });
    },
    /** Another part changed the settings (the selector `vectorStore`). */
    refresh,
    start(): void {
      timers.push(setInterval(watch, WATCH_MS), setInterval(refresh, REFRESH_MS));
      if (connection().enabled) watch();
    },
    async stop(): Promise<void> {
      for (const timer of timers) clearInterval(timer);
      await mirror.disconnect();
    },
    calls: {
      read: async (): Promise<QdrantSettings> => showQdrant(readQdrant(db, config, seal)),
      async write(input: { patch: QdrantSettingsPatch }): Promise<QdrantSettings> {
        const { host } = input.patch;
        if (host) {
          const problem = urlProblem(addressOf(host, input.patch.port ?? connection().port) ?? host);
          if (problem !== null) throw invalid("host", problem);
        }
        const { writeQdrant } = await import("./settings-write.ts");
        const written = writeQdrant(db, config, seal, input.patch);
        refresh();
        return showQdrant(written);
      },
      health: () => operations.health(),
      search: (input: { query: string; topK: number }) => operations.searchTest(input),
      cleanup: () => operations.cleanup(),
      reconcile: (input: { dryRun: boolean }) => operations.reconcile(input),
      status: () => operations.status(),
    },
  };
}
