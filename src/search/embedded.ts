/** What is embedded of each kind of row: one text and one vector for every store. */
import type { Database } from "bun:sqlite";
import { keyWords } from "./tokens.ts";
import { partShapes, type Part } from "./vector-tables.ts";

/** A memory's text for embedding: its key in words, a line break, its content. */
export function memoryText(key: string | null, content: string): string {
  return key === null ? content : `${keyWords(key)}\n${content}`;
}

/** An exchange's text: who said what, an empty side left out. */
export function episodeText(userMessage: string, aiResponse: string): string {
  const said = [
    userMessage === "" ? "" : `User: ${userMessage}`,
    aiResponse === "" ? "" : `Assistant: ${aiResponse}`,
  ];
  return said.filter((side) => side !== "").join("\n");
}

export function entityText(name: string, type: string, notes: string | null): string {
  return notes === null || notes === "" ? `${name} (${type})` : `${name} (${type}): ${notes}`;
}

/** 8 bytes that tell whether a row's text is the one its vector was made from. */
export function textHash(text: string): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(Bun.hash(text)));
  return bytes;
}

const selects: Readonly<Record<Part, string>> = {
  memory: "key AS a, content AS b, NULL AS c",
  episode: "user_message AS a, ai_response AS b, NULL AS c",
  episode_user: "user_message AS a, NULL AS b, NULL AS c",
  entity: "name AS a, type AS b, notes AS c",
  summary: "text AS a, NULL AS b, NULL AS c",
};

type Columns = { a: string | null; b: string | null; c: string | null };

const texts: Readonly<Record<Part, (row: Columns) => string>> = {
  memory: (row) => memoryText(row.a, row.b ?? ""),
  episode: (row) => episodeText(row.a ?? "", row.b ?? ""),
  episode_user: (row) => `User: ${row.a ?? ""}`,
  entity: (row) => entityText(row.a ?? "", row.b ?? "", row.c),
  summary: (row) => row.a ?? "",
};

/** The text of a row as it is to be embedded now; null when the row is gone or is not searched. */
export function textOf(db: Database, part: Part, item: number): string | null {
  const { source, id, when } = partShapes[part];
  const row = db
    .query<Columns, [number]>(
      `SELECT ${selects[part]} FROM ${source} AS s WHERE ${id} = ? AND ${when.replaceAll("new.", "s.")}`,
    )
    .get(item);
  return row === null ? null : texts[part](row);
}
