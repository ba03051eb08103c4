/**
 * The memories that a list's filters let through, without reading the rows: blocks are looked through where they have
 * their texts, the few other rows by the filters' own SQL. The result is that of the SQL over all rows.
 */
import type { Database } from "bun:sqlite";
import { countMemories, matchingRows } from "../../db/memory-list.ts";
import type { Counts, MatchingRow, MemoryFilter } from "../../db/memory-list.ts";
import { memoryTypes } from "../../memory/types.ts";
import { fold } from "../../text/fold.ts";
import { facetBits, mayHold, needleBits, openColumns, ROW_BYTES, typeNumber, type Columns } from "./block.ts";
import { blockPlaces, looseRows, sealedUntil, type BlockPlace } from "./tables.ts";
import { WAITING_ROWS } from "./fill.ts";

/** What a caller wants of the matches: a page in an order, all of them (ascending), or their counts alone. */
export type Wanted =
  | {
      readonly sort: "createdAt" | "updatedAt";
      readonly order: "asc" | "desc";
      readonly offset: number;
      readonly limit: number;
    }
  | "all"
  | "counts";

export interface Found {
  readonly counts: Counts;
  readonly seqs: readonly number[];
  /** The newest memory there was; later ones were not looked at. */
  readonly newest: number;
}

export interface TextFinder {
  /** Null where reading the rows themselves is quicker, or no blocks are there yet. */
  readonly find: (filter: MemoryFilter, wanted: Wanted) => Found | null;
  /** Forgets what is kept of blocks in memory. */
  readonly forget: () => void;
}

/** Texts kept in memory between questions (those of a million memories), and how long after the last one. */
const KEPT_BYTES = 128_000_000;
const KEPT_MS = 60_000;
/** An owner with so few rows has them read. */
const FEW_ROWS = 500;

/** What was read of a block. */
interface Block {
  readonly stamp: number;
  grams: Uint8Array | null;
  columns: Columns | null;
  text: Buffer | null;
}

/** A folded part of a text, and the bits of the signatures of blocks that may hold it. */
interface Needle {
  readonly bytes: Buffer;
  readonly bits: readonly number[];
}

export interface TextFinderOptions {
  /** Up to so many rows of an owner are read instead. */
  readonly fewRows?: number;
  /** A block is not as it was written. */
  readonly damaged?: () => void;
}

export function createTextFinder(db: Database, options: TextFinderOptions = {}): TextFinder {
  const { fewRows = FEW_ROWS, damaged } = options;
  let kept = new Map<number, Block>();
  let keptBytes = 0;
  let timer: ReturnType<typeof setTimeout> | null = null;

  const readGrams = db.query<{ grams: Uint8Array }, [number]>("SELECT grams FROM memory_texts WHERE id = ?");
  const readBody = db.query<{ columns: Uint8Array; text: Uint8Array }, [number]>(
    "SELECT columns, text FROM memory_texts WHERE id = ?",
  );
  const readColumns = db.query<{ columns: Uint8Array }, [number]>(
    "SELECT columns FROM memory_texts WHERE id = ?",
  );

  function forget(): void {
    kept = new Map();
    keptBytes = 0;
    if (timer !== null) clearTimeout(timer);
    timer = null;
  }

  /**
   * The block with what the needle asks for, null when it cannot hold it. `whole`: all that is asked for fits into memory
   * together.
   */
  function open(place: BlockPlace, needle: Needle, whole: boolean): Block | null {
    let block = kept.get(place.id);
    if (block?.stamp !== place.stamp) {
      block = { stamp: place.stamp, grams: null, columns: null, text: null };
      kept.set(place.id, block);
    }
    if (needle.bits.length > 0) {
      block.grams ??= readGrams.get(place.id)!.grams;
      if (!mayHold(block.grams, needle.bits)) return null;
    }
    const textless = needle.bytes.length === 0;
    if (block.columns !== null && (textless || block.text !== null)) return block;
    const read = { ...block, ...(textless ? columnsOf(place) : bodyOf(place)) };
    if (whole) {
      kept.set(place.id, read);
      keptBytes += textless ? read.columns.n * ROW_BYTES : place.size;
    }
    return read;
  }

  const columnsOf = ({ id }: BlockPlace) => ({ columns: openColumns(readColumns.get(id)!.columns) });

  function bodyOf({ id }: BlockPlace) {
    const { columns, text } = readBody.get(id)!;
    const opened = openColumns(columns);
    if (opened.ends.at(-1) !== text.length) throw new RangeError("The texts of a block are not whole.");
    return { columns: opened, text: Buffer.from(text.buffer, text.byteOffset, text.byteLength) };
  }

  /** Blocks that are gone or changed are not kept any longer; all go when nobody has asked for a while. */
  function tidy(places: readonly BlockPlace[], all: boolean): void {
    if (all && kept.size > places.length) {
      const there = new Set(places.map((place) => place.id));
      for (const id of kept.keys()) if (!there.has(id)) kept.delete(id);
    }
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(forget, KEPT_MS);
    timer.unref();
  }

  function find(filter: MemoryFilter, wanted: Wanted): Found | null {
    // Rows of a session are few, and have an index.
    if (filter.sessionId !== undefined) return null;
    try {
      return db.transaction(() => findNow(filter, wanted))();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      damaged?.();
      return null;
    }
  }

  function findNow(filter: MemoryFilter, wanted: Wanted): Found | null {
    const { ownerId, type, status, origin, pinned, olderThan = Number.POSITIVE_INFINITY } = filter;
    const sealed = sealedUntil(db);
    const newest = db.query<{ n: number | null }, []>("SELECT max(seq) AS n FROM memories").get()!.n ?? 0;
    const rows = countMemories(db, { ownerId, type, status, origin }).total;
    const waiting = newest - sealed;
    if (rows <= fewRows || (waiting > 2 * WAITING_ROWS && waiting > rows / 2)) return null;

    if (keptBytes > KEPT_BYTES) forget();
    const bytes = Buffer.from(fold(filter.q ?? ""));
    const needle = { bytes, bits: needleBits(bytes) };
    const places = blockPlaces(db, ownerId);
    const whole = places.reduce((sum, place) => sum + place.size, 0) <= KEPT_BYTES;
    const loose = new Set(looseRows(db));
    const hits = createHits(facetBits({ type, status, origin, pinned }), olderThan, loose, wanted);
    const unsure = new Set(loose);
    // From the end that likely comes first, so that few rows are ever better than what is there.
    if (typeof wanted === "object" && wanted.order === "desc") places.reverse();
    for (const place of places) {
      if (place.stamp === 0) {
        const { base, seqs } = columnsOf(place).columns;
        for (const seq of seqs) unsure.add(base + seq);
        continue;
      }
      const block = open(place, needle, whole);
      if (block !== null) look(block, bytes, hits);
    }
    for (const row of matchingRows(db, filter, { after: sealed })) hits.addRow(row);
    if (unsure.size > 0) for (const row of matchingRows(db, filter, { seqs: [...unsure] })) hits.addRow(row);
    tidy(places, ownerId === null);
    return { counts: hits.counts(), seqs: hits.seqs(), newest };
  }

  return { find, forget };
}

/** Counts rows and collects what is wanted of them. Of `loose` rows blocks tell nothing. */
function createHits(
  { bits, mask }: { bits: number; mask: number },
  olderThan: number,
  loose: ReadonlySet<number>,
  wanted: Wanted,
) {
  const collect = wanted === "counts" ? null : wanted === "all" ? collectAll() : collectPage(wanted);
  const time = typeof wanted === "object" ? wanted.sort : "createdAt";
  const n = [0, 0, 0, 0];
  let tokens = 0;
  const add = (seq: number, at: number, more: number, type: number) => {
    n[type]!++;
    tokens += more;
    collect?.add(seq, at);
  };
  return {
    /** Row `i` of a block, when it fits the filters beside the text. */
    addFrom(columns: Columns, i: number): void {
      const flags = columns.flags[i]!;
      if ((flags & mask) !== bits || !(columns.createdAt[i]! < olderThan)) return;
      const seq = columns.base + columns.seqs[i]!;
      if (loose.size > 0 && loose.has(seq)) return;
      add(seq, columns[time][i]!, columns.tokens[i]!, typeNumber(flags));
    },
    addRow(row: MatchingRow): void {
      const at = time === "createdAt" ? row.created_at : row.updated_at;
      add(row.seq, at, row.tokens, memoryTypes.indexOf(row.type));
    },
    counts(): Counts {
      const byType = Object.fromEntries(memoryTypes.map((type, i) => [type, n[i]!])) as Counts["byType"];
      return { total: n.reduce((sum, one) => sum + one, 0), tokens, byType };
    },
    seqs: () => collect?.done() ?? [],
  };
}

function collectAll() {
  const seqs: number[] = [];
  return {
    add: (seq: number) => void seqs.push(seq),
    done: () => seqs.toSorted((a, b) => a - b),
  };
}

/** Keeps the rows that come first; the first `offset` of them are left out in the end. */
function collectPage({ order, offset, limit }: Exclude<Wanted, string>) {
  type Row = { seq: number; at: number };
  const sign = order === "asc" ? 1 : -1;
  const compare = (a: Row, b: Row) => sign * (a.at - b.at || a.seq - b.seq);
  const want = offset + limit;
  let rows: Row[] = [];
  let worst: Row | null = null;
  return {
    add(seq: number, at: number): void {
      if (worst !== null && (sign * (at - worst.at) || sign * (seq - worst.seq)) > 0) return;
      rows.push({ seq, at });
      if (rows.length < 2 * want + 64) return;
      rows = rows.toSorted(compare).slice(0, want);
      worst = rows.at(-1) ?? null;
    },
    done: () =>
      rows
        .toSorted(compare)
        .slice(offset, want)
        .map((row) => row.seq),
  };
}

function look({ columns, text }: Block, needle: Buffer, hits: ReturnType<typeof createHits>): void {
  const { n, ends } = columns!;
  if (needle.length === 0) {
    for (let i = 0; i < n; i++) hits.addFrom(columns!, i);
    return;
  }
  let row = 0;
  for (let at = text!.indexOf(needle); at >= 0; at = text!.indexOf(needle, ends[row++])) {
    while (ends[row]! <= at) row++;
    hits.addFrom(columns!, row);
  }
}
