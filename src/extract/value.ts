/** Where a value ends, and what of it is worth keeping. */
import { collapse } from "../text/fold.ts";
import type { Compiled } from "./compile.ts";

/** Characters of content, after which a statement is cut. */
export const LONGEST_CONTENT = 500;

const EMOJI =
  /(?:[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff]|\ud83c[\udc00-\udfff]|[\ud83d-\ud83e][\udc00-\udfff])[\ufe0e\ufe0f\u200d]*/;
const SEMICOLON = /[;；]|\s[–—-]{1,2}\s|—/;
const EDGE_START = /^[\s・•◦▪,:;.!?…*_~–—、，。：；！]+/;
const EDGE_END = /[\s,:;.!?…*_~–—、，。：；！？～-]+$/;
const SMILE = /\s*(?:[:;=]-?[)(DPp]|xD|\^\^|<3)$/;
const LETTER = /[\p{L}\p{N}]/u;

/** The part of `text` before what no longer belongs to the value. */
export function cutValue(text: string, compiled: Compiled): string {
  let value = text;
  const cut = (at: number) => {
    if (at >= 0) value = value.slice(0, at);
  };
  cut(value.search(EMOJI));
  cut(value.search(SEMICOLON));
  cut(searchInside(compiled.commaStops, value));
  cut(searchInside(compiled.stops, value));
  return value;
}

/** A stop at the very beginning would leave nothing: then the value begins with that word. */
function searchInside(pattern: RegExp, value: string): number {
  const at = value.search(pattern);
  return at > 0 && LETTER.test(value.slice(0, at)) ? at : -1;
}

/** Folded white space, no marks at the ends, no "please" or "lol", brackets and quotation marks in pairs. */
export function tidyValue(text: string, compiled: Compiled): string {
  let value = collapse(text).replace(EDGE_START, "");
  for (let round = 0; round < 4; round += 1) {
    const before = value;
    value = value.replace(EDGE_END, "").replace(SMILE, "").replace(compiled.trails, "");
    value = unpaired(value);
    if (value === before) break;
  }
  // "C." lost its dot, "2 p.m" too: neither is missed; a language called "C+" would be.
  return value;
}

function unpaired(value: string): string {
  const last = value.at(-1) ?? "";
  if (last === ")" && !value.includes("(")) return value.slice(0, -1);
  if ((last === "]" && !value.includes("[")) || last === "(" || last === "[") return value.slice(0, -1);
  if (/["”“»«’']/.test(last)) {
    const quoted = /["“„«»‘']/.test(value.slice(0, -1));
    if (!quoted) return value.slice(0, -1);
  }
  const wrapped = /^(["“„«'‘「『`])([^"“”„«»'‘’」』`]{1,300})(["”“»'’」』`])$/.exec(value);
  return wrapped?.[2] ?? value;
}

/** At most `longest` characters: cut at the last sentence, else the last word, never inside a character. */
export function shorten(text: string, longest = LONGEST_CONTENT): string {
  if (text.length <= longest) return text;
  const head = text.slice(0, longest);
  const sentence = Math.max(head.lastIndexOf(". "), head.lastIndexOf("! "), head.lastIndexOf("。"));
  if (sentence > longest / 2) return head.slice(0, sentence + 1).trimEnd();
  const word = /[\s,;、，](?=[^\s,;、，]*$)/.exec(head);
  const at = word !== null && word.index > longest / 2 ? word.index : longest;
  return head
    .slice(0, at)
    .replace(/[\ud800-\udbff]$/, "")
    .replace(/[\s,;:、，]+$/, "");
}

/** Whether anything stands in it that can be remembered. */
export function hasSubstance(value: string): boolean {
  return LETTER.test(value);
}
