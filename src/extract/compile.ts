/** Turns a language file into regular expressions, once a language. */
import type { Lang } from "../text/language.ts";
import type { Cue, Language } from "./lang/shape.ts";
import { prefixesOf } from "./prefixes.ts";
import type { Role } from "./types.ts";

/** Letters and digits of words written with blanks, for boundaries: `\b` knows ASCII only. */
const WORD = "\\w\\u00c0-\\u024f";

export interface CompiledCue {
  cue: Cue;
  /** Sticky. */
  head: RegExp;
  tail: RegExp | null;
  /** Sticky. */
  not: RegExp | null;
}

export interface Compiled {
  language: Language;
  /** Chinese or Japanese: no blanks between words. */
  dense: boolean;
  /** The cues that may match where the text goes on like this ({@link LENGTH} characters, any case), in their order. */
  cuesAt: (role: Role, beginning: string) => readonly CompiledCue[];
  /** Anchored at both ends. */
  leads: RegExp;
  /** Anchored at the start. */
  fronts: RegExp;
  /** Anchored at the end. */
  joins: RegExp;
  /** Global. */
  contrasts: RegExp;
  blocks: RegExp;
  /** Anchored at the start. */
  supposes: RegExp;
  /** Global: every place where a clause asks. */
  asks: RegExp;
  /** Anchored at the end. */
  tags: RegExp;
  roleplay: RegExp;
  material: RegExp;
  creative: RegExp;
  stops: RegExp;
  commaStops: RegExp;
  /** Anchored at the end. */
  trails: RegExp;
  /** Sticky. */
  anaphora: RegExp;
  /** Anchored at both ends. */
  passing: RegExp;
  /** Anchored at the start. */
  trades: RegExp | null;
  /** Matches at either end, with the blank. */
  newer: RegExp;
  /** Anchored at the start. */
  states: RegExp;
  /** Anchored at the start. */
  corrects: RegExp;
  notOld: RegExp;
  /** Global. */
  keyless: RegExp;
}

const compiled = new Map<Lang, Compiled>();

/** The language's patterns, compiled at the first use. */
export function compile(language: Language): Compiled {
  let found = compiled.get(language.lang);
  if (found === undefined) {
    found = build(language);
    compiled.set(language.lang, found);
  }
  return found;
}

/** What may stand before the first word. */
const OPENING = "[\\s\"'“”„«»‘’()\\[\\]¿¡*_~#>•·.,:;!?…\u2013\u2014-]{0,20}";

/** Matches nothing: stands for an empty list. */
const NEVER = "(?!)";

function build(language: Language): Compiled {
  const dense = language.lang === "zh" || language.lang === "ja";
  const before = dense ? "" : `(?<![${WORD}'])`;
  // A boundary, not "no letter follows": a pattern may end in a blank, a mark or a look-ahead.
  const after = dense ? "" : `(?:(?![${WORD}])|(?<![${WORD}]))`;
  const source = (pattern: string): string =>
    bounded(wideWords(pattern === "" ? NEVER : pattern))
      .replaceAll("<a>", `(?:(?:${language.adverbs})${dense ? "" : "\\s+"}){0,3}`)
      .replaceAll("<b>", `(?<![${WORD}])`)
      .replaceAll("<A>", "(?-i:[A-Z\\u00c0-\\u00de])")
      .replaceAll(/ [?*]/g, "\\s*")
      .replaceAll(" ", "\\s+")
      .replaceAll("\\b", `(?![${WORD}])`);
  const words = (pattern: string): string => `${before}(?:${source(pattern)})${after}`;
  const regex = (pattern: string, flags = "i"): RegExp => new RegExp(pattern, flags);
  const clause = "(?:^|[.,;:¿¡(\\u2013\\u2014\\u2026\\u3001\\uff0c\\uff1b\\uff1a]|\\s-)\\s*";
  return {
    language,
    dense,
    cuesAt: dispatcher(
      language.cues.map((cue) => ({
        cue,
        head: regex(`(?:${source(cue.head)})${cue.head === "" ? "" : after}`, "iy"),
        tail: cue.tail === undefined ? null : regex(source(cue.tail)),
        not: cue.not === undefined ? null : regex(`(?:${source(cue.not)})${after}`, "iy"),
        prefixes: cue.head === "" ? new Set([""]) : prefixesOf(source(cue.head)),
      })),
    ),
    leads: regex(`^(?:(?:${source(language.leads)})${after}[\\s,:!.…~～、，'"*_-]*){0,6}$`),
    fronts: regex(
      `^(?:(?:${source(language.leads)})${after}[\\s,!.…、，]*){0,3}(?:${source(language.fronts)})${after}`,
    ),
    joins: regex(`${before}(?:${source(language.joins)})\\s*$`),
    contrasts: regex(words(language.contrasts), "gi"),
    blocks: regex(words(language.blocks)),
    supposes: regex(
      `^${OPENING}(?:(?:${source(language.leads)})${after}[\\s,!.…、，]*){0,3}(?:${source(language.supposes)})${after}`,
      "i",
    ),
    asks: regex(
      `(?:${clause}(?:(?:${source(language.leads)})${after}[\\s,:…、，]*){0,3}|${before}(?:${source(language.joins)})\\s+)(?:${source(language.asks)})${after}|¿`,
      "gi",
    ),
    tags: regex(`(?:[,、，]|\\s-|\\u2013|\\.|\\s)\\s*(?:${source(language.tags)})\\s*[?？]+$`),
    roleplay: regex(words(language.roleplay)),
    material: regex(words(language.material)),
    creative: regex(words(language.creative)),
    stops: regex(`(?:\\s*[,;、，；]\\s*|\\s+${dense ? "|" : ""})(?:${source(language.stops)})${after}`),
    commaStops: regex(
      `\\s*(?:${dense ? "[,;，；]" : "[,;]"}|\\s[-\\u2013\\u2014]\\s|[\\u2013\\u2014])\\s*(?:${source(language.commaStops)})${after}`,
    ),
    trails: regex(`(?:[\\s,;.!…~～、，。]+|^${dense ? "|" : ""})(?:${source(language.trails)})$`),
    anaphora: regex(`(?:${source(language.anaphora)})`, "iy"),
    passing: regex(`^(?:${source(language.passing)})$`),
    trades: language.trades === undefined ? null : regex(`^(?:${source(language.trades)})`),
    newer: regex(
      dense
        ? `^(?:${source(language.newer)})`
        : `^(?:${source(language.newer)})\\s+|\\s+(?:${source(language.newer)})$`,
    ),
    states: regex(`^(?:${source(language.states)})${after}`),
    corrects: regex(
      `(?:^|[,;:]|\\s[-\\u2013])${OPENING}(?:(?:${source(language.leads)})${after}[\\s,:!.…、，-]*){0,4}(?:${source(language.corrects)})${after}`,
      "i",
    ),
    notOld: regex(source(language.notOld)),
    keyless: regex(words(language.keyless), "gi"),
  };
}

const REMEMBERED = 10_000;

/** Finds the cues by the next three characters, each combination once. */
function dispatcher(
  cues: ReadonlyArray<CompiledCue & { prefixes: ReadonlySet<string> }>,
): Compiled["cuesAt"] {
  const known = {
    user: new Map<string, readonly CompiledCue[]>(),
    assistant: new Map<string, readonly CompiledCue[]>(),
  };
  return (role, beginning) => {
    const cache = known[role];
    const found = cache.get(beginning);
    if (found !== undefined) return found;
    const lower = beginning.toLowerCase().replaceAll(/\\s/g, " ");
    const fitting = cues.filter(({ cue, prefixes }) => {
      if (role === "assistant" ? cue.you !== true && cue.sayAssistant === undefined : cue.you === true)
        return false;
      for (let length = 0; length <= lower.length; length += 1)
        if (prefixes.has(lower.slice(0, length))) return true;
      return false;
    });
    if (cache.size >= REMEMBERED) cache.clear();
    cache.set(beginning, fitting);
    return fitting;
  };
}

/** A word has an end: without one, a long run of letters and hyphens is read again from every place in it. */
function bounded(pattern: string): string {
  return pattern.replaceAll(
    /(?<set>\[(?:\\.|[^\]\\])*\]|\\[wS])(?<many>[+*])/g,
    (_, set: string, many: string) => `${set}{${many === "+" ? 1 : 0},80}`,
  );
}

/** `\\w` with accented letters, inside and outside of classes. */
function wideWords(pattern: string): string {
  let inClass = false;
  return pattern.replaceAll(/\\.|[[\]]/g, (token) => {
    if (token === "[") inClass = true;
    else if (token === "]") inClass = false;
    else if (token === "\\w") return inClass ? WORD : `[${WORD}]`;
    return token;
  });
}
