/**
 * An inverted index in memory: which of one owner's rows hold a word, how often, and how long each row is. Rows are
 * numbered by slots in the order they came. Postings lie in segments, each a few thousand rows in flat arrays by word;
 * the newest rows wait in a list a word until they are enough for a segment. A row that changes gets a new slot.
 */

/** Rows of a segment. */
const SEGMENT_ROWS = 8192;
/** Rows that wait at most before they become a segment of their own. */
const WAITING_ROWS = 1024;
/** A word that stands more often in one side of a row counts as so often. */
export const MOST_TIMES = 255;
/** What a row and a word take beside their postings, in bytes; about what the engine's maps and strings need. */
const ROW_BYTES = 90;
const WORD_BYTES = 120;
const POSTING_BYTES = 6;
/** In place of the slot of a turn that is gone. */
export const NO_TURN = -1;

interface Segment {
  /** Where the postings of word n begin; words that came later have none here. */
  readonly starts: Uint32Array;
  readonly slots: Uint32Array;
  /** `said << 8 | reply`: how often in the first column and in the second. */
  readonly times: Uint16Array;
}

export interface Postings {
  readonly words: Map<string, number>;
  readonly segments: Segment[];
  /** By word: slot, times, slot, times … of rows in no segment yet. */
  waiting: Map<number, number[]>;
  waitingRows: number;
  readonly slotOf: Map<number, number>;
  ids: Float64Array;
  saidLength: Uint32Array;
  replyLength: Uint32Array;
  /** Where an exchange stands in its session, its time, and when it was stored here; empty for rows of no session. */
  session: Float64Array;
  pos: Uint32Array;
  createdAt: Float64Array;
  storedAt: Float64Array;
  /** No exchange was stored before this. */
  oldest: number;
  /** 1: the row is gone or has another slot. */
  gone: Uint8Array;
  /** Slots given, and how many of them are gone. */
  slots: number;
  dead: number;
  /** Words of the living rows in the first and the second column. */
  said: number;
  reply: number;
  /** By session and place in it: the slot of the turn, or {@link NO_TURN}. Empty for rows of no session. */
  readonly turns: Map<number, number[]>;
  /** Where best-rows.ts adds up, all zero between two searches, and which slots it touched. */
  readonly sums: { whole: Float32Array; said: Float32Array; touched: Uint32Array };
}

/** One word's postings in every part of the index. */
export type WordPostings = readonly { slots: ArrayLike<number>; times: ArrayLike<number> }[];

/** `placed`: rows stand in sessions. */
export function createPostings(placed: boolean): Postings {
  const room = 256;
  const places = placed ? room : 0;
  return {
    words: new Map(),
    segments: [],
    waiting: new Map(),
    waitingRows: 0,
    slotOf: new Map(),
    ids: new Float64Array(room),
    saidLength: new Uint32Array(room),
    replyLength: new Uint32Array(room),
    session: new Float64Array(places),
    pos: new Uint32Array(places),
    createdAt: new Float64Array(places),
    storedAt: new Float64Array(places),
    oldest: Infinity,
    gone: new Uint8Array(room),
    slots: 0,
    dead: 0,
    said: 0,
    reply: 0,
    turns: new Map(),
    sums: { whole: new Float32Array(0), said: new Float32Array(0), touched: new Uint32Array(0) },
  };
}

/** Living rows. */
export function rowsIn(held: Postings): number {
  return held.slots - held.dead;
}

/** Bytes that so many rows with so many words in all would take, roughly. */
export function bytesFor(rows: number, words: number): number {
  // A third of the words of a row repeat one; a vocabulary grows about as the root of the text.
  return rows * ROW_BYTES + words * 0.75 * POSTING_BYTES + 40 * Math.sqrt(words) * WORD_BYTES;
}

/** Bytes that it takes, roughly. */
export function postingsBytes(held: Postings): number {
  const sealed = held.segments.reduce(
    (sum, { starts, slots }) => sum + starts.byteLength + slots.length * POSTING_BYTES,
    0,
  );
  return sealed + held.slots * ROW_BYTES + held.words.size * WORD_BYTES + held.waitingRows * 400;
}

/** A row's tokens joined by blanks, and of an exchange where it stands; times in milliseconds. */
export interface HeldRow {
  readonly id: number;
  readonly said: string;
  readonly reply: string;
  readonly session?: number;
  readonly pos?: number;
  readonly createdAt?: number;
  readonly storedAt?: number;
}

/** Adds a row. A row that is known is replaced. */
export function putRow(held: Postings, row: HeldRow): void {
  const { id, said, reply } = row;
  dropRow(held, id);
  const slot = held.slots++;
  if (slot === held.ids.length) grow(held);
  if (held.session.length > 0) {
    const { session = 0, pos = 0, createdAt = 0, storedAt = 0 } = row;
    held.session[slot] = session;
    held.pos[slot] = pos;
    held.createdAt[slot] = createdAt;
    held.storedAt[slot] = storedAt;
    held.oldest = Math.min(held.oldest, storedAt);
    let turns = held.turns.get(session);
    if (turns === undefined) held.turns.set(session, (turns = []));
    turns[pos] = slot;
  }
  held.ids[slot] = id;
  held.slotOf.set(id, slot);
  const saidWords = said === "" ? 0 : count(held, slot, said, 256);
  const replyWords = reply === "" ? 0 : count(held, slot, reply, 1);
  held.saidLength[slot] = saidWords;
  held.replyLength[slot] = replyWords;
  held.said += saidWords;
  held.reply += replyWords;
  held.waitingRows++;
}

/** Takes a row out. Its postings stay until the index is made anew, and nothing sees them. */
export function dropRow(held: Postings, id: number): void {
  const slot = held.slotOf.get(id);
  if (slot === undefined) return;
  held.slotOf.delete(id);
  held.gone[slot] = 1;
  if (held.session.length > 0) {
    const turns = held.turns.get(held.session[slot]!);
    if (turns?.[held.pos[slot]!] === slot) turns[held.pos[slot]!] = NO_TURN;
  }
  held.dead++;
  held.said -= held.saidLength[slot]!;
  held.reply -= held.replyLength[slot]!;
}

/** Whether the rows that wait are enough to {@link seal}; while loading, more are waited for. */
export function isFull(held: Postings, loading: boolean): boolean {
  return held.waitingRows >= (loading ? SEGMENT_ROWS : WAITING_ROWS);
}

/** Makes a segment of the rows that wait. */
export function seal(held: Postings): void {
  let postings = 0;
  for (const list of held.waiting.values()) postings += list.length / 2;
  const starts = new Uint32Array(held.words.size + 1);
  const slots = new Uint32Array(postings);
  const times = new Uint16Array(postings);
  let at = 0;
  for (let word = 0; word < held.words.size; word++) {
    starts[word] = at;
    const list = held.waiting.get(word);
    if (list === undefined) continue;
    for (let i = 0; i < list.length; i += 2, at++) {
      slots[at] = list[i]!;
      times[at] = list[i + 1]!;
    }
  }
  starts[held.words.size] = at;
  held.segments.push({ starts, slots, times });
  held.waiting = new Map();
  held.waitingRows = 0;
}

/** The postings of a word; empty when no row ever had it. */
export function postingsOf(held: Postings, token: string): WordPostings {
  const word = held.words.get(token);
  if (word === undefined) return [];
  const found: { slots: ArrayLike<number>; times: ArrayLike<number> }[] = [];
  for (const { starts, slots, times } of held.segments) {
    const from = starts[word];
    const until = starts[word + 1];
    if (from === undefined || until === undefined || from === until) continue;
    found.push({ slots: slots.subarray(from, until), times: times.subarray(from, until) });
  }
  const list = held.waiting.get(word);
  if (list !== undefined) {
    const n = list.length / 2;
    const slots = new Uint32Array(n);
    const times = new Uint16Array(n);
    for (let i = 0; i < n; i++) {
      slots[i] = list[2 * i]!;
      times[i] = list[2 * i + 1]!;
    }
    found.push({ slots, times });
  }
  return found;
}

/** Living rows that hold the word, and those that hold it in the first column. */
export function holders(held: Postings, postings: WordPostings): { rows: number; said: number } {
  const { gone } = held;
  let rows = 0;
  let said = 0;
  for (const { slots, times } of postings) {
    for (let i = 0; i < slots.length; i++) {
      if (gone[slots[i]!] === 1) continue;
      rows++;
      if (times[i]! > 255) said++;
    }
  }
  return { rows, said };
}

/** `said << 8 | reply` of a word in the row of a slot; 0 when it is not there. */
export function timesIn(postings: WordPostings, slot: number): number {
  for (const { slots, times } of postings) {
    const { length } = slots;
    if (length === 0 || slots[length - 1]! < slot) continue;
    let low = 0;
    let high = length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (slots[middle]! < slot) low = middle + 1;
      else high = middle;
    }
    return slots[low] === slot ? times[low]! : 0;
  }
  return 0;
}

/** Adds the words of one side of a row; `unit` is what one occurrence adds to `times`. Returns how many words there are. */
function count(held: Postings, slot: number, tokens: string, unit: 1 | 256): number {
  let words = 0;
  for (let from = 0; from <= tokens.length; words++) {
    const blank = tokens.indexOf(" ", from);
    const end = blank < 0 ? tokens.length : blank;
    const token = tokens.slice(from, end);
    from = end + 1;
    let word = held.words.get(token);
    if (word === undefined) {
      word = held.words.size;
      // A copy of its own: a slice would keep the whole text in memory.
      held.words.set(Buffer.from(token).toString(), word);
    }
    const list = held.waiting.get(word);
    if (list === undefined) held.waiting.set(word, [slot, unit]);
    else if (list[list.length - 2] !== slot) list.push(slot, unit);
    else {
      const times = list[list.length - 1]!;
      const side = unit === 256 ? times >> 8 : times & 255;
      if (side < MOST_TIMES) list[list.length - 1] = times + unit;
    }
  }
  return words;
}

function grow(held: Postings): void {
  const room = Math.ceil(held.ids.length * 1.5);
  const places = held.session.length > 0 ? room : 0;
  const into = <T extends { set(from: T): void }>(made: T, from: T): T => {
    made.set(from);
    return made;
  };
  held.ids = into(new Float64Array(room), held.ids);
  held.saidLength = into(new Uint32Array(room), held.saidLength);
  held.replyLength = into(new Uint32Array(room), held.replyLength);
  held.session = into(new Float64Array(places), held.session);
  held.pos = into(new Uint32Array(places), held.pos);
  held.createdAt = into(new Float64Array(places), held.createdAt);
  held.storedAt = into(new Float64Array(places), held.storedAt);
  held.gone = into(new Uint8Array(room), held.gone);
}
