/**
 * People, places, organisations, projects and tools that somebody speaks about as theirs, with the relation they state.
 * Made from the statements of the identity family and from decisions, so that what is no fact is no entity either. A name
 * must look like one: no invented entity is better than many.
 */
import { fold } from "../text/fold.ts";
import type { Lang } from "../text/language.ts";
import { stopWords } from "../text/stopwords.ts";
import { extractFacts, LONGEST_TEXT } from "./facts.ts";
import { departments, generalPlaces, germanNouns, givenNames, noNames } from "./names.ts";
import { commonNames, loose, people, pets, things } from "./relations.ts";
import type { Fact } from "./types.ts";

export type EntityType = "person" | "pet" | "place" | "organisation" | "project" | "tool";

/** One named thing and how the speaker is related to it. */
export interface NamedThing {
  name: string;
  type: EntityType;
  /** `sister`, `works at`: read from the speaker to the thing. */
  label: string;
  /** A person has one at a time: a new one takes the place of the old. */
  single: boolean;
}

/** What the user's words name. Pure, linear; reads the last 64 KiB. */
export function namedThings(user: string): NamedThing[] {
  const text = turned(user.slice(-LONGEST_TEXT));
  const found: NamedThing[] = [];
  for (const fact of extractFacts(text, "user").facts) {
    const thing = fromFact(fact, text);
    if (thing !== null && !found.some((one) => one.name === thing.name && one.label === thing.label)) {
      found.push(thing);
    }
  }
  return found;
}

const WORD = "\\p{Lu}[\\p{L}\\p{N}&.'’+#-]*";
const NAME = `${WORD}(?: ${WORD}){0,3}`;
/** A name at the beginning of a value, and nothing behind it but a new thought. */
const NAMED = new RegExp(
  `^(?:(?:the|der|die|das|la|le|les|el|il|lo|de|het) )?(${WORD}(?: (?:of|and|&|de|der|von|van|du|di|da|la|le) ${WORD}| ${WORD}){0,4})(?<rest>.*)$`,
  "u",
);
const DENSE_NAME = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ーA-Za-z0-9・]{2,12}$/u;
/** "A small printing company" in scripts without capitals: a counted or described thing has no name of its own. */
const SOME = /^(?:一|某|那|这)|[なのい](?=\p{Script=Han})/u;
/** "Plan B", "Gen Z": one of a kind, not a name. */
const NUMBERED =
  /^(?:Option|Plan|Type|Typ|Gen|Version|Phase|Step|Method|Chapter|Issue|Team|Building|Room|Apartment) (?:\p{Lu}|\p{N}+)$/u;
/** What may follow a name: nothing, a pause, or a word that begins something else. */
const REST =
  /^(?:$|[,;:.!?()–—-]|\s[(–—-]| (?:as|for|since|in|on|at|with|instead|over|because|from|who|which|now|these days|als|seit|für|comme|depuis|pour|como|desde|para|come|da quando|per|sinds|voor)\b| (?:and|und|et|y|e|en) \p{Ll})/u;

/** The name that a value is, or begins with; null when it is none. */
function nameIn(value: string, lang: Lang): string | null {
  if (lang === "zh" || lang === "ja") return DENSE_NAME.test(value) && !SOME.test(value) ? value : null;
  const match = NAMED.exec(value);
  const name = match?.[1]?.replace(/[.,'’-]+$/, "") ?? "";
  if (name === "" || !REST.test(match?.groups?.["rest"] ?? "")) return null;
  const [first = ""] = name.split(" ");
  const lower = first.toLowerCase();
  if (name.length < 2 || commonNames.has(lower) || stopWords(lang).has(lower)) return null;
  if (lang === "de" && name === first && isGermanNoun(lower)) return null;
  if (NUMBERED.test(name)) return null;
  return name;
}

/** German writes every noun with a capital: these are no names. */
function isGermanNoun(lower: string): boolean {
  return germanNouns.has(lower) || /(?:ung|heit|keit|schaft|ität|ismus|zeit)$/.test(lower);
}

function fromFact(fact: Fact, text: string): NamedThing | null {
  if (fact.polarity !== "+" || fact.origin !== "user") return null;
  const { lang, slot, value } = fact;
  if (fact.category === "identity") {
    if (slot === "employer") {
      return isEmployer(fact, text) ? made(value, lang, "organisation", "works at") : null;
    }
    if (slot === "home") return isHome(fact, text) ? made(value, lang, "place", "lives in") : null;
    if (slot?.startsWith("my_") === true) {
      return mine(slot.slice(3).replaceAll("_", " "), value, lang, fact.patternId.endsWith(".my_called"));
    }
    if (lang === "en" && fact.patternId.endsWith(".origin")) {
      const [first = ""] = value.toLowerCase().split(" ");
      return departments.has(first) ? null : made(value, lang, "place", "is from");
    }
    if (lang === "en" && fact.patternId.endsWith(".work_in")) {
      return value.startsWith("on ") ? made(value.slice(3), lang, "project", "works on") : null;
    }
    return null;
  }
  if (fact.category === "preference" && slot?.startsWith("favourite_") === true) {
    const thing = slot.slice("favourite_".length).replaceAll("_", " ");
    return things[thing] === "tool" ? made(value, lang, "tool", `favourite ${thing}`) : null;
  }
  // "use X" decides for a tool; German writes every noun with a capital, so none can be told from a name.
  if (fact.category === "decision" && lang !== "de") {
    const used = /^(?:use|adopt|usar|utiliser|usare|gebruiken) (.+)$/.exec(value);
    const tool = used === null ? null : made(used[1] ?? "", lang, "tool", "uses");
    // "Adopt Bella from the shelter", "use Anna as an example".
    return tool !== null && isGivenName(tool.name.toLowerCase()) ? null : tool;
  }
  return null;
}

/** German says "bei" and "für" of an employer; one works "in" and "an" much else. */
const EMPLOYED = /(?:bei|beim|für|arbeitgeber ist)(?<article>m| der| dem| den| die| das)? $/i;
/** In German a city has no article, but the dwelling and the part of town have one. */
const PLACED = /(?:in|nach|auf|ist|nahe)(?<article> der| dem| den| die| das)? $/i;
/** Lands and regions with one. */
const LANDS =
  /^(?:Schweiz|Türkei|Slowakei|Ukraine|Mongolei|Normandie|Bretagne|Provence|Toskana|Steiermark|Pfalz|Lausitz|Eifel|USA|Niederlanden?|Vereinigten|Staaten|Philippinen|Emiraten)\b/;

/** Whether somebody can be employed there. */
function isEmployer(fact: Fact, text: string): boolean {
  const { lang, value } = fact;
  // Finnish names the place or employer by an ending, which cannot be taken off with certainty.
  if (lang === "fi") return false;
  if (lang !== "de") return !generalPlaces.has(value.toLowerCase().replace(/^the /, ""));
  if (/^(?:der|die|das|dem|den) /.test(value)) return false;
  const preposition = EMPLOYED.exec(before(fact, text));
  // "Beim Arzt", "für die Stadt": of what stands behind an article only several words or capitals are a name.
  if (preposition?.groups?.["article"] !== undefined) return /^\p{Lu}\S* \p{Lu}|^\p{Lu}{2,}/u.test(value);
  return preposition !== null;
}

/** Whether somebody can live there. */
function isHome(fact: Fact, text: string): boolean {
  const { lang, value } = fact;
  if (lang === "fi") return false;
  if (lang !== "de") return !/^\p{L}+(?:ful|ous|able)$/u.test(value);
  const preposition = PLACED.exec(before(fact, text));
  return preposition !== null && (preposition.groups?.["article"] === undefined || LANDS.test(value));
}

/** The statement up to its value. */
function before({ start, value }: Fact, text: string): string {
  return text.slice(start, text.indexOf(value, start));
}

/** "My <thing> is X"; `called` where the words say that X is a name. */
function mine(slot: string, value: string, lang: Lang, called: boolean): NamedThing | null {
  // Slots are written without hyphens.
  const word = (list: ReadonlySet<string>) => [...list].find((one) => one.replaceAll("-", " ") === slot);
  const person = word(people[lang]);
  if (person !== undefined) return called || isName(value, lang) ? made(value, lang, "person", person) : null;
  const pet = word(pets[lang]);
  if (pet !== undefined) return called || isName(value, lang) ? made(value, lang, "pet", pet) : null;
  const type = things[fold(slot)];
  return type === undefined ? null : made(value, lang, type as EntityType, slot);
}

/** How words end that say what somebody is like. */
const ADJECTIVE = /(?:ish|ese|ian|ean|ican|ic|ical|ous|ful|less|able|ible|ive|ant|ent|ing|ed|ist|er than)$/;

/**
 * Whether what follows "my brother is" can be his name: "Tom" and "Tom Berg", not "Italian", "CEO of Acme" or "SICK". In
 * German, where every noun has a capital, one word must be a given name.
 */
function isName(value: string, lang: Lang): boolean {
  if (lang === "zh" || lang === "ja" || lang === "fi") return true;
  const words =
    value
      .split(/[,;:.!?()–—]|\s(?=\p{Ll})/u)[0]
      ?.trim()
      .split(/\s+/) ?? [];
  const [first = ""] = words;
  const lower = first.toLowerCase();
  if (/^\S+(?: \S+)? (?:of|and|&|und|et|y|e|en) /.test(value)) return false;
  if (isGivenName(lower) && !noNames.has(lower)) return true;
  if (noNames.has(lower) || /^\p{Lu}{2,}$/u.test(first)) return false;
  if (lang === "de") return words.length > 1 && TITLE.test(first);
  return words.length > 1 || !ADJECTIVE.test(lower);
}

const TITLE = /^(?:Herrn?|Frau|Dr\.?|Prof\.?)$/;

/** "Karl-Heinz" is two. */
function isGivenName(lower: string): boolean {
  return lower.split("-").every((part) => givenNames.has(part));
}

const SINGLE: ReadonlySet<string> = new Set(["lives in", "works at"]);

function made(value: string, lang: Lang, type: EntityType, label: string): NamedThing | null {
  const name = nameIn(value, lang);
  return name === null ? null : { name, type, label, single: SINGLE.has(label) };
}

/** "Anna is my sister" and "my sister Anna …": the same statement in other orders. */
interface Turn {
  lang: Lang;
  pattern: RegExp;
  /** The statement in the order that the language file reads. */
  say: (name: string, relation: string) => string;
  /** Only with a given name. */
  given?: boolean;
}

let turns: Turn[] | undefined;

/**
 * Adds each statement that stands in another order in the order that is read. It is put in place of the words, so that
 * whatever made them no fact (a question, a quotation, "if") goes on to.
 */
function turned(text: string): string {
  let result = text;
  for (const { lang, pattern, say, given = false } of (turns ??= makeTurns())) {
    result = result.replace(pattern, (whole, ...groups) => {
      const named = groups.at(-1) as { before?: string; name?: string; relation?: string };
      const { before = "", name = "", relation = "" } = named;
      const [first = ""] = name.split(" ");
      const lower = first.toLowerCase();
      if (commonNames.has(lower) || noNames.has(lower) || stopWords(lang).has(lower)) return whole;
      // "Time is my friend": a sentence begins with a capital, whatever its first word is.
      if (!isGivenName(lower) && (given || !isTurnedName(name, relation.toLowerCase(), lang))) return whole;
      return before + say(name, relation);
    });
  }
  return result;
}

/** Whether words that begin a sentence, where all have a capital, are a name: "Time is my friend". */
function isTurnedName(name: string, relation: string, lang: Lang): boolean {
  const [first = "", second] = name.split(" ");
  if (lang === "de" && second !== undefined) return TITLE.test(first);
  if (lang === "de" && isGermanNoun(first.toLowerCase())) return false;
  if (loose[lang]?.has(relation) !== true) return true;
  return second !== undefined && !friends.test(relation);
}

const friends = /friend|freund|ami|amig|amic|vriend/;

function makeTurns(): Turn[] {
  const relations = (lang: Lang) =>
    [...people[lang], ...pets[lang]]
      .sort((a, b) => b.length - a.length)
      .map((word) => (lang === "de" ? word.replace(/^\p{L}/u, (letter) => letter.toUpperCase()) : word))
      .map((word) => word.replaceAll(/[/\\^$*+?.()|[\]{}]/g, "\\$&"))
      .join("|");
  /** A clause begins: a text, a line, a sentence, after a comma, or after the like and "and". */
  const begin = (lang: Lang) =>
    `(?<before>^|[.!?]\\s{1,20}|\\n[ \\t]{0,40}|,\\s{1,5}(?:(?:and|und|et|y|e|en)\\s{1,5})?|(?<=(?:my|meine?|unsere?|ma|mon|mi|minha|meu|mia|mio|mijn) (?:${relations(lang)}))\\s{1,5}(?:and|und|et|y|e|en)\\s{1,5})`;
  const end = "(?=$|[\\s.,;:!?)])";
  const turn = (lang: Lang, verb: string, say: Turn["say"]): Turn => ({
    lang,
    pattern: new RegExp(
      `${begin(lang)}(?<name>${NAME}) ${verb} (?<relation>${relations(lang)})${end}(?! of\\b)`,
      "gu",
    ),
    say,
  });
  /** "my sister Anna", at the beginning of a clause: the statement goes before it. */
  const beside = (lang: Lang, possessive: string, say: Turn["say"]): Turn => ({
    lang,
    pattern: new RegExp(
      `(?<before>^|[.!?]\\s{1,20}|\\n[ \\t]{0,40})(?:${possessive}) (?<relation>${relations(lang)}),? (?<name>${NAME})(?= \\p{Ll})`,
      "gu",
    ),
    say,
    given: lang === "de",
  });
  return [
    turn("en", "is my", (name, relation) => `My ${relation} is ${name}`),
    turn("de", "ist (?:meine?|unsere?)", (name, relation) => `Meine ${relation} heißt ${name}`),
    turn("fr", "est (?:ma|mon)", (name, relation) => `Ma ${relation} s'appelle ${name}`),
    turn("es", "es mi", (name, relation) => `Mi ${relation} se llama ${name}`),
    turn("pt", "é (?:a |o )?(?:minha|meu)", (name, relation) => `Minha ${relation} se chama ${name}`),
    turn("it", "è (?:la |il )?(?:mia|mio)", (name, relation) => `Mia ${relation} si chiama ${name}`),
    turn("nl", "is mijn", (name, relation) => `Mijn ${relation} heet ${name}`),
    beside("en", "[Mm]y", (name, relation) => `My ${relation} is ${name}. It`),
    beside("de", "[Mm]eine?", (name, relation) => `Meine ${relation} heißt ${name}. Sie`),
    beside("fr", "[Mm]a|[Mm]on", (name, relation) => `Ma ${relation} s'appelle ${name}. Il`),
    beside("es", "[Mm]i", (name, relation) => `Mi ${relation} se llama ${name}. Ella`),
    beside("it", "[Mm]ia|[Mm]io", (name, relation) => `Mia ${relation} si chiama ${name}. Lei`),
    beside("nl", "[Mm]ijn", (name, relation) => `Mijn ${relation} heet ${name}. Die`),
  ];
}
