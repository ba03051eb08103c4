/**
 * Reads HTTP/1.1 responses (RFC 9112) from a byte stream that is cut anywhere. Pure: bytes in, events out. Our own
 * because `fetch` allows 256 requests a process, cannot dial a checked address under another name, and does not say
 * whether a connection or a first byte is being waited for.
 */

export interface Head {
  status: number;
  /** In order, names in lower case. */
  headers: [name: string, value: string][];
}

export interface ParserEvents {
  head(head: Head): void;
  data(chunk: Buffer): void;
  /** The message is whole. `reusable`: another request may follow on this connection. */
  end(reusable: boolean): void;
  /** `problem` is a sentence for the client; `cut`: the connection ended before the message did. */
  fail(problem: string, cut: boolean): void;
}

export interface Parser {
  /** Another request was sent on this connection: its answer comes next. */
  begin(method: string): void;
  feed(bytes: Buffer): void;
  /** The connection has ended. */
  eof(): void;
}

/** A head longer than this is refused, so that endless headers cannot fill the memory. */
const MAX_HEAD = 64 * 1024;
const MAX_LINE = 1024;

type State = "head" | "length" | "chunk-size" | "chunk" | "chunk-end" | "trailer" | "until-close" | "done";

export function createParser(events: ParserEvents): Parser {
  let method = "GET";
  let state: State = "head";
  let rest: Buffer | null = null;
  let left = 0;
  let trailers = 0;
  let keepAlive = true;

  const stop = (message: string) => {
    state = "done";
    events.fail(`The provider's answer cannot be used: ${message}.`, false);
  };
  const finish = (reusable: boolean) => {
    state = "done";
    events.end(reusable);
  };

  /** Takes one line off `bytes` at `from`; null (and kept for the next call) when it is not whole. */
  function line(bytes: Buffer, from: number): { text: string; next: number } | null {
    const at = bytes.indexOf(10, from);
    if (at < 0) {
      if (bytes.length - from > MAX_LINE) stop("the chunked body is malformed");
      else rest = bytes.subarray(from);
      return null;
    }
    const end = at > from && bytes[at - 1] === 13 ? at - 1 : at;
    return { text: bytes.toString("latin1", from, end), next: at + 1 };
  }

  function readHead(bytes: Buffer, from: number): number {
    const end = bytes.indexOf("\r\n\r\n", from, "latin1");
    if (end < 0) {
      if (bytes.length - from > MAX_HEAD) stop("the header is too long");
      else rest = bytes.subarray(from);
      return bytes.length;
    }
    if (end - from > MAX_HEAD) {
      stop("the header is too long");
      return bytes.length;
    }
    const lines = bytes.toString("latin1", from, end);
    const firstEnd = lineEnd(lines, 0);
    const first = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(lines.slice(0, firstEnd));
    if (!first) {
      stop("the answer is not HTTP/1.1");
      return bytes.length;
    }
    const status = Number(first[2]);
    const headers: Head["headers"] = [];
    let length: number | null = null;
    let chunked = false;
    keepAlive = first[1] === "1";
    for (let at = firstEnd + 2, to; at < lines.length; at = to + 2) {
      to = lineEnd(lines, at);
      const colon = lines.indexOf(":", at);
      if (colon <= at || colon >= to) continue;
      const name = lines.slice(at, colon).trim().toLowerCase();
      const value = lines.slice(colon + 1, to).trim();
      headers.push([name, value]);
      if (name === "content-length") {
        const parsed = /^\d+$/.test(value) ? Number(value) : Number.NaN;
        if (!Number.isSafeInteger(parsed) || (length !== null && length !== parsed)) {
          stop("the content-length is not a number");
          return bytes.length;
        }
        length = parsed;
      } else if (name === "transfer-encoding") chunked = /(?:^|,)\s*chunked$/i.test(value);
      else if (name === "connection") {
        if (/\bclose\b/i.test(value)) keepAlive = false;
        else if (/\bkeep-alive\b/i.test(value)) keepAlive = true;
      }
    }
    const next = end + 4;
    // Interim answers (100, 103) are not the answer.
    if (status >= 100 && status < 200) {
      if (status === 101) stop("the answer switches protocols");
      return next;
    }
    events.head({ status, headers });
    if (state === "done") return bytes.length;
    const reusable = keepAlive && next === bytes.length;
    if (method === "HEAD" || status === 204 || status === 304) finish(reusable);
    else if (chunked) state = "chunk-size";
    else if (length === null) {
      keepAlive = false;
      state = "until-close";
    } else if (length === 0) finish(reusable);
    else {
      left = length;
      state = "length";
    }
    return next;
  }

  return {
    begin(next) {
      method = next;
      state = "head";
      rest = null;
    },
    feed(incoming) {
      const bytes: Buffer = rest ? Buffer.concat([rest, incoming]) : incoming;
      rest = null;
      let at = 0;
      while (at < bytes.length && rest === null) {
        switch (state) {
          case "head":
            at = readHead(bytes, at);
            break;
          case "length":
          case "chunk": {
            const take = Math.min(left, bytes.length - at);
            left -= take;
            const chunk = bytes.subarray(at, at + take);
            at += take;
            const body = state;
            events.data(chunk);
            if (left > 0 || state !== body) break;
            if (body === "chunk") state = "chunk-end";
            else finish(keepAlive && at === bytes.length);
            break;
          }
          case "chunk-size": {
            const got = line(bytes, at);
            if (!got) return;
            at = got.next;
            const size = /^([0-9a-f]{1,12})\s*(?:;.*)?$/i.exec(got.text.trim());
            if (!size) return stop("the chunked body is malformed");
            left = Number.parseInt(size[1]!, 16);
            trailers = 0;
            state = left === 0 ? "trailer" : "chunk";
            break;
          }
          case "chunk-end": {
            const got = line(bytes, at);
            if (!got) return;
            if (got.text !== "") return stop("the chunked body is malformed");
            at = got.next;
            state = "chunk-size";
            break;
          }
          case "trailer": {
            const got = line(bytes, at);
            if (!got) return;
            at = got.next;
            trailers += got.text.length;
            if (trailers > MAX_HEAD) return stop("the trailer is too long");
            if (got.text === "") finish(keepAlive && at === bytes.length);
            break;
          }
          case "until-close":
            events.data(bytes.subarray(at));
            return;
          case "done":
            return;
        }
      }
    },
    eof() {
      if (state === "done") return;
      if (state === "until-close") finish(false);
      else {
        const early = state === "head" && !rest;
        state = "done";
        events.fail(
          early
            ? "The provider closed the connection without an answer."
            : "The provider closed the connection in the middle of its answer.",
          true,
        );
      }
    },
  };
}

/** Where the line that begins at `from` ends. */
function lineEnd(lines: string, from: number): number {
  const end = lines.indexOf("\r\n", from);
  return end < 0 ? lines.length : end;
}
