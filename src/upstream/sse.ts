/**
 * Server-sent events as bytes. The framer lets whole events through untouched and keeps the beginning of one until its
 * end has come, so that an event can be left out, and so that a stream that is cut can still end with an event of ours.
 */
import { createParser } from "eventsource-parser";

export const CONTENT_TYPE = "text/event-stream";

/** An unfinished event longer than this is passed on in pieces instead of being held. */
const MAX_HELD = 64 * 1024;
const LF = 10;
const CR = 13;

export interface Framer {
  /** The bytes that may go on now; empty when an event is still unfinished. */
  push(chunk: Buffer): Buffer;
  /** What was held when the upstream ended. */
  rest(): Buffer;
  /** Whether the client has seen the beginning of an event whose end has not come. */
  inside(): boolean;
}

const EMPTY = Buffer.alloc(0);

/** `drop` is asked about each whole event of a chunk for which `suspect` is true. */
export function createFramer(
  suspect: (chunk: Buffer) => boolean = () => false,
  drop: (event: Buffer) => boolean = () => false,
): Framer {
  let held: Buffer[] = [];
  let size = 0;
  let open = false;

  return {
    push(chunk) {
      let bytes = chunk;
      if (size > 0) {
        bytes = Buffer.concat([...held, chunk]);
        held = [];
        size = 0;
      }
      const end = lastEnd(bytes);
      if (end === 0) {
        if (open || bytes.length > MAX_HELD) {
          open = true;
          return bytes;
        }
        held.push(bytes);
        size = bytes.length;
        return EMPTY;
      }
      if (end < bytes.length) {
        held.push(bytes.subarray(end));
        size = bytes.length - end;
      }
      const whole = end < bytes.length ? bytes.subarray(0, end) : bytes;
      const started = open;
      open = false;
      return started || !suspect(whole) ? whole : without(whole, drop);
    },
    rest() {
      const bytes = size > 0 ? Buffer.concat(held) : EMPTY;
      held = [];
      size = 0;
      return bytes;
    },
    inside: () => open,
  };
}

/** The index after the last blank line, 0 when there is none. Lines end in LF, CR or CRLF (WHATWG HTML 9.2.5). */
function lastEnd(bytes: Buffer): number {
  for (let at = bytes.length - 1; at >= 0; at--) {
    const length = blankAt(bytes, at);
    if (length > 0) return at + length;
    // Only line ends matter: go to the one before.
    const next = Math.max(bytes.lastIndexOf(LF, at - 1), at > 0 ? bytes.lastIndexOf(CR, at - 1) : -1);
    if (at === 0 || next < 0) return 0;
    at = next + 1;
  }
  return 0;
}

/** The length of the line end at `at` when it closes an empty line, else 0. */
function blankAt(bytes: Buffer, at: number): number {
  const byte = bytes[at];
  const before = bytes[at - 1];
  if (byte === LF) {
    if (before === LF) return 1;
    if (before === CR) return bytes[at - 2] === LF || bytes[at - 2] === CR ? 1 : 0;
    return 0;
  }
  // A CR at the very end may be the first half of CRLF: wait for what follows.
  if (byte === CR && at + 1 < bytes.length && bytes[at + 1] !== LF)
    return before === CR || before === LF ? 1 : 0;
  return byte === CR && at + 1 === bytes.length && before === CR ? 1 : 0;
}

function without(bytes: Buffer, drop: (event: Buffer) => boolean): Buffer {
  const kept: Buffer[] = [];
  let from = 0;
  for (let at = 1; at < bytes.length; at++) {
    if (bytes[at] !== LF && bytes[at] !== CR) continue;
    const length = blankAt(bytes, at);
    if (length === 0) continue;
    const event = bytes.subarray(from, at + length);
    if (!drop(event)) kept.push(event);
    from = at + length;
  }
  if (from < bytes.length) kept.push(bytes.subarray(from));
  return kept.length === 1 ? kept[0]! : Buffer.concat(kept);
}

/** The payload of one whole event; "" when it has none. */
export function eventData(event: Buffer): string {
  let data = "";
  const parser = createParser({ onEvent: (message) => (data = message.data) });
  parser.feed(event.toString("utf8"));
  return data;
}

/** More than this in one event is not captured. */
const MAX_EVENT = 8 << 20;

export interface EventReader {
  push(chunk: Buffer): void;
  /** The stream has ended; an event that lacks only its blank line still counts. */
  end(): void;
}

/** Reads events out of bytes cut anywhere, also inside a character; comments and payloads that are comments are left out. */
export function createEventReader(onEvent: (data: string, event: string | undefined) => void): EventReader {
  const decoder = new TextDecoder();
  let broken = false;
  const parser = createParser({
    maxBufferSize: MAX_EVENT,
    onEvent(message) {
      if (!message.data.startsWith(":")) onEvent(message.data, message.event);
    },
  });
  const feed = (text: string) => {
    if (broken || text === "") return;
    try {
      parser.feed(text);
    } catch {
      broken = true;
    }
  };
  return {
    push: (chunk) => feed(decoder.decode(chunk, { stream: true })),
    end: () => feed(`${decoder.decode()}\n\n`),
  };
}
