/**
 * The pieces of a JSON document, one at a time, so that an export of gigabytes needs the memory of its largest piece: the
 * elements of a top-level array, or of the lists of a top-level object; lines of JSON are pieces as well.
 */

/** Longest piece, in UTF-16 units: no conversation is longer. */
const MAX_PIECE = 256 * 1024 * 1024;
/** Lists of a top-level object that hold what is imported. */
const LISTS = new Set(["results", "memories", "memory", "conversations", "data"]);

export type Item = { value: unknown } | { problem: string };

/** Reads the pieces of `stream` (UTF-8). What is not JSON is a piece with a problem. */
export async function* jsonItems(stream: ReadableStream<Uint8Array>): AsyncGenerator<Item> {
  const decoder = new TextDecoder();
  const scanner = createScanner();
  for await (const chunk of stream) yield* scanner.push(decoder.decode(chunk, { stream: true }));
  yield* scanner.push(decoder.decode());
  yield* scanner.end();
}

function createScanner() {
  /** Null before the first character that counts. */
  let shape: "array" | "values" | null = null;
  let depth = 0;
  let quoted = false;
  let escaped = false;
  let held: string[] = [];
  let size = 0;
  let closed = false;

  function take(): string {
    const text = held.join("").trim();
    held = [];
    size = 0;
    return text;
  }

  /** One element of the array, or a whole value, when its text is complete. */
  function* piece(): Generator<Item> {
    const text = take();
    if (text === "") return;
    let value: unknown;
    try {
      value = JSON.parse(text) as unknown;
    } catch {
      yield { problem: "is not valid JSON" };
      return;
    }
    const lists =
      shape === "values" && typeof value === "object" && value !== null
        ? Object.entries(value).filter(([name, list]) => LISTS.has(name) && Array.isArray(list))
        : [];
    if (lists.length === 0) yield { value };
    for (const [, list] of lists) for (const one of list as unknown[]) yield { value: one };
  }

  function* push(text: string): Generator<Item> {
    let start = 0;
    const hold = (end: number) => {
      if (end > start) {
        held.push(text.slice(start, end));
        size += end - start;
        if (size > MAX_PIECE) throw new RangeError("A piece of the file is longer than 256 MiB.");
      }
      start = end;
    };
    for (let at = 0; at < text.length; at++) {
      const char = text[at]!;
      if (quoted) {
        if (escaped) escaped = false;
        else if (char === "\\") escaped = true;
        else if (char === '"') quoted = false;
        continue;
      }
      if (shape === null) {
        start = at;
        if (/[\s\ufeff]/.test(char)) continue;
        shape = char === "[" ? "array" : "values";
        if (shape === "array") {
          depth = 1;
          start = at + 1;
          continue;
        }
      }
      if (char === '"') quoted = true;
      else if (char === "{" || char === "[") depth++;
      else if (char === "}" || char === "]") {
        depth--;
        if (shape === "array" && depth === 0) {
          hold(at);
          yield* piece();
          closed = true;
          start = at + 1;
        } else if (shape === "values" && depth === 0) {
          hold(at + 1);
          yield* piece();
        }
      } else if (char === "," && shape === "array" && depth === 1) {
        hold(at);
        yield* piece();
        start = at + 1;
      }
    }
    if (!closed && shape !== null) hold(text.length);
  }

  function* end(): Generator<Item> {
    if (take() !== "") yield { problem: shape === "array" && !closed ? "is cut off" : "is not valid JSON" };
  }

  return { push, end };
}
