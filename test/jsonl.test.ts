import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { linePieces, type LinePiece } from "../src/conversations/jsonl.ts";

async function* chunks(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  let from = 0;
  for (const cut of [...cuts.filter((at) => at < bytes.length).sort((a, b) => a - b), bytes.length]) {
    if (cut > from) yield bytes.slice(from, cut);
    from = Math.max(from, cut);
  }
}

async function collect(
  text: string,
  cuts: readonly number[],
  options: { pieceBytes: number; maxLine: number },
) {
  const pieces: LinePiece[] = [];
  for await (const piece of linePieces(chunks(new TextEncoder().encode(text), cuts), options))
    pieces.push(piece);
  return pieces;
}

describe("linePieces", () => {
  test("gives every line with its number, wherever the stream is cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ maxLength: 30, unit: "grapheme" })),
        fc.boolean(),
        fc.array(fc.nat(400)),
        fc.integer({ min: 1, max: 60 }),
        async (texts, ended, cuts, pieceBytes) => {
          const lines = texts.map((text) => text.replaceAll("\n", " "));
          const text = lines.join("\n") + (ended && lines.length > 0 ? "\n" : "");
          const got: [number, string][] = [];
          for (const piece of await collect(text, cuts, { pieceBytes, maxLine: 1000 })) {
            const body = new TextDecoder("utf-8", { ignoreBOM: true }).decode(piece.bytes).split("\n");
            if (body.at(-1) === "") body.pop();
            for (const [offset, line] of body.entries()) got.push([piece.firstLine + offset, line]);
          }
          const expected = text.split("\n").map((line, at): [number, string] => [at + 1, line]);
          if (expected.at(-1)?.[1] === "") expected.pop();
          expect(got).toEqual(expected);
        },
      ),
    );
  });

  test("leaves out a line that is too long and keeps counting", async () => {
    for (const cuts of [[], [1, 2, 3], [10, 20, 30], [25]]) {
      const pieces = await collect(`aa\n${"x".repeat(40)}\nbb\n${"y".repeat(50)}`, cuts, {
        pieceBytes: 1000,
        maxLine: 20,
      });
      const text = pieces.map((piece) => new TextDecoder().decode(piece.bytes)).join("");
      expect(text).toBe("aa\n\nbb\n");
      expect(pieces.flatMap((piece) => piece.tooLong)).toEqual([2, 4]);
    }
  });

  test("holds one piece at a time", async () => {
    let given = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      const chunk = new TextEncoder().encode("0123456789\n".repeat(100));
      for (; given < 1000; given++) yield chunk;
    }
    const pieces = linePieces(endless(), { pieceBytes: 2000, maxLine: 100 });
    const first = await pieces.next();
    expect(first.done).toBe(false);
    expect(given).toBeLessThan(4);
    await pieces.return(undefined);
  });
});
