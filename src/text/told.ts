/**
 * A memory tells in the third person what its owner asks about in the first: "Wohnt in Bonn" is asked for by "Wo wohne
 * ich?". Most stemmers make one stem of both; the regular verbs where they do not are here, and what an elision hides.
 */
import type { Lang } from "./language.ts";

/** Elided words of French and Italian before the word they lean on. */
const ELISION = /^(?:j|l|d|m|t|s|n|c|qu|un|dell|all|nell|sull|dall|quell)['’](?=\p{L}{3})/u;

/** Other words that a lower-case word of a question may stand for in a memory, not stemmed; mostly none. */
export function toldAs(word: string, lang: Lang): string[] {
  switch (lang) {
    case "de":
      return word.length > 3 && word.endsWith("e") ? [`${word.slice(0, -1)}t`, `${word}t`] : [];
    case "nl":
      return word.length > 3 && !/[aeiout]$/.test(word) ? [`${word}t`] : [];
    case "fr":
      return ELISION.test(word) ? [word.replace(ELISION, "")] : [];
    case "it":
    case "es":
    case "pt": {
      const bare = word.replace(ELISION, "");
      const verb =
        bare.length > 3 && bare.endsWith("o") ? [`${bare.slice(0, -1)}a`, `${bare.slice(0, -1)}e`] : [];
      return bare === word ? verb : [bare, ...verb];
    }
    default:
      return [];
  }
}
