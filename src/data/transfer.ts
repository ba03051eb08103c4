/** Export and import as streams over the engine's calls, the same for every face. */
import { linePieces } from "../conversations/jsonl.ts";
import { invalid } from "../error.ts";
import type { ImportInput, ImportResult } from "./import.ts";

/** Refused lines that are named one by one. */
const MAX_REFUSED = 1000;

/** The pages as one stream, fetched as they are read. */
export function exportStream(
  next: (cursor: string | null) => Promise<{ text: string; cursor: string | null }>,
): ReadableStream<Uint8Array> {
  let cursor: string | null = null;
  return new ReadableStream({
    async pull(controller) {
      // An empty page would not wake the reader: go on to the next one with rows.
      for (;;) {
        const page = await next(cursor);
        cursor = page.cursor;
        if (page.text !== "") controller.enqueue(new TextEncoder().encode(page.text));
        if (cursor === null) return controller.close();
        if (page.text !== "") return;
      }
    },
  });
}

type ImportCalls = {
  importBegin(input: { owner: string }): Promise<{ id: string }>;
  importLines(input: ImportInput): Promise<ImportResult>;
  importEnd(input: { id: string }): Promise<void>;
};

/** Takes a body of JSON lines piece by piece. `refusedCount` counts refused lines that are not named, too. */
export async function importStream(
  data: ImportCalls,
  owner: string,
  body: ReadableStream<Uint8Array> | null,
): Promise<ImportResult & { refusedCount: number }> {
  const sum: ImportResult = { created: 0, updated: 0, unchanged: 0, refused: [], redacted: 0 };
  let refusedCount = 0;
  const { id } = await data.importBegin({ owner });
  try {
    if (body !== null) {
      for await (const piece of linePieces(body)) {
        const result = await data.importLines({ ...piece, owner, id });
        sum.created += result.created;
        sum.updated += result.updated;
        sum.unchanged += result.unchanged;
        sum.redacted += result.redacted;
        refusedCount += result.refused.length;
        sum.refused.push(...result.refused.slice(0, MAX_REFUSED - sum.refused.length));
      }
    }
  } finally {
    await data.importEnd({ id });
  }
  return { ...sum, refusedCount };
}

/** JSON lines of a file of ours: as they are, or of a page of the list of memories that was saved as JSON. */
export async function ownLines(file: Blob): Promise<ReadableStream<Uint8Array>> {
  const head = (await file.slice(0, 64).text()).trimStart();
  if (!/^\{\s*"data"\s*:/.test(head)) return file.stream();
  let page: unknown;
  try {
    page = JSON.parse(await file.text());
  } catch {
    throw invalid("file", "this is not valid JSON");
  }
  const rows =
    typeof page === "object" && page !== null && "data" in page && Array.isArray(page.data) ? page.data : [];
  return new Blob(rows.map((row: object) => `${JSON.stringify({ kind: "memory", ...row })}\n`)).stream();
}
