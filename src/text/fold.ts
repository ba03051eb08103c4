const ASCII = /^[\x00-\x7f]*$/;
const LATIN_MARKS = /[\u0300-\u036f]/g;
/** Soft hyphen, zero-width and bidirectional controls, byte order mark, variation selectors, NUL. */
const INVISIBLE =
  /\x00|\u00ad|\u034f|\u061c|\u180e|[\u200b-\u200f]|[\u202a-\u202e]|[\u2060-\u2064]|[\u2066-\u2069]|[\ufe00-\ufe0f]|\ufeff/g;
const APOSTROPHES = /[\u2018\u2019\u201b\u02bc\uff07]/g;
const BLANKS = /\s+/g;

/** Removes characters that nobody sees, NUL too; they could split a word for us and not for the reader. */
export function stripInvisible(text: string): string {
  return ASCII.test(text) && !text.includes("\0") ? text : text.replace(INVISIBLE, "");
}

/** Curly and other apostrophes as `'`. Keeps the length. */
export function straightApostrophes(text: string): string {
  return ASCII.test(text) ? text : text.replace(APOSTROPHES, "'");
}

/** Runs of white space as one blank, none at the ends. */
export function collapse(text: string): string {
  return text.replace(BLANKS, " ").trim();
}

/** Lower case after NFKC, without invisible characters, with straight apostrophes. Accents stay. */
export function lower(text: string): string {
  if (ASCII.test(text)) return text.includes("\0") ? stripInvisible(text).toLowerCase() : text.toLowerCase();
  return text
    .normalize("NFKC")
    .replace(INVISIBLE, "")
    .replace(APOSTROPHES, "'")
    .toLowerCase()
    .normalize("NFC");
}

/**
 * The form that search compares: {@link lower}, and Latin, Greek and Cyrillic letters without their marks
 * (`Jyväskylä` → `jyvaskyla`, `ß` → `ss`). Kana keep their voicing marks and hangul its syllables.
 */
export function fold(text: string): string {
  if (ASCII.test(text)) return lower(text);
  return lower(text)
    .replaceAll("ß", "ss")
    .replaceAll("ø", "o")
    .replaceAll("ł", "l")
    .replaceAll("đ", "d")
    .replaceAll("æ", "ae")
    .replaceAll("œ", "oe")
    .replaceAll("ı", "i")
    .normalize("NFD")
    .replace(LATIN_MARKS, "")
    .normalize("NFC");
}
