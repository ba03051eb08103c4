/** Joins the parts of the engine over one database. The worker hosts it; command-line verbs and tests run it in process. */
import type { Database } from "bun:sqlite";
import { join } from "node:path";
import { registerFold } from "../db/memory-list.ts";
import { boxId } from "../db/meta.ts";
import { memoriesOfEpisode } from "../db/memories.ts";
import type { MemoryRow } from "../db/memories.ts";
import { migrate } from "../db/migrate.ts";
import { createCheckpoints, type Checkpoints } from "../db/checkpoints.ts";
import { emptyLog, openDatabase } from "../db/open.ts";
import { settingsReader } from "../db/settings.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import { openBackends } from "../backends/config.ts";
import { createBackends } from "../backends/part.ts";
import { routeMemories } from "../backends/routed.ts";
import { searchBy, SqliteBackend } from "../backends/sqlite.ts";
import { createQdrant } from "../backends/mirror/part.ts";
import { memorySource, recordSource } from "../backends/mirror/source.ts";
import { dropUnsaid, foundByModel, foundInText, learnEntities } from "../conversations/learn.ts";
import { createContext } from "../conversations/context.ts";
import { createConversations } from "../conversations/engine.ts";
import type { RecordHooks } from "../conversations/deps.ts";
import { eraseEpisode, muteEpisode } from "../conversations/erase.ts";
import { getEpisode } from "../db/episodes.ts";
import { createExport } from "../data/export.ts";
import type { ExportInput } from "../data/export.ts";
import { createImport } from "../data/import.ts";
import { extractExchange } from "../extract/exchange.ts";
import { redactDeep, redactSecrets } from "../extract/secrets.ts";
import { deleteForGood } from "./delete.ts";
import { createEmbedding, createModelCalls } from "./embedding.ts";
import type { Redact } from "./fields.ts";
import { createHousekeeping } from "./housekeeping.ts";
import { createJobs } from "./jobs.ts";
import { exchangesHolding, wordHolders } from "./holding.ts";
import { createMetrics } from "../metrics.ts";
import { createEngineMetrics } from "./metrics.ts";
import { createMemories } from "./lifecycle.ts";
import { createExchanges } from "./exchange.ts";
import { createLearning } from "./learn.ts";
import type { ExtractPayload } from "./learn.ts";
import { createOwnerEraser } from "./erase-owner.ts";
import { createOwners } from "./owners.ts";
import { createAskModel, createWriter } from "./ask-model.ts";
import { createPurge } from "./purge.ts";
import { createReceipts, createUsage } from "./receipts.ts";
import { coverage } from "../search/indexing.ts";
import { countLexical, ensureLexical } from "../search/lexical-tables.ts";
import { createTextFinder } from "../search/texts/find.ts";
import { ensureTexts } from "../search/texts/tables.ts";
import { countVectors, ensureVectors } from "../search/vector-tables.ts";
import { createVectorIndex } from "../search/vectors.ts";
import { createIndexer } from "./indexer.ts";
import { createReranker } from "./rerank.ts";
import type { RerankCall } from "./rerank.ts";
import { createRetrieval } from "./retrieve.ts";
import { sqliteVecPath } from "../native.ts";
import { openSeal } from "../seal.ts";
import { createAsk } from "../upstream/ask.ts";
import { createProviders } from "../upstream/providers.ts";
import { createTransport } from "../upstream/transport.ts";
import { createRelated } from "./related.ts";
import { createStatus } from "./status.ts";
import { createStore } from "./store.ts";
import { createVerifier } from "./verify.ts";
import { createSummarizer } from "./summarize.ts";
import { createTextFiller } from "./text-filler.ts";

export type EngineOptions = {
  config: Config;
  log: Log;
  /** Names this process in job leases. */
  leaseName: string;
  now?: () => number;
  /** The engine answers from a thread of its own, where nothing should wait for the disk. */
  ownThread?: boolean;
  /** Lets calls that wait for this thread go before the next job. */
  giveWay?: () => Promise<void>;
};

export type LocalEngine = ReturnType<typeof joinEngine>["engine"];

/** Opens the database of `config.dataDir` and joins the engine over it. Call `start` for background work, `stop` to end. */
export function openEngine(options: EngineOptions) {
  const db = openDatabase(join(options.config.dataDir, "recollect.db"));
  migrate(db, join(options.config.dataDir, "backups"));
  const checkpoints = options.ownThread
    ? createCheckpoints(db, join(options.config.dataDir, "recollect.db"))
    : null;
  const joined = joinEngine(db, options, checkpoints);
  return {
    engine: joined.engine,
    /** Starts jobs and housekeeping. */
    start() {
      joined.start();
      checkpoints?.start();
    },
    /** Ends background work, writes the log of the database back into its file, closes it. */
    async stop(): Promise<void> {
      checkpoints?.stop();
      await joined.stop();
      emptyLog(db);
      db.close();
    },
  };
}

function joinEngine(db: Database, options: EngineOptions, checkpoints: Checkpoints | null) {
  const now = options.now ?? Date.now;
  const { log } = options;
  registerFold(db);
  const lexical = ensureLexical(db);
  ensureTexts(db);
  const giveWay = options.giveWay ? { giveWay: options.giveWay } : {};
  const filler = createTextFiller({ db, log, ...giveWay });
  const texts = createTextFinder(db, { damaged: () => filler.reset() });
  const vec0 = ensureVectors(db, sqliteVecPath(options.config.dataDir));
  const seal = openSeal(options.config.dataDir);
  const settings = settingsReader(db, seal);
  const metrics = createMetrics();
  const jobs = createJobs({
    db,
    log,
    now,
    leaseName: options.leaseName,
    ...giveWay,
  });
  const transport = createTransport();
  const ask = createAsk({ providers: createProviders({ db, seal }), transport });
  const embedding = createEmbedding({
    config: options.config,
    log,
    now,
    settings: () => settings.read(),
    provider: (id) => {
      const found = ask.find(id);
      return found && { baseUrl: found.base, apiKey: found.apiKey, headers: found.headers };
    },
    fetch: ask.fetch,
    track: () => jobs.track(),
  });
  const indexer = createIndexer({
    db,
    jobs,
    embedding,
    quantization: options.config.MEMORY_VEC_QUANTIZATION,
    vec0: vec0.vec0,
    now,
  });
  const qdrant = createQdrant({
    db,
    log,
    now,
    jobs,
    leaseName: options.leaseName,
    config: options.config,
    seal,
    embedder: (model) => embedding.named(model),
    sources: [
      memorySource(db, boxId(db)),
      ...(["episode", "entity", "summary"] as const).map((kind) => recordSource(db, boxId(db), kind)),
    ],
  });
  const backends = createBackends({
    db,
    log,
    now,
    jobs,
    settings: () => settings.read(),
    openConfigs: (configs) => openBackends(configs, seal),
    known: {
      embedder: () => embedding.named(null),
      boxId: boxId(db),
      retentionDays: () => settings.read().retentionDays,
      efConstruct: options.config.QDRANT_HNSW_EF_CONSTRUCT,
    },
    store: () => store,
    sqlite: () => new SqliteBackend({ db, store, search: searchBy(db, retrieval.rank) }),
    qdrant: () => qdrant.primary(),
    qdrantKey: () => qdrant.key(),
  });
  const qdrantUp = async () => {
    const { enabled, healthy } = await qdrant.operations.status();
    return enabled ? healthy : null;
  };
  const records: RecordHooks = {
    changed(_, kind, row) {
      indexer.wake();
      qdrant.mirror.touch(kind, row.id);
    },
    removed: (_, kind, row) => qdrant.mirror.touch(kind, row.id),
  };
  const store = createStore({
    db,
    now,
    hooks: {
      changed: (_, row) => touched(row, false),
      confirmed: (_, row) => touched(row, false),
      removed: (_, row) => touched(row, true),
      dropEpisode(_, { owner, id, row }) {
        const sessionId = getEpisode(db, owner, id)?.sessionId ?? null;
        if (sessionId === null) return;
        (row === "mute" ? muteEpisode : eraseEpisode)({ db, hooks: records }, { owner, sessionId, id });
      },
      unsaid: (_, before, after) => dropUnsaid({ db, hooks: records }, before, after),
    },
  });
  function touched(row: MemoryRow, removed: boolean): void {
    forgetRows();
    if (removed) texts.forget();
    filler.wake();
    indexer.wake();
    qdrant.mirror.touch("memory", row.id);
    backends.touched(row, removed);
  }
  const redact: Redact = { text: redactSecrets, json: redactDeep };
  const purge = createPurge({ db, jobs, now, checkpoints });
  const { forgetRows, ...memories } = createMemories({
    db,
    store,
    now,
    redact,
    purge,
    told: exchangesHolding(db, lexical.fts5),
    find: texts.find,
    probe: (_, seq) => ({ fts: countLexical(db, "memories", seq), vectors: countVectors(db, "memory", seq) }),
    qdrantProof: (id) =>
      settings.read().primaryBackend === "qdrant" ? backends.proof(id) : qdrant.operations.proof(id),
  });
  const reranker = createReranker(async ({ model, ...request }, signal) => {
    const slash = model.indexOf("/");
    const body = { model: model.slice(slash + 1), ...request };
    // The reranker checks what came: rows, numbers, no index twice.
    return (await ask.post(model.slice(0, slash), "/rerank", body, signal)) as Awaited<
      ReturnType<RerankCall>
    >;
  });
  const retrieval = createRetrieval({
    db,
    now,
    settings: () => settings.read(),
    fts5: lexical.fts5,
    vectors: createVectorIndex(db),
    vectorStore: vec0.vec0 ? "sqlite-vec" : "scan",
    topK: options.config.MEMORY_VEC_TOP_K,
    rrfK: options.config.MEMORY_RRF_K,
    embedding,
    fill: () => indexer.fill(),
    reranker,
    metrics,
    qdrant: (input) => qdrant.nearest(input),
    primary: backends.forRetrieval,
  });
  const askModel = createAskModel({
    db,
    log,
    now,
    settings: () => settings.read(),
    post: (...args) => ask.post(...args),
  });
  const write = createWriter(askModel);
  const { nightly, ...summarizer } = createSummarizer({ db, store, now, write });
  const conversations = createConversations({
    db,
    now,
    redact,
    hooks: records,
    purge,
    hold: () => indexer.hold(),
    write,
    rank: (input) => retrieval.rank(input),
    teach(_, { owner, episodeId }) {
      if (!settings.read().enabled) return;
      const episode = getEpisode(db, owner, episodeId);
      if (!episode) return;
      const payload: ExtractPayload = {
        episodeId,
        sessionId: episode.externalId,
        saidAt: Date.parse(episode.createdAt),
        injected: [],
        receiptId: null,
      };
      jobs.queue({ type: "extract", ownerId: owner, payload });
    },
    unlearn(_, row) {
      for (const memory of memoriesOfEpisode(db, row.owner, row.episodeId)) {
        deleteForGood(db, store, memory, { episode: "keep", at: now() });
      }
    },
  });
  const holding = wordHolders(db, lexical.fts5);
  const learning = createLearning({
    db,
    store,
    redact,
    now,
    settings: () => settings.read(),
    extract({ user, assistant }) {
      const read = extractExchange(user, assistant, { extractFrom: settings.read().extractFrom });
      const result = read.facts.length + read.forgets.length > 0 ? "learned" : "nothing";
      metrics.count("recollect_extraction_total", { result });
      return read;
    },
    async ask(turns) {
      const { extractionQuestion, readAnswer } = await import("../extract/model.ts");
      const question = extractionQuestion(turns);
      const text = question === null ? null : await askModel(question);
      const read = text === null ? null : readAnswer(text, turns);
      metrics.count("recollect_extraction_total", { result: read === null ? "model-failed" : "model" });
      return read;
    },
    queue: (job) => jobs.queue(job),
    holding,
    told: exchangesHolding(db, lexical.fts5),
    alsoFrom({ ownerId: owner, episodeId, user, model }) {
      if (!settings.read().extractEntities) return;
      learnEntities(
        { db, now, redact, hooks: records },
        { owner, episodeId },
        model ? foundByModel(model.entities) : foundInText(user),
      );
    },
  });
  jobs.handle("extract", learning.handler, { waits: true });
  jobs.handle("extract-batch", learning.batchHandler, { waits: true });
  const exchange = createExchanges({
    db,
    now,
    settings: () => settings.read(),
    redact,
    retrieve: (input) => retrieval.calls.retrieve(input),
    queue: (job) => jobs.queue(job),
    episodeStored: (row) => records.changed(db, "episode", row),
    dropEpisode({ owner, sessionId, id }) {
      // What only this exchange taught goes with it; what a person touched since stays.
      for (const memory of memoriesOfEpisode(db, owner, id)) {
        if (memory.version === 1 && !memory.by_hand && !memory.pinned) store.purge(memory);
      }
      eraseEpisode({ db, hooks: records }, { owner, sessionId, id });
    },
  });
  const housekeeping = createHousekeeping({
    db,
    store,
    log,
    now,
    settings: () => settings.read(),
    async nightly() {
      const { autoSummarize, retentionDays } = settings.read();
      if (!autoSummarize) return;
      await nightly(retentionDays);
      await conversations.summarizeQuiet();
    },
  });
  const verifier = createVerifier({
    db,
    store,
    log,
    now,
    retrieve: (input) => retrieval.calls.retrieve(input),
    async embeds() {
      if ((await embedding.get()).embedder === null) return false;
      const { pending, building } = coverage(db);
      return pending === 0 && building === null;
    },
  });
  const status = createStatus({
    db,
    now,
    settings: () => settings.read(),
    lexical,
    vec0: vec0.vec0,
    embedding,
    rerank: reranker.status,
    qdrant: () => qdrant.operations.status(),
    jobs: jobs.calls.counts,
    backends: () => backends.status(),
  });
  const { exportPage } = createExport(db);
  const { merge } = createOwners({ db, store });
  return {
    engine: {
      memories: {
        ...routeMemories(memories, backends),
        ...summarizer,
        async summarize(input: Parameters<typeof summarizer.summarize>[0]) {
          await backends.takeOver(input.owner);
          return summarizer.summarize(input);
        },
      },
      backends: { status: async () => backends.status() },
      conversations,
      context: createContext({ db, retrieve: retrieval.calls.retrieve }),
      exchange,
      receipts: createReceipts(db),
      usage: createUsage(db),
      data: {
        async exportPage(input: ExportInput) {
          if (input.cursor === null) await backends.takeOver(input.owner);
          return exportPage(input);
        },
        ...createImport({
          db,
          store,
          hooks: records,
          redact,
          now,
          hold: () => indexer.hold(),
          kept: backends.kept,
        }),
      },
      owners: {
        async merge(input: { from: string; to: string }) {
          const merged = await merge(input);
          qdrant.touchOwner(input.to);
          return merged;
        },
        ...createOwnerEraser({ db, memories, conversations, purge }),
      },
      related: createRelated({ db }),
      models: createModelCalls(embedding),
      retrieval: retrieval.calls,
      index: {
        ...indexer.calls,
        async start(input: Parameters<typeof indexer.calls.start>[0]) {
          if (input.force && input.owner == null) filler.reset();
          return indexer.calls.start(input);
        },
      },
      status: { ...status, health: verifier.health },
      jobs: jobs.calls,
      metrics: createEngineMetrics({
        db,
        metrics,
        now,
        qdrantUp,
        cacheHits: async () => (await embedding.status()).cacheStats.hits,
      }),
      qdrant: qdrant.calls,
    },
    start() {
      verifier.cleanUp();
      jobs.start();
      filler.start();
      indexer.start();
      qdrant.start();
      backends.start();
      housekeeping.start();
    },
    async stop() {
      await housekeeping.stop();
      await filler.stop();
      texts.forget();
      indexer.stop();
      await jobs.stop();
      // What was deleted is in no file of a box that has stopped.
      await purge.finish(["episodes", "memories"]);
      retrieval.flush();
      await backends.stop();
      await qdrant.stop();
      await embedding.close();
      transport.close();
    },
  };
}
