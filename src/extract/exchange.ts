/** One exchange → what it teaches: both roles, the user's word first. */
import { rankLanguages } from "../text/language.ts";
import { compile, type Compiled } from "./compile.ts";
import { extractFacts } from "./facts.ts";
import { languageOf } from "./lang/all.ts";
import { agrees, contradicts } from "./settle.ts";
import type { ExchangeExtraction, ExtractFrom, Fact } from "./types.ts";

/** Most that one exchange teaches. */
export const MOST_FACTS = 20;
export const MOST_CHARACTERS = 4_000;

/**
 * Statements of a user's turn and the reply to it. The assistant's word about the user counts only when the user says
 * nothing about it; what the assistant wrote on request, or in a part it plays, is not its word.
 */
export function extractExchange(
  user: string,
  assistant: string,
  options: { extractFrom?: ExtractFrom } = {},
): ExchangeExtraction {
  const from = options.extractFrom ?? "both";
  const rejected = { retracted: 0, overruled: 0, capped: 0 };
  if (from === "off") return { facts: [], ends: [], forgets: [], rejected };
  const own = extractFacts(user, "user");
  let facts = own.facts;
  if (from === "both" && assistant !== "" && !asksForText(user, assistant)) {
    for (const fact of extractFacts(assistant, "assistant").facts) {
      const about = fact.confidence < 0.65;
      const known = facts.some((one) => agrees(one, fact) || contradicts(one, fact));
      if (known || (about && own.forgets.length > 0)) rejected.overruled += 1;
      else facts = [...facts, fact];
    }
  }
  const kept = capped(facts);
  rejected.capped = facts.length - kept.length;
  return { facts: kept, ends: own.ends, forgets: own.forgets, rejected };
}

/** Whether the user asks for a text, a part to be played, or examples: then nothing in the reply is meant. */
export function asksForText(user: string, assistant = ""): boolean {
  const text = user.slice(-20_000);
  const tried = new Set([
    ...languagesHeard(text),
    ...languagesHeard(assistant.slice(0, 2_000)),
    compile(languageOf("en")),
  ]);
  return [...tried].some(
    (one) => one.creative.test(text) || one.roleplay.test(text) || one.material.test(text),
  );
}

function languagesHeard(text: string): Compiled[] {
  return rankLanguages(text).slice(0, 3).map((score) => compile(languageOf(score.lang))); // prettier-ignore
}

/** The first statements within both limits. */
export function capped(facts: readonly Fact[]): Fact[] {
  const kept: Fact[] = [];
  let characters = 0;
  for (const fact of facts) {
    if (kept.length === MOST_FACTS || characters + fact.content.length > MOST_CHARACTERS) continue;
    characters += fact.content.length;
    kept.push(fact);
  }
  return kept;
}
