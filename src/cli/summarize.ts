/** `recollect summarize`: compacts old memories, for cron. */
import { ownerOf, withEngine } from "./engine.ts";
import { exit, expectArgs, stringFlag, UsageError } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect summarize [--older-than DAYS] [--dry-run] [--key ID | --all]",
    "recollect summarize --budget TOKENS [--dry-run] [--key ID | --all]",
    "",
    "  --older-than DAYS  one summary for what was neither confirmed nor used for so long (30)",
    "  --budget TOKENS    the newest that fit stay whole, the others become their first three sentences",
    "  --all              every owner, one by one",
  ],
  options: {
    "older-than": { type: "string" },
    budget: { type: "string" },
    "dry-run": { type: "boolean" },
    all: { type: "boolean" },
    key: { type: "string" },
    json: { type: "boolean" },
  },
  async run(call) {
    expectArgs(call);
    const olderThanDays = whole(call, "older-than", 1, 365) ?? 30;
    const budget = whole(call, "budget", 0, 10_000_000);
    if (budget !== null && call.flags["older-than"] !== undefined) {
      throw new UsageError("Give --older-than or --budget, not both.");
    }
    const owner = call.flags["all"] === true ? null : ownerOf(call);
    const result = await withEngine(call, (engine) =>
      engine.memories.summarize({
        owner,
        mode: budget === null ? "age" : "budget",
        olderThanDays,
        maxTokens: budget ?? 4000,
        dryRun: call.flags["dry-run"] === true,
      }),
    );
    if (call.flags["json"] === true) call.print(JSON.stringify(result));
    else if (result.dryRun)
      call.print(
        `${result.candidateCount} memories of ${result.totalTokens} tokens would be compacted; nothing was changed.`,
      );
    else
      call.print(
        `Compacted ${result.candidateCount} memories; ${result.tokensSaved} tokens saved, originals kept.`,
      );
    return exit.ok;
  },
};

function whole(call: Call, flag: string, min: number, max: number): number | null {
  const text = stringFlag(call, flag);
  if (text === undefined) return null;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max))
    throw new UsageError(`--${flag} is ${text}; give a whole number from ${min} to ${max}.`);
  return value;
}
