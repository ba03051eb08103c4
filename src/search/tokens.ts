/**
 * Words as the index knows them: folded, stemmed by the text's language, dense scripts as bigrams beside the segmenter's
 * words. What is indexed and what is asked for go through here, so both sides always agree.
 */
import { fold, lower } from "../text/fold.ts";
import { rankLanguages, type Lang } from "../text/language.ts";
import { bigrams, runs, words } from "../text/segment.ts";
import { stem } from "../text/stem.ts";
import { isStopWord } from "../text/stopwords.ts";
import { toldAs } from "../text/told.ts";

/** Bump when a change here makes other tokens, or the index gets another shape: it is then dropped and built anew. */
export const TOKENS_VERSION = 4;

/** Longest part of a text that is indexed, in UTF-16 units; nothing a person writes is longer. */
const MAX_TEXT = 1_000_000;
/** Longer runs are keys, hashes and encoded data; their beginning finds them. */
const MAX_WORD = 64;
/** Score of a language from which on it is taken to be the one: one word that only this language has. */
const SURE = 1;
/** Words of a query that are looked at before the rarest 32 are chosen. */
const MAX_QUERY_WORDS = 256;

/** One word of a query: the forms that count as it in the index. */
export interface QueryTerm {
  readonly forms: readonly string[];
}

/** `o17x`: begins every token of owner 17. A letter first and `x` last, so that no owner's prefix begins another's. */
export function ownerPrefix(owner: number): string {
  return `o${owner}x`;
}

/** `preference:node_js` → `preference node js`. */
export function keyWords(key: string | null): string {
  return key === null ? "" : key.replace(/[:_./\\-]+/g, " ").trim();
}

/** Tokens of a stored text in order, repeats kept, each with the owner in front, joined by blanks. "" for no words. */
export function indexTokens(owner: number, text: string): string {
  const prefix = ownerPrefix(owner);
  const source = lower(text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text);
  const langs = languagesOf(source);
  const found: string[] = [];
  eachWord(source, (word, dense) => {
    if (dense) for (const part of denseTokens(word)) found.push(prefix + part);
    else for (const form of forms(word, langs)) found.push(prefix + form);
  });
  return found.join(" ");
}

/**
 * The words of a question that can find something: stop words of its language dropped unless nothing is left, each
 * word once, at most 256. A short statement may have been stemmed as English, hence its forms in more than one language.
 */
export function queryTerms(owner: number, query: string): QueryTerm[] {
  const prefix = ownerPrefix(owner);
  const source = lower(query.length > MAX_TEXT ? query.slice(0, MAX_TEXT) : query);
  const likely = languagesOf(source);
  const langs = [...new Set([...likely, "en" as const])];
  const idle = (word: string) => likely.some((lang) => isStopWord(word, lang));
  const terms = new Map<string, QueryTerm>();
  const held = new Map<string, QueryTerm>();
  eachWord(source, (word, dense) => {
    if (terms.size >= MAX_QUERY_WORDS) return;
    if (dense) {
      for (const part of denseTokens(word)) if (!idle(part)) put(terms, [prefix + part]);
      return;
    }
    const told = toldAs(word, likely[0]!).flatMap((other) => [...forms(other, langs), fold(other)]);
    const tokens = [...new Set([...forms(word, langs), ...told])].map((form) => prefix + form);
    put(idle(word) ? held : terms, tokens);
  });
  return [...(terms.size > 0 ? terms : held).values()].slice(0, MAX_QUERY_WORDS);
}

function put(terms: Map<string, QueryTerm>, forms: readonly string[]): void {
  const first = forms[0]!;
  if (!terms.has(first)) terms.set(first, { forms });
}

function eachWord(source: string, emit: (word: string, dense: boolean) => void): void {
  runs(source, (start, end, dense) => emit(source.slice(start, end), dense));
}

/** The language of a text; of one too short to tell, every likely one and English, the most likely first. */
function languagesOf(source: string): Lang[] {
  const ranked = rankLanguages(source);
  const best = ranked[0];
  if (best === undefined) return ["en"];
  if (best.score >= SURE) return [best.lang];
  const likely = ranked.filter((one) => one.score >= best.score * 0.6).slice(0, 3);
  return [...new Set([...likely.map((one) => one.lang), "en" as const])];
}

const STEMMED: readonly Lang[] = ["en", "de", "fr", "es", "pt", "it", "nl", "fi"];

/** A lower-case word as the index may hold it, whatever language its text was taken for. */
export function stemsOf(word: string): string[] {
  return [...new Set([fold(word).slice(0, MAX_WORD), ...forms(word, STEMMED)])];
}

/** The different stems of a word in these languages. */
function forms(word: string, langs: readonly Lang[]): string[] {
  const found = langs.map((lang) => fold(stem(word, lang)).slice(0, MAX_WORD));
  return found.length === 1 ? found : [...new Set(found)];
}

/** Every pair of neighbours, and beside them the longer words; pairs and single characters are the same token either way. */
function denseTokens(run: string): string[] {
  const tokens = bigrams(run);
  if (tokens.length > 1) {
    for (const word of words(run)) if (Array.from(word).length > 2) tokens.push(word.slice(0, MAX_WORD));
  }
  return tokens;
}
