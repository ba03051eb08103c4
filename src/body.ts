/** Reads request bodies with a limit on size and depth before anything is parsed. */
import { AppError } from "./error.ts";

/** Most routes take a form's worth of JSON; bulk routes read line by line instead. */
const JSON_LIMIT = 1024 * 1024;
const DEPTH_LIMIT = 64;

/**
 * The JSON value of a body; undefined when there is none. 415 unless it says it is JSON, 413 above `max` bytes,
 * 400 for what is not UTF-8, not JSON or nested too deep.
 */
export async function readJson(request: Request, max = JSON_LIMIT): Promise<unknown> {
  checkEncoding(request);
  const bytes = await readBytes(request, max);
  if (bytes.length === 0) return undefined;
  const type = mediaType(request);
  if (type !== "application/json" && !/^application\/[\w.-]+\+json$/.test(type)) {
    throw new AppError("unsupported_media_type", "Send the body as content type application/json.");
  }
  return parseJson(decode(bytes));
}

/** 415 for a compressed body: nothing is decoded here. */
export function checkEncoding(request: Request): void {
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding.trim().toLowerCase() === "identity") return;
  throw new AppError("unsupported_encoding", "Send the body without Content-Encoding.");
}

/** JSON text to a value: 400 `invalid_json` for broken or too deeply nested text. */
function parseJson(text: string): unknown {
  if (tooDeep(text)) throw badJson(`The JSON is nested deeper than ${DEPTH_LIMIT} levels.`);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw badJson("The body is not valid JSON.");
  }
}

async function readBytes(request: Request, max: number): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array();
  const tooLarge = () => new AppError("body_too_large", `The body is larger than ${max} bytes.`);
  if (Number(request.headers.get("content-length") ?? 0) > max) throw tooLarge();
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body as ReadableStream<Uint8Array>) {
    size += chunk.length;
    if (size > max) throw tooLarge();
    parts.push(chunk);
  }
  return join(parts);
}

function join(parts: Uint8Array[]): Uint8Array {
  return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw badJson("The body is not valid UTF-8.");
  }
}

function badJson(message: string): AppError {
  return new AppError("invalid_json", message);
}

function mediaType(request: Request): string {
  return (request.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
}

/** Counts brackets outside strings, so that a hostile body is refused before it costs a parse. */
function tooDeep(text: string): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (quoted) {
      if (code === 92) at++;
      else if (code === 34) quoted = false;
    } else if (code === 34) quoted = true;
    else if (code === 91 || code === 123) {
      if (++depth > DEPTH_LIMIT) return true;
    } else if (code === 93 || code === 125) depth--;
  }
  return false;
}
