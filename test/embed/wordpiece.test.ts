import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer as Library } from "@huggingface/tokenizers";
import fc from "fast-check";
import { createTokenizer } from "../../src/embed/wordpiece.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";

const models = testModels();

describe.skipIf(models === null)("the short path of BERT-type tokenizers", () => {
  const json = JSON.parse(readFileSync(join(models ?? "", STATIC_REPO, "tokenizer.json"), "utf8"));

  const variants = {
    "as it is": {},
    cased: { lowercase: false },
    "cased, accents stripped": { lowercase: false, strip_accents: true },
    "accents kept": { strip_accents: false },
    "nothing cleaned": { clean_text: false, handle_chinese_chars: false },
  };

  const odd = [
    "it’s", "Ünïcödé", "İstanbul", "ﬁnland", "乌龙茶", "東京タワー", "한국어", "ไทย", "𠀀𠀁", "👍🏽", "a\u0000b", "\u200b", "\ufeff",
    "\ufffd", "\ud800", "x\udc00y", "\u0085", "\u00a0", "\u2028", "\v", "\f", "\x1c", "\x7f", "[CLS]", "[UNK]", "[MASK", "##ing",
    "e\u0301", "\u0301", "ǅ", "ß", "don't", "C++", "3.8", "node.js", "$100", "«q»", "—", "١٢٣", "x".repeat(99), "y".repeat(101),
    " ", "\t", "\n", "\r\n",
  ]; // prettier-ignore
  const text = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 60 }),
    fc.string({ unit: "binary", maxLength: 60 }),
    fc.array(fc.oneof(fc.constantFrom(...odd), fc.constantFrom(...Object.keys(json.model.vocab))), { maxLength: 12 }).map((all) => all.join(" ")),
    fc.array(fc.constantFrom(...odd), { maxLength: 8 }).map((all) => all.join("")),
  ); // prettier-ignore

  for (const [name, normalizer] of Object.entries(variants)) {
    test(`gives the library's ids: ${name}`, () => {
      const variant = { ...json, normalizer: { ...json.normalizer, ...normalizer } };
      const library = new Library(variant, {});
      const ours = createTokenizer(variant);
      fc.assert(
        fc.property(text, (input) => {
          const out: number[] = [];
          ours.encode(input, out);
          expect(out).toEqual(library.encode(input, { add_special_tokens: false }).ids);
        }),
        { numRuns: 1500 },
      );
    });
  }

  test("every character of the basic plane alone and between letters", () => {
    const library = new Library(json, {});
    const ours = createTokenizer(json);
    for (let code = 0; code < 0x10000; code += 1) {
      const input = `a${String.fromCharCode(code)}b`;
      const out: number[] = [];
      ours.encode(input, out);
      const expected = library.encode(input, { add_special_tokens: false }).ids;
      if (!Bun.deepEquals(out, expected)) expect({ code, out }).toEqual({ code, out: expected });
    }
  });

  test("another type of tokenizer is left to the library", () => {
    const bpe = {
      version: "1.0",
      added_tokens: [],
      normalizer: null,
      pre_tokenizer: { type: "Whitespace" },
      post_processor: null,
      decoder: null,
      model: {
        type: "BPE",
        unk_token: "<unk>",
        vocab: { "<unk>": 0, a: 1, b: 2, ab: 3 },
        merges: [["a", "b"]],
      },
    };
    const out: number[] = [];
    createTokenizer(bpe).encode("ab a", out);
    expect(out).toEqual([3, 1]);
  });

  test("what is no tokenizer is refused", () => {
    for (const bad of [null, [], {}, { model: 3 }, { model: { type: "Nonsense" } }]) {
      expect(() => createTokenizer(bad)).toThrow();
    }
  });
});
