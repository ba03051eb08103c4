/** One sentence in one language → the statements in it. */
import { lower } from "../text/fold.ts";
import type { Compiled, CompiledCue } from "./compile.ts";
import { LENGTH } from "./prefixes.ts";
import { beforeReason, factOf } from "./statement.ts";
import type { Fact, Forget, Role } from "./types.ts";
import { cutValue, hasSubstance, shorten, tidyValue } from "./value.ts";
import { quotedRanges } from "./wrappers.ts";

/** A statement, a request to forget, or "scratch that", in the order of the text. */
export type Reading =
  | { kind: "fact"; fact: Fact }
  | { kind: "forget"; forget: Forget }
  | { kind: "retract"; start: number; confident: boolean };

/** Looked at before a cue, and behind it: bounds the work a candidate costs. */
const BEFORE = 400;
const BEHIND = 1600;
const LONGEST_TAIL_SEARCH = 700;
const LONGEST_VALUE_IN_KEY = 500;

const DELIMITER =
  /[,;:.!?¿¡()[\]•·*_"“”„«»…，；：。！？、（）「」\u2013\u2014~～\n]|\s-+\s|^\s*[-+]\s|[\u2600-\u27bf\u2b00-\u2bff]|\ud83c[\udc00-\udfff]|[\ud83d-\ud83e][\udc00-\udfff]/g;

interface Found {
  compiled: CompiledCue;
  /** Where the cue begins, and where the clause does: at the join or delimiter before it. */
  at: number;
  clause: number;
  valueAt: number;
  /** With a tail, where the value ends. */
  valueEnd: number | null;
  /** Where the reading of the next cue may begin. */
  next: number;
  groups: Record<string, string | undefined>;
}

/** Context of the sentence that its own words do not tell. */
export interface ReadOptions {
  role: Role;
  /** Offset of the sentence in the text. */
  offset: number;
  question: boolean;
}

/** Reads one sentence. `text` has straight apostrophes and nothing foreign in it. */
export function readSentence(text: string, compiled: Compiled, options: ReadOptions): Reading[] {
  // Most sentences hold nothing that any pattern begins with, and cost no more than the look.
  if (!mayHold(text, compiled, options.role)) return [];
  let sentence = text;
  let question = options.question;
  if (question) {
    const tag = compiled.tags.exec(sentence.slice(-40));
    if (tag !== null) {
      sentence = sentence.slice(0, Math.max(0, sentence.length - 40) + tag.index);
      question = false;
    }
  }
  const asksAt = nextAsk(sentence, 0, compiled) ?? (question && compiled.dense ? lastClause(sentence) : null);
  // A question behind a statement does not spoil it; one in front of it, or of the whole sentence, does.
  const limit = asksAt ?? sentence.length;
  const asked = question && asksAt === null;
  const corrects = compiled.corrects.test(sentence.slice(0, BEFORE));
  const found = findCues(sentence, compiled, { role: options.role, asked, limit, corrects });
  const readings: Reading[] = [];
  for (const [index, match] of found.entries()) {
    const following = found[index + 1];
    const end = match.compiled.cue.whole === true ? sentence.length : (following?.clause ?? sentence.length);
    const reading = readCue(sentence, match, end, limit, compiled, options, corrects);
    if (reading !== null) readings.push(reading);
  }
  return readings;
}

/** Where the sentence begins to ask, from a place on, or null; 0 when all of it does. */
function nextAsk(sentence: string, from: number, compiled: Compiled): number | null {
  compiled.asks.lastIndex = from;
  const match = compiled.asks.exec(sentence);
  return match === null ? null : match.index;
}

/** Chinese and Japanese ask in the last clause, often without a word that says so. */
function lastClause(sentence: string): number | null {
  const comma = Math.max(sentence.lastIndexOf("，"), sentence.lastIndexOf("、"), sentence.lastIndexOf(","));
  return comma > 0 ? comma : null;
}

interface FindOptions {
  role: Role;
  /** All of the sentence asks. */
  asked: boolean;
  /** Where it begins to ask. */
  limit: number;
  /** It says that it corrects. */
  corrects: boolean;
}

function findCues(sentence: string, compiled: Compiled, options: FindOptions): Found[] {
  const found: Found[] = [];
  const quotes = quotedRanges(sentence);
  let quote = 0;
  let next = 0;
  for (const at of places(sentence, compiled)) {
    if (at < next) continue;
    const cues = compiled.cuesAt(options.role, sentence.slice(at, at + LENGTH));
    if (cues.length === 0) continue;
    while ((quotes[quote]?.[1] ?? sentence.length) <= at) quote += 1;
    // The mark itself may begin an instruction: 「stop」 and what to do then.
    if ((quotes[quote]?.[0] ?? sentence.length) < at) continue;
    const best = bestCue(sentence, at, cues, compiled, options);
    if (best === null) continue;
    // "My X is …" has its subject in front: nothing is fronted before it.
    const clause = clauseStart(sentence, at, next, compiled, best.compiled.cue.slot === "my");
    if (clause === null) continue;
    const { cue } = best.compiled;
    if ((options.asked || at >= options.limit) && cue.inQuestion !== true) continue;
    if (cue.first === true && !isFirst(sentence, at, compiled)) continue;
    if (isBlocked(sentence, at, compiled)) continue;
    found.push({ ...best, clause });
    next = best.next;
    if (cue.whole === true) break;
  }
  return found;
}

function mayHold(sentence: string, compiled: Compiled, role: Role): boolean {
  for (const at of places(sentence, compiled)) {
    if (compiled.cuesAt(role, sentence.slice(at, at + LENGTH)).length > 0) return true;
  }
  return false;
}

/** Beginnings of words; of clauses in Japanese, where the cue closes the clause; every character in Chinese. */
function* places(sentence: string, compiled: Compiled): Generator<number> {
  if (compiled.language.lang === "ja") {
    for (const match of sentence.matchAll(JAPANESE_CLAUSE)) yield match.index;
    return;
  }
  for (let at = 0; at < sentence.length; at += 1) {
    const code = sentence.charCodeAt(at);
    if (code <= 0x20) continue;
    if (code < 0x80 && !isWordCode(code) && !compiled.dense) continue;
    if (compiled.dense || at === 0 || !isWordCode(sentence.charCodeAt(at - 1))) yield at;
  }
}

const JAPANESE_CLAUSE =
  /(?:^|(?<=^[・•◦▪])|(?<=[\s、，,：:；…!！])|(?<=(?:ので|から|けど|けれど|ですが|ますが|して|いて|くて|んで)(?=\S)))(?=\S)/g;

/** Letters, digits and the apostrophe: a word goes on behind them. */
function isWordCode(code: number): boolean {
  return (
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x30 && code <= 0x39) ||
    code === 0x27 ||
    code === 0x5f ||
    (code >= 0xc0 && code <= 0x24f)
  );
}

function isFirst(sentence: string, at: number, compiled: Compiled): boolean {
  return at < BEFORE && compiled.leads.test(sentence.slice(0, at).replace(/^[\s\p{P}]+/u, ""));
}

/** The cue that matches at this place; of several with a tail the one that ends first. */
function bestCue(
  sentence: string,
  at: number,
  cues: readonly CompiledCue[],
  compiled: Compiled,
  options: FindOptions,
): Omit<Found, "clause"> | null {
  let best: Omit<Found, "clause"> | null = null;
  // Most cues of a place share the place of their value: the clause is measured once.
  let measured = -1;
  let measure = 0;
  for (const candidate of cues) {
    const { cue, head, tail, not } = candidate;
    if (cue.marked === true && !options.corrects) continue;
    head.lastIndex = at;
    const match = head.exec(sentence);
    if (match === null) continue;
    let valueAt = at + match[0].length;
    while (valueAt < sentence.length && /[\s,:：，、]/.test(sentence[valueAt] ?? "")) valueAt += 1;
    if (not !== null) {
      not.lastIndex = valueAt;
      if (not.test(sentence)) continue;
    }
    let valueEnd: number | null = null;
    let next = Math.max(at + match[0].length, at + 1);
    let groups: Record<string, string | undefined> = { ...match.groups };
    if (tail !== null) {
      let clauseText = sentence.slice(
        valueAt,
        valueAt + (compiled.dense ? LONGEST_TAIL_SEARCH / 3 : LONGEST_TAIL_SEARCH),
      );
      if (cue.tight === true) {
        if (measured !== valueAt) {
          measured = valueAt;
          measure = clauseLength(clauseText, compiled);
        }
        clauseText = clauseText.slice(0, measure);
      }
      const closing = tail.exec(clauseText);
      if (closing === null) continue;
      valueEnd = valueAt + closing.index;
      next = valueEnd + closing[0].length;
      groups = { ...groups, ...closing.groups };
    }
    const one = { compiled: candidate, at, valueAt, valueEnd, next, groups };
    if (tail === null || cue.tight === true) return best ?? one;
    if (best === null || next < best.next) best = one;
  }
  return best;
}

/** Where the clause of a cue at `at` begins, or null when the cue stands inside another clause. */
function clauseStart(
  sentence: string,
  at: number,
  after: number,
  compiled: Compiled,
  subject: boolean,
): number | null {
  const from = Math.max(after, at - BEFORE);
  const before = sentence.slice(from, at);
  let delimiter = 0;
  DELIMITER.lastIndex = 0;
  for (let match = DELIMITER.exec(before); match !== null; match = DELIMITER.exec(before)) {
    if (isInsideWord(before, match.index)) continue;
    delimiter = match.index + match[0].length;
    if (match[0].length === 0) DELIMITER.lastIndex += 1;
  }
  const since = before.slice(delimiter);
  const trimmed = since.trim();
  const boundary = from + delimiter;
  // Right behind another cue: inside its value.
  if (trimmed === "" && delimiter === 0 && after > 0) return null;
  if (trimmed === "") return delimiter === 0 ? boundary : boundary - 1;
  if (delimiter === 0 && after > 0) {
    // Behind another cue's value and no delimiter between: only a join begins a clause.
    const join = compiled.joins.exec(since);
    if (join !== null) return boundary + join.index;
    return compiled.dense && compiled.language.lang === "ja" ? boundary : null;
  }
  if (compiled.leads.test(trimmed)) return boundary;
  const join = compiled.joins.exec(since);
  if (join !== null) return boundary + join.index;
  if (compiled.language.lang === "ja") return at;
  if (subject) return null;
  if (trimmed.length <= 160 && compiled.fronts.test(trimmed)) return boundary;
  return null;
}

/** Up to the first comma, colon, bracket or contrast. */
function clauseLength(text: string, compiled: Compiled): number {
  // Japanese lists have commas too: there the forms that close a clause tell.
  if (compiled.language.lang === "ja") {
    const boundary = compiled.stops.exec(text);
    return boundary === null ? text.length : boundary.index + boundary[0].length;
  }
  let length = text.length;
  DELIMITER.lastIndex = 0;
  for (let match = DELIMITER.exec(text); match !== null; match = DELIMITER.exec(text)) {
    if (isInsideWord(text, match.index)) continue;
    length = match.index;
    break;
  }
  compiled.contrasts.lastIndex = 0;
  const contrast = compiled.contrasts.exec(text.slice(0, length));
  return contrast === null ? length : contrast.index;
}

/** The dot of `node.js`, the comma of `1,5`, the colon of `9:30`. */
function isInsideWord(text: string, at: number): boolean {
  const char = text[at] ?? "";
  if (char !== "." && char !== "," && char !== ":" && char !== "_" && char !== "*" && char !== "·")
    return false;
  return /[\p{L}\p{N}]/u.test(text[at - 1] ?? "") && /[\p{L}\p{N}]/u.test(text[at + 1] ?? "");
}

/** Supposed, reported, asked or denied by what stands before it in the sentence. */
function isBlocked(sentence: string, at: number, compiled: Compiled): boolean {
  const before = sentence.slice(Math.max(0, at - BEFORE), at);
  let from = 0;
  compiled.contrasts.lastIndex = 0;
  for (let match = compiled.contrasts.exec(before); match !== null; match = compiled.contrasts.exec(before)) {
    from = match.index + match[0].length;
    if (match[0].length === 0) compiled.contrasts.lastIndex += 1;
  }
  const since = before.slice(from);
  return compiled.blocks.test(since) || compiled.material.test(since) || compiled.creative.test(since);
}

function readCue(
  sentence: string,
  match: Found,
  clauseEnd: number,
  limit: number,
  compiled: Compiled,
  options: ReadOptions,
  corrects: boolean,
): Reading | null {
  const { cue } = match.compiled;
  const start = options.offset + match.at;
  // "Can you forget that …" stands behind the place where the sentence begins to ask.
  const behind = (): number => nextAsk(sentence, match.valueAt, compiled) ?? sentence.length;
  // A request is what an instruction is about ("when I say stop, give me …"): only a question ends it.
  const asks =
    cue.whole === true
      ? options.question
        ? behind()
        : sentence.length
      : match.at < limit
        ? limit
        : behind();
  const end = match.valueEnd ?? Math.min(Math.max(clauseEnd, match.valueAt), Math.max(asks, match.valueAt));
  let raw = match.groups["new"] ?? sentence.slice(match.valueAt, Math.min(end, match.valueAt + BEHIND));
  if (cue.family === "retract") return { kind: "retract", start, confident: cue.id !== "wait" };
  let { groups } = match;
  let supersedes = groups["old"] === undefined ? undefined : tidyValue(groups["old"], compiled);
  if (corrects && supersedes === undefined) {
    const old = compiled.notOld.exec(raw);
    if (old !== null && old.index > 0) {
      supersedes = tidyValue(cutValue(raw.slice(old.index + old[0].length), compiled), compiled);
      raw = raw.slice(0, old.index);
    }
  }
  let value = shorten(
    tidyValue(needsCut(match) ? cutValue(raw, compiled) : raw, compiled),
    LONGEST_VALUE_IN_KEY,
  );
  // "Actually, the launch is late" corrects nothing.
  if (cue.id === "the_is" && supersedes === undefined) return null;
  if (cue.family === "forget" || cue.you === true || cue.id === "my_called") value = beforeReason(value);
  // "Denver, hate layovers" lives in Denver; "Porto, Portugal" is one place.
  if (cue.slot === "home" || cue.slot === "name" || cue.slot === "employer")
    value = tidyValue(value.replace(/,\s+\p{Ll}.*$/u, ""), compiled);
  if (!hasSubstance(value)) {
    // "I smoke no more": the verb is all there is.
    const verb = groups["verb"] ?? groups["verb2"];
    if (verb === undefined || (cue.correction !== true && cue.ends === undefined)) return null;
    value = verb;
    groups = { ...groups, alone: "yes" };
  }
  if (cue.family === "forget") {
    compiled.anaphora.lastIndex = 0;
    if (compiled.anaphora.test(value)) return null;
    return { kind: "forget", forget: { phrase: value, lang: compiled.language.lang, start } };
  }
  compiled.anaphora.lastIndex = 0;
  if (cue.whole !== true && compiled.anaphora.test(value)) return null;
  const thing =
    groups["thing"] === undefined ? undefined : lasting(tidyValue(groups["thing"], compiled), compiled);
  if (cue.slot === "my") {
    if (thing === undefined || compiled.passing.test(lower(thing))) return null;
    // A name may look like a state ("Zoé"): only what it *is* can be one.
    if (cue.id === "my_is" && compiled.states.test(value)) return null;
  }
  // `When I say "stop", …`: the marks belong to neither part.
  const trigger = groups["trigger"]?.replace(/^["'“”„«»‘’「『\s]+|["'“”„«»‘’」』\s]+$/g, "");
  groups = { ...groups, thing, trigger, known: "{known}" };
  // "My password is [redacted]" says nothing that is left.
  if (/^\[redacted\]\W*$/i.test(value)) return null;
  const fact = factOf(cue, value, groups, compiled, options.role, start);
  if (fact === null) return null;
  if (cue.ends !== undefined)
    return { kind: "fact", fact: { ...fact, ends: { slot: cue.ends, any: cue.any === true } } };
  // What ended names what it ends: "I no longer use Vim".
  if (cue.correction === true && cue.polarity === "-" && fact.slot === null) supersedes ??= value;
  const correction = cue.correction === true || (corrects && supersedes !== undefined);
  return {
    kind: "fact",
    fact: {
      ...fact,
      correction,
      ...(supersedes !== undefined && hasSubstance(supersedes) ? { supersedes } : {}),
    },
  };
}

/** "New laptop" is the laptop from now on. */
function lasting(thing: string, compiled: Compiled): string {
  const rest = thing.replace(compiled.newer, "");
  return hasSubstance(rest) ? rest : thing;
}

/** What a tail closed, and instructions, are whole as they stand. */
function needsCut(match: Found): boolean {
  return (
    match.valueEnd === null &&
    match.compiled.cue.family !== "instruction" &&
    match.groups["new"] === undefined
  );
}
