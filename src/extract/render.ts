import { collapse } from "../text/fold.ts";

/** Fills `{value}` and the other names of a rendering; names that are not given vanish with the blank before them. */
export function render(template: string, parts: Readonly<Record<string, string | undefined>>): string {
  const filled = template.replaceAll(/ ?\{(\w+)\}/g, (whole, name: string) => {
    const part = parts[name];
    if (part === undefined || part === "") return "";
    return (whole.startsWith(" ") ? " " : "") + part;
  });
  const text = collapse(filled);
  const first = text.codePointAt(0);
  if (first === undefined) return text;
  const char = String.fromCodePoint(first);
  // "iPhone" and "npm" at the beginning stay: only templates that begin with a word of ours are capitalised.
  return template.startsWith("{value}") ? text : char.toUpperCase() + text.slice(char.length);
}
