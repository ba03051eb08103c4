/** Dates that a question names: "on 3 June 2023", "im Mai", "5月8日", "2023-05". What was stored then answers it better. */
import { fold, lower } from "../text/fold.ts";
import { rankLanguages, type Lang } from "../text/language.ts";

const DAY = 86_400_000;
/** Things are also told shortly after they happened: the days over which the bonus fades, after and before. */
const FADE_AFTER = 10;
const FADE_BEFORE = 5;

/** A stretch of days, UTC. Without a year it recurs. */
export interface NamedDate {
  /** Null: any year. */
  readonly year: number | null;
  /** 0–11, or null: the whole year. */
  readonly month: number | null;
  /** 1–31, or null: the whole month. */
  readonly day: number | null;
}

interface MonthNames {
  readonly months: ReadonlyMap<string, number>;
  readonly pattern: RegExp | null;
}

const monthNames = new Map<Lang, MonthNames>();

/** The first date a text names, or null. */
export function namedDate(text: string): NamedDate | null {
  const source = lower(text.slice(0, 2000));
  const iso = /\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b/.exec(source);
  if (iso) return valid(Number(iso[1]), Number(iso[2]) - 1, iso[3] === undefined ? null : Number(iso[3]));
  const cjk = /(?:(\d{4})\s*年)?\s*(\d{1,2})\s*月(?:\s*(\d{1,2})\s*[日号])?/.exec(source);
  if (cjk)
    return valid(
      cjk[1] === undefined ? null : Number(cjk[1]),
      Number(cjk[2]) - 1,
      cjk[3] === undefined ? null : Number(cjk[3]),
    );
  const dotted = /\b(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})\b/.exec(source);
  if (dotted) return valid(Number(dotted[3]), Number(dotted[2]) - 1, Number(dotted[1]));
  return byName(source) ?? yearAlone(source);
}

/** How well a time fits a named date: 1 inside it, fading to 0 over the days around it. */
export function dateFit(date: NamedDate, at: number): number {
  const years =
    date.year === null ? [new Date(at).getUTCFullYear(), new Date(at).getUTCFullYear() - 1] : [date.year];
  let best = 0;
  for (const year of years) {
    const { from, until } = stretch(date, year);
    const late = (at - until) / DAY;
    const early = (from - at) / DAY;
    // A day more on both sides: the person's midnight is not UTC's.
    const fit =
      early <= 0 && late <= 0 ? 1 : late > 0 ? Math.exp(-late / FADE_AFTER) : Math.exp(-early / FADE_BEFORE);
    best = Math.max(best, fit);
  }
  return best;
}

/** The time from the first to the last day, for looking rows up. Null when it recurs. */
export function dateSpan(date: NamedDate): { from: number; until: number } | null {
  return date.year === null ? null : stretch(date, date.year);
}

function stretch({ month, day }: NamedDate, year: number): { from: number; until: number } {
  if (month === null) return { from: Date.UTC(year, 0, 1), until: Date.UTC(year + 1, 0, 1) };
  if (day === null) return { from: Date.UTC(year, month, 1), until: Date.UTC(year, month + 1, 1) };
  return { from: Date.UTC(year, month, day), until: Date.UTC(year, month, day + 1) };
}

// "may" and "march" are English verbs, "mars" is a planet: alone they need a word before them that makes them a month.
const DOUBTFUL = /^(?:may|march|mar|mars|mai|ago|set|out|dez|dec|jan|sep|sept|maj)$/;
const INTRODUCES = /(?:^|\s)(?:in|on|of|since|during|until|last|this|next|im|en|em|nel|a|early|late|mid)\s+$/;

function byName(source: string): NamedDate | null {
  const folded = fold(source);
  const langs = rankLanguages(source)
    .slice(0, 2)
    .map((one) => one.lang);
  if (!langs.includes("en")) langs.push("en");
  for (const lang of langs) {
    const { pattern, months } = namesOf(lang);
    if (pattern === null) continue;
    for (const at of folded.matchAll(pattern)) {
      const name = at[0];
      const before = folded.slice(Math.max(0, at.index - 16), at.index);
      const after = folded.slice(at.index + name.length, at.index + name.length + 20);
      const dayBefore = /(?<!\d)(\d{1,2})(?:st|nd|rd|th|er|º|ª|\.)?\s*(?:of|de|d['’])?\s*$/.exec(before);
      const dayAfter = /^\s*(\d{1,2})(?:st|nd|rd|th)?(?![\d:])/.exec(after);
      const year = /^[\s,.]*(?:\d{1,2}(?:st|nd|rd|th)?[\s,]+)?(?:de\s+)?(\d{4})(?!\d)/.exec(after);
      if (DOUBTFUL.test(name) && !dayBefore && !dayAfter && !year && !INTRODUCES.test(before)) continue;
      const day = dayBefore?.[1] ?? dayAfter?.[1];
      return valid(year ? Number(year[1]) : null, months.get(name)!, day === undefined ? null : Number(day));
    }
  }
  return null;
}

function yearAlone(source: string): NamedDate | null {
  const year = /(?<![\d.,-])(19[89]\d|20\d\d)(?![\d.,]*[\p{L}\d])/u.exec(source);
  return year ? { year: Number(year[1]), month: null, day: null } : null;
}

function valid(year: number | null, month: number, day: number | null): NamedDate | null {
  if (month < 0 || month > 11) return null;
  return { year, month, day: day !== null && day >= 1 && day <= 31 ? day : null };
}

/** Month names of a language, folded, and a pattern of them all. */
function namesOf(lang: Lang): MonthNames {
  let names = monthNames.get(lang);
  if (names === undefined) {
    const months = new Map<string, number>();
    if (lang !== "zh" && lang !== "ja") {
      const long = new Intl.DateTimeFormat(lang, { month: "long", timeZone: "UTC" });
      for (let month = 0; month < 12; month++) {
        const name = fold(long.format(Date.UTC(2021, month, 15)));
        months.set(name, month);
        // Finnish says "in May" by an ending; English shortens.
        if (lang === "fi") months.set(`${name}ssa`, month);
        if (lang === "en" && month !== 4) months.set(name.slice(0, 3), month);
      }
      if (lang === "en") months.set("sept", 8);
    }
    const all = [...months.keys()].join("|");
    names = {
      months,
      pattern: all === "" ? null : new RegExp(`(?<![\\p{L}\\p{N}])(?:${all})(?![\\p{L}\\p{N}])`, "gu"),
    };
    monthNames.set(lang, names);
  }
  return names;
}
