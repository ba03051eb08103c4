/**
 * Text to token ids. BERT-type tokenizers take a short path of our own, an order of magnitude faster and tested to be
 * equal to @huggingface/tokenizers, which does everything else.
 */
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";

export interface Tokenizer {
  /** Appends the ids of `text` to `out`, without special tokens around them. */
  encode(text: string, out: number[]): void;
  /** Ids go from 0 to this, exclusive. */
  readonly size: number;
  /** Stands for what the vocabulary does not know. */
  readonly unknownId: number | null;
}

interface AddedToken {
  id: number;
  content: string;
  normalized: boolean;
}

interface BertShape {
  vocab: Record<string, number>;
  unknown: string;
  prefix: string;
  longestWord: number;
  cleanText: boolean;
  chineseChars: boolean;
  lowercase: boolean;
  stripAccents: boolean;
  added: readonly AddedToken[];
}

/** From the contents of a `tokenizer.json`. Throws when it is none. */
export function createTokenizer(json: unknown): Tokenizer {
  if (!isObject(json) || !isObject(json["model"])) throw new Error("tokenizer.json holds no tokenizer model");
  const shape = bertShape(json, json["model"]);
  return shape === null ? byLibrary(json) : byWordPiece(shape, json);
}

/** The library's own answer for any type of tokenizer. */
function byLibrary(json: Record<string, unknown>): Tokenizer {
  const library = new LibraryTokenizer(json, {});
  const unknown = library.model?.unk_token_id ?? null;
  return {
    encode(text, out) {
      for (const id of library.encode(text, { add_special_tokens: false }).ids) out.push(id);
    },
    size: library.get_vocab().size,
    unknownId: unknown,
  };
}

const WORD_MEMO = 20_000;
const WORDS = /[^\s\p{P}!-/:-@[-`{-~]+|[\p{P}!-/:-@[-`{-~]/gu;

function byWordPiece(shape: BertShape, json: Record<string, unknown>): Tokenizer {
  const vocab = new Map(Object.entries(shape.vocab));
  const unknownId = vocab.get(shape.unknown) ?? 0;
  let size = 0;
  for (const id of vocab.values()) if (id >= size) size = id + 1;
  for (const { id } of shape.added) if (id >= size) size = id + 1;
  const markers = shape.added.map((token) => token.content);
  const memo = new Map<string, readonly number[]>();
  let library: Tokenizer | undefined;

  const pushWord = (word: string, out: number[]): void => {
    const whole = vocab.get(word);
    if (whole !== undefined && word.length <= shape.longestWord) {
      out.push(whole);
      return;
    }
    let pieces = memo.get(word);
    if (pieces === undefined) {
      pieces = wordPieces(word, vocab, shape, unknownId);
      if (memo.size >= WORD_MEMO) memo.clear();
      memo.set(word, pieces);
    }
    for (const id of pieces) out.push(id);
  };

  return {
    encode(text, out) {
      if (markers.some((marker) => text.includes(marker))) {
        library ??= byLibrary(json);
        library.encode(text, out);
      } else if (!encodeAscii(text, shape.lowercase, pushWord, out)) {
        for (const [word] of normalize(text, shape).trim().matchAll(WORDS)) pushWord(word, out);
      }
    },
    size,
    unknownId,
  };
}

/** Words of a text of plain ASCII; false, with nothing done, as soon as another character is seen. */
function encodeAscii(
  text: string,
  lowercase: boolean,
  pushWord: (word: string, out: number[]) => void,
  out: number[],
): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 127 || (code < 32 && code !== 9 && code !== 10 && code !== 13)) return false;
  }
  const plain = lowercase ? text.toLowerCase() : text;
  let start = -1;
  for (let at = 0; at <= plain.length; at++) {
    const code = at < plain.length ? plain.charCodeAt(at) : 32;
    const letter = (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || (code >= 65 && code <= 90);
    if (letter) {
      if (start < 0) start = at;
      continue;
    }
    if (start >= 0) pushWord(plain.slice(start, at), out);
    start = -1;
    if (code > 32) pushWord(plain[at]!, out);
  }
  return true;
}

/** Longest match first, from the left; the whole word is unknown when any part of it is. */
function wordPieces(
  word: string,
  vocab: ReadonlyMap<string, number>,
  shape: BertShape,
  unknownId: number,
): number[] {
  const chars = Array.from(word);
  if (chars.length > shape.longestWord) return [unknownId];
  const ids: number[] = [];
  let start = 0;
  while (start < chars.length) {
    let end = chars.length;
    let id: number | undefined;
    for (; end > start; end--) {
      const piece = chars.slice(start, end).join("");
      id = vocab.get(start > 0 ? shape.prefix + piece : piece);
      if (id !== undefined) break;
    }
    if (id === undefined) return [unknownId];
    ids.push(id);
    start = end;
  }
  return ids;
}

const REMOVED = 1;
const SPACE = 2;
const KEPT = 3;
const classOf = (char: string): number => {
  if (char === "\t" || char === "\n" || char === "\r") return SPACE;
  if (char === "\0" || char === "\uFFFD" || /[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/u.test(char)) return REMOVED;
  return /\s/.test(char) ? SPACE : KEPT;
};

/** BertNormalizer: drop controls, fold white space, set ideographs apart, lower case, strip accents. */
function normalize(text: string, shape: BertShape): string {
  let result = "";
  for (const char of text) {
    const kind = shape.cleanText ? classOf(char) : KEPT;
    if (kind === REMOVED) continue;
    if (kind === SPACE) result += " ";
    else if (shape.chineseChars && char.length === 1 && isIdeograph(char.charCodeAt(0)))
      result += ` ${char} `;
    else result += char;
  }
  if (shape.lowercase) result = result.toLowerCase();
  return shape.stripAccents ? result.normalize("NFD").replace(/\p{Mn}/gu, "") : result;
}

/** Of the basic plane alone, as the library does. */
function isIdeograph(code: number): boolean {
  return (
    (code >= 0x4e00 && code <= 0x9fff) ||
    (code >= 0x3400 && code <= 0x4dbf) ||
    (code >= 0xf900 && code <= 0xfaff)
  );
}

/** What the short path needs to know, or null when this tokenizer is of another type. */
function bertShape(json: Record<string, unknown>, model: Record<string, unknown>): BertShape | null {
  const normalizer = json["normalizer"];
  const preTokenizer = json["pre_tokenizer"];
  if (model["type"] !== "WordPiece" || !isObject(normalizer) || !isObject(preTokenizer)) return null;
  if (normalizer["type"] !== "BertNormalizer" || preTokenizer["type"] !== "BertPreTokenizer") return null;
  if (!isObject(model["vocab"]) || typeof model["unk_token"] !== "string") return null;
  const added = (json["added_tokens"] ?? []) as AddedToken[];
  if (added.some((token) => token.normalized)) return null;
  const lowercase = normalizer["lowercase"] === true;
  const strip = normalizer["strip_accents"];
  return {
    vocab: model["vocab"] as Record<string, number>,
    unknown: model["unk_token"],
    prefix: String(model["continuing_subword_prefix"]),
    longestWord:
      typeof model["max_input_chars_per_word"] === "number" ? model["max_input_chars_per_word"] : 100,
    cleanText: normalizer["clean_text"] === true,
    chineseChars: normalizer["handle_chinese_chars"] === true,
    lowercase,
    stripAccents: lowercase ? strip !== false : strip === true,
    added,
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
