/** Words of any script. Scripts written without blanks ("dense") are cut by `Intl.Segmenter`. */

/** One word as it stands in the text; `start` and `end` are UTF-16 offsets. */
export interface Word {
  text: string;
  start: number;
  end: number;
  /** Of a script written without blanks between words: Han, kana, Thai, Lao, Khmer, Burmese. */
  dense: boolean;
}

const Kind = { Other: 0, Letter: 1, Digit: 2, Dense: 3 } as const;
type Kind = (typeof Kind)[keyof typeof Kind];

const LETTER = /[\p{L}\p{M}]/u;
const DIGIT = /\p{N}/u;
const APOSTROPHE = /['\u2018\u2019\u02bc]/;

function kindOf(point: number): Kind {
  if (point < 0x80) {
    if (point >= 0x30 && point <= 0x39) return Kind.Digit;
    const letter = point | 0x20;
    return (letter >= 0x61 && letter <= 0x7a) || point === 0x5f ? Kind.Letter : Kind.Other;
  }
  if (point < 0x300) return point >= 0xc0 && point !== 0xd7 && point !== 0xf7 ? Kind.Letter : other(point);
  if (isDense(point)) return Kind.Dense;
  return other(point);
}

function other(point: number): Kind {
  if (point >= 0xd800 && point <= 0xdfff) return Kind.Other;
  const char = String.fromCodePoint(point);
  if (LETTER.test(char)) return Kind.Letter;
  return DIGIT.test(char) ? Kind.Digit : Kind.Other;
}

/** Whether the code point belongs to a script written without blanks. */
export function isDense(point: number): boolean {
  return (
    (point >= 0x3005 && point <= 0x3007) ||
    (point >= 0x3040 && point <= 0x30ff && point !== 0x30fb) ||
    (point >= 0x31f0 && point <= 0x31ff) ||
    (point >= 0x3400 && point <= 0x9fff) ||
    (point >= 0xf900 && point <= 0xfaff) ||
    (point >= 0xff66 && point <= 0xff9f) ||
    (point >= 0x20000 && point <= 0x3ffff) ||
    (point >= 0x0e00 && point <= 0x0eff) ||
    (point >= 0x1000 && point <= 0x109f) ||
    (point >= 0x1780 && point <= 0x17ff)
  );
}

const segmenters = new Map<string, Intl.Segmenter>();

function segmenter(locale: string): Intl.Segmenter {
  let found = segmenters.get(locale);
  if (found === undefined) {
    found = new Intl.Segmenter(locale, { granularity: "word" });
    segmenters.set(locale, found);
  }
  return found;
}

function localeOf(run: string): string {
  const point = run.codePointAt(0) ?? 0;
  if (point >= 0x0e00 && point <= 0x0e7f) return "th";
  return /[\u3040-\u30ff]/.test(run) ? "ja" : "zh";
}

/**
 * Every word with its place. Linear in the length. `don't`, `3.8`, `c++`, `c#` and `snake_case` are one word;
 * `node.js` and `well-kept` are two.
 */
export function wordSpans(text: string): Word[] {
  const words: Word[] = [];
  runs(text, (start, end, dense) => {
    if (!dense) {
      words.push({ text: text.slice(start, end), start, end, dense: false });
      return;
    }
    const run = text.slice(start, end);
    for (const part of segmenter(localeOf(run)).segment(run)) {
      const from = start + part.index;
      words.push({ text: part.segment, start: from, end: from + part.segment.length, dense: true });
    }
  });
  return words;
}

/** The words of {@link wordSpans} as plain strings. */
export function words(text: string): string[] {
  return wordSpans(text).map((word) => word.text);
}

/** Calls `emit` for every word, dense runs uncut: for callers that cut those into {@link bigrams} themselves. */
export function runs(text: string, emit: (start: number, end: number, dense: boolean) => void): void {
  const length = text.length;
  let at = 0;
  while (at < length) {
    const point = text.codePointAt(at) ?? 0;
    const kind = kindOf(point);
    const width = point > 0xffff ? 2 : 1;
    if (kind === Kind.Other) {
      at += width;
      continue;
    }
    const start = at;
    at += width;
    if (kind === Kind.Dense) {
      while (at < length) {
        const next = text.codePointAt(at) ?? 0;
        // Combining voicing marks follow decomposed kana.
        if (!isDense(next) && next !== 0x3099 && next !== 0x309a) break;
        at += next > 0xffff ? 2 : 1;
      }
      emit(start, at, true);
      continue;
    }
    at = wordEnd(text, at);
    emit(start, at, false);
  }
}

function wordEnd(text: string, from: number): number {
  const length = text.length;
  let at = from;
  while (at < length) {
    const point = text.codePointAt(at) ?? 0;
    const kind = kindOf(point);
    if (kind === Kind.Letter || kind === Kind.Digit) {
      at += point > 0xffff ? 2 : 1;
      continue;
    }
    const char = text[at] ?? "";
    const before = kindOf(text.charCodeAt(at - 1));
    const after = at + 1 < length ? kindOf(text.codePointAt(at + 1) ?? 0) : Kind.Other;
    const joinsNumber = (char === "." || char === ",") && before === Kind.Digit && after === Kind.Digit;
    const joinsWord = after === Kind.Letter && before === Kind.Letter && APOSTROPHE.test(char);
    if (joinsNumber || joinsWord) {
      at += 1;
      continue;
    }
    if (before === Kind.Letter && after !== Kind.Letter && after !== Kind.Digit) {
      if (char === "#") return at + 1;
    }
    if (char === "+" && before === Kind.Letter && text[at + 1] === "+") {
      const beyond = at + 2 < length ? kindOf(text.codePointAt(at + 2) ?? 0) : Kind.Other;
      if (beyond === Kind.Other) return at + 2;
    }
    break;
  }
  return at;
}

/** Overlapping pairs of characters of a dense run, or the one character: how such scripts are searched. */
export function bigrams(run: string): string[] {
  const chars = Array.from(run);
  if (chars.length < 2) return chars;
  const pairs: string[] = [];
  for (let at = 0; at + 1 < chars.length; at += 1) pairs.push(`${chars[at]}${chars[at + 1]}`);
  return pairs;
}
