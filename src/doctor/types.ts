/** What the doctor says. */

export interface Finding {
  readonly check: string;
  /** `off`: not used on this box. `warn`: works, with less. `bad`: something does not work. */
  readonly state: "ok" | "off" | "warn" | "bad";
  /** What was found, one sentence. */
  readonly found: string;
  /** What to do, one sentence; null when there is nothing. */
  readonly todo: string | null;
}

export const ok = (check: string, found: string): Finding => ({ check, state: "ok", found, todo: null });
export const off = (check: string, found: string): Finding => ({ check, state: "off", found, todo: null });
export const warn = (check: string, found: string, todo: string): Finding => ({
  check,
  state: "warn",
  found,
  todo,
});
export const bad = (check: string, found: string, todo: string): Finding => ({
  check,
  state: "bad",
  found,
  todo,
});

/** The reason of a thrown value, for a sentence: no stop at its end. */
export function why(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n")[0]!.replace(/\.$/, "");
}
