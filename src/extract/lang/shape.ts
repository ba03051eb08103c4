/**
 * The one shape of a language file. Patterns are sources of regular expressions, without flags; the reader
 * compiles them case-insensitive and tests them where a clause may begin, on text with straight apostrophes.
 *
 * A blank stands for white space, `\\w` knows accented letters, `<a>` is up to three of the language's adverbs with the
 * blanks after them, `<A>` a capital letter, `<b>` the beginning of a word and `\\b` its end. Quantifiers stay bounded.
 */
import type { Lang } from "../../text/language.ts";
import type { Category, Polarity } from "../types.ts";

export interface Cue {
  /** Becomes `patternId` with the language and the family: `en.preference.like`. */
  id: string;
  family: Category | "forget" | "retract";
  polarity: Polarity;
  /**
   * What the clause begins with. The value starts behind it. Named groups: `thing` (slot `my_<thing>`), `old` (what a
   * correction replaces), `trigger` (of "when I say …"), `adv`.
   */
  head: string;
  /** Where the value ends, for verbs that close the clause. Required when present. Same named groups. */
  tail?: string;
  /** The tail stands in the same clause: before the next comma, colon or "but". */
  tight?: true;
  /** Values that are none, tested at the value's first character. */
  not?: string;
  /** A fixed slot (`home`), or one made of the group `thing`: `my` → `my_<thing>`, `favourite` → `favourite_<thing>`. */
  slot?: "name" | "home" | "employer" | "role" | "my" | "favourite";
  /** Content, with `{value}`, `{thing}`, `{old}`, `{trigger}`, `{adv}`; default: the family's of the language. */
  say?: string;
  /** Content when the assistant says it of its own work; without it the assistant's words do not count. */
  sayAssistant?: string;
  /** An earlier fact changes. */
  correction?: true;
  /**
   * Says that something is over, and nothing where that was not known: a place of work, or one of the things that are
   * `my_<thing>`. `{known}` in the rendering is the value that was known.
   */
  ends?: "employer" | "my";
  /** With `ends`: whatever fills that slot, not only what the value names. */
  any?: true;
  /** Only in a sentence that says it corrects: "it's a bug, not a feature" corrects nothing. */
  marked?: true;
  /** Also in a question ("can you forget that …"). */
  inQuestion?: true;
  /** The value holds the whole clause, later cues too ("remember that I prefer …"). */
  whole?: true;
  /** The second person, said by the assistant about the user. */
  you?: true;
  /** Only at the very beginning of a sentence. */
  first?: true;
}

/** Renderings of a family by polarity. */
export type Renderings = Record<Category, Record<Polarity, string>>;

export interface Language {
  lang: Lang;
  /** Alternation of adverbs between subject and verb. */
  adverbs: string;
  cues: readonly Cue[];
  say: Renderings;
  /** Wraps what the assistant says about the user; `{content}`. */
  fromAssistant: string;
  /** Words that may stand before a clause and change nothing: "ok", "well", "and", "because". */
  leads: string;
  /** First words of a fronted part of the clause: "for plugin work", "after all that". */
  fronts: string;
  /** Joins two clauses: "and", "but", "so". */
  joins: string;
  /** Of these, the ones after which what was supposed or reported before no longer holds: "but". */
  contrasts: string;
  /** Anywhere before a cue in its sentence: the cue is hypothetical, reported, asked or denied. */
  blocks: string;
  /** At the beginning of a sentence: all of the paragraph is supposed, not said. */
  supposes: string;
  /** At the beginning of a clause: it asks. */
  asks: string;
  /** Anywhere in a user's message: somebody plays a part in this exchange. */
  roleplay: string;
  /** A request whose material follows: after a colon, or in the paragraphs after it. */
  material: string;
  /** A request for a text: what the assistant answers is not its own word. */
  creative: string;
  /** Closes a sentence like a question and asks nothing: ", ok?" */
  tags: string;
  /** Begins what no longer belongs to a value wherever it stands: a reason, a request. */
  stops: string;
  /** The same behind a comma or dash: a new clause with its own subject. */
  commaStops: string;
  /** Taken off the end of a value: "please", "lol". */
  trails: string;
  /** Values that point at the conversation instead of naming something: "it", "this", "the second one". */
  anaphora: string;
  /** `thing` of "my <thing> is …" that names nothing lasting. */
  passing: string;
  /** Of "I'm a …" what one is by trade, at the beginning: all else is not what one works as. Where it is missing all is. */
  trades?: string;
  /** Of a `thing` what only says that it replaces another ("my new laptop"): it fills the slot of that one. */
  newer: string;
  /** Values of "my <thing> is …" that tell a state, not a fact. */
  states: string;
  /** Begins a sentence that corrects ("actually"), so that "X, not Y" is read as a correction. */
  corrects: string;
  /** Between a new value and the old one: ", not ". */
  notOld: string;
  /** Words left out of keys and of what a forget request must match: frequency adverbs, verbs of the cues. */
  keyless: string;
}
