/**
 * The first letters that a pattern can match, so that a hundred patterns need not be tried at every word. Reads the
 * syntax that the language files use: groups, alternatives, classes, bounded quantifiers, look-around.
 */

/** Letters looked at. */
export const LENGTH = 5;
/** More beginnings than this are as good as any. */
const MOST = 4000;

type Prefixes = ReadonlySet<string>;

/**
 * Lower-case beginnings, of up to five characters, of whatever the pattern matches. One of fewer characters may go on
 * in any way; the empty one says that anything may match.
 */
export function prefixesOf(source: string): Prefixes {
  const reader = { source, at: 0 };
  const found = alternatives(reader);
  return new Set([...found].map((prefix) => prefix.replace(/\0$/, "")));
}

interface Reader {
  source: string;
  at: number;
}

/** Marks a prefix behind which anything may follow: it grows no more. */
const OPEN = "\0";
const ANY: Prefixes = new Set([OPEN]);
const NOTHING: Prefixes = new Set([""]);

function alternatives(reader: Reader): Prefixes {
  const all = new Set<string>();
  for (;;) {
    for (const prefix of sequence(reader)) all.add(prefix);
    if (reader.source[reader.at] !== "|") break;
    reader.at += 1;
  }
  return all.size > MOST ? ANY : all;
}

function sequence(reader: Reader): Prefixes {
  let built: Prefixes = NOTHING;
  while (reader.at < reader.source.length) {
    const char = reader.source[reader.at];
    if (char === "|" || char === ")") break;
    built = join(built, element(reader));
  }
  return built;
}

function join(left: Prefixes, right: Prefixes): Prefixes {
  const joined = new Set<string>();
  for (const head of left) {
    if (head.endsWith(OPEN) || head.length >= LENGTH) joined.add(head);
    else {
      for (const tail of right) {
        const whole = head + tail;
        joined.add(whole.length > LENGTH ? whole.slice(0, LENGTH) : whole);
      }
    }
    if (joined.size > MOST) return ANY;
  }
  return joined;
}

function element(reader: Reader): Prefixes {
  const one = atom(reader);
  const rest = reader.source.slice(reader.at, reader.at + 12);
  const quantifier = /^(?:[?*+]|\{(\d+)(?:,(\d*))?\})\??/.exec(rest);
  if (quantifier === null) return one;
  reader.at += quantifier[0].length;
  const mark = quantifier[0][0];
  const least = mark === "?" || mark === "*" ? 0 : mark === "+" ? 1 : Number(quantifier[1]);
  const once = mark === "?" || (mark === "{" && quantifier[2] === undefined);
  // Repeated, it may be followed by itself: open behind the first.
  const repeated = once ? one : new Set([...one, ...join(one, ANY)]);
  return least === 0 ? new Set([...repeated, ""]) : repeated;
}

function atom(reader: Reader): Prefixes {
  const { source } = reader;
  const char = source[reader.at] ?? "";
  if (char === "(") return group(reader);
  if (char === "[") return charClass(reader);
  reader.at += 1;
  if (char === ".") return ANY;
  if (char === "^" || char === "$") return NOTHING;
  if (char !== "\\") return new Set([char.toLowerCase()]);
  const escaped = source[reader.at] ?? "";
  reader.at += 1;
  if (escaped === "s") return new Set([" "]);
  if (escaped === "b" || escaped === "B") return NOTHING;
  if (escaped === "u") {
    const code = Number.parseInt(source.slice(reader.at, reader.at + 4), 16);
    reader.at += 4;
    return new Set([String.fromCharCode(code).toLowerCase()]);
  }
  return /[a-zA-Z]/.test(escaped) ? ANY : new Set([escaped]);
}

function group(reader: Reader): Prefixes {
  const { source } = reader;
  const opening =
    /^\((?:\?(?:[:=!]|<[=!]|<\w+>|-?[a-z]+:))?/.exec(source.slice(reader.at, reader.at + 40))?.[0] ?? "(";
  reader.at += opening.length;
  const inner = alternatives(reader);
  reader.at += 1;
  if (opening === "(?!" || opening === "(?<!" || opening === "(?<=") return NOTHING;
  // What must follow is a beginning too, but nothing is known behind it.
  return opening === "(?=" ? join(inner, ANY) : inner;
}

function charClass(reader: Reader): Prefixes {
  const { source } = reader;
  let at = reader.at + 1;
  const negated = source[at] === "^";
  if (negated) at += 1;
  const chars = new Set<string>();
  let open = negated;
  while (at < source.length && source[at] !== "]") {
    if (source[at] === "\\") {
      const next = source[at + 1] ?? "";
      if (next === "s") chars.add(" ");
      else if (/[a-zA-Z]/.test(next)) open = true;
      else chars.add(next);
      at += 2;
    } else if (source[at + 1] === "-" && source[at + 2] !== "]") {
      open = true;
      at += 3;
    } else {
      chars.add((source[at] ?? "").toLowerCase());
      at += 1;
    }
  }
  reader.at = at + 1;
  return open ? ANY : chars;
}
