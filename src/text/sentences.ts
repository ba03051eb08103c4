/**
 * Sentences by our own rules rather than `Intl.Segmenter`'s: chat messages begin sentences with small letters
 * ("… left. the audit says"), which Unicode's rules do not end, and end them at "Mr.", which nobody wants.
 */

/** One sentence; `end` is past its closing mark. */
export interface Sentence {
  start: number;
  end: number;
  /** How it closes: a question mark anywhere in the closing run counts as `?`. */
  mark: "?" | "!" | "." | "";
}

const CLOSERS = /["'”’»›)\]」』】）*_~]/;
const SPACE = /\s/;
const DENSE_END = /[。！？｡]/;
const UPPER = /[\p{Lu}\p{Lt}]/u;
const HARD_WRAP = 60;

/** Never end a sentence, whatever follows. */
const BEFORE_ANYTHING = new Set(
  `mr mrs ms dr prof st vs eg ie cf approx ca bzw usw vgl evtl ggf bspw inkl zzgl mme mlle sr sra srta dra
  dott sig ing ns esim mm ym jne klo bijv bv mw dhr enz z.b d.h u.a i.d.r o.ä e.g i.e u.s z.t s.o v.a`.split(
    /\s+/,
  ),
);
/** End a sentence unless a number follows. */
const BEFORE_NUMBER = new Set("no nr fig abb vol p pp núm nro".split(" "));
/** End a sentence only before a capital. */
const BEFORE_SMALL = new Set("etc inc ltd co jr a.m p.m p.ej p.ex ecc".split(" "));
const MONTH_OR_SMALL =
  /^(?:\p{Ll}|jan|feb|mär|mrz|apr|mai\b|jun|jul|aug|sep|okt|nov|dez|stock|etage|klasse|og\b|kapitel|auflage)/iu;

/** Sentences of `text` between `from` and `to`. Line ends close a sentence unless the line was wrapped. Linear. */
export function sentences(text: string, from = 0, to = text.length): Sentence[] {
  const found: Sentence[] = [];
  let start = from;
  let lineStart = from;
  let at = from;
  const push = (end: number, mark: Sentence["mark"]) => {
    let first = start;
    while (first < end && SPACE.test(text[first] ?? "")) first += 1;
    let last = end;
    while (last > first && SPACE.test(text[last - 1] ?? "")) last -= 1;
    if (last > first) found.push({ start: first, end: last, mark });
    start = end;
  };
  while (at < to) {
    const char = text[at] ?? "";
    if (char === "\n") {
      const wrapped = at - lineStart >= HARD_WRAP && /^[ \t]?[\p{Ll}\d(]/u.test(text.slice(at + 1, at + 4));
      if (!wrapped) push(at, "");
      at += 1;
      lineStart = at;
      continue;
    }
    if (!isMark(char)) {
      at += 1;
      continue;
    }
    const first = at;
    while (at < to && isMark(text[at] ?? "")) at += 1;
    const run = text.slice(first, Math.min(at, first + 8));
    while (at < to && CLOSERS.test(text[at] ?? "")) at += 1;
    if (!ends(text, first, at, to, run)) continue;
    push(at, /[?？]/.test(run) ? "?" : /[!！]/.test(run) ? "!" : ".");
  }
  push(to, "");
  return found;
}

function isMark(char: string): boolean {
  switch (char) {
    case ".":
    case "!":
    case "?":
    case "…":
    case "。":
    case "！":
    case "？":
    case "｡":
      return true;
    default:
      return false;
  }
}

function ends(text: string, first: number, after: number, to: number, run: string): boolean {
  if (after >= to) return true;
  if (DENSE_END.test(run)) return true;
  const next = text[after] ?? "";
  if (!SPACE.test(next)) return isDenseLetter(text, after) && run !== ".";
  if (run === "…" || run.startsWith("..")) return UPPER.test(nextLetter(text, after));
  if (run !== ".") return true;
  let from = first;
  while (from > 0 && first - from < 12 && !SPACE.test(text[from - 1] ?? "") && text[from - 1] !== "(")
    from -= 1;
  const word = text.slice(from, first).toLowerCase();
  if (BEFORE_ANYTHING.has(word)) return false;
  const following = nextLetter(text, after);
  if (BEFORE_NUMBER.has(word)) return !/\d/.test(following);
  if (BEFORE_SMALL.has(word) || /^(?:\p{L}\.)+\p{L}$/u.test(word)) return UPPER.test(following);
  // An initial ("J. Smith"), but not the pronoun that ends "so do I." nor a language called C.
  if (/^\p{L}$/u.test(word) && word !== "i" && word !== "c" && word !== "r" && UPPER.test(following)) {
    return !UPPER.test(text[from] ?? "");
  }
  if (/^\d{1,2}$/.test(word)) {
    const line = text.lastIndexOf("\n", first - 1) + 1;
    if (first - line < 4 && text.slice(line, from).trim() === "") return false;
    return !MONTH_OR_SMALL.test(text.slice(after, after + 16).trimStart()) || !ordinalBefore(text, from);
  }
  return true;
}

/** German and Finnish write "der 4. Juni": an article or preposition before the number tells it from a version. */
function ordinalBefore(text: string, from: number): boolean {
  return (
    /(?:^|\s)(?:der|dem|den|das|die|am|im|vom|zum|bis|ab|seit|und|ist|nicht|on|ei)\s+$/i.test(
      text.slice(Math.max(0, from - 10), from),
    ) || /^\s*\d{1,2}\.\s*\p{L}+kuu/u.test(text.slice(from, from + 24))
  );
}

function nextLetter(text: string, from: number): string {
  for (let at = from; at < Math.min(text.length, from + 8); at += 1) {
    const char = text[at] ?? "";
    if (!SPACE.test(char) && !/["'“„«(¿¡*_-]/.test(char)) return char;
  }
  return "";
}

function isDenseLetter(text: string, at: number): boolean {
  return /[\u3040-\u30ff\u3400-\u9fff]/.test(text[at] ?? "");
}
