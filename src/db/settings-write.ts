/** Changes of the memory settings. Apart from reading them, which every start does: rules and schemas take time to load. */
import type { Database } from "bun:sqlite";
import { AppError } from "../error.ts";
import type { MemorySettings, MemorySettingsPatch } from "../memory/settings.ts";
import { settingsProblems } from "../memory/settings-rules.ts";
import { transact } from "./open.ts";
import { MEMORY, readMemorySettings, writeSetting } from "./settings.ts";

/** Stores any subset; 400 with every problem named when the whole would not be valid. Returns the whole. */
export function writeMemorySettings(db: Database, patch: MemorySettingsPatch): MemorySettings {
  return transact(db, () => {
    const given = Object.entries(patch).filter(([, value]) => value !== undefined);
    const next = { ...readMemorySettings(db), ...Object.fromEntries(given) } as MemorySettings;
    const problems = settingsProblems(next);
    if (problems.length > 0) {
      const first = problems[0]!;
      throw new AppError("invalid_request", `${first.field}: ${first.message}`, {
        param: first.field,
        details: problems,
      });
    }
    for (const [name, value] of given) writeSetting(db, MEMORY + name, value);
    return next;
  });
}
