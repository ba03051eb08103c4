/** When two statements say the same: never by a cosine, which cannot tell Monday from Tuesday. */
import { fold, lower } from "../text/fold.ts";
import { detectLanguage, type Lang } from "../text/language.ts";
import { wordSpans, type Word } from "../text/segment.ts";
import { stem } from "../text/stem.ts";
import { isStopWord } from "../text/stopwords.ts";

/** Small words that change what is said, although they are stop words. */
const TELLING: Record<Lang, string> = {
  en: `not no never nor without with only more less before after from to over under above below up down in out on off
    against between each all any few most other same i my me you your he she his her they their we our us before until`,
  de: `nicht kein keine keinen keinem keiner keines nie ohne mit nur mehr weniger vor nach von zu aus in bis gegen über unter
    ich mein meine er sie sein ihr ihre wir unser alle jede jeder nichts weder auf ab`,
  fr: `ne pas n non sans avec plus moins jamais aucun aucune avant après de à vers contre sur sous dans je mon ma mes il elle son sa
    ses nous notre ni tout tous`,
  es: `no sin con más menos nunca jamás antes después de a hacia contra sobre bajo en desde hasta yo mi mis él ella su sus
    nosotros nuestro ningún ninguna nada ni todo todos solo sólo`,
  pt: `não sem com mais menos nunca jamais antes depois de para a contra sobre em desde até eu meu minha ele ela seu sua nós
    nosso nenhum nenhuma nada nem todo todos só`,
  it: `non senza con più meno mai prima dopo da a verso contro su sotto in fino io mio mia lui lei suo sua noi nostro
    nessun nessuna niente né tutto tutti solo`,
  nl: `niet geen nooit zonder met meer minder voor na van naar tot tegen op onder in uit ik mijn hij zij zijn haar wij ons
    onze niets noch alle alleen`,
  fi: `en et ei emme ette eivät älä ilman kanssa vain enemmän vähemmän ennen jälkeen minä minun hän hänen me meidän kaikki
    eikä koskaan sekä yli ali`,
  zh: "不 没 没有 别 和 与 在 从 到 向 对 我 你 您 他 她 我们 都 只 很 更",
  ja: "ない ません から まで へ より と で に 私 僕 彼 彼女 だけ",
};

const telling = new Map<Lang, Set<string>>();

function isTelling(word: string, lang: Lang): boolean {
  let set = telling.get(lang);
  if (set === undefined) {
    set = new Set(TELLING[lang].split(/\s+/));
    telling.set(lang, set);
  }
  return set.has(word);
}

/** A lower-case word as it is compared: its folded stem; what is written without blanks has none. */
export function stemmed({ text, dense }: Word, lang: Lang): string {
  return fold(dense ? text : stem(text, lang));
}

/**
 * The same for two contents exactly when they are near-duplicates: stemmed words in their order, without stop words.
 * Numbers, names, negations, `with`, `without`, directions and possessors stay; a `n't` counts as `not`.
 */
export function duplicateKey(content: string, lang: Lang = detectLanguage(content, "en")): string {
  const parts: string[] = [];
  for (const word of wordSpans(lower(content))) {
    const { text, dense } = word;
    if (text.endsWith("n't")) parts.push("not");
    else if (text === "cannot") parts.push("can", "not");
    else if (dense || isTelling(text, lang) || !isStopWord(text, lang)) parts.push(stemmed(word, lang));
  }
  return parts.join(" ");
}

/** Whether both name the same things, two or more, in another order: "tea to coffee" and "coffee over tea". */
export function reordered(a: string, b: string, lang: Lang): boolean {
  const [first, second] = [a, b].map((text) =>
    wordSpans(lower(text))
      .filter((word) => word.dense || (!isStopWord(word.text, lang) && !isTelling(word.text, lang)))
      .map((word) => stemmed(word, lang)),
  ) as [string[], string[]];
  if (first.length < 2 || first.length !== second.length || first.join(" ") === second.join(" "))
    return false;
  return first.toSorted().join(" ") === second.toSorted().join(" ");
}

/** Whether `b` says what `a` says. Equal texts without any word compare as they stand. */
export function nearDuplicate(a: string, b: string, lang?: Lang): boolean {
  const language = lang ?? detectLanguage(`${a} ${b}`, "en");
  const key = duplicateKey(a, language);
  return key === "" ? a.trim() === b.trim() : key === duplicateKey(b, language);
}
