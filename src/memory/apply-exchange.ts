/** What the statements of an exchange do to what is known: add, replace, confirm, forget. */
import type { Database } from "bun:sqlite";
import { getEpisode } from "../db/episodes.ts";
import { activeByKey, memoryById } from "../db/memories.ts";
import type { MemoryRow } from "../db/memories.ts";
import { countQuality } from "../db/quality.ts";
import { AHEAD_MS } from "../db/time.ts";
import { isBuried } from "../db/tombstones.ts";
import { corrected, corrects, endsKnown, forgetWords, matchesForget } from "../extract/correct.ts";
import type { Known } from "../extract/correct.ts";
import { duplicateKey, reordered } from "../extract/duplicates.ts";
import type { ExchangeExtraction, Fact, Forget } from "../extract/types.ts";
import { cleanContent, cleanMetadata } from "./fields.ts";
import type { Redact } from "./fields.ts";
import type { ExtractPayload } from "./learn.ts";
import type { MemorySettings } from "./settings.ts";
import { hush } from "./hush.ts";
import { heldAgain } from "./store.ts";
import type { Store } from "./store.ts";
import type { JsonObject } from "./types.ts";

/** What an exchange did to a memory, as its receipt lists it. */
export type Learned = {
  id: string;
  action: "created" | "updated" | "confirmed" | "superseded" | "archived" | "pending";
};

export type ApplyDeps = {
  db: Database;
  store: Store;
  redact: Redact;
  now: () => number;
  /** Active memories of an owner that hold all of these words, in whatever form; newest first, at most `limit`. */
  holding: (ownerId: number, words: readonly string[], limit: number) => MemoryRow[];
  /** Ids of exchanges of an owner that hold all of these words, newest first, at most `limit`. */
  told: (ownerId: number, words: readonly string[], limit: number) => number[];
};

/** A request to forget that matches more than this does nothing but ask. */
const MOST_FORGOTTEN = 5;
/** Rows that hold the words of a statement and are compared with it. */
const MOST_CANDIDATES = 50;

/** One exchange of one owner, applied statement by statement; gives what it did. */
export function applyExchange(
  deps: ApplyDeps,
  ownerId: number,
  payload: ExtractPayload,
  settings: MemorySettings,
  found: ExchangeExtraction,
): Learned[] {
  const { db, store, now } = deps;
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
      .filter((row) => matchesForget(request, knownOf(row)) && !isNewer(row));
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
      hush(deps, match, payload.episodeId);
    }
    if (matches.length === 0) hushExchanges(request);
  }

  /** What nobody made a memory of may still be recalled as it was said. */
  function hushExchanges(request: Forget): void {
    const saying = deps.told(ownerId, forgetWords(request.phrase, request.lang), MOST_CANDIDATES);
    const said = saying.filter((id) => id !== payload.episodeId && isEarlier(id));
    if (said.length === 0 || said.length > MOST_FORGOTTEN) return;
    for (const id of [...said, payload.episodeId]) {
      if (id !== null) store.dropEpisode({ owner: ownerId, id, row: "mute" });
    }
  }

  function isEarlier(id: number): boolean {
    const said = getEpisode(db, ownerId, id);
    return said !== null && Date.parse(said.createdAt) <= payload.saidAt;
  }

  function learn(fact: Fact): void {
    const content = cleanContent(fact.content, deps.redact).text;
    if (isBuried(db, ownerId, fact.key, content, payload.saidAt)) {
      countQuality(db, "rejected", 1, now());
      return;
    }
    const known = fact.correction ? correctedBy(fact) : null;
    const holder = known ?? activeByKey(db, ownerId, fact.key) ?? duplicateOf(content) ?? turnedRound(fact);
    if (!holder) return add(fact, content);
    if (content !== holder.content && isNewer(holder)) {
      countQuality(db, "rejected", 1, now());
      return;
    }
    if (known) return correct(known, corrected(fact, knownOf(known)));
    // The user's word stands against the assistant's, and a reply that repeats what is known teaches nothing.
    const restated = duplicateKey(holder.content) === duplicateKey(content);
    if (fact.origin === "assistant" && (holder.origin !== "assistant" || restated)) {
      countQuality(db, "duplicates", 1, now());
      return;
    }
    update(holder, fact, content, "restated");
  }

  /** Whether it was said, or written by hand, after this exchange: an imported conversation changes nothing that is newer. */
  function isNewer({ episode_id, by_hand, origin, updated_at }: MemoryRow): boolean {
    const said = episode_id === null ? null : getEpisode(db, ownerId, episode_id);
    if (said !== null && by_hand === 0) return isAfter(Date.parse(said.createdAt));
    return (by_hand === 1 || (origin !== "user" && origin !== "assistant")) && isAfter(updated_at);
  }

  /** A time that is still to come says nothing: the clock was ahead, and would be right about all that follows. */
  function isAfter(at: number): boolean {
    const toCome = now() + AHEAD_MS;
    return at > payload.saidAt && (at <= toCome || payload.saidAt > toCome);
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

  /** What is over takes the place of what was known; where nothing was, nothing is stored. */
  function end(fact: Fact): void {
    const words = forgetWords(fact.value, fact.lang);
    const candidates = [
      activeByKey(
        db,
        ownerId,
        fact.ends?.slot === "my" ? `identity:my_${words.join("_")}` : "identity:employer",
      ),
      ...deps.holding(ownerId, words, MOST_CANDIDATES),
    ];
    const known = candidates.find((row) => row !== null && endsKnown(fact, knownOf(row)));
    if (known && !isNewer(known)) correct(known, corrected(fact, knownOf(known)));
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

  /** The memory that prefers the other way round: the newer word counts. */
  function turnedRound(fact: Fact): MemoryRow | null {
    if (fact.category !== "preference") return null;
    return (
      deps.holding(ownerId, forgetWords(fact.value, fact.lang), MOST_CANDIDATES).find((row) => {
        const one = knownOf(row);
        return one.category === "preference" && reordered(one.value, fact.value, fact.lang);
      }) ?? null
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
    const again = heldAgain(holder, now());
    const row = same
      ? store.edit(holder, again, cause)
      : store.edit(
          holder,
          {
            ...again,
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
  for (const fact of found.ends) end(fact);
  for (const fact of found.facts) learn(fact);
  const { retracted, overruled, capped } = found.rejected;
  countQuality(db, "rejected", retracted + overruled + capped, now());
  return learned;
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
