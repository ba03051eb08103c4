import { lower } from "./fold.ts";
import { runs } from "./segment.ts";
import { stopWords } from "./stopwords.ts";

/** The ten languages that have stop words, a stemmer or bigrams, and an extraction file. */
export type Lang = "en" | "de" | "fr" | "es" | "pt" | "it" | "nl" | "fi" | "zh" | "ja";

const LATIN: readonly Lang[] = ["en", "de", "fr", "es", "pt", "it", "nl", "fi"];

/** Frequent words beside the stop words that give a short sentence away. */
const TELLING: Partial<Record<Lang, string>> = {
  en: "my i i'm i'll i've like love prefer hate always never usually remember forget name actually work live use want need the and is with",
  de: "wohnt arbeiten lieblings danke ab jetzt ich mich mir mein meine liebe hasse mag immer nie niemals vergiss merke heiße wohne arbeite eigentlich lieber benutze nehme nutze und nicht",
  fr: "merci désormais finalement je j' j'ai j'aime j'utilise mon ma mes préfère aime déteste adore toujours jamais oublie souviens appelle habite travaille utilise pas",
  es: "vamos ahora gracias yo mi mis me prefiero gusta gustan odio encanta siempre nunca olvida recuerda llamo vivo trabajo uso usar voy quiero hola soy mejor ya",
  pt: "vivo vamos use no na nos nas agora diante partir prefere trabalha obrigado obrigada eu meu minha prefiro gosto odeio adoro sempre nunca esqueça esquece lembre lembra chamo moro trabalho uso usar vou quero sou não você uma em",
  it: "ora grazie ci sempre io mio mia mi preferisco piace piacciono odio adoro sempre mai dimentica ricorda ricordati chiamo vivo abito lavoro uso usare voglio sono ho che di",
  nl: "vanaf voortaan bedankt ga gaan ik mijn mij liever haat altijd nooit vergeet onthoud heet woon werk gebruik houd hou vind graag het een niet naar",
  fi: "valitsin otin lopulta muutin enää kirjoitan ensin teen käyn juon syön vaihdoin itse asiassa minä mä mun minun pidän tykkään inhoan vihaan rakastan aina ikinä koskaan unohda muista nimeni asun käytän haluan olen oon työskentelen päätin en ei on se ja",
};

let weights: Map<string, ReadonlyArray<readonly [Lang, number]>> | undefined;

/** Word → its languages, each with 1 / the number of languages that share the word. */
function weightOf(word: string): ReadonlyArray<readonly [Lang, number]> | undefined {
  if (weights === undefined) {
    const owners = new Map<string, Set<Lang>>();
    for (const lang of LATIN) {
      for (const word of [...stopWords(lang), ...(TELLING[lang] ?? "").split(/\s+/)]) {
        if (word.length < 2 && word !== "i" && word !== "y" && word !== "é") continue;
        const set = owners.get(word) ?? new Set();
        set.add(lang);
        owners.set(word, set);
      }
    }
    weights = new Map();
    for (const [word, langs] of owners)
      weights.set(
        word,
        [...langs].map((lang) => [lang, 1 / langs.size] as const),
      );
  }
  return weights.get(word);
}

/** Letters that only some of the ten use, and what one of them counts. */
const LETTERS: ReadonlyArray<readonly [RegExp, readonly Lang[]]> = [
  [/[ñ¿¡]/, ["es"]],
  [/[ãõ]/, ["pt"]],
  [/ß/, ["de"]],
  [/[äö]/, ["de", "fi"]],
  [/ü/, ["de"]],
  [/[êîûœ]/, ["fr"]],
  [/[àèìòù]\b/, ["it"]],
  [/(?:ää|yö|öö|kk|ssä|ssa|llä|lla|stä|sta)/, ["fi"]],
  [/ij|oe[knt]/, ["nl"]],
];

const KANA = /[\u3041-\u30fa\uff66-\uff9f]/;
const HAN = /[\u3400-\u9fff\uf900-\ufaff]/g;
const LATIN_LETTER = /[A-Za-z\u00c0-\u024f]/g;
/** Enough to tell the language of any text; the rest costs time only. */
const SAMPLE = 4000;

/** A language and how much of the text speaks for it. */
export interface LanguageScore {
  lang: Lang;
  score: number;
}

/**
 * Languages the text may be in, most likely first; empty when nothing speaks for any. By script first (kana:
 * Japanese; mostly Han: Chinese), then by stop words, a word shared by several languages counting for each in part.
 */
export function rankLanguages(text: string): LanguageScore[] {
  const sample = lower(text.length > SAMPLE ? text.slice(0, SAMPLE) : text);
  const script = byScript(sample);
  if (script !== null) return [{ lang: script, score: 1 }];
  const scores = new Map<Lang, number>();
  runs(sample, (start, end, dense) => {
    if (dense) return;
    const word = sample.slice(start, end);
    for (const [lang, weight] of weightOf(word) ?? elided(word))
      scores.set(lang, (scores.get(lang) ?? 0) + weight);
  });
  if (/[^\x00-\x7f]|ij|oe|kk|ss|ll|st/.test(sample)) {
    for (const [letters, langs] of LETTERS) {
      if (!letters.test(sample)) continue;
      for (const lang of langs) scores.set(lang, (scores.get(lang) ?? 0) + 0.4 / langs.length);
    }
  }
  return [...scores].map(([lang, score]) => ({ lang, score })).sort((a, b) => b.score - a.score);
}

/** `l'`, `qu'`, `dell'` before a word of its own. */
function elided(word: string): ReadonlyArray<readonly [Lang, number]> {
  const at = word.indexOf("'");
  if (at < 1) return [];
  const head = word.slice(0, at);
  if (/^(?:j|qu|n|s|m|t|d|c)$/.test(head)) return [["fr", 0.7]];
  if (head === "l") return [["fr", 0.5], ["it", 0.5]]; // prettier-ignore
  return /^(?:dell|nell|all|un|dall|sull|quest|quell)$/.test(head) ? [["it", 1]] : [];
}

function byScript(text: string): Lang | null {
  if (KANA.test(text)) {
    // A Latin sentence that names one Japanese word stays Latin.
    const kana = text.match(/[\u3041-\u30fa\u3400-\u9fff\uff66-\uff9f]/g)?.length ?? 0;
    const latin = text.match(LATIN_LETTER)?.length ?? 0;
    return kana * 3 >= latin ? "ja" : null;
  }
  const han = text.match(HAN)?.length ?? 0;
  if (han === 0) return null;
  const latin = text.match(LATIN_LETTER)?.length ?? 0;
  return han * 3 >= latin ? "zh" : null;
}

/** The most likely language, or `fallback` when nothing speaks for any of the ten. */
export function detectLanguage<Fallback = null>(text: string, fallback?: Fallback): Lang | Fallback {
  return rankLanguages(text)[0]?.lang ?? ((fallback ?? null) as Fallback);
}
