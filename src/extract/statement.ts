/** A cue and its value → the statement as it is stored: key, slot, rendering, type. */
import type { Compiled, CompiledCue } from "./compile.ts";
import { slug, slugKey } from "./keys.ts";
import { render } from "./render.ts";
import type { Category, Fact, FactType, Polarity, Role } from "./types.ts";
import { hasSubstance, shorten } from "./value.ts";
import { lower } from "../text/fold.ts";
import type { Lang } from "../text/language.ts";
import { givenNames } from "./names.ts";
import { people, pets } from "./relations.ts";

const TYPES: Record<Category, FactType> = {
  preference: "factual",
  decision: "episodic",
  pattern: "factual",
  identity: "factual",
  instruction: "procedural",
};

/** The fact that a cue and its value are; null when they are none. */
export function factOf(
  cue: CompiledCue["cue"],
  value: string,
  groups: Record<string, string | undefined>,
  compiled: Compiled,
  role: Role,
  start: number,
): Fact | null {
  if (cue.family === "forget" || cue.family === "retract") return null;
  const { language } = compiled;
  const category = cue.family;
  const polarity: Polarity = cue.polarity;
  const own = role === "assistant" && cue.you !== true;
  if (own && NARRATION.test(value)) return null;
  const template = (own ? cue.sayAssistant : cue.say) ?? language.say[category][polarity];
  // With the verb alone the rendering ends behind it.
  let content = render(template, { ...groups, value: groups["alone"] === undefined ? value : "" }).replace(
    /[:：\s]+$/,
    "",
  );
  if (cue.you === true) content = render(language.fromAssistant, { content });
  content = shorten(content);
  if (content.length < 3) return null;
  const slot = slotOf(cue, value, groups, compiled);
  return {
    category,
    type: TYPES[category],
    key: slugKey(category, category === "pattern" ? withoutAdverbs(value) : value, slot),
    slot,
    content,
    value,
    polarity,
    lang: language.lang,
    patternId: `${language.lang}.${category}.${cue.id}`,
    confidence: cue.you === true ? 0.6 : own ? 0.7 : 0.9,
    origin: role,
    correction: false,
    start,
  };
}

function slotOf(
  cue: CompiledCue["cue"],
  value: string,
  groups: Record<string, string | undefined>,
  { language: { lang }, trades }: Compiled,
): string | null {
  const { thing = "" } = groups;
  if (cue.slot === undefined) return null;
  if (cue.slot === "favourite") return `favourite_${slug(thing)}`;
  // "I'm a Leo" takes nobody's profession.
  if (cue.slot === "role" && cue.id === "role" && trades?.test(value) === false) return null;
  if (cue.slot !== "my") return cue.slot;
  const plain = lower(thing);
  const living = people[lang].has(plain) || pets[lang].has(plain);
  if (!living || isName(cue, value, groups, lang)) return `my_${slug(thing)}`;
  // Somebody is many things at once, each to be known beside the name; of one age and one calling, or breed, at a time.
  const kind = /^\p{N}/u.test(value) ? "age" : ROLE.test(value) ? "role" : slug(value.replace(OVER, ""));
  return `my_${slug(thing)}_${kind}`;
}

/** What is over is kept where it was known. */
const OVER = /^no longer (?:an? )?/i;
const ROLE = /^(?:an?|eine?|une?|un[oa]|uma?|um|een) /i;
const TITLE = /^(?:Herrn?|Frau|Dr|Prof)\b/;
const NAME = /^\p{Lu}[\p{L}'’.-]*(?: (?:\p{Lu}[\p{L}'’.-]*|de|da|di|van|von|der|del|bin|al))*$/u;

/** Whether the value says what somebody is called; Japanese does not tell. */
function isName(
  cue: CompiledCue["cue"],
  value: string,
  groups: Record<string, string | undefined>,
  lang: Lang,
): boolean {
  if (lang === "ja" || cue.id === "my_called" || cue.id === "my_name") return true;
  if (lang === "zh") return /叫/.test(groups["be"] ?? "");
  if (!NAME.test(value)) return false;
  // German writes "Ärztin" with a capital as well.
  return lang !== "de" || TITLE.test(value) || givenNames.has(lower(value.split(" ")[0] ?? ""));
}

/** What an assistant does next is no decision about the work, in whatever tense it says so. */
const NARRATION =
  /^(?:(?:to )?(?:look|check|read|run|search|inspect|open|examine|verify|investigate|start|begin|try|review|explore|proceed|continue|ask|wait|test|see|take a look|double-check|go through|list|grep|view|fetch|load|confirm|clarify|help|explain|answer|reply|write|provide|give|show|share|summari[sz]e|break)\b|(?:de |d'|di |zu |om )?(?:regarder|lire|lancer|chercher|vérifier|commencer|ouvrir|examiner|mirar|leer|ejecutar|buscar|comprobar|revisar|empezar|abrir|olhar|ler|rodar|executar|procurar|verificar|começar|abrir|guardare|leggere|eseguire|cercare|controllare|verificare|iniziare|aprire|zuerst|erst|eerst|tarkistaa|lukea|etsiä|ajaa|aloittaa|avata)(?![\p{L}]))/iu;

const FREQUENCY =
  /(?<![\p{L}'])(?:immer|meistens|meist|normalerweise|üblicherweise|gewöhnlich|oft|häufig|stets|nie|niemals|toujours|souvent|jamais|généralement|habituellement|siempre|normalmente|nunca|jamás|sempre|geralmente|di solito|spesso|mai|altijd|meestal|gewoonlijk|doorgaans|vaak|nooit|aina|yleensä|usein|koskaan|ikinä)(?![\p{L}])|いつも|普段は?|絶対に?|決して|一切|毎日|毎朝/giu;

/** Keys of habits leave "always" and "never" out, so that a habit that ends meets the one it ends. */
function withoutAdverbs(value: string): string {
  const rest = value.replaceAll(FREQUENCY, " ");
  return hasSubstance(rest) ? rest : value;
}

const LISTS = /(?<![\p{L}])(?:and|or|und|oder|et|ou|y|o|e|ed|en|of|ja|tai|sowie)(?![\p{L}])/iu;

/** Behind a comma, unless a list goes on there, stands why: "forget what I said about boats, wrong chat". */
export function beforeReason(value: string): string {
  const comma = value.search(/[,;，]\s?/);
  return comma <= 0 || LISTS.test(value.slice(comma)) ? value : value.slice(0, comma);
}
