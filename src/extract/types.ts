/** What extraction reads out of text. Pure data: no ids, owners or times, which the engine adds. */

import type { Lang } from "../text/language.ts";

/** Who wrote the text that a statement stands in. */
export type Role = "user" | "assistant";

/** The storing families. Corrections live under the family that their new fact belongs to. */
export type Category = "preference" | "decision" | "pattern" | "identity" | "instruction";

/** The types that extraction gives; `semantic` is for summaries. */
export type FactType = "factual" | "episodic" | "procedural";

/** `-` when the statement denies or rejects its value. */
export type Polarity = "+" | "-";

/** One statement, ready to store. */
export interface Fact {
  category: Category;
  type: FactType;
  /** Upsert key, without the polarity: `preference:typescript`, `identity:home`. */
  key: string;
  /** The part of the key after the category when it is a slot (`home`, `my_sister`, `favourite_color`), else null. */
  slot: string | null;
  /** Self-contained sentence with its polarity, 3–500 characters: `Does not like Python`. */
  content: string;
  /** The core, verbatim from the text. */
  value: string;
  polarity: Polarity;
  lang: Lang;
  /** Names the pattern that read it: `en.preference.like`. */
  patternId: string;
  /** 0–1. */
  confidence: number;
  origin: Role;
  /** A correction's old value, when the text names it. */
  supersedes?: string;
  /** The person changed an earlier fact (moved, no longer, actually X not Y). */
  correction: boolean;
  /** Says only that this is over: stored in the place of what it ends, else not at all. */
  ends?: { slot: "employer" | "my"; any: boolean };
  /** Where the statement begins in the text it was read from, in UTF-16 units. */
  start: number;
}

/** A request to forget; `phrase` is what is to be forgotten, as the person put it. */
export interface Forget {
  phrase: string;
  lang: Lang;
  start: number;
}

/** What one text says. */
export interface Extraction {
  facts: Fact[];
  /** What is over, for whoever knows what there was; applied before the facts. */
  ends: Fact[];
  forgets: Forget[];
}

/** Why statements that were read are not given. */
export interface Rejected {
  /** Taken back later in the same exchange. */
  retracted: number;
  /** The assistant's word about the user, which the user contradicted or said themselves. */
  overruled: number;
  /** Beyond 20 statements or 4,000 characters an exchange. */
  capped: number;
}

/** What one exchange teaches. */
export interface ExchangeExtraction extends Extraction {
  rejected: Rejected;
}

/** Setting `extractFrom`. */
export type ExtractFrom = "user" | "both" | "off";
