/** The last stand of a text: what it says and takes back is not said. */
import { corrected, corrects, endsKnown, holdsValue, matchesForget } from "./correct.ts";
import { reordered } from "./duplicates.ts";
import type { Reading } from "./read.ts";
import type { Extraction, Fact } from "./types.ts";

/** Applies readings in their order: the same key replaces, a correction takes the place of what it corrects. */
export function settle(readings: readonly Reading[]): Extraction {
  let facts: Fact[] = [];
  const forgets: Extraction["forgets"] = [];
  const ends: Fact[] = [];
  let retracted: Fact | null = null;
  for (const reading of readings) {
    if (reading.kind === "forget") {
      forgets.push(reading.forget);
      // Said first and to be forgotten then: never stored.
      facts = facts.filter((fact) => !matchesForget(reading.forget, fact));
    } else if (reading.kind === "retract") {
      const last = facts.at(-1);
      if (last === undefined) continue;
      retracted = last;
      if (reading.confident) facts = facts.slice(0, -1);
    } else if (reading.fact.ends !== undefined) {
      const { fact } = reading;
      facts = facts.filter((one) => !endsKnown(fact, one));
      ends.push(fact);
    } else {
      facts = place(facts, reading.fact, retracted);
      retracted = null;
    }
  }
  return { facts, ends, forgets };
}

function place(facts: readonly Fact[], next: Fact, retracted: Fact | null): Fact[] {
  let fact = next;
  if (retracted !== null && fact.category === retracted.category && fact.supersedes === undefined) {
    fact = {
      ...fact,
      correction: true,
      ...(fact.key === retracted.key ? {} : { supersedes: retracted.value }),
    };
    return [...facts.filter((one) => one !== retracted && one.key !== fact.key), fact];
  }
  if (fact.correction) {
    const meant = facts.findLast((one) => corrects(fact, one));
    if (meant !== undefined) {
      fact = { ...corrected(fact, meant), correction: true };
      return [...facts.filter((one) => one !== meant && one.key !== fact.key), fact];
    }
  }
  return [...facts.filter((one) => one.key !== fact.key && !turnedRound(one, fact)), fact];
}

/** Whether the one prefers A to B and the other B to A. */
function turnedRound(a: Fact, b: Fact): boolean {
  return a.category === "preference" && b.category === "preference" && reordered(a.value, b.value, b.lang);
}

/** Whether the two speak about the same thing and differ: opposite stands, or one slot with two values. */
export function contradicts(a: Fact, b: Fact): boolean {
  if (a.category !== b.category) return false;
  if (a.slot !== null && a.slot === b.slot) return a.value.toLowerCase() !== b.value.toLowerCase();
  const same =
    a.key === b.key || holdsValue(a.value, b.value, a.lang) || holdsValue(b.value, a.value, b.lang);
  return same && a.polarity !== b.polarity;
}

/** Whether the two say the same. */
export function agrees(a: Fact, b: Fact): boolean {
  if (a.category !== b.category || a.polarity !== b.polarity) return false;
  if (a.key === b.key) return a.slot === null || a.value.toLowerCase() === b.value.toLowerCase();
  return holdsValue(a.value, b.value, a.lang) || holdsValue(b.value, a.value, b.lang);
}
