/** Cuts a stream of bytes into pieces of whole lines, without decoding or joining more than one piece holds. */

/** Whole lines, back to back with their line ends; `firstLine` counts from 1. */
export interface LinePiece {
  bytes: Uint8Array<ArrayBuffer>;
  firstLine: number;
  /** Numbers of lines that were left out of `bytes` for their length, with an empty line in their place. */
  tooLong: number[];
}

const LF = 10;

/**
 * Reads `source` to its end and yields pieces of about `pieceBytes`, each ending at a line end. A line of more
 * than `maxLine` bytes is not kept: an empty line takes its place and its number goes into `tooLong`. Never holds
 * more than one piece, one line and one chunk of the source.
 */
export async function* linePieces(
  source: AsyncIterable<Uint8Array>,
  { pieceBytes = 256 * 1024, maxLine = 8 * 1024 * 1024 }: { pieceBytes?: number; maxLine?: number } = {},
): AsyncGenerator<LinePiece> {
  let parts: Uint8Array[] = [];
  let held = 0;
  /** Bytes of the line that is still open, of which the last `lineHeld` are at the end of `parts`. */
  let lineBytes = 0;
  let line = 1;
  let firstLine = 1;
  let tooLong: number[] = [];

  const take = (): LinePiece => {
    const bytes = new Uint8Array(held);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    const piece = { bytes, firstLine, tooLong };
    parts = [];
    held = 0;
    tooLong = [];
    firstLine = line;
    return piece;
  };
  const keep = (part: Uint8Array): void => {
    if (part.length === 0) return;
    held += part.length;
    const last = parts.at(-1);
    if (
      last !== undefined &&
      last.buffer === part.buffer &&
      last.byteOffset + last.length === part.byteOffset
    ) {
      parts[parts.length - 1] = new Uint8Array(part.buffer, last.byteOffset, last.length + part.length);
    } else {
      parts.push(part);
    }
  };
  /** Drops the open line's bytes from the end of `parts`. */
  const dropOpen = (count: number): void => {
    let left = count;
    while (left > 0) {
      const last = parts.pop();
      if (last === undefined) return;
      held -= last.length;
      if (last.length > left) {
        keep(last.subarray(0, last.length - left));
        return;
      }
      left -= last.length;
    }
  };

  for await (const chunk of source) {
    let from = 0;
    while (from < chunk.length) {
      const end = chunk.indexOf(LF, from);
      const part = chunk.subarray(from, end < 0 ? chunk.length : end + 1);
      from += part.length;
      const before = lineBytes;
      lineBytes += part.length;
      if (lineBytes > maxLine) {
        if (before <= maxLine) {
          dropOpen(before);
          tooLong.push(line);
        }
        if (end >= 0) keep(part.subarray(part.length - 1));
      } else {
        keep(part);
      }
      if (end >= 0) {
        line += 1;
        lineBytes = 0;
        if (held >= pieceBytes) yield take();
      }
    }
  }
  if (held > 0 || tooLong.length > 0) {
    line += 1;
    yield take();
  }
}
