/** Corrections and requests to forget, against what is known. Pure: the engine finds the rows. */
import { fold, lower } from "../text/fold.ts";
import type { Lang } from "../text/language.ts";
import { bigrams, wordSpans } from "../text/segment.ts";
import { stem } from "../text/stem.ts";
import { isStopWord } from "../text/stopwords.ts";
import { compile } from "./compile.ts";
import { slugKey } from "./keys.ts";
import { languageOf } from "./lang/all.ts";
import type { Category, Fact, FactType, Forget, Polarity } from "./types.ts";
import { shorten } from "./value.ts";

/** What of a stored memory matters here: a row's content and, from its metadata, value, category and polarity. */
export interface Known {
  key: string | null;
  content: string;
  value: string;
  category: Category;
  type: FactType;
  polarity: Polarity;
  slot: string | null;
}

/** Words of a text as they are compared: stemmed where the language has stems, dense scripts uncut. */
function stems(text: string, lang: Lang): string[] {
  return wordSpans(lower(text)).map((word) => (word.dense ? word.text : fold(stem(word.text, lang))));
}

/**
 * Whether `value` equals `old` or holds it as whole words. Finnish endings do not count ("Kuopiosta" is in
 * "Kuopiossa"); Chinese and Japanese compare characters.
 */
export function holdsValue(value: string, old: string, lang: Lang): boolean {
  if (lang === "zh" || lang === "ja") return lower(value).includes(lower(old));
  const inner = stems(old, lang);
  if (inner.length === 0) return false;
  return ` ${stems(value, lang).join(" ")} `.includes(` ${inner.join(" ")} `);
}

/** Whether the correction speaks about this memory: its slot, else its old value. */
export function corrects(fact: Fact, known: Known): boolean {
  if (fact.ends !== undefined) return endsKnown(fact, known);
  if (fact.slot !== null && known.slot === fact.slot && known.category === fact.category) return true;
  if (fact.supersedes === undefined) return false;
  return holdsValue(known.value, fact.supersedes, fact.lang) || noLongerUses(fact, fact.supersedes, known);
}

/** "I no longer use the Thinkpad" ends "Laptop is a Thinkpad X1" and "Decided on a Thinkpad". */
function noLongerUses(fact: Fact, old: string, known: Known): boolean {
  if (fact.category !== "pattern" || fact.polarity !== "-" || known.polarity !== "+") return false;
  if (known.category !== "decision" && known.slot?.startsWith("my_") !== true) return false;
  return holdsValue(known.value, forgetWords(old, fact.lang).join(" "), fact.lang);
}

/** Whether this was known, and is over by what `fact` says: of its slot, and what its value names. */
export function endsKnown(fact: Fact, known: Known): boolean {
  if (fact.ends === undefined || known.polarity !== "+" || known.slot === null) return false;
  const { slot, any } = fact.ends;
  if (slot === "employer")
    return known.slot === slot && (any || holdsValue(known.value, core(fact), fact.lang));
  if (!known.slot.startsWith("my_")) return false;
  return holdsValue(`${known.slot.slice(3).replaceAll("_", " ")}. ${known.value}`, core(fact), fact.lang);
}

/** The value without articles and the like. */
function core(fact: Fact): string {
  return forgetWords(fact.value, fact.lang).join(" ");
}

/**
 * The corrected fact as it is stored in the place of `known`: of its family and slot, with its wording around the new
 * value. What ended ("no longer") and what names its own slot keeps its own wording.
 */
export function corrected(fact: Fact, known: Known): Fact {
  if (fact.ends !== undefined) {
    // "Rio died (Rio)" says it twice.
    const said = fact.content.includes(known.value) ? fact.content.replace(" ({known})", "") : fact.content;
    const content = shorten(said.replace("{known}", () => known.value));
    const { category, type, slot } = known;
    return { ...fact, category, type, slot, key: known.key ?? fact.key, content };
  }
  const own = fact.slot !== null && fact.slot === known.slot;
  if (own || fact.polarity === "-" || fact.supersedes === undefined) {
    return fact.slot === null && known.slot !== null && fact.polarity === "-"
      ? {
          ...fact,
          category: known.category,
          type: known.type,
          slot: known.slot,
          key: `${known.category}:${known.slot}`,
        }
      : fact;
  }
  const value = known.slot === null ? replaceWords(known.value, fact.supersedes, fact.value) : fact.value;
  const at = known.content.lastIndexOf(known.value);
  if (value === null || at === -1 || countsOld(fact, fact.supersedes, known))
    return { ...fact, category: known.category, type: known.type, slot: known.slot };
  const content = known.content.slice(0, at) + value + known.content.slice(at + known.value.length);
  return {
    ...fact,
    category: known.category,
    type: known.type,
    slot: known.slot,
    polarity: known.polarity,
    key: slugKey(known.category, value, known.slot),
    value,
    content: shorten(content),
  };
}

/** Whether a number was said of what is left: "5 mg of A" does not become "5 mg of B 20 mg". */
function countsOld(fact: Fact, old: string, known: Known): boolean {
  const rest = known.slot === null ? replaceWords(known.value, old, "") : null;
  return rest !== null && /\p{N}/u.test(rest) && (fact.category === "decision" || /\p{N}/u.test(fact.value));
}

/** `old` in `text` replaced, whatever its case; null when it does not stand there literally. */
function replaceWords(text: string, old: string, value: string): string | null {
  const at = text.toLowerCase().indexOf(old.toLowerCase());
  if (at === -1 || text.length !== text.toLowerCase().length) return null;
  return text.slice(0, at) + value + text.slice(at + old.length);
}

/**
 * What a memory must hold to be meant by a request to forget: words of the phrase without stop words and without the
 * verbs that every statement has ("live", "work", "like"), lower case, not stemmed: an index may have stemmed the memory
 * in another language than the request's. Dense scripts as bigrams.
 */
export function forgetWords(phrase: string, lang: Lang): string[] {
  const { keyless } = compile(languageOf(lang));
  const plain = lower(phrase);
  const core = wordsOf(plain.replaceAll(keyless, " "), lang);
  return core.length > 0 ? core : wordsOf(plain, lang);
}

/** The same as they are compared: stemmed. */
function forgetTerms(phrase: string, lang: Lang): string[] {
  return [...new Set(forgetWords(phrase, lang).map((word) => fold(stem(word, lang))))];
}

function wordsOf(text: string, lang: Lang): string[] {
  const found = new Set<string>();
  for (const run of text.split(/\s+/)) {
    for (const word of wordSpans(run)) {
      if (word.dense) continue;
      if (!isStopWord(word.text, lang)) found.add(word.text);
    }
  }
  for (const run of text.match(/[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+/g) ?? []) {
    for (const pair of bigrams(run)) found.add(pair);
  }
  return [...found];
}

/** Whether the request means this memory: every one of its {@link forgetTerms} stands in content or value. */
export function matchesForget(forget: Forget, known: Pick<Known, "content" | "value">): boolean {
  const wanted = forgetTerms(forget.phrase, forget.lang);
  if (wanted.length === 0) return false;
  const text = lower(`${known.content} ${known.value}`);
  const have = new Set(stems(text, forget.lang));
  const plain = fold(text);
  return wanted.every(
    (term) => have.has(term) || (/[\u3040-\u30ff\u3400-\u9fff]/.test(term) && plain.includes(term)),
  );
}
