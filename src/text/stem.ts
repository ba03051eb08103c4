import { stemmer as dutch } from "@orama/stemmers/dutch";
import { stemmer as english } from "@orama/stemmers/english";
import { stemmer as finnish } from "@orama/stemmers/finnish";
import { stemmer as french } from "@orama/stemmers/french";
import { stemmer as german } from "@orama/stemmers/german";
import { stemmer as italian } from "@orama/stemmers/italian";
import { stemmer as portuguese } from "@orama/stemmers/portuguese";
import { stemmer as spanish } from "@orama/stemmers/spanish";
import type { Lang } from "./language.ts";

/** Snowball stemmers. Chinese and Japanese have none: their words are not inflected, or cut into bigrams. */
const STEMMERS: Partial<Record<Lang, (word: string) => string>> = {
  en: english,
  de: german,
  fr: french,
  es: spanish,
  pt: portuguese,
  it: italian,
  nl: dutch,
  fi: finnish,
};

const PLAIN_WORD = /^[\p{L}\p{M}']+$/u;
const CACHE_WORDS = 20_000;
const caches = new Map<Lang, Map<string, string>>();

/**
 * The stem of one lower-case word (accents still on: the stemmers read them). Numbers, `c++` and words over
 * 40 characters come back as they are. Remembers 20,000 words a language, since a stem costs about 1 µs.
 */
export function stem(word: string, lang: Lang): string {
  const stemmer = STEMMERS[lang];
  if (stemmer === undefined || word.length < 3 || word.length > 40) return word;
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
