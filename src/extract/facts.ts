/** Text → statements, without a model. */
import { straightApostrophes } from "../text/fold.ts";
import { rankLanguages } from "../text/language.ts";
import { sentences, type Sentence } from "../text/sentences.ts";
import { type Compiled, compile } from "./compile.ts";
import { langs, languageOf } from "./lang/all.ts";
import { type Reading, readSentence } from "./read.ts";
import { redactSecrets } from "./secrets.ts";
import { settle } from "./settle.ts";
import type { Extraction, Role } from "./types.ts";
import { maskForeign, quotedRanges } from "./wrappers.ts";

/** Of each text only the end is read. */
export const LONGEST_TEXT = 65_536;
/** Languages of one sentence that are tried, and scores: this near to the best, and enough to be sure of. */
const TRIED = 3;
const NEARLY = 0.3;
const SURE = 0.7;
/** Below this the best language is one of a few words alone. */
const DOUBTFUL = 1.2;
/** Kana or Han. */
const DENSE = /[\u3040-\u30ff\u3400-\u9fff]/;

/**
 * What a text says about its writer (`user`), or what an assistant says it decided, or says about the user
 * (`assistant`). Pure, never throws, linear in the length; reads the last 64 KiB.
 */
export function extractFacts(text: string, role: Role): Extraction {
  return settle(readText(text, role));
}

/** Every statement in the order of the text, nothing taken back yet. */
export function readText(text: string, role: Role): Reading[] {
  const safe = redactSecrets(text.toWellFormed()).text;
  const own = straightApostrophes(maskForeign(safe, role));
  const from = beginning(own);
  const message = messageLanguages(own.slice(from));
  const readings: Reading[] = [];
  let supposed = false;
  let lastEnd = from;
  const until = role === "user" ? materialStart(own, from, message) : own.length;
  const quotes = quotedRanges(own);
  for (const sentence of sentences(own, from, until)) {
    if (/\n\s*\n/.test(own.slice(lastEnd, sentence.start).slice(0, 2000))) supposed = false;
    lastEnd = sentence.end;
    const line = own.slice(sentence.start, sentence.end);
    // A reply is in one language; people mix them.
    const tried = role === "assistant" && message.length > 0 ? message : languagesOf(line, message);
    if (!supposed) supposed = tried.some((compiled) => compiled.supposes.test(line.slice(0, 200)));
    if (supposed) continue;
    // A quotation of several sentences is one all the same.
    const said = readLine(line, sentence, tried, role);
    readings.push(...said.filter((reading) => !isQuoted(startOf(reading), quotes)));
  }
  return readings;
}

function readLine(line: string, sentence: Sentence, tried: readonly Compiled[], role: Role): Reading[] {
  const question = sentence.mark === "?";
  for (const compiled of tried) {
    const readings = readSentence(line, compiled, { role, offset: sentence.start, question });
    if (readings.length === 0) continue;
    // What a language as likely hears as reported or supposed, no other makes a fact of.
    const others = tried.slice(0, TRIED).filter((one) => one !== compiled && one.dense === compiled.dense);
    if (others.length === 0) return readings;
    return readings.filter((reading) => {
      const before = line.slice(0, startOf(reading) - sentence.start);
      return before === "" || others.every((one) => !one.blocks.test(before));
    });
  }
  return [];
}

function startOf(reading: Reading): number {
  return reading.kind === "fact"
    ? reading.fact.start
    : reading.kind === "forget"
      ? reading.forget.start
      : reading.start;
}

function isQuoted(at: number, quotes: ReturnType<typeof quotedRanges>): boolean {
  return quotes.some(([start, end]) => start < at && at < end);
}

/** The last {@link LONGEST_TEXT} units, from the next line or sentence on. */
function beginning(text: string): number {
  if (text.length <= LONGEST_TEXT) return 0;
  const cut = text.length - LONGEST_TEXT;
  const next = /[\n.!?。！？]\s*/.exec(text.slice(cut, cut + 4000));
  return next === null ? cut : cut + next.index + next[0].length;
}

/** Languages of the whole message, most likely first; none when its words tell nothing. */
export function messageLanguages(text: string): Compiled[] {
  const ranked = rankLanguages(text);
  const best = ranked[0]?.score ?? 0;
  if (best < SURE) return [];
  return ranked
    .filter((score, index) => index < 2 && score.score >= best / 3)
    .map((score) => compile(languageOf(score.lang)));
}

/** Those of the sentence, all that nearly tie; the message's when its words tell little, every one when nothing does. */
function languagesOf(line: string, message: readonly Compiled[]): Compiled[] {
  // ELK and OF are no Dutch: what is written in capitals among other words is a name.
  const ranked = rankLanguages(/\p{Ll}/u.test(line) ? line.replaceAll(/\b[A-Z]{2,}\b/g, " ") : line);
  const best = ranked[0]?.score ?? 0;
  const own = ranked
    .filter((score) => best - score.score < NEARLY)
    .slice(0, TRIED)
    .map((score) => compile(languageOf(score.lang)));
  if (best >= SURE) {
    // A short sentence may look like another language's most ("me he mudado a …" like Finnish).
    const behind = best < DOUBTFUL ? ranked.filter(({ score }) => score >= best / 2) : [];
    const less = behind.map(({ lang }) => compile(languageOf(lang))).filter((one) => !own.includes(one));
    return [...own, ...less];
  }
  const any =
    message.length === 0
      ? langs
          .map(languageOf)
          .map(compile)
          .filter((one) => !one.dense || DENSE.test(line))
      : [];
  const tried = [...own, ...message, ...any];
  return tried.filter((compiled, index) => tried.indexOf(compiled) === index);
}

/**
 * Where a user's message stops being the user's own word: behind "translate: …", "summarise the mail below", or from
 * the first word on when a part is played.
 */
function materialStart(text: string, from: number, message: readonly Compiled[]): number {
  let until = text.length;
  const english = compile(languageOf("en"));
  const tried = message.includes(english) ? message : [...message, english];
  for (const compiled of tried) {
    const play = compiled.roleplay.exec(text.slice(from));
    if (play !== null) until = Math.min(until, from + play.index);
  }
  let paragraph = -1;
  for (const sentence of sentences(text, from, until)) {
    const line = text.slice(sentence.start, Math.min(sentence.end, sentence.start + 400));
    if (paragraph === -1) {
      const request = firstRequest(line, tried);
      if (request === null) continue;
      const colon = line.slice(request).search(/:(?=[\s"“„«「*]|$)|：/);
      if (colon !== -1) return Math.min(until, sentence.start + request + colon);
      paragraph = sentence.end;
      const next = nextParagraph(text, sentence.end);
      // Nothing follows and nothing was masked: what stands above is the material.
      if (next === null && !text.includes("\n\n\n") && /\n[ \t]*\n/.test(text.slice(from, sentence.start)))
        return from;
      until = Math.min(until, next ?? until);
    }
  }
  return until;
}

function firstRequest(line: string, tried: readonly Compiled[]): number | null {
  for (const compiled of tried) {
    const match = compiled.material.exec(line);
    if (match !== null) return match.index;
  }
  return null;
}

function nextParagraph(text: string, from: number): number | null {
  const match = /\n[ \t]*\n/.exec(text.slice(from));
  return match === null ? null : from + match.index;
}
