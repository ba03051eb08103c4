/** Reads request bodies of `/v1`: any of four encodings, with a cap on what comes out, decoded off the main thread. */
import { brotliDecompress, gunzip, inflate, inflateRaw, zstdDecompress } from "node:zlib";
import type { JsonBody } from "../memory/conversation.ts";
import { isObject } from "../memory/conversation.ts";
import { AppError, invalid } from "../error.ts";

/** Largest decoded body that is parsed, in bytes. */
export const BODY_LIMIT = 32 * 1024 * 1024;

/** Bytes of bodies that may be on their way at once. A body lives as text, as values and as what is sent on. */
const IN_FLIGHT_LIMIT = 512 * 1024 * 1024;

/** A limit on the bodies that are held at once, so that many large ones (screenshots) cannot fill the memory. */
export function createByteBudget(limit = IN_FLIGHT_LIMIT) {
  let held = 0;
  return {
    /** Holds so many bytes until the returned function is called; 429 when there is no room, unless nothing is held. */
    take(bytes: number): () => void {
      if (held > 0 && held + bytes > limit) {
        throw new AppError("busy", "Too many large requests are on their way; try again shortly.", {
          retryAfter: 1,
        });
      }
      held += bytes;
      let over = false;
      return () => {
        if (!over) held -= bytes;
        over = true;
      };
    },
  };
}

export type ByteBudget = ReturnType<typeof createByteBudget>;

export interface ParsedBody {
  /** As it was sent, decoded. */
  text: string;
  json: JsonBody;
}

type Decoder = (
  bytes: Uint8Array,
  options: { maxOutputLength: number },
  done: (error: Error | null, out: Buffer) => void,
) => void;

const decoders: Record<string, Decoder> = {
  gzip: gunzip,
  "x-gzip": gunzip,
  // RFC 9110 means the zlib format; some clients send raw deflate.
  deflate(bytes, options, done) {
    const zlib = (bytes[0]! & 0x0f) === 8 && ((bytes[0]! << 8) | bytes[1]!) % 31 === 0;
    if (zlib) inflate(bytes, options, done);
    else inflateRaw(bytes, options, done);
  },
  br: brotliDecompress,
  zstd: zstdDecompress,
};

/** The JSON object of a request: 400 for what is not one, 413 above the limit, 415 for an unknown encoding. */
export async function readBody(request: Request, limit = BODY_LIMIT): Promise<ParsedBody> {
  const encoding = request.headers.get("content-encoding");
  const bytes = await (encoding === null ? readBytes(request, limit) : readDecoded(request, encoding, limit));
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new AppError("invalid_json", "The body is not valid UTF-8.");
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new AppError(
      "invalid_json",
      text === "" ? "The body is empty; send a JSON object." : "The body is not valid JSON.",
    );
  }
  if (!isObject(json)) throw new AppError("invalid_json", "The body must be a JSON object.");
  return { text, json };
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

async function readDecoded(request: Request, encoding: string, limit: number): Promise<Uint8Array> {
  const encodings = encoding
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity");
  const unknown = encodings.find((name) => !(name in decoders));
  if (unknown !== undefined || encodings.length > 3) {
    throw new AppError("unsupported_encoding", "Content-Encoding may be gzip, deflate, br or zstd.");
  }
  let bytes = await readBytes(request, limit);
  for (const name of encodings.toReversed()) bytes = await decode(decoders[name]!, bytes, limit);
  return bytes;
}

const tooLarge = (limit: number) => new AppError("body_too_large", `The body is larger than ${limit} bytes.`);

function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  const length = request.headers.get("content-length");
  if (length === null) return readChunks(request.body, limit);
  if (Number(length) > limit) throw tooLarge(limit);
  return request.bytes();
}

async function readChunks(body: ReadableStream<Uint8Array> | null, limit: number): Promise<Uint8Array> {
  if (!body) return new Uint8Array();
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > limit) throw tooLarge(limit);
    parts.push(part);
  }
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}

function decode(decoder: Decoder, bytes: Uint8Array, limit: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    decoder(bytes, { maxOutputLength: limit }, (error, out) => {
      if (!error) resolve(out);
      else if ("code" in error && error.code === "ERR_BUFFER_TOO_LARGE") reject(tooLarge(limit));
      else reject(new AppError("invalid_request", "The body does not match its Content-Encoding."));
    });
  });
}

/** A member that must be a non-empty string. */
export function stringMember(body: JsonBody, name: string): string {
  const value = body[name];
  if (typeof value !== "string" || value.trim() === "") throw invalid(name, "must be a non-empty string");
  return value;
}
