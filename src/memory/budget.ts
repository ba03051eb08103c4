/** Counting tokens without a tokeniser, and walking a ranked list under a budget (2-proxy: Budget). */

/** Han, kana and hangul: about one token a character in every common tokeniser. */
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

/** Estimated tokens of a text: each CJK, kana or hangul code point is one, of the others four make one, rounded up. */
export function estimateTokens(text: string): number {
  let wide = 0;
  let narrow = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x1100) narrow++;
    else {
      const point = text.codePointAt(i) ?? unit;
      if (point > 0xffff) i++;
      if (WIDE.test(String.fromCodePoint(point))) wide++;
      else narrow++;
    }
  }
  return wide + Math.ceil(narrow / 4);
}

/** The longest beginning of `text` that costs at most `tokens`, ended at a sentence, else a word, with an ellipsis; "" when nothing fits. */
export function cutToTokens(text: string, tokens: number): string {
  if (tokens <= 0) return "";
  if (estimateTokens(text) <= tokens) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (estimateTokens(`${text.slice(0, middle)}…`) <= tokens) low = middle;
    else high = middle - 1;
  }
  // Never between the halves of a surrogate pair.
  if (/[\uD800-\uDBFF]$/.test(text.slice(0, low))) low--;
  const head = text.slice(0, low);
  const sentence = Math.max(...[...head.matchAll(/[.!?…](?=\s)|[。！？]/gu)].map((m) => m.index + 1), 0);
  if (sentence >= head.length / 3) return head.slice(0, sentence);
  const word = head.search(/\s\S*$/u);
  const kept = (word > head.length / 2 ? head.slice(0, word) : head).trimEnd();
  return kept === "" ? "" : `${kept}…`;
}
