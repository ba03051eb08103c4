/** From a ranked list to what is given: standing memories first, near-duplicates once, everything within the budget, and why the rest is not there. */
import type { Database } from "bun:sqlite";
import { LRUCache } from "lru-cache";
import { memoryIds } from "../db/memories.ts";
import { duplicateKey, stemmed } from "../extract/duplicates.ts";
import { lower } from "../text/fold.ts";
import { detectLanguage } from "../text/language.ts";
import { wordSpans } from "../text/segment.ts";
import { isStopWord } from "../text/stopwords.ts";
import type { Candidate } from "../search/types.ts";
import { BLOCK_OVERHEAD, renderLine } from "./block.ts";
import { cutToTokens, estimateTokens } from "./budget.ts";
import type { Loaded } from "./lines.ts";
import type { Dropped } from "./types.ts";

/** Dropped candidates that are named. */
export const DROPPED = 100;
/** Longer contents are rare and not worth keeping. */
const LONG = 2000;
/** Estimated tokens of the beginning of a line, without its content. */
const LINE_HEAD = 16;

/** Standing memories, then the ranked rows that fit: near-duplicates to the newest, no exchange beside its own memory. */
export function choose(input: {
  always: readonly Loaded[];
  rows: readonly Loaded[];
  budget: number;
  limit: number;
  exclude: ReadonlySet<string>;
  /** Exchanges whose statement one of the memories here has replaced. */
  replaced: ReadonlySet<number>;
  halfForEpisodes: boolean;
  dropped: Dropped[];
  sayings: Sayings;
}): Loaded[] {
  const { budget, dropped, exclude, sayings } = input;
  const sayingOf = (row: Loaded) => sayingIn(sayings, row);
  const chosen: Loaded[] = [];
  const ids = new Set<string>();
  let used = BLOCK_OVERHEAD;
  const cost = (row: Loaded) => estimateTokens(`${row.text}\n`);
  const nameOf = (row: Loaded) => (row.kind === "memory" ? row.id : `${row.kind}:${row.id}`);
  const take = (row: Loaded) => {
    chosen.push(row);
    ids.add(nameOf(row));
    used += cost(row);
  };

  let standingCost = 0;
  for (const row of collapse(input.always, [], sayingOf)) {
    if (exclude.has(nameOf(row))) continue;
    if (standingCost + cost(row) > budget / 4 || used + cost(row) > budget) {
      dropLoaded(dropped, row, "standing memories have a quarter of the budget");
      continue;
    }
    standingCost += cost(row);
    take(row);
  }

  const told = new Set(chosen.map(sayingOf));
  const standing = chosen.length;
  let ranked = 0;
  let episodes = 0;
  let first: Loaded | null = null;
  for (const row of collapse(input.rows, dropped, sayingOf)) {
    if (ids.has(nameOf(row))) continue;
    if (exclude.has(nameOf(row))) {
      dropLoaded(dropped, row, "already given in this conversation");
      continue;
    }
    if (row.kind === "memory" && told.has(sayingOf(row))) {
      dropLoaded(dropped, row, "says the same as a standing memory");
      continue;
    }
    if (ranked >= input.limit) {
      dropLoaded(dropped, row, "over the limit");
      continue;
    }
    // A standing memory is there whatever was asked: it does not answer for the rest of the exchange it came from.
    if (row.kind === "episode" && isTold(row, chosen.slice(standing))) {
      dropLoaded(dropped, row, "its memory is chosen already");
      continue;
    }
    if (row.kind === "episode" && input.replaced.has(row.seq)) {
      dropLoaded(dropped, row, "a memory here has replaced what it says");
      continue;
    }
    if (row.kind === "episode" && input.halfForEpisodes && episodes + cost(row) > budget / 2) {
      dropLoaded(dropped, row, "exchanges have half of the budget");
      continue;
    }
    if (used + cost(row) > budget) {
      first ??= row;
      dropLoaded(dropped, row, "does not fit into the budget");
      continue;
    }
    if (row.kind === "episode") episodes += cost(row);
    ranked++;
    take(row);
  }
  if (ranked === 0 && first !== null) {
    const cut = shortened(first, budget - used);
    if (cut !== null) {
      const at = dropped.findIndex((one) => one.kind === cut.kind && one.id === cut.id);
      if (at >= 0) dropped.splice(at, 1);
      chosen.push(cut);
    }
  }
  return chosen;
}

/** Words of an exchange that none of its memories has, beyond which it says more than they do. */
const MORE = 6;

/** Whether memories that are chosen already say what the person said in this exchange. */
function isTold(row: Loaded & { kind: "episode" }, chosen: readonly Loaded[]): boolean {
  const own = chosen.flatMap((c) =>
    c.kind === "memory" && String(c.item.episodeId) === row.id ? [c.item.content] : [],
  );
  if (own.length === 0) return false;
  const known = new Set(own.flatMap((content) => duplicateKey(content).split(" ")));
  const { userMessage } = row.item;
  const lang = detectLanguage(userMessage, "en");
  const words = new Set(
    wordSpans(lower(userMessage))
      .filter((word) => !isStopWord(word.text, lang))
      .map((word) => stemmed(word, lang)),
  );
  return words.difference(known).size <= MORE;
}

/** The row with its line cut at a sentence to the tokens that are left; null when not even a beginning fits. */
function shortened(row: Loaded, tokens: number): Loaded | null {
  const room = tokens - LINE_HEAD;
  if (room < 8) return null;
  let text: string;
  if (row.kind === "memory")
    text = renderLine({
      kind: "memory",
      content: cutToTokens(row.item.content, room),
      origin: row.item.origin,
      at: row.at,
    });
  else text = cutToTokens(row.text, tokens - 1);
  return estimateTokens(`${text}\n`) <= tokens ? { ...row, text, tokens: estimateTokens(text) } : null;
}

/** Rows that say the same become the newest of them, at the place of the best. */
function collapse(rows: readonly Loaded[], dropped: Dropped[], sayingOf: (row: Loaded) => string): Loaded[] {
  const newest = new Map<string, Loaded>();
  for (const row of rows) {
    const saying = sayingOf(row);
    const known = newest.get(saying);
    if (known === undefined || timeOf(row) > timeOf(known)) newest.set(saying, row);
  }
  const done = new Set<string>();
  return rows.flatMap((row) => {
    const saying = sayingOf(row);
    const kept = newest.get(saying)!;
    if (kept !== row) dropLoaded(dropped, row, `says the same as ${kept.id}`);
    if (done.has(saying)) return [];
    done.add(saying);
    return [kept === row ? row : { ...kept, score: row.score }];
  });
}

/** What memories say, by their content: making it takes some 10 µs, and the same ones come up again and again. */
export type Sayings = LRUCache<string, string>;

export function createSayings(): Sayings {
  return new LRUCache({ max: 4000 });
}

function sayingIn(sayings: Sayings, { kind, ownerId, item, id }: Loaded): string {
  if (kind === "memory") {
    const { content } = item;
    let saying = sayings.get(content);
    if (saying === undefined) {
      saying = duplicateKey(content) || content.trim();
      if (content.length <= LONG) sayings.set(content, saying);
    }
    return `${ownerId} memory ${saying}`;
  }
  if (kind === "episode") return `${ownerId} episode ${item.userMessage}\0${item.aiResponse}`;
  // Each summary tells its session from the beginning: of several the newest says all.
  if (kind === "summary") return `${ownerId} summary of ${item.sessionId}`;
  return `${ownerId} ${kind} ${id}`;
}

function timeOf(row: Loaded): number {
  return Date.parse(row.kind === "memory" ? row.item.confirmedAt : row.item.createdAt);
}

/** Newest first. */
export function byTime(a: Loaded, b: Loaded): number {
  return Date.parse(b.item.createdAt) - Date.parse(a.item.createdAt);
}

/** Notes why a candidate is left out; of very many only the first are named. */
export function drop(dropped: Dropped[], one: Candidate, reason: string): void {
  if (dropped.length >= DROPPED) return;
  const { kind, score, tier, ftsRank, ftsScore, vecRank, vecScore } = one;
  dropped.push({ kind, id: String(one.id), reason, score, tier, ftsRank, ftsScore, vecRank, vecScore });
}

function dropLoaded(dropped: Dropped[], row: Loaded, reason: string): void {
  const { kind, id, score, tier, ftsRank, ftsScore, vecRank, vecScore, tokens } = row;
  dropped.push({ kind, id, reason, score, tier, ftsRank, ftsScore, vecRank, vecScore, tokens });
}

/** Memories that were dropped before their rows were loaded are known by number alone; the outside knows their uuid. */
export function withUuids(db: Database, dropped: readonly Dropped[]): Dropped[] {
  const bare = (one: Dropped) => one.kind === "memory" && /^\d+$/.test(one.id);
  const ids = memoryIds(
    db,
    dropped.filter(bare).map((one) => Number(one.id)),
  );
  return dropped.flatMap((one) => {
    const id = bare(one) ? ids.get(Number(one.id)) : one.id;
    return id === undefined ? [] : [{ ...one, id }];
  });
}
