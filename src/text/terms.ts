import { fold, lower } from "./fold.ts";
import { detectLanguage, type Lang } from "./language.ts";
import { bigrams, runs } from "./segment.ts";
import { stem } from "./stem.ts";
import { isStopWord } from "./stopwords.ts";

/**
 * What search compares: stemmed, folded words without stop words, in order, repeats kept; dense scripts as
 * bigrams. A text of stop words alone gives its words, so that no text of words gives nothing.
 */
export function terms(text: string, lang: Lang = detectLanguage(text, "en")): string[] {
  const source = lower(text);
  const found: string[] = [];
  const held: string[] = [];
  runs(source, (start, end, dense) => {
    const word = source.slice(start, end);
    if (dense) {
      for (const pair of bigrams(word)) found.push(pair);
    } else if (isStopWord(word, lang)) {
      held.push(fold(word));
    } else {
      found.push(fold(stem(word, lang)));
    }
  });
  return found.length === 0 ? held : found;
}
