/** Cleaning and limits of a memory's fields, the same for every writer. */
import { invalid } from "../error.ts";
import { stripInvisible } from "../text/fold.ts";
import { limits } from "./types.ts";
import type { JsonObject } from "./types.ts";

/** Takes secrets out of texts and JSON; `count` is how many were found. */
export type Redact = {
  text(text: string): { text: string; count: number };
  json(value: JsonObject): { value: JsonObject; count: number };
};

/** Well-formed Unicode without NUL, trimmed, secrets redacted. Throws 400 `content` when nothing is left or it is too long. */
export function cleanContent(content: string, redact: Redact): { text: string; count: number } {
  const text = content.toWellFormed().replaceAll("\0", "").trim();
  if (stripInvisible(text).trim() === "") throw invalid("content", "must not be empty");
  if (isLonger(text, limits.content))
    throw invalid("content", `must be at most ${limits.content} characters`);
  const result = redact.text(text);
  return { ...result, text: cut(result.text, limits.content) };
}

export function cleanKey(key: string | null, redact: Redact): { text: string | null; count: number } {
  if (key === null) return { text: null, count: 0 };
  const text = key.toWellFormed().replaceAll("\0", "").trim();
  if (stripInvisible(text).trim() === "")
    throw invalid("key", "must not be empty; leave it out for a memory without a key");
  if (isLonger(text, limits.key)) throw invalid("key", `must be at most ${limits.key} characters`);
  const result = redact.text(text);
  return { ...result, text: cut(result.text, limits.key) };
}

/** A JSON object of at most 16 kB, secrets redacted. */
export function cleanMetadata(metadata: JsonObject, redact: Redact): { value: JsonObject; count: number } {
  const text = JSON.stringify(metadata);
  if (Buffer.byteLength(text) > limits.metadataBytes) {
    throw invalid("metadata", `must be at most ${limits.metadataBytes} bytes of JSON`);
  }
  return redact.json(metadata);
}

/** Characters are code points, so that an emoji is one and is never cut in half. */
function isLonger(text: string, max: number): boolean {
  return text.length > max && cut(text, max).length < text.length;
}

function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  let end = 0;
  let count = 0;
  for (const character of text) {
    if (count++ === max) break;
    end += character.length;
  }
  return text.slice(0, end);
}
