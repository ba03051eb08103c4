/** What a person wrote in a turn, without what coding agents and chat front ends put around it. Pure. */

/** Tags in which coding agents and chat front ends wrap context of their own. */
const WRAPPERS = [
  "system-reminder",
  "environment_context",
  "environment_details",
  "user_instructions",
  "user_info",
  "project_layout",
  "permissions instructions",
  "collaboration_mode",
  "skills_instructions",
  "instructions",
  "context",
  "attached_files",
  "attachments",
  "additional_data",
  "open_and_recently_viewed_files",
  "ide_context",
  "ide_selection",
  "ide_opened_file",
  "ide_diagnostics",
  "command-name",
  "command-message",
  "command-args",
  "local-command-stdout",
  "local-command-caveat",
  "turn_aborted",
  "user_shell_command",
  "memories",
  "retrieved_context",
  "source",
];
const KNOWN = new Set(WRAPPERS);
const LONGEST = 2 + Math.max(...WRAPPERS.map((name) => name.length));
const AGENTS_MARK = "# AGENTS.md instructions for ";
const AGENTS_HEAD = /^# AGENTS\.md instructions for .*$/m;

/** What the person wrote, without the wrappers. Linear in the text, whatever stands in it. */
export function ownText(text: string): string {
  if (!text.includes("<")) return text.trim();
  const closed = closedTags(text);
  let rest = text;
  // Folding that changes lengths would move the places; such a text has no wrapper worth finding.
  if (closed.size > 0 && text.toLowerCase().length === text.length) {
    for (const name of WRAPPERS) if (closed.has(name)) rest = withoutTag(rest, name);
  }
  return (rest.includes(AGENTS_MARK) ? rest.replace(AGENTS_HEAD, "") : rest).trim();
}

/** The wrappers that are closed somewhere. */
function closedTags(text: string): Set<string> {
  const found = new Set<string>();
  let end = 0;
  for (let at = text.indexOf("</"); at >= 0; at = text.indexOf("</", at + 2)) {
    if (end < at) end = text.indexOf(">", at);
    if (end < 0) break;
    if (end - at > LONGEST) continue;
    const name = text.slice(at + 2, end).toLowerCase();
    if (KNOWN.has(name)) found.add(name);
  }
  return found;
}

/** The text without every `<name …>…</name>`. */
function withoutTag(text: string, name: string): string {
  const folded = text.toLowerCase();
  const close = `</${name}>`;
  let out = "";
  let at = 0;
  for (;;) {
    const open = folded.indexOf(`<${name}`, at);
    const end = open < 0 ? -1 : folded.indexOf(close, open);
    if (end < 0) return out + text.slice(at);
    const after = folded[open + 1 + name.length];
    if (after !== ">" && !/\s/.test(after ?? "")) {
      // Another tag whose name begins alike.
      out += text.slice(at, open + 1);
      at = open + 1;
      continue;
    }
    out += text.slice(at, open);
    at = end + close.length;
  }
}
