import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createParser } from "../src/upstream/http1.ts";

/** Feeds `pieces` and tells what came out, in order. */
function read(pieces: Buffer[], options: { method?: string; eof?: boolean } = {}) {
  const out: string[] = [];
  let body = "";
  const parser = createParser({
    head: (head) => out.push(`${head.status} ${head.headers.map(([n, v]) => `${n}=${v}`).join(";")}`),
    data: (chunk) => (body += chunk.toString("latin1")),
    end: (reusable) => out.push(reusable ? "end, reusable" : "end, close"),
    fail: (_problem, cut) => out.push(cut ? "cut" : "protocol"),
  });
  parser.begin(options.method ?? "POST");
  for (const piece of pieces) parser.feed(piece);
  if (options.eof) parser.eof();
  return { out, body };
}

const messages: [name: string, text: string, body: string, end: string][] = [
  ["content-length", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "hello", "end, reusable"],
  [
    "chunked with extensions and trailers",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5;a=b\r\nhello\r\n00003\r\n\r\n!\r\n0\r\nx: y\r\n\r\n",
    "hello\r\n!",
    "end, reusable",
  ],
  [
    "interim answers",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\na: b\r\n\r\nHTTP/1.1 201 \r\ncontent-length: 0\r\n\r\n",
    "",
    "end, reusable",
  ],
  [
    "connection: close",
    "HTTP/1.1 500 No\r\nConnection: Close\r\ncontent-length: 2\r\n\r\nno",
    "no",
    "end, close",
  ],
  ["HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", "ok", "end, close"],
  ["no content", "HTTP/1.1 204 No Content\r\n\r\n", "", "end, reusable"],
];

describe("an answer cut at every byte", () => {
  test.each(messages)("%s", (_name, text, body, end) => {
    const bytes = Buffer.from(text, "latin1");
    for (let at = 0; at <= bytes.length; at++) {
      const got = read([bytes.subarray(0, at), bytes.subarray(at)]);
      expect(got.body).toBe(body);
      expect(got.out.at(-1)).toBe(end);
      expect(got.out).toHaveLength(2);
    }
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length)), (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const got = read(at.slice(1).map((to, i) => bytes.subarray(at[i], to)));
        expect(got.body).toBe(body);
        expect(got.out.at(-1)).toBe(end);
      }),
      { numRuns: 50 },
    );
  });
});

test("a body without a length lasts until the connection ends", () => {
  const bytes = Buffer.from("HTTP/1.1 200 OK\r\n\r\nabc");
  expect(read([bytes]).out).toHaveLength(1);
  expect(read([bytes], { eof: true })).toEqual({ out: ["200 ", "end, close"], body: "abc" });
});

test("every cut before the end is a cut, never a whole answer", () => {
  for (const [, text] of messages.slice(0, 2)) {
    const bytes = Buffer.from(text, "latin1");
    for (let at = 0; at < bytes.length; at++) {
      expect(read([bytes.subarray(0, at)], { eof: true }).out.at(-1)).toBe("cut");
    }
  }
});

test.each([
  ["not HTTP", "SSH-2.0-OpenSSH\r\n\r\n"],
  ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"],
  ["a negative length", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"],
  ["a bad chunk size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"],
  ["a chunk longer than it says", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n"],
  ["endless headers", `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}`],
  ["an endless chunk size", `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${"0".repeat(5000)}`],
  ["a switch of protocols", "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n"],
])("%s is refused", (_name, text) => {
  expect(read([Buffer.from(text, "latin1")]).out.at(-1)).toBe("protocol");
});

test("one parser reads the answers of a connection, each by its own request", () => {
  const out: string[] = [];
  const parser = createParser({
    head: (head) => out.push(String(head.status)),
    data: (chunk) => out.push(chunk.toString()),
    end: (reusable) => out.push(reusable ? "reusable" : "close"),
    fail: () => out.push("fail"),
  });
  parser.begin("HEAD");
  parser.feed(Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"));
  parser.begin("POST");
  parser.feed(Buffer.from("HTTP/1.1 201 Created\r\ncontent-le"));
  parser.feed(Buffer.from("ngth: 2\r\n\r\nok"));
  expect(out).toEqual(["200", "reusable", "201", "ok", "reusable"]);
});

test.each(["204 No Content", "200 OK\r\ncontent-length: 0"])(
  "what follows an answer without a body (%s) is not taken for the next one",
  (head) => {
    const got = read([Buffer.from(`HTTP/1.1 ${head}\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx`)]);
    expect(got.out.at(-1)).toBe("end, close");
    expect(got.body).toBe("");
  },
);

test("an answer to HEAD has no body whatever its length says", () => {
  expect(
    read([Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")], { method: "HEAD" }).out.at(-1),
  ).toBe("end, reusable");
});
