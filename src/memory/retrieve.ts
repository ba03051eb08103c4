/**
 * The one read path: the proxy, REST, MCP, the context package and the Studio all find through here. Reads as the list in
 * which retrieval is specified: predicate, standing memories, channels, fusion, floor, rerank, near-duplicates, budget.
 */
import type { Database } from "bun:sqlite";
import { replacedExchanges } from "../db/memories.ts";
import { ownerId, ownerName, readsSharedPool, SHARED_OWNER } from "../db/owners.ts";
import { AppError } from "../error.ts";
import { namedDate } from "../search/dates.ts";
import { passesCut, passesGate } from "../search/floor.ts";
import { mergeKinds } from "../search/fuse.ts";
import { rankPast, type PastTexts } from "../search/past.ts";
import type { Question, Ranked } from "../search/rank.ts";
import { newest, standing } from "../search/recent.ts";
import { queryTerms } from "../search/tokens.ts";
import type { Candidate, Predicate } from "../search/types.ts";
import { createAccesses } from "./accesses.ts";
import { renderBlock } from "./block.ts";
import { estimateTokens } from "./budget.ts";
import { createChannels, type ChannelDeps } from "./channels.ts";
import { byTime, choose, createSayings, drop, DROPPED, withUuids } from "./choose.ts";
import { LIMIT, primaryRows, RECENT, stillThere, type Owner } from "./elsewhere.ts";
import { loadRows, type Loaded } from "./lines.ts";
import type { PrimaryMemories } from "./primary-rows.ts";
import type { Left } from "./query-vector.ts";
import { RERANK_MS, type createReranker } from "./rerank.ts";
import { named, nothing, resolutionOf, usedOf, type Used } from "./resolution.ts";
import type { MemorySettings } from "./settings.ts";
import type { Dropped, Kind, Resolution, RetrieveInput, RetrieveResult, Retrieved } from "./types.ts";

/** Standing memories looked at; a quarter of the budget holds fewer. */
const STANDING = 50;
const PATIENCE_MS = 10_000;
const DEADLINE_MS = 150;
const REMOTE_MS = 400;

export type RetrievalDeps = ChannelDeps & {
  now: () => number;
  settings: () => MemorySettings;
  /** `sqlite-vec` or `scan`, for the resolution. */
  vectorStore: string;
  reranker: ReturnType<typeof createReranker> | null;
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
  const { db, now } = deps;
  const channels = createChannels(deps);
  const accesses = createAccesses(db, now);
  const sayings = createSayings();

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
      const ids = owners.map((one) => one.id);
      const vector = await channels.vectorOf(text, ids, { left, notes, said: input.mode === "interactive" });
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
          const one = await channels.rank(owner, text, question, {
            kind,
            predicate,
            limit,
            fusion: settings.fusion,
            strategy: strategy === "semantic" ? "semantic" : "hybrid",
            qdrant: settings.vectorStore === "qdrant",
            left,
            notes,
          });
          ranked.push(one);
          fromQdrant ||= one.fromQdrant;
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
      replaced: input.asOf === undefined ? replacedBy(db, rows) : new Set(),
      halfForEpisodes: input.kinds === undefined,
      dropped,
      sayings,
    });
    if (input.count !== false && input.asOf === undefined) accesses.count(chosen);
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
      mode === "keyword" || text === ""
        ? null
        : await channels.vectorOf(text, [owner], { left, notes, said: true });
    const question: Question = { terms: queryTerms(owner, text), vector, date: namedDate(text) };
    const { retentionDays, fusion } = settings;
    const ranked = await channels.rank({ id: owner, name: ownerName(db, owner) ?? "" }, text, question, {
      kind,
      predicate: { owner, session, retentionDays, now: now() },
      limit,
      fusion,
      strategy,
      qdrant: settings.vectorStore === "qdrant",
      left,
      notes,
    });
    notes.push(...ranked.notes);
    const resolution = resolutionOf(
      deps,
      mode === "keyword" ? "keyword" : mode,
      usedOf([ranked]),
      notes,
      false,
      ranked.fromQdrant,
    );
    return { candidates: ranked.candidates, resolution };
  }

  return {
    calls: { retrieve },
    rank,
    /** Writes the access counters that wait. */
    flush: accesses.flush,
  };
}

/** A memory found by the question answers for what it replaced; a standing one is there whatever was asked. */
function replacedBy(db: Database, rows: readonly Loaded[]): ReadonlySet<number> {
  if (!rows.some((row) => row.kind === "episode")) return new Set();
  return replacedExchanges(
    db,
    rows.filter((row) => row.kind === "memory").map((row) => row.seq),
  );
}

/** The caller's owner and, when the scope is `global` and the key may, the shared pool. */
function ownersOf(db: Database, input: RetrieveInput, settings: MemorySettings): Owner[] {
  const shared =
    (input.scope ?? settings.scope) === "global" && (input.sharedPool ?? readsSharedPool(db, input.owner));
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
