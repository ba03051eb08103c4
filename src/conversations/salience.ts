import { detectLanguage } from "../text/language.ts";
import { sentences } from "../text/sentences.ts";
import { stopWords } from "../text/stopwords.ts";
import { terms } from "../text/terms.ts";

/** One message of a session, in the order in which it was said. */
export interface Message {
  /** Which exchange it belongs to, counted from 0. */
  exchange: number;
  role: "user" | "assistant";
  text: string;
}

/** One sentence that was chosen; `at` is its place among all sentences of the session. */
export interface Chosen {
  at: number;
  exchange: number;
  role: "user" | "assistant";
  text: string;
}

interface Sentence extends Chosen {
  terms: Set<string>;
  cost: number;
  bonus: number;
  /** Beyond what the sentence says: it does not raise what others are measured by. */
  extra: number;
}

const MAX_MESSAGE = 16_384;
const MAX_SENTENCE = 400;
/** Of one session; beyond them a session is summed up by its first part. */
const MAX_SENTENCES = 50_000;
const MIN_TERMS = 3;
/** How much a sentence's length counts against it: 0 takes the longest, 1 the shortest. */
const LENGTH = 0.3;
/** A sentence that adds less than this share of what the first one did is left out, even if there is room. */
const WORTH = 0.3;
const FENCE = /```[\s\S]*?(?:```|$)|~~~[\s\S]*?(?:~~~|$)/g;
const MARKUP = /^(?:[#>*+•-]+|\d{1,3}[.)])\s+/;
const BLANKS = /\s+/g;

/** A message without its code blocks. */
export function withoutCode(text: string): string {
  return text.replace(FENCE, "\n");
}

/** Sentences of a message, without code, list marks and what is too short to say anything. */
function sentencesOf(text: string): string[] {
  const plain = withoutCode(text.slice(0, MAX_MESSAGE));
  const found: string[] = [];
  for (const { start, end } of sentences(plain)) {
    const sentence = plain.slice(start, end).replace(MARKUP, "").replace(BLANKS, " ").trim();
    if (sentence.length < 3) continue;
    found.push(sentence.length <= MAX_SENTENCE ? sentence : cut(sentence));
  }
  return found;
}

function cut(sentence: string): string {
  const head = sentence.slice(0, MAX_SENTENCE).toWellFormed();
  const blank = head.lastIndexOf(" ");
  return `${(blank > MAX_SENTENCE / 2 ? head.slice(0, blank) : head).trimEnd()}…`;
}

/** What was settled, and first what it is about, is what one wants to find again, though its words come up elsewhere. */
const OPENING = 2;
const DECISION = 1.6;
const SETTLED = new RegExp(
  [
    "decided|agreed|chose|chosen|booked|reserved|ordered|deadline|important|solved|fixed",
    "entschieden|entscheiden uns|beschlossen|vereinbart|gebucht|reserviert|bestellt|wichtig|auf keinen fall|frist|gelöst|behoben",
    "décidé|choisi|convenu|réservé|commandé|important|résolu",
    "decidido|decidimos|decidí|elegido|acordado|reservado|importante|resuelto",
    "decidi|decidiu|escolhi|escolhemos|combinado|reservei|reservamos|resolvido",
    "deciso|scelto|concordato|prenotato|risolto",
    "besloten|gekozen|afgesproken|geboekt|gereserveerd|belangrijk|opgelost",
    "päätin|päätimme|päätetty|valitsin|valitsimme|sovittu|varasin|varasimme|tärkeää?|ratkaistu",
  ]
    .map((words) => `(?<![\\p{L}\\p{N}])(?:${words})(?![\\p{L}\\p{N}])`)
    .join("|")
    .concat("|决定|選定|选定|预订|重要|決めました|決めた|決定|予約し"),
  "iu",
);

/** People state things; questions name the subject; a reply mostly explains what was said. */
function bonusOf(role: Message["role"], text: string, first: boolean): number {
  const question = /[?？]["'”’)]*$/.test(text);
  const exclaimed = /[!！]$/.test(text);
  const specific = /\p{N}/u.test(text) || /\s\p{Lu}[\p{Ll}\p{N}]/u.test(text);
  return (
    (role === "user" ? 1.5 : 1) *
    (question ? 0.6 : exclaimed ? 0.8 : 1) *
    (specific ? 1.2 : 1) *
    (first ? 1.1 : 1)
  );
}

/**
 * The sentences that carry a session, in their order, within a budget. A word weighs what the session makes of it:
 * the more exchanges it comes up in, the more; words of one sentence only count a little. Sentences are taken one
 * by one, each for the weight of the words that no chosen sentence has yet, by its length (greedy budgeted maximum
 * coverage, Lin and Bilmes 2010, r = 0.3), so that nothing is said twice and every subject gets its turn.
 * Linear in the text but for the choice, which looks at the best 2,000 sentences.
 */
export function createSalience(costOf: (text: string) => number) {
  const sentences: Sentence[] = [];
  const seenOf = new Map<string, { last: number; exchanges: number; sentences: number }>();
  let at = 0;
  let exchanges = 0;
  let opened = false;

  function count(word: string, exchange: number): void {
    const seen = seenOf.get(word);
    if (seen === undefined) {
      seenOf.set(word, { last: exchange, exchanges: 1, sentences: 1 });
      return;
    }
    seen.sentences += 1;
    if (seen.last !== exchange) {
      seen.last = exchange;
      seen.exchanges += 1;
    }
  }

  /** Takes in the next message. */
  function add(message: Message): void {
    const lang = detectLanguage(message.text, "en");
    exchanges = Math.max(exchanges, message.exchange + 1);
    for (const [index, text] of sentencesOf(message.text).entries()) {
      const words = new Set(terms(text, lang));
      for (const word of words) if (stopWords(lang).has(word)) words.delete(word);
      at += 1;
      if (words.size === 0 || sentences.length >= MAX_SENTENCES) continue;
      for (const word of words) count(word, message.exchange);
      const opening = !opened && message.role === "user" && words.size >= MIN_TERMS;
      opened ||= opening;
      sentences.push({
        at,
        exchange: message.exchange,
        role: message.role,
        text,
        terms: words,
        cost: Math.max(1, costOf(text)),
        bonus: bonusOf(message.role, text, index === 0),
        extra: (opening ? OPENING : 1) * (SETTLED.test(text) && !/[?？]/.test(text) ? DECISION : 1),
      });
    }
  }

  /** The best of what was taken in. Empty only when nothing was said, or no sentence fits. */
  function best(budget: number): Chosen[] {
    const weight = new Map<string, number>();
    for (const [word, seen] of seenOf) {
      // What nearly every exchange says (a name, a greeting) tells none of them apart.
      const share = exchanges < 5 ? 0 : seen.exchanges / exchanges;
      weight.set(word, (Math.log2(1 + seen.exchanges) + 0.5 * Math.log2(seen.sentences)) * (1 - share));
    }
    const full = sentences.filter((sentence) => sentence.terms.size >= MIN_TERMS);
    const chosen = choose(full, weight, budget);
    return (chosen.length > 0 ? chosen : choose(sentences, weight, budget))
      .sort((a, b) => a.at - b.at)
      .map(({ at, exchange, role, text }) => ({ at, exchange, role, text }));
  }

  return { add, best };
}

function choose(sentences: Sentence[], weight: ReadonlyMap<string, number>, budget: number): Sentence[] {
  const covered = new Set<string>();
  const gain = (sentence: Sentence): number => {
    let sum = 0;
    for (const word of sentence.terms) if (!covered.has(word)) sum += weight.get(word) ?? 0;
    return (sum * sentence.bonus * sentence.extra) / sentence.cost ** LENGTH;
  };
  // Gains only fall as words get covered, so an old gain is an upper bound: look again only at the top (lazy greedy).
  const queue = sentences
    .map((sentence) => ({ sentence, gain: gain(sentence) }))
    .sort((a, b) => b.gain - a.gain || a.sentence.at - b.sentence.at)
    .slice(0, 2000);
  const chosen: Sentence[] = [];
  const enough = queue.reduce((most, { sentence, gain }) => Math.max(most, gain / sentence.extra), 0) * WORTH;
  let left = budget;
  while (queue.length > 0 && left > 0) {
    const top = queue[0];
    if (top === undefined) break;
    const now = gain(top.sentence);
    const next = queue[1];
    if (next !== undefined && now < next.gain) {
      queue.shift();
      insert(queue, { sentence: top.sentence, gain: now });
      continue;
    }
    queue.shift();
    if (now <= enough) break;
    if (top.sentence.cost > left) continue;
    chosen.push(top.sentence);
    left -= top.sentence.cost;
    for (const word of top.sentence.terms) covered.add(word);
  }
  return chosen;
}

function insert(
  queue: { sentence: Sentence; gain: number }[],
  entry: { sentence: Sentence; gain: number },
): void {
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((queue[middle]?.gain ?? 0) > entry.gain) low = middle + 1;
    else high = middle;
  }
  queue.splice(low, 0, entry);
}
