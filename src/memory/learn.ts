/** The job `extract`: what an exchange teaches, applied to what is known, in one transaction. */
import type { Database } from "bun:sqlite";
import { getEpisode } from "../db/episodes.ts";
import type { NewJob } from "../db/jobs.ts";
import { activeByKey, memoryById } from "../db/memories.ts";
import type { MemoryRow } from "../db/memories.ts";
import { transact } from "../db/open.ts";
import { countQuality } from "../db/quality.ts";
import { isBuried } from "../db/tombstones.ts";
import { corrected, corrects, forgetWords, matchesForget } from "../extract/correct.ts";
import type { Known } from "../extract/correct.ts";
import { duplicateKey } from "../extract/duplicates.ts";
import type { ExchangeExtraction, Fact, Forget } from "../extract/types.ts";
import type { ModelAnswer, Turn } from "../extract/model.ts";
import { lower } from "../text/fold.ts";
import { addTurn, batchName, dropTurns, QUIET_MS, readBatch } from "./batch.ts";
import { cleanContent, cleanMetadata } from "./fields.ts";
import type { Redact } from "./fields.ts";
import type { JobHandler } from "./jobs.ts";
import type { MemorySettings } from "./settings.ts";
import type { Store } from "./store.ts";
import type { JsonObject } from "./types.ts";

/** What the recording transaction queues. The texts are in the job only when no episode is kept. */
export type ExtractPayload = {
  episodeId: number | null;
  /** External id of the session. */
  sessionId: string | null;
  user?: string;
  assistant?: string;
  /** When it was said (ms): what was deleted for good later than this is not learned again. */
  saidAt: number;
  /** Ids of the memories that were injected into this exchange. */
  injected: string[];
  receiptId: string | null;
};

/** What an exchange did to a memory, as its receipt lists it. */
export type Learned = {
  id: string;
  action: "created" | "updated" | "confirmed" | "superseded" | "archived" | "pending";
};

export type LearnDeps = {
  db: Database;
  store: Store;
  redact: Redact;
  settings: () => MemorySettings;
  now: () => number;
  /** Statements of an exchange, by patterns. */
  extract: (exchange: Turn) => ExchangeExtraction;
  /** Statements of turns by the model of the setting `extractionModel`; null when it gave none that can be used. */
  ask: (turns: readonly Turn[]) => Promise<ModelAnswer | null>;
  /** Queues a job inside the caller's transaction. */
  queue: (job: NewJob) => void;
  /** Active memories of an owner that hold all of these words, in whatever form; newest first, at most `limit`. */
  holding: (ownerId: number, words: readonly string[], limit: number) => MemoryRow[];
  /** Ids of exchanges of an owner that hold all of these words, newest first, at most `limit`. */
  told: (ownerId: number, words: readonly string[], limit: number) => number[];
  /** What else an exchange leaves (entities), inside the same transaction. */
  alsoFrom?: (exchange: Turn & { ownerId: number; episodeId: number; model: ModelAnswer | null }) => void;
};

/** A request to forget that matches more than this does nothing but ask. */
const MOST_FORGOTTEN = 5;
/** Rows that hold the words of a statement and are compared with it. */
const MOST_CANDIDATES = 50;

export function createLearning(deps: LearnDeps): { handler: JobHandler; batchHandler: JobHandler } {
  const { db, store, now } = deps;
  /** Batches that a model is reading now. */
  const reading = new Set<string>();

  /** The job `extract`: one exchange. With a model that reads several at once, it waits in its session's batch. */
  const handler: JobHandler = async (job, run) => {
    const payload = job.payload as ExtractPayload;
    const ownerId = job.ownerId!;
    const settings = deps.settings();
    // The exchange was deleted, or memory was turned off, while the job waited.
    if (!textsOf(payload) || !settings.enabled || settings.extractFrom === "off") return;
    if (settings.extractionModel === null) return apply(ownerId, [payload], null, () => run.done());
    if (settings.extractEveryTurns === 1) {
      return apply(ownerId, [payload], await ask([payload]), () => run.done());
    }
    const name = batchName(ownerId, payload.sessionId);
    transact(db, () => {
      const next = addTurn(db, name, payload, now());
      run.done();
      const full = next.turns.length >= settings.extractEveryTurns;
      deps.queue({
        type: "extract-batch",
        // Not bound to the order of the owner's jobs: a quiet session must not hold up a lively one.
        ownerId: null,
        payload: { ownerId, sessionId: payload.sessionId },
        runAt: full ? now() : next.lastAt + QUIET_MS,
        dedupe: full ? `${name}:full` : name,
      });
    });
  };

  /** The job `extract-batch`: reads a session's batch when it is full or the session was quiet; else a later job will. */
  const batchHandler: JobHandler = async (job, run) => {
    const { ownerId, sessionId } = job.payload as { ownerId: number; sessionId: string | null };
    const settings = deps.settings();
    const name = batchName(ownerId, sessionId);
    const { turns, lastAt } = readBatch<ExtractPayload>(db, name);
    const due = turns.length >= settings.extractEveryTurns || reading.has(name) ? now() : lastAt + QUIET_MS;
    if (turns.length === 0) return;
    if (due > now() || reading.has(name)) {
      transact(db, () => {
        run.done();
        deps.queue({
          type: "extract-batch",
          ownerId: null,
          payload: job.payload,
          runAt: Math.max(due, now() + 1000),
          dedupe: name,
        });
      });
      return;
    }
    reading.add(name);
    try {
      const answer = settings.extractionModel === null ? null : await ask(turns);
      apply(ownerId, turns, answer, () => {
        dropTurns(db, name, turns.length);
        run.done();
      });
    } finally {
      reading.delete(name);
    }
  };

  async function ask(payloads: readonly ExtractPayload[]): Promise<ModelAnswer | null> {
    return deps.ask(payloads.map(textsOf).filter((texts) => texts !== null));
  }

  /** Stores what the exchanges teach and calls `done`, in one transaction. Without an answer of a model patterns read. */
  function apply(
    ownerId: number,
    payloads: readonly ExtractPayload[],
    answer: ModelAnswer | null,
    done: () => void,
  ): void {
    const settings = deps.settings();
    transact(db, () => {
      const turns = payloads.map((payload) => ({ payload, texts: textsOf(payload) }));
      const shares =
        answer === null
          ? null
          : shareOut(
              answer,
              turns.map(({ texts }) => texts),
              settings.extractFrom,
            );
      turns.forEach(({ payload, texts }, at) => {
        if (!texts) return;
        const found = shares?.[at] ?? deps.extract(texts);
        const learned = applyExchange(ownerId, payload, settings, found);
        if (payload.episodeId !== null) {
          // What a model names is stored once, with the last exchange that it read.
          const model = at === turns.length - 1 ? answer : null;
          if (answer === null || model)
            deps.alsoFrom?.({ ownerId, episodeId: payload.episodeId, ...texts, model });
        }
        if (payload.receiptId !== null && learned.length > 0) {
          db.query("UPDATE receipts SET learned = ? WHERE id = ?").run(
            JSON.stringify(learned),
            payload.receiptId,
          );
        }
      });
      done();
    });
  }

  function textsOf(payload: ExtractPayload): Turn | null {
    if (payload.episodeId === null) return { user: payload.user ?? "", assistant: payload.assistant ?? "" };
    const episode = getEpisode(db, null, payload.episodeId);
    if (!episode) return null;
    // The partial reply of a stream that was cut off teaches nothing.
    return { user: episode.userMessage, assistant: episode.complete ? episode.aiResponse : "" };
  }

  /** One exchange of one owner, applied statement by statement; gives what it did. */
  function applyExchange(
    ownerId: number,
    payload: ExtractPayload,
    settings: MemorySettings,
    found: ExchangeExtraction,
  ): Learned[] {
    const learned: Learned[] = [];
    // Looked up for what a reply taught alone: most exchanges teach nothing of the kind.
    let known: Set<string> | null = null;
    const injected = () =>
      (known ??= new Set(
        payload.injected
          .map((id) => memoryById(db, ownerId, id)?.content)
          .filter((text) => text !== undefined)
          .map((text) => duplicateKey(text)),
      ));

    function forget(request: Forget): void {
      const matches = deps
        .holding(ownerId, forgetWords(request.phrase, request.lang), MOST_CANDIDATES)
        .filter((row) => matchesForget(request, knownOf(row)));
      if (matches.length > MOST_FORGOTTEN) {
        const { row } = insert({
          content: request.phrase,
          key: null,
          metadata: { forget: true, matches: matches.map((match) => match.id) },
          pending: true,
        });
        learned.push({ id: row.id, action: "pending" });
        return;
      }
      for (const match of matches) {
        store.setStatus(match, "archived", "forget");
        learned.push({ id: match.id, action: "archived" });
        hush(match);
      }
    }

    /** Exchanges that say what was to be forgotten, the request among them, are not recalled in its place. */
    function hush(forgotten: MemoryRow): void {
      const words = duplicateKey(forgotten.content).split(" ");
      // A single word says no statement.
      const saying = words.length < 2 ? [] : deps.told(ownerId, words, MOST_CANDIDATES);
      for (const id of new Set([forgotten.episode_id, payload.episodeId, ...saying])) {
        if (id !== null) store.dropEpisode({ owner: ownerId, id, row: "mute" });
      }
    }

    function learn(fact: Fact): void {
      const content = cleanContent(fact.content, deps.redact).text;
      if (isBuried(db, ownerId, fact.key, content, payload.saidAt)) {
        countQuality(db, "rejected", 1, now());
        return;
      }
      const known = fact.correction ? correctedBy(fact) : null;
      if (known) return correct(known, corrected(fact, knownOf(known)));
      const holder = activeByKey(db, ownerId, fact.key) ?? duplicateOf(content);
      if (!holder) return add(fact, content);
      // The user's word stands against the assistant's, and a reply that repeats what is known teaches nothing.
      const restated = duplicateKey(holder.content) === duplicateKey(content);
      if (fact.origin === "assistant" && (holder.origin !== "assistant" || restated)) {
        countQuality(db, "duplicates", 1, now());
        return;
      }
      update(holder, fact, content, "restated");
    }

    /** The memory that a correction speaks about: of the same slot, else one with the old value. */
    function correctedBy(fact: Fact): MemoryRow | null {
      const slot = activeByKey(db, ownerId, fact.key);
      if (slot && corrects(fact, knownOf(slot))) return slot;
      const old = fact.supersedes ?? (fact.polarity === "-" ? fact.value : undefined);
      if (old === undefined) return null;
      return (
        deps
          .holding(ownerId, forgetWords(old, fact.lang), MOST_CANDIDATES)
          .find((row) => corrects({ ...fact, supersedes: old }, knownOf(row))) ?? null
      );
    }

    function correct(known: MemoryRow, fact: Fact): void {
      const content = cleanContent(fact.content, deps.redact).text;
      if (fact.key === known.key || !settings.autoApprove) {
        return update(known, { ...fact, key: known.key ?? fact.key }, content, "correction");
      }
      const holder = activeByKey(db, ownerId, fact.key);
      if (holder && holder.seq !== known.seq) update(holder, fact, content, "correction");
      else add(fact, content);
      const by = learned.at(-1)!.id;
      store.setStatus(known, "superseded", "correction", by);
      learned.push({ id: known.id, action: "superseded" });
    }

    function duplicateOf(content: string): MemoryRow | null {
      const same = duplicateKey(content);
      if (same === "") return null;
      return (
        deps
          .holding(ownerId, same.split(" "), MOST_CANDIDATES)
          .find((row) => duplicateKey(row.content) === same) ?? null
      );
    }

    function add(fact: Fact, content: string): void {
      const pending = !settings.autoApprove;
      const { row } = insert({ content, key: fact.key, fact, metadata: metadataOf(fact), pending });
      learned.push({ id: row.id, action: pending ? "pending" : "created" });
      countQuality(db, "extracted", 1, now());
      if (fact.origin === "assistant" && injected().has(duplicateKey(content)))
        countQuality(db, "loops", 1, now());
    }

    function update(holder: MemoryRow, fact: Fact, content: string, cause: string): void {
      if (!settings.autoApprove && content !== holder.content)
        return add({ ...fact, key: holder.key ?? fact.key }, content);
      const metadata = { ...(JSON.parse(holder.metadata) as JsonObject), ...metadataOf(fact) };
      const same = content === holder.content;
      const row = same
        ? store.edit(holder, {}, cause)
        : store.edit(
            holder,
            {
              content,
              metadata: JSON.stringify(metadata),
              type: fact.type,
              origin: fact.origin,
              ...(payload.episodeId === null ? {} : { episode_id: payload.episodeId }),
            },
            cause,
          );
      learned.push({ id: row.id, action: same ? "confirmed" : "updated" });
      countQuality(db, same ? "duplicates" : "extracted", 1, now());
    }

    function metadataOf(fact: Fact): JsonObject {
      const metadata: JsonObject = {
        category: fact.category,
        value: fact.value,
        polarity: fact.polarity,
        slot: fact.slot,
        extractedAt: new Date(now()).toISOString(),
        source: fact.patternId.startsWith("model")
          ? "model"
          : fact.origin === "user"
            ? "user_message"
            : "llm_response",
        patternId: fact.patternId,
        confidence: fact.confidence,
      };
      return cleanMetadata(metadata, deps.redact).value;
    }

    function insert(input: {
      content: string;
      key: string | null;
      metadata: JsonObject;
      fact?: Fact;
      pending: boolean;
    }) {
      const { content, key, metadata, fact, pending } = input;
      const waiting = pending ? samePending(db, ownerId, key, content) : null;
      if (waiting)
        return {
          row: store.edit(waiting, { content, metadata: JSON.stringify(metadata) }, "restated"),
          created: false,
        };
      return store.put({
        ownerId: ownerId,
        key,
        content,
        metadata,
        origin: fact?.origin ?? "user",
        type: fact?.type ?? "factual",
        status: pending ? "pending" : "active",
        sessionId: payload.sessionId,
        episodeId: payload.episodeId,
      });
    }

    for (const request of found.forgets) forget(request);
    for (const fact of found.facts) learn(fact);
    const { retracted, overruled, capped } = found.rejected;
    countQuality(db, "rejected", retracted + overruled + capped, now());
    return learned;
  }

  return { handler, batchHandler };
}

/** Gives each statement of a model's answer to the exchange that it was read from: the last one with its words. */
function shareOut(
  answer: ModelAnswer,
  turns: readonly (Turn | null)[],
  from: MemorySettings["extractFrom"],
): ExchangeExtraction[] {
  const shares = turns.map((): ExchangeExtraction => ({
    facts: [],
    forgets: [],
    rejected: { retracted: 0, overruled: 0, capped: 0 },
  }));
  const home = (words: string, role: "user" | "assistant"): ExchangeExtraction => {
    const at = turns.findLastIndex((turn) => turn !== null && lower(turn[role]).includes(lower(words)));
    return shares[at === -1 ? shares.length - 1 : at]!;
  };
  const facts = answer.facts.filter((fact) => from === "both" || fact.origin === "user");
  for (const fact of facts) home(fact.value, fact.origin).facts.push(fact);
  for (const forget of answer.forgets) home(forget.phrase, "user").forgets.push(forget);
  shares.at(-1)!.rejected = answer.rejected;
  return shares;
}

/** A pending memory of the same key or words, which a repetition updates instead of filling the inbox. */
function samePending(db: Database, ownerId: number, key: string | null, content: string): MemoryRow | null {
  const found = db
    .query<{ id: string }, [number, string | null, string]>(
      "SELECT id FROM memories WHERE owner_id = ?1 AND status = 'pending' AND (key = ?2 OR content = ?3) LIMIT 1",
    )
    .get(ownerId, key, content);
  return found ? memoryById(db, ownerId, found.id) : null;
}

/** A stored row as the rules of correction and forgetting see it. */
function knownOf(row: MemoryRow): Known {
  const metadata = JSON.parse(row.metadata) as JsonObject;
  const text = (name: string) => (typeof metadata[name] === "string" ? metadata[name] : null);
  return {
    key: row.key,
    content: row.content,
    value: text("value") ?? row.content,
    category: (text("category") ?? "preference") as Known["category"],
    type: (row.type === "semantic" ? "factual" : row.type) as Known["type"],
    polarity: text("polarity") === "-" ? "-" : "+",
    slot: text("slot") ?? slotOf(row.key),
  };
}

/** `identity:home` → `home`: slots are also written by other hands than extraction. */
function slotOf(key: string | null): string | null {
  const match = key === null ? null : /^(?:identity:(.+)|preference:(favourite_.+))$/.exec(key);
  return match ? (match[1] ?? match[2] ?? null) : null;
}
