/** Reads another program's export, piece by piece. */
import { readChatgpt } from "./chatgpt.ts";
import { readClaude } from "./claude.ts";
import { jsonItems } from "./json-items.ts";
import { readMem0 } from "./mem0.ts";
import { readOmniroute } from "./omniroute.ts";
import type { Line, Piece } from "./types.ts";

export const formats = ["mem0", "chatgpt", "claude", "omniroute"] as const;
export type Format = (typeof formats)[number];

const readers: Record<
  Format,
  (value: unknown) => Line[] | string | { lines: Line[]; owner: string | undefined }
> = {
  mem0: readMem0,
  chatgpt: readChatgpt,
  claude: readClaude,
  omniroute: readOmniroute,
};

/** Lines of our import format for a JSON export of `format`; pieces that are none are refused with their number, from 1. */
export async function* readExport(format: Format, stream: ReadableStream<Uint8Array>): AsyncGenerator<Piece> {
  let item = 0;
  for await (const found of jsonItems(stream)) {
    item++;
    if ("problem" in found) {
      yield { item, refused: found.problem };
      continue;
    }
    const read = readers[format](found.value);
    if (typeof read === "string") yield { item, refused: read };
    else if (Array.isArray(read)) for (const line of read) yield { item, line };
    else
      for (const line of read.lines)
        yield { item, line, ...(read.owner === undefined ? {} : { owner: read.owner }) };
  }
}
