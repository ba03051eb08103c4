/** Import and export of memories by file, and what an import said. */
import type { Hono } from "hono";
import type { Env } from "../auth.ts";
import { exportStream, importStream, ownLines } from "../data/transfer.ts";
import { AppError, invalid } from "../error.ts";
import { formats, readExport } from "../importers/read.ts";
import type { Piece } from "../importers/types.ts";
import { ImportDialog, ImportDone, type ImportReport } from "../../views/import-dialog.tsx";
import { errorsOf, isPart, ownersOf, show, type StudioDeps } from "./context.tsx";
import { filtersHere, listParts, showDialog } from "./memory-list.tsx";

/** A file that comes through the browser; larger ones go by the command line or the API, which stream. */
const FILE_LIMIT = 256 * 1024 * 1024;

export function transferRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { data } = deps.engine;

  app.get("/dashboard/memory/export", (c) => {
    const owner = c.req.query("owner") || null;
    const stream = exportStream((cursor) => data.exportPage({ owner, cursor, memoriesOnly: false }));
    return new Response(stream, {
      headers: {
        "Content-Type": "application/x-ndjson",
        "Content-Disposition": 'attachment; filename="recollect-export.jsonl"',
      },
    });
  });

  app.get("/dashboard/memory/import", (c) => {
    const owners = ownersOf(deps);
    const owner = filtersHere(c).owner || owners.find((one) => !one.revoked)?.id || "";
    return showDialog(c, deps, <ImportDialog errors={{}} owners={owners} owner={owner} />);
  });

  app.post("/dashboard/memory/import", async (c) => {
    let owner = "";
    try {
      if (Number(c.req.header("content-length") ?? 0) > FILE_LIMIT) {
        throw invalid("file", "is larger than 256 MB. Use the command recollect memory import");
      }
      const form = await c.req.formData().catch(() => {
        throw new AppError("invalid_request", "The form could not be read.");
      });
      const file = form.get("file");
      owner = text(form.get("apiKeyId"));
      if (!(file instanceof File) || file.size === 0)
        throw invalid("file", "choose a file that is not empty");
      if (!deps.admin.ownerExists(owner)) throw invalid("apiKeyId", "there is no such owner");
      const lines = await linesOf(file, text(form.get("from")) || "recollect");
      const { created, updated, unchanged, refused } = await importStream(data, owner, lines.stream);
      const report: ImportReport = {
        file: file.name,
        created,
        updated,
        unchanged,
        refused: [
          ...lines.refused,
          ...refused.map(({ line, message }) => ({ line: lines.items?.[line - 1] ?? line, message })),
        ],
      };
      if (!isPart(c)) return await showDialog(c, deps, <ImportDone report={report} />);
      return show(
        c,
        <>
          <ImportDone report={report} />
          {await listParts(c, deps)}
        </>,
      );
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      return showDialog(
        c,
        deps,
        <ImportDialog errors={errors} owners={ownersOf(deps)} owner={owner} />,
        status,
      );
    }
  });
}

const text = (value: FormDataEntryValue | null): string => (typeof value === "string" ? value : "");

type Lines = { stream: ReadableStream<Uint8Array>; items: number[] | null; refused: ImportReport["refused"] };

/** JSON lines of a file: as they are, of a page of the list saved as JSON, or read from another program's export. */
async function linesOf(file: File, format: string): Promise<Lines> {
  if (format !== "recollect") {
    const known = formats.find((one) => one === format);
    if (!known) throw invalid("from", "there is no such format");
    return foreign(readExport(known, file.stream()));
  }
  return { stream: await ownLines(file), items: null, refused: [] };
}

/** Lines with the number of the piece each came from, so that refusals name what stands in the file. */
async function foreign(pieces: AsyncIterable<Piece>): Promise<Lines> {
  const lines: string[] = [];
  const items: number[] = [];
  const refused: ImportReport["refused"] = [];
  for await (const piece of pieces) {
    if ("refused" in piece) refused.push({ line: piece.item, message: piece.refused });
    else {
      lines.push(`${JSON.stringify(piece.line)}\n`);
      items.push(piece.item);
    }
  }
  return { stream: new Blob(lines).stream(), items, refused };
}
