/**
 * The one read path: the proxy, REST, MCP, the context package and the Studio all find through here. Reads as the list in
 * which retrieval is specified: predicate, standing memories, channels, fusion, floor, rerank, near-duplicates, budget.
 */
import type { Database } from "bun:sqlite";
import { countAccess } from "../db/memories.ts";
import { ownerId, ownerName, SHARED_OWNER } from "../db/owners.ts";
import { AppError } from "../error.ts";
import { createCohesion } from "../search/cohesion.ts";
import { createHeldWords } from "../search/held-words.ts";
import { namedDate } from "../search/dates.ts";
import { passesCut, passesGate } from "../search/floor.ts";
import { mergeKinds } from "../search/fuse.ts";
import { rankPast, type PastTexts } from "../search/past.ts";
import { rankKind, type Question, type RankDeps, type Ranked } from "../search/rank.ts";
import { newest, standing } from "../search/recent.ts";
import { queryTerms } from "../search/tokens.ts";
import type { Candidate, Predicate } from "../search/types.ts";
import type { VectorIndex } from "../search/vectors.ts";
import type { Metrics } from "../metrics.ts";
import { within } from "../within.ts";
import { renderBlock } from "./block.ts";
import { estimateTokens } from "./budget.ts";
import { byTime, choose, createSayings, drop, DROPPED, withUuids } from "./choose.ts";
import { LIMIT, primaryRows, RECENT, stillThere, type ForeignVectors, type Owner } from "./elsewhere.ts";
import type { Embedding } from "./embedding.ts";
import { loadRows, type Loaded } from "./lines.ts";
import type { PrimaryMemories } from "./primary-rows.ts";
import { queryVector, type Left } from "./query-vector.ts";
import { RERANK_MS, type createReranker } from "./rerank.ts";
import { named, nothing, resolutionOf, usedOf, type Used } from "./resolution.ts";
import type { MemorySettings } from "./settings.ts";
import type { Dropped, Kind, Resolution, RetrieveInput, RetrieveResult, Retrieved } from "./types.ts";

/** Standing memories looked at; a quarter of the budget holds fewer. */
const STANDING = 50;
const PATIENCE_MS = 10_000;
const DEADLINE_MS = 150;
const REMOTE_MS = 400;

export type RetrievalDeps = {
  db: Database;
  now: () => number;
  settings: () => MemorySettings;
  fts5: boolean;
  vectors: VectorIndex;
  /** `sqlite-vec` or `scan`, for the resolution. */
  vectorStore: string;
  topK: number;
  rrfK: number;
  embedding: Pick<Embedding, "get" | "local" | "failed" | "resolve">;
  /** Asks for vectors of rows that lack one, in the background. */
  fill: (owner: number) => void;
  reranker: ReturnType<typeof createReranker> | null;
  qdrant: ForeignVectors | null;
  /** What each channel took, and which was left out. */
  metrics: Pick<Metrics, "count" | "observe">;
  /** A foreign primary backend, whose memories are searched in place of the rows here. */
  primary: PrimaryMemories | null;
};

/** Ranked rows of one kind for the search routes. `owner` is its number, `session` an external id. */
export type RankInput = {
  owner: number;
  kind: Kind;
  query: string;
  limit: number;
  mode: "keyword" | "semantic" | "hybrid";
  session: string | null;
};

export function createRetrieval(deps: RetrievalDeps) {
  const { db, now, vectors } = deps;
  const rankDeps: RankDeps = {
    db,
    fts5: deps.fts5,
    words: createHeldWords(db),
    vectors,
    topK: deps.topK,
    rrfK: deps.rrfK,
    cohesion: createCohesion(db),
  };
  // One snapshot for all of a ranking, and one lock instead of one a statement.
  const reading = db.transaction((run: () => unknown) => run()) as <T>(run: () => T) => T;
  const sayings = createSayings();
  const counted = new Map<number, number>();
  let flushing: ReturnType<typeof setTimeout> | null = null;

  /** Access counters are written after the answer, a second's worth at a time. */
  function count(rows: readonly Loaded[]): void {
    for (const row of rows)
      if (row.kind === "memory" && row.seq >= 0) counted.set(row.seq, (counted.get(row.seq) ?? 0) + 1);
    if (counted.size > 0) flushing ??= setTimeout(flush, 1000);
  }

  function flush(): void {
    if (flushing !== null) clearTimeout(flushing);
    flushing = null;
    if (counted.size === 0) return;
    const seqs = [...counted].flatMap(([seq, times]) => Array.from({ length: times }, () => seq));
    counted.clear();
    try {
      db.transaction(() => countAccess(db, seqs, now())).immediate();
    } catch {
      // A statistic: when the database cannot be written now, these accesses stay uncounted.
    }
  }

  async function retrieve(input: RetrieveInput): Promise<RetrieveResult> {
    const started = performance.now();
    const settings = deps.settings();
    const budget = input.maxTokens ?? settings.maxTokens;
    const strategy = named(input.strategy ?? settings.strategy);
    const notes: string[] = [];
    const dropped: Dropped[] = [];
    const at = input.asOf === undefined ? now() : Date.parse(input.asOf);
    if (budget <= 0) return nothing(deps, strategy, budget, "The token budget is 0.");

    const owners = ownersOf(db, input, settings);
    // A type is a type of memory: who asks for one asks for no exchanges.
    const usual: readonly Kind[] =
      settings.injectEpisodes && input.type === undefined ? ["memory", "episode"] : ["memory"];
    const asked = input.kinds ?? usual;
    const primary = asked.includes("memory") && deps.primary?.active() ? deps.primary : null;
    if (primary && input.asOf !== undefined)
      throw new AppError(
        "not_supported",
        "asOf needs the primary backend sqlite, which keeps every version.",
        {
          param: "asOf",
        },
      );
    const kinds = primary ? asked.filter((kind) => kind !== "memory") : asked;
    const predicateOf = (owner: number): Predicate => ({
      owner,
      session: (input.scope ?? settings.scope) === "session" ? (input.sessionId ?? "") : null,
      retentionDays: settings.retentionDays,
      now: at,
      ...(input.type === undefined ? {} : { type: input.type }),
      ...(input.asOf === undefined ? {} : { before: at }),
    });
    const limit = input.limit ?? LIMIT;
    const text = (input.query ?? "").trim();
    const wordless = text === "" || queryTerms(0, text).length === 0;
    const left = deadlineOf(deps, input, settings, started);
    // A line takes at most a fifth of the budget, so that one long exchange does not stand for all.
    const maxLine = Math.max(40, Math.floor(budget / 5));

    const asking = { owners, input, settings, left, notes };
    let rows: Loaded[] = [];
    let past: PastTexts = new Map();
    let rerankApplied = false;
    let fromQdrant = false;
    let used: Used = "none";
    if (strategy === "recent" || (wordless && input.mode === "interactive")) {
      used = "recent";
      rows = owners.flatMap((owner) =>
        loadRows(db, owner, recentOf(db, kinds, predicateOf(owner.id), Math.min(limit, RECENT)), {
          terms: [],
          maxLine,
        }),
      );
      if (primary) rows = [...(await primaryRows(db, primary, { ...asking, query: null })), ...rows];
      if (owners.length > 1 || primary) rows = rows.sort(byTime);
    } else if (!wordless) {
      // Asked at once, and waited for after the own channels.
      const elsewhere = primary ? primaryRows(db, primary, { ...asking, query: text }) : null;
      const found: { owner: Owner; candidates: Candidate[]; ranked: Ranked[] }[] = [];
      const vector = await vectorFor(
        text,
        left,
        notes,
        owners.map((one) => one.id),
        input.mode,
      );
      for (const owner of owners) {
        const predicate = predicateOf(owner.id);
        const question: Question = { terms: queryTerms(owner.id, text), vector, date: namedDate(text) };
        const ranked: Ranked[] = [];
        for (const kind of kinds) {
          if (kind === "memory" && input.asOf !== undefined) {
            const then = rankPast(db, question, predicate, at);
            past = then.texts;
            ranked.push(then);
            continue;
          }
          const hits =
            settings.vectorStore !== "qdrant"
              ? null
              : await foreignHits(
                  { kind, owner: owner.name, text, vector, limit: Math.max(limit, deps.topK) },
                  predicate,
                  left,
                  notes,
                );
          fromQdrant ||= hits !== null;
          await vectorsReady(kind, owner.id, vector, left);
          const asked = performance.now();
          ranked.push(
            reading(() =>
              rankKind(rankDeps, question, {
                kind,
                predicate,
                limit,
                fusion: settings.fusion,
                strategy: strategy === "semantic" ? "semantic" : "hybrid",
                ...(hits === null ? {} : { hits }),
              }),
            ),
          );
          observe("index", asked);
        }
        notes.push(...ranked.flatMap((one) => one.notes));
        found.push({ owner, candidates: behindFloor(ranked, dropped), ranked });
      }
      const all = found.flatMap(({ ranked }) => ranked);
      used = usedOf(all);
      rows = found
        .flatMap(({ owner, candidates }) =>
          loadRows(db, owner, candidates.slice(0, limit * 2), {
            terms: queryTerms(owner.id, text),
            maxLine,
            past,
          }),
        )
        .sort((a, b) => (owners.length > 1 ? (b.score ?? 0) - (a.score ?? 0) : 0));
      if (elsewhere) {
        const memories = await elsewhere;
        if (memories.length > 0) used = "backend";
        rows = [...memories, ...rows];
      }
      const model = settings.rerankProviderModel;
      if (settings.rerankEnabled && model !== null && deps.reranker !== null && left() > 20) {
        const reranked = await deps.reranker.apply(model, text, rows, left());
        ({ rows } = reranked);
        rerankApplied = reranked.applied;
        if (reranked.reason !== null) notes.push(reranked.reason);
      }
    }

    let always = asked.includes("memory")
      ? owners.flatMap((owner) =>
          loadRows(db, owner, standing(db, predicateOf(owner.id), STANDING), { terms: [], maxLine }),
        )
      : [];
    if (primary && always.length > 0) always = await stillThere(primary, always, left);
    const chosen = choose({
      always: input.asOf === undefined ? always : [],
      rows,
      budget,
      limit,
      exclude: new Set(input.exclude),
      halfForEpisodes: input.kinds === undefined,
      dropped,
      sayings,
    });
    if (input.count !== false && input.asOf === undefined) count(chosen);
    const block = renderBlock(chosen.map((row) => row.text));
    return {
      results: chosen.map(shown),
      dropped: withUuids(db, dropped.slice(0, DROPPED)),
      resolution: resolutionOf(deps, strategy, used, notes, rerankApplied, fromQdrant),
      totalTokensUsed: block === "" ? 0 : estimateTokens(block),
      budgetMaxTokens: budget,
      text: block,
    };
  }

  /** The channels and fusion alone, for the search routes: no floor, no budget, nothing collapsed. */
  async function rank(input: RankInput): Promise<{ candidates: Candidate[]; resolution: Resolution }> {
    const { owner, kind, limit, mode, session } = input;
    const notes: string[] = [];
    const settings = deps.settings();
    const text = input.query.trim();
    const strategy = mode === "semantic" ? "semantic" : mode === "keyword" ? "lexical" : "hybrid";
    const started = performance.now();
    const left: Left = () => Math.max(0, PATIENCE_MS - (performance.now() - started));
    const vector =
      mode === "keyword" || text === "" ? null : await vectorFor(text, left, notes, [owner], "interactive");
    await vectorsReady(kind, owner, vector, left);
    const question: Question = { terms: queryTerms(owner, text), vector, date: namedDate(text) };
    const { retentionDays, fusion } = settings;
    const predicate: Predicate = { owner, session, retentionDays, now: now() };
    const name = ownerName(db, owner) ?? "";
    const most = Math.max(limit, deps.topK);
    const hits =
      settings.vectorStore !== "qdrant"
        ? null
        : await foreignHits({ kind, owner: name, text, vector, limit: most }, predicate, left, notes);
    const ranked = reading(() =>
      rankKind(rankDeps, question, {
        kind,
        predicate,
        limit,
        fusion,
        strategy,
        ...(hits === null ? {} : { hits }),
      }),
    );
    notes.push(...ranked.notes);
    const resolution = resolutionOf(
      deps,
      mode === "keyword" ? "keyword" : mode,
      usedOf([ranked]),
      notes,
      false,
      hits !== null,
    );
    return { candidates: ranked.candidates, resolution };
  }

  function observe(channel: string, since: number): void {
    deps.metrics.observe("recollect_retrieval_seconds", (performance.now() - since) / 1000, { channel });
  }

  function leftOut(channel: string, left: number): void {
    const reason = left <= 0 ? "deadline" : "unavailable";
    deps.metrics.count("recollect_retrieval_dropped_total", { channel, reason });
  }

  async function vectorFor(
    text: string,
    left: Left,
    notes: string[],
    owners: readonly number[],
    mode: RetrieveInput["mode"],
  ): Promise<Float32Array | null> {
    const asked = performance.now();
    const { vector, embedder, reason } = await queryVector(deps.embedding, vectors.space(), text, left);
    if (vector !== null) observe("vector", asked);
    else if (embedder !== null) leftOut("vector", left());
    if (embedder !== null) for (const owner of owners) deps.fill(owner);
    // With no model at all, words alone are the plain way of the proxy and no fallback from anything.
    const chosen = embedder !== null || deps.embedding.resolve().source !== null;
    if (reason !== null && (chosen || mode === "interactive")) notes.push(reason);
    return vector;
  }

  async function vectorsReady(
    kind: Kind,
    owner: number,
    vector: Float32Array | null,
    left: Left,
  ): Promise<void> {
    if (vector === null) return;
    // The first question of a large owner waits while its vectors are read, as long as the deadline allows.
    if (!vectors.ready(kind, owner)) await within(vectors.warm(kind, owner), left());
  }

  /** What Qdrant finds; null, with the reason noted, where the own index is searched instead. */
  async function foreignHits(
    ask: { kind: Kind; owner: string; text: string; vector: Float32Array | null; limit: number },
    { session, retentionDays, now: at }: Predicate,
    left: Left,
    notes: string[],
  ): Promise<{ id: number; cosine: number }[] | null> {
    const signature = vectors.space()?.signature;
    const { vector } = ask;
    if (deps.qdrant === null || vector === null || signature === undefined) return null;
    const asked = performance.now();
    const deadlineMs = Math.max(1, left());
    const answer = await deps.qdrant({
      ...ask,
      vector,
      session,
      retentionDays,
      now: at,
      signature,
      deadlineMs,
    });
    if ("hits" in answer) {
      observe("qdrant", asked);
      return answer.hits;
    }
    leftOut("qdrant", left());
    notes.push(`${answer.reason} The embedded vectors were searched instead.`);
    return null;
  }

  return {
    calls: { retrieve },
    rank,
    /** Writes the access counters that wait. */
    flush,
  };
}

/** The caller's owner and, when the scope is `global` and the key may, the shared pool. */
function ownersOf(db: Database, input: RetrieveInput, settings: MemorySettings): Owner[] {
  const shared = (input.scope ?? settings.scope) === "global" && input.sharedPool === true;
  const names = shared && input.owner !== SHARED_OWNER ? [input.owner, SHARED_OWNER] : [input.owner];
  return names.flatMap((name) => {
    const id = ownerId(db, name);
    return id === null ? [] : [{ id, name }];
  });
}

function deadlineOf(
  deps: RetrievalDeps,
  input: RetrieveInput,
  settings: MemorySettings,
  started: number,
): Left {
  let ms = input.deadlineMs ?? PATIENCE_MS;
  if (input.deadlineMs === undefined && input.mode === "proxy") {
    const remote = deps.embedding.resolve().source === "remote" ? REMOTE_MS : 0;
    ms = settings.retrievalTimeoutMs ?? DEADLINE_MS + remote + (settings.rerankEnabled ? RERANK_MS : 0);
  }
  return () => Math.max(0, ms - (performance.now() - started));
}

/** Candidates of all kinds behind the floor, merged into one order. */
function behindFloor(ranked: readonly Ranked[], dropped: Dropped[]): Candidate[] {
  const kept = ranked.map(({ candidates, signals, model }) => {
    if (!passesGate(signals, model)) {
      for (const one of candidates.slice(0, 10))
        drop(dropped, one, "nothing here is relevant to the question");
      return [];
    }
    const best = candidates[0]?.score ?? null;
    return candidates.filter((one, place) => {
      const stays = passesCut(one.score, best, place, model);
      if (!stays) drop(dropped, one, "below the relevance floor");
      return stays;
    });
  });
  return mergeKinds(kept);
}

function recentOf(db: Database, kinds: readonly Kind[], predicate: Predicate, limit: number): Candidate[] {
  return kinds
    .flatMap((kind) => newest(db, kind, predicate, limit))
    .sort((a, b) => b.createdAt - a.createdAt || Number(b.kind === "memory") - Number(a.kind === "memory"))
    .slice(0, limit);
}

/** Without what only this module needs. */
function shown(row: Loaded): Retrieved {
  const { seq: _seq, ownerId: _ownerId, at: _at, ...rest } = row;
  return rest as Retrieved;
}
