/**
 * Changes members of a JSON object in its text, so that whatever is not changed reaches the provider byte by byte:
 * large integers, floats, member order, fields we do not know.
 */

interface Member {
  name: string;
  /** Span of the value. */
  from: number;
  to: number;
}

/** `text` (valid JSON, an object) with members replaced by JSON texts; new ones are added at the end. */
export function replaceMembers(text: string, changes: Readonly<Record<string, string>>): string {
  const names = Object.keys(changes);
  if (names.length === 0) return text;
  const { members, close } = scan(text);
  const edits: { from: number; to: number; value: string }[] = [];
  const added: string[] = [];
  for (const name of names) {
    const value = changes[name]!;
    // Of a name that stands there twice the last one counts, for parsers of all kinds when both say the same.
    const found = members.filter((member) => member.name === name);
    for (const member of found) edits.push({ from: member.from, to: member.to, value });
    if (found.length === 0) added.push(`${JSON.stringify(name)}:${value}`);
  }
  if (added.length > 0) {
    edits.push({ from: close, to: close, value: `${members.length > 0 ? "," : ""}${added.join(",")}` });
  }
  edits.sort((a, b) => a.from - b.from);
  let out = "";
  let at = 0;
  for (const edit of edits) {
    out += text.slice(at, edit.from) + edit.value;
    at = edit.to;
  }
  return out + text.slice(at);
}

function scan(text: string): { members: Member[]; close: number } {
  const members: Member[] = [];
  let at = text.indexOf("{") + 1;
  for (;;) {
    at = skipBlank(text, at);
    if (text[at] === ",") at = skipBlank(text, at + 1);
    if (text[at] === "}") return { members, close: at };
    const nameEnd = stringEnd(text, at);
    const raw = text.slice(at, nameEnd);
    const name = raw.includes("\\") ? (JSON.parse(raw) as string) : raw.slice(1, -1);
    const from = skipBlank(text, text.indexOf(":", nameEnd) + 1);
    const to = valueEnd(text, from);
    members.push({ name, from, to });
    at = to;
  }
}

function skipBlank(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= 32) at++;
  return at;
}

/** The index after the closing quote of the string that begins at `from`. */
function stringEnd(text: string, from: number): number {
  let at = from;
  for (;;) {
    at = text.indexOf('"', at + 1);
    let slashes = 0;
    while (text[at - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return at + 1;
  }
}

function valueEnd(text: string, from: number): number {
  const first = text[from];
  if (first === '"') return stringEnd(text, from);
  if (first !== "{" && first !== "[") {
    let at = from;
    while (!/[,}\]\s]/.test(text[at]!)) at++;
    return at;
  }
  let depth = 0;
  for (let at = from; ; at++) {
    switch (text.charCodeAt(at)) {
      case 34:
        at = stringEnd(text, at) - 1;
        break;
      case 91:
      case 123:
        depth++;
        break;
      case 93:
      case 125:
        if (--depth === 0) return at + 1;
        break;
      default:
    }
  }
}
