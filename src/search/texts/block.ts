/**
 * A block of the text filter's copy: the folded texts of neighbouring memories of one owner, one after the other, with
 * what lists filter and order by beside them in columns. Looking for a part of a text in so compact a copy is a hundred
 * times quicker than reading the rows. Pure: bytes in, bytes out.
 */
import { memoryOrigins, memoryStatuses, memoryTypes } from "../../memory/types.ts";
import type { MemoryOrigin, MemoryStatus, MemoryType } from "../../memory/types.ts";
import { fold } from "../../text/fold.ts";

/** Bytes of text after which the next row begins another block: few pages to write anew when one of its rows changes. */
const BLOCK_BYTES = 16_000;
/** Bits of a block's signature; a text of {@link BLOCK_BYTES} sets a fifth of them, in Chinese or Japanese nearly half. */
const SIGNATURE_BITS = 16_384;

/** One memory as a block keeps it. `text`: UTF-8 of folded content, NUL, and of a folded key, NUL. */
export interface TextRow {
  readonly seq: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly tokens: number;
  readonly flags: number;
  readonly text: Uint8Array;
}

/** The columns of a block's rows. `ends[i]`: where the text of row `i` ends and that of the next begins. */
export interface Columns {
  readonly base: number;
  readonly n: number;
  readonly createdAt: Float64Array;
  readonly updatedAt: Float64Array;
  readonly seqs: Uint32Array;
  readonly tokens: Uint32Array;
  readonly ends: Uint32Array;
  readonly flags: Uint16Array;
}

export interface Packed {
  readonly first: number;
  readonly last: number;
  readonly columns: Uint8Array;
  readonly grams: Uint8Array;
  readonly text: Uint8Array;
}

/** What lists filter by, as bits: type, status, origin, pinned. */
export interface Facets {
  readonly type?: MemoryType | undefined;
  readonly status?: MemoryStatus | undefined;
  readonly origin?: MemoryOrigin | undefined;
  readonly pinned?: boolean | undefined;
}

const TYPE = { shift: 0, mask: 3 };
const STATUS = { shift: 2, mask: 3 };
const ORIGIN = { shift: 4, mask: 7 };
const PINNED = { shift: 7, mask: 1 };

/** The bits of these facets and the mask of those that are given: a row fits when `(flags & mask) === bits`. */
export function facetBits({ type, status, origin, pinned }: Facets): { bits: number; mask: number } {
  let bits = 0;
  let mask = 0;
  const put = (place: { shift: number; mask: number }, value: number | undefined) => {
    if (value === undefined) return;
    bits |= value << place.shift;
    mask |= place.mask << place.shift;
  };
  put(TYPE, type && memoryTypes.indexOf(type));
  put(STATUS, status && memoryStatuses.indexOf(status));
  put(ORIGIN, origin && memoryOrigins.indexOf(origin));
  put(PINNED, pinned === undefined ? undefined : Number(pinned));
  return { bits, mask };
}

/** The place of the type among {@link memoryTypes}. */
export const typeNumber = (flags: number): number => (flags >> TYPE.shift) & TYPE.mask;

/** The text of a memory as blocks hold it. No folded text holds NUL, so no part of a text reaches over two. */
export function blockText(content: string, key: string | null): Uint8Array {
  return Buffer.from(key === null ? `${fold(content)}\0` : `${fold(content)}\0${fold(key)}\0`);
}

/** Rows of one owner in the order of seq → as many blocks as they fill. */
export function pack(rows: readonly TextRow[]): Packed[] {
  const blocks: Packed[] = [];
  let from = 0;
  let bytes = 0;
  for (const [at, row] of rows.entries()) {
    if (at > from && (bytes >= BLOCK_BYTES || row.seq - rows[from]!.seq > 0xffff_ffff)) {
      blocks.push(packOne(rows.slice(from, at)));
      from = at;
      bytes = 0;
    }
    bytes += row.text.length;
  }
  if (from < rows.length) blocks.push(packOne(rows.slice(from)));
  return blocks;
}

/** Whether a block of so many bytes takes more rows. */
export const hasRoom = (bytes: number): boolean => bytes < BLOCK_BYTES;

const HEADER = 16;
/** What the columns hold of a row. */
export const ROW_BYTES = 8 + 8 + 4 + 4 + 4 + 2;

function packOne(rows: readonly TextRow[]): Packed {
  const first = rows[0]!.seq;
  const columns = new Uint8Array(HEADER + rows.length * ROW_BYTES);
  const header = new Float64Array(columns.buffer, 0, 2);
  header[0] = first;
  header[1] = rows.length;
  const made = openColumns(columns);
  const text = new Uint8Array(rows.reduce((sum, row) => sum + row.text.length, 0));
  let end = 0;
  for (const [i, row] of rows.entries()) {
    text.set(row.text, end);
    end += row.text.length;
    made.createdAt[i] = row.createdAt;
    made.updatedAt[i] = row.updatedAt;
    made.seqs[i] = row.seq - first;
    made.tokens[i] = row.tokens;
    made.ends[i] = end;
    made.flags[i] = row.flags;
  }
  return { first, last: rows.at(-1)!.seq, columns, grams: signature(text), text };
}

/** Throws a RangeError for bytes that are no columns. */
export function openColumns(bytes: Uint8Array): Columns {
  // Typed arrays want their own alignment.
  const { buffer, byteOffset } = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  const [base = 0, n = 0] = new Float64Array(buffer, byteOffset, 2);
  if (bytes.length < HEADER || bytes.length !== HEADER + n * ROW_BYTES)
    throw new RangeError("These bytes are no columns of a block.");
  let at = byteOffset + HEADER;
  const next = (width: number) => (at += n * width) - n * width;
  return {
    base,
    n,
    createdAt: new Float64Array(buffer, next(8), n),
    updatedAt: new Float64Array(buffer, next(8), n),
    seqs: new Uint32Array(buffer, next(4), n),
    tokens: new Uint32Array(buffer, next(4), n),
    ends: new Uint32Array(buffer, next(4), n),
    flags: new Uint16Array(buffer, next(2), n),
  };
}

/** The rows of a block, to be packed anew with others. */
export function unpack(columns: Columns, text: Uint8Array): TextRow[] {
  return Array.from({ length: columns.n }, (_, i) => ({
    seq: columns.base + columns.seqs[i]!,
    createdAt: columns.createdAt[i]!,
    updatedAt: columns.updatedAt[i]!,
    tokens: columns.tokens[i]!,
    flags: columns.flags[i]!,
    text: text.subarray(i === 0 ? 0 : columns.ends[i - 1], columns.ends[i]),
  }));
}

/** Three neighbouring bytes, whatever the script, so that one Chinese character is one of them. */
function gramBit(a: number, b: number, c: number): number {
  return (Math.imul((a << 16) | (b << 8) | c, 0x9e3779b1) >>> 0) % SIGNATURE_BITS;
}

/** A bit for every three neighbouring bytes of the text. */
function signature(text: Uint8Array): Uint8Array {
  const bits = new Uint8Array(SIGNATURE_BITS / 8);
  for (let at = 2; at < text.length; at++) {
    const bit = gramBit(text[at - 2]!, text[at - 1]!, text[at]!);
    bits[bit >> 3]! |= 1 << (bit & 7);
  }
  return bits;
}

/** The bits that a block's signature has when it holds `needle`; none for less than three bytes. */
export function needleBits(needle: Uint8Array): number[] {
  const found = new Set<number>();
  for (let at = 2; at < needle.length; at++)
    found.add(gramBit(needle[at - 2]!, needle[at - 1]!, needle[at]!));
  return [...found];
}

export function mayHold(grams: Uint8Array, bits: readonly number[]): boolean {
  return bits.every((bit) => (grams[bit >> 3]! & (1 << (bit & 7))) !== 0);
}
