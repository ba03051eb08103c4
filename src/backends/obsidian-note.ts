/**
 * A memory as a Markdown note: all fields in the front matter, the content as the note. Values are written as JSON,
 * which is YAML too, so that no key or text can change the meaning of the header; it is read as Obsidian parsed it.
 */
import type { Memory } from "../memory/types.ts";
import { readRow } from "./row.ts";

const fields = [
  "id",
  "apiKeyId",
  "sessionId",
  "type",
  "key",
  "metadata",
  "origin",
  "status",
  "supersededBy",
  "pinned",
  "episodeId",
  "createdAt",
  "updatedAt",
  "confirmedAt",
  "expiresAt",
  "accessCount",
  "lastAccessedAt",
  "version",
] as const satisfies readonly (keyof Memory)[];

/** JSON that YAML 1.1 and 1.2 read alike: what YAML does not allow in a line is escaped. */
const yamlJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

export function writeNote(memory: Memory): string {
  const header = fields.map((name) => `${name}: ${yamlJson(memory[name])}`);
  return `---\n${header.join("\n")}\n---\n${memory.content}`;
}

/** The note without its front matter. */
export function noteBody(note: string): string {
  const found = /^---[^\S\n]*\r?\n(?:[\s\S]*?\r?\n)?---[^\S\n]*(?:\r?\n|$)/.exec(note);
  return found ? note.slice(found[0].length) : note;
}

/** A note as the plugin gives it (`application/vnd.olrapi.note+json`). Null when it is no memory of ours. */
export function readNote(note: unknown): Memory | null {
  const { frontmatter, content } = (note ?? {}) as { frontmatter?: unknown; content?: unknown };
  if (typeof frontmatter !== "object" || frontmatter === null || typeof content !== "string") return null;
  return readRow({ ...frontmatter, content: noteBody(content) });
}
