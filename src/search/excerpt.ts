/** The part of a long text that fits the question: whole sentences around those that hold its words. */
import { estimateTokens, cutToTokens } from "../memory/budget.ts";
import { indexTokens, type QueryTerm } from "./tokens.ts";

const SENTENCES = /[^.!?。！？\n]+(?:[.!?。！？]+["'”’)\]]*|\n+|$)\s*/gu;

/**
 * `text` itself when it costs at most `most` tokens, else the run of sentences that holds most of the question's words,
 * with `…` where something was left out.
 */
export function excerpt(text: string, terms: readonly QueryTerm[], most: number): string {
  if (text.length <= most || estimateTokens(text) <= most) return text;
  const sentences = text.match(SENTENCES) ?? [text];
  const forms = terms.map((term) => new Set(term.forms));
  const owner = Number(/^o(\d+)x/.exec(terms[0]?.forms[0] ?? "")?.[1] ?? 0);
  const held = sentences.map((sentence) => {
    const words = new Set(indexTokens(owner, sentence).split(" "));
    return forms.filter((set) => [...set].some((form) => words.has(form))).length;
  });
  const costs = sentences.map((sentence) => estimateTokens(sentence));
  let best = 0;
  for (let at = 1; at < held.length; at++) if (held[at]! > held[best]!) best = at;
  let from = best;
  let until = best + 1;
  let cost = costs[best]! + 2;
  // Grows towards the side that says more; a tie goes forward, where an answer follows its question.
  for (;;) {
    const next = until < held.length && cost + costs[until]! <= most ? held[until]! : -1;
    const before = from > 0 && cost + costs[from - 1]! <= most ? held[from - 1]! : -1;
    if (next < 0 && before < 0) break;
    if (next >= before) cost += costs[until++]!;
    else cost += costs[--from]!;
  }
  const kept = sentences.slice(from, until).join("").trim();
  const fitted = cutToTokens(kept, Math.floor(most) - 2);
  return `${from > 0 ? "… " : ""}${fitted}${until < sentences.length && !fitted.endsWith("…") ? " …" : ""}`;
}
