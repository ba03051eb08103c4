import type { Lang } from "./language.ts";

type Stemmer = (word: string) => string;

/**
 * Snowball stemmers, each loaded with its first word: all together they take milliseconds of a start. Chinese and
 * Japanese have none: their words are not inflected, or cut into bigrams.
 */
const load: Partial<Record<Lang, () => { stemmer: Stemmer }>> = {
  en: () => require("@orama/stemmers/english"),
  de: () => require("@orama/stemmers/german"),
  fr: () => require("@orama/stemmers/french"),
  es: () => require("@orama/stemmers/spanish"),
  pt: () => require("@orama/stemmers/portuguese"),
  it: () => require("@orama/stemmers/italian"),
  nl: () => require("@orama/stemmers/dutch"),
  fi: () => require("@orama/stemmers/finnish"),
};
const loaded = new Map<Lang, Stemmer>();

function stemmerOf(lang: Lang): Stemmer | undefined {
  let found = loaded.get(lang);
  if (found === undefined) {
    found = load[lang]?.().stemmer;
    if (found !== undefined) loaded.set(lang, found);
  }
  return found;
}

const PLAIN_WORD = /^[\p{L}\p{M}']+$/u;
const CACHE_WORDS = 20_000;
const caches = new Map<Lang, Map<string, string>>();

/**
 * The stem of one lower-case word (accents still on: the stemmers read them). Numbers, `c++` and words over
 * 40 characters come back as they are. Remembers 20,000 words a language, since a stem costs about 1 µs.
 */
export function stem(word: string, lang: Lang): string {
  if (word.length < 3 || word.length > 40) return word;
  const stemmer = stemmerOf(lang);
  if (stemmer === undefined) return word;
  let cache = caches.get(lang);
  if (cache === undefined) {
    cache = new Map();
    caches.set(lang, cache);
  }
  const known = cache.get(word);
  if (known !== undefined) return known;
  const plain = word.replace(/'s?$/, "");
  const stemmed = PLAIN_WORD.test(plain) ? stemmer(plain) : word;
  if (cache.size >= CACHE_WORDS) cache.clear();
  cache.set(word, stemmed === "" ? word : stemmed);
  return stemmed === "" ? word : stemmed;
}
