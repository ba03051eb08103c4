/** Hands a JSONL body to the engine piece by piece, so that neither thread ever holds the file. */
import { linePieces, type LinePiece } from "../conversations/jsonl.ts";
import type { BulkResult } from "../conversations/bulk.ts";
import { AppError } from "../error.ts";

const BULK_LIMIT = 32 * 1024 * 1024;
/** Refused lines that are named one by one; the count says how many there are. */
const MAX_REFUSED = 1000;
const types = new Set(["application/x-ndjson", "application/jsonl", "text/plain"]);

export type BulkAnswer = Omit<BulkResult, "redacted"> & { refusedCount?: number; redacted?: number };

/** 415 for another content type; 413 for more than 32 MiB, with what came before it stored. */
export async function bulkImport(
  request: Request,
  take: (piece: LinePiece) => Promise<BulkResult>,
): Promise<BulkAnswer> {
  const type = (request.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
  if (!types.has(type)) {
    throw new AppError("unsupported_media_type", "Send JSON lines as content type application/x-ndjson.");
  }
  if (Number(request.headers.get("content-length") ?? 0) > BULK_LIMIT) throw tooLarge();
  const sum: BulkResult = { created: 0, existing: 0, sessions: 0, refused: [], redacted: 0 };
  let refusedCount = 0;
  if (request.body !== null) {
    for await (const piece of linePieces(counted(request.body))) {
      const result = await take(piece);
      sum.created += result.created;
      sum.existing += result.existing;
      sum.sessions += result.sessions;
      sum.redacted += result.redacted;
      refusedCount += result.refused.length;
      sum.refused.push(...result.refused.slice(0, MAX_REFUSED - sum.refused.length));
    }
  }
  const { redacted, ...answer } = sum;
  return {
    ...answer,
    ...(refusedCount > sum.refused.length ? { refusedCount } : {}),
    ...(redacted > 0 ? { redacted } : {}),
  };
}

async function* counted(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > BULK_LIMIT) throw tooLarge();
    yield chunk;
  }
}

function tooLarge(): AppError {
  return new AppError(
    "body_too_large",
    `The body is larger than ${BULK_LIMIT} bytes: send it in parts. Lines that came before stay stored, and count once when sent again.`,
  );
}
