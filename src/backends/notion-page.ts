/** A memory as a page of a Notion database: one property a field, texts in pieces of 2,000 characters. */
import type { Memory } from "../memory/types.ts";
import { isoTime, readRow } from "./row.ts";

/** Notion's limit on one rich text object. */
const PIECE = 2000;

type Kind = "rich_text" | "select" | "checkbox" | "number" | "date";

/** Name and type of each property but the title, whose name is the database's own. */
export const properties = {
  id: ["Memory ID", "rich_text"],
  apiKeyId: ["Owner", "rich_text"],
  content: ["Content", "rich_text"],
  key: ["Key", "rich_text"],
  type: ["Type", "select"],
  status: ["Status", "select"],
  sessionId: ["Session", "rich_text"],
  metadata: ["Metadata", "rich_text"],
  origin: ["Origin", "select"],
  supersededBy: ["Superseded by", "rich_text"],
  pinned: ["Pinned", "checkbox"],
  episodeId: ["Episode", "number"],
  createdAt: ["Created at", "date"],
  updatedAt: ["Updated at", "date"],
  confirmedAt: ["Confirmed at", "date"],
  expiresAt: ["Expires at", "date"],
  accessCount: ["Uses", "number"],
  lastAccessedAt: ["Last used at", "date"],
  version: ["Version", "number"],
} as const satisfies Record<keyof Memory, readonly [string, Kind]>;

type RichText = { type: "text"; text: { content: string } };

/** Pieces of at most 2,000 UTF-16 units; no character is cut in two. */
export function richText(text: string): RichText[] {
  const pieces: RichText[] = [];
  for (let at = 0; at < text.length;) {
    let end = Math.min(at + PIECE, text.length);
    if (end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1]!)) end--;
    pieces.push({ type: "text", text: { content: text.slice(at, end) } });
    at = end;
  }
  return pieces;
}

function write(kind: Kind, value: unknown): unknown {
  switch (kind) {
    case "rich_text":
      return {
        rich_text: value === null ? [] : richText(typeof value === "string" ? value : JSON.stringify(value)),
      };
    case "select":
      return { select: value === null ? null : { name: value } };
    case "checkbox":
      return { checkbox: value };
    case "number":
      return { number: value };
    case "date":
      return { date: value === null ? null : { start: value } };
  }
}

/** Properties for a new page or a change; fields that are not given are left out. */
export function toProperties(memory: Partial<Memory>, title: string): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [field, [name, kind]] of Object.entries(properties))
    if (field in memory) out[name] = write(kind, memory[field as keyof Memory]);
  if (memory.content !== undefined) out[title] = { title: richText(headline(memory.content)) };
  return out;
}

const headline = (content: string): string =>
  Array.from(content.replaceAll(/\s+/g, " ").trim()).slice(0, 80).join("");

type Property = {
  rich_text?: { plain_text?: string; text?: { content?: string } }[];
  select?: { name?: string } | null;
  checkbox?: boolean;
  number?: number | null;
  date?: { start?: string } | null;
};

function read(kind: Kind, property: Property | undefined): unknown {
  switch (kind) {
    case "rich_text":
      return (
        property?.rich_text?.map((piece) => piece.plain_text ?? piece.text?.content ?? "").join("") ?? ""
      );
    case "select":
      return property?.select?.name ?? null;
    case "checkbox":
      return property?.checkbox ?? false;
    case "number":
      return property?.number ?? null;
    case "date":
      return isoTime(property?.date?.start ?? null);
  }
}

/** The memory of a page, or null when it is none (in the trash, or without id, owner or content). */
export function readPage(page: unknown): Memory | null {
  const { in_trash, properties: given } = (page ?? {}) as {
    in_trash?: boolean;
    properties?: Record<string, Property>;
  };
  if (in_trash === true || !given) return null;
  const row: Record<string, unknown> = {};
  for (const [field, [name, kind]] of Object.entries(properties)) row[field] = read(kind, given[name]);
  try {
    row["metadata"] = JSON.parse(String(row["metadata"])) as unknown;
  } catch {
    row["metadata"] = {};
  }
  return readRow(row);
}
