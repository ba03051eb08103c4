/** Just enough of the ustar format for a backup: plain files, of any size (POSIX.1-1988 header, base-256 sizes as GNU tar has them). */
import { closeSync, openSync, readSync, writeSync } from "node:fs";

export interface TarEntry {
  readonly name: string;
  readonly size: number;
  /** Where the content begins in the archive. */
  readonly at: number;
}

const BLOCK = 512;
const CHUNK = 1 << 20;

/** Bytes of an entry's header. `mtime` in seconds. */
export function tarHeader(name: string, size: number, mtime: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  header.write(name, 0, 100, "utf8");
  header.write("0000600\0", 100);
  header.write("0000000\0", 108);
  header.write("0000000\0", 116);
  if (size < 8 ** 11) header.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  else {
    header[124] = 0x80;
    header.writeBigUInt64BE(BigInt(size), 128);
  }
  header.write(`${Math.floor(mtime).toString(8).padStart(11, "0")}\0`, 136);
  header.write("        ", 148);
  header.write("0", 156);
  header.write("ustar\x0000", 257);
  let sum = 0;
  for (const byte of header) sum += byte;
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}

/** Zeros up to the next block; two blocks of them end an archive. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}
export const tarEnd = Buffer.alloc(2 * BLOCK);

/** The entries of an archive. Throws one sentence when it is cut off or none. */
export function tarEntries(path: string, bytes: number): TarEntry[] {
  const handle = openSync(path, "r");
  try {
    const entries: TarEntry[] = [];
    const header = Buffer.alloc(BLOCK);
    for (let at = 0; ;) {
      if (readSync(handle, header, 0, BLOCK, at) < BLOCK) throw new Error("the file is cut off");
      if (header.every((byte) => byte === 0)) return entries;
      const { name, size } = parseHeader(header);
      if (at + BLOCK + size > bytes) throw new Error("the file is cut off");
      entries.push({ name, size, at: at + BLOCK });
      at += BLOCK + size + tarPadding(size).length;
    }
  } finally {
    closeSync(handle);
  }
}

function parseHeader(header: Buffer): { name: string; size: number } {
  let sum = 0;
  header.forEach((byte, at) => (sum += at >= 148 && at < 156 ? 32 : byte));
  if (sum !== Number.parseInt(header.toString("latin1", 148, 154), 8))
    throw new Error("a header in the file is damaged");
  const size =
    header[124]! & 0x80
      ? Number(header.readBigUInt64BE(128))
      : Number.parseInt(header.toString("latin1", 124, 135), 8);
  if (!Number.isSafeInteger(size) || size < 0) throw new Error("a header in the file is damaged");
  return { name: header.toString("utf8", 0, 100).replace(/\0.*$/s, ""), size };
}

/** Copies a stretch of one open file to another in pieces; `seen` gets each piece. */
export function copyBytes(
  from: number,
  at: number,
  size: number,
  to: number | null,
  seen?: (piece: Buffer) => void,
): void {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK, Math.max(size, 1)));
  for (let done = 0; done < size;) {
    const count = readSync(from, buffer, 0, Math.min(buffer.length, size - done), at + done);
    if (count === 0) throw new Error("the file is cut off");
    const piece = buffer.subarray(0, count);
    seen?.(piece);
    if (to !== null) for (let put = 0; put < count;) put += writeSync(to, piece, put);
    done += count;
  }
}
