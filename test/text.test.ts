import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { fold, lower } from "../src/text/fold.ts";
import { detectLanguage, rankLanguages } from "../src/text/language.ts";
import { bigrams, words, wordSpans } from "../src/text/segment.ts";
import { stem } from "../src/text/stem.ts";
import { isStopWord } from "../src/text/stopwords.ts";
import { terms } from "../src/text/terms.ts";

/** Any string at all: lone surrogates, NUL, right-to-left, zero-width. */
const anything = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc
    .array(
      fc.constantFrom(
        "\ud800",
        "\udc00",
        "\0",
        "\u200b",
        "\u202e",
        "שלום",
        "don't ",
        "私は",
        "ไทย",
        "c++ ",
        "3.8",
        " ",
      ),
      { maxLength: 60 },
    )
    .map((parts) => parts.join("")),
);

describe("words", () => {
  test.each([
    ["I don't use C++ or c#", ["I", "don't", "use", "C++", "or", "c#"]],
    ["node.js 3.8, 1,000 snake_case well-kept", ["node", "js", "3.8", "1,000", "snake_case", "well", "kept"]],
    ["Jyväskylässä asuu Ирина", ["Jyväskylässä", "asuu", "Ирина"]],
    ["我住在杭州", ["我", "住在", "杭州"]],
    ["東京でコーヒーを飲む", ["東京", "で", "コーヒー", "を", "飲む"]],
    ["", []],
  ])("of %p", (text, expected) => {
    expect(words(text)).toEqual(expected);
  });

  test("stand where they say, for any text", () => {
    fc.assert(
      fc.property(anything, (text) => {
        let last = 0;
        for (const word of wordSpans(text)) {
          expect(word.start).toBeGreaterThanOrEqual(last);
          expect(text.slice(word.start, word.end)).toBe(word.text);
          last = word.end;
        }
      }),
    );
  });

  test("dense runs give overlapping pairs", () => {
    expect(bigrams("深色模式")).toEqual(["深色", "色模", "模式"]);
    expect(bigrams("猫")).toEqual(["猫"]);
    expect(bigrams("")).toEqual([]);
  });
});

describe("fold", () => {
  test.each([
    ["Jyväskylä", "jyvaskyla"],
    ["Straße ŁÓDŹ", "strasse lodz"],
    ["ガレージ", "ガレージ"],
    ["커피", "커피"],
    ["ＡＢＣ", "abc"],
    ["se\u00adcret\u200b", "secret"],
    ["don’t", "don't"],
  ])("%p is %p", (text, expected) => {
    expect(fold(text)).toBe(expected);
  });

  test("lower keeps accents", () => {
    expect(lower("ÉTÉ")).toBe("été");
  });

  test("changes nothing the second time", () => {
    fc.assert(fc.property(anything, (text) => fold(fold(text)) === fold(text)));
  });
});

describe("language", () => {
  test.each([
    ["I prefer the window seat", "en"],
    ["Ich wohne seit drei Jahren in einem Hausboot", "de"],
    ["J'habite dans une péniche depuis trois ans", "fr"],
    ["Vivo en un barco desde hace tres años", "es"],
    ["Moro em um barco e não quero voltar", "pt"],
    ["Abito in una barca e non voglio tornare", "it"],
    ["Ik woon al drie jaar op een woonboot", "nl"],
    ["Asun asuntolaivassa ja pidän siitä", "fi"],
    ["我住在船上已经三年了", "zh"],
    ["三年前から船に住んでいます", "ja"],
  ] as const)("of %p is %s", (text, lang) => {
    expect(detectLanguage(text)).toBe(lang);
  });

  test("nothing speaks for any", () => {
    expect(detectLanguage("12:30 → 14:00")).toBeNull();
    expect(detectLanguage("12:30", "en")).toBe("en");
    expect(rankLanguages("")).toEqual([]);
  });
});

describe("stems and stop words", () => {
  test("words of one kind share a stem", () => {
    expect(stem("databases", "en")).toBe(stem("database", "en"));
    expect(stem("häuser", "de")).toBe(stem("haus", "de"));
    expect(stem("talossa", "fi")).toBe(stem("talo", "fi"));
  });

  test("numbers and names of languages stay", () => {
    for (const word of ["3.8", "c++", "c#", "k8s"]) expect(stem(word, "en")).toBe(word);
  });

  test("content words are no stop words", () => {
    expect(isStopWord("trabajo", "es")).toBe(false);
    expect(isStopWord("the", "en")).toBe(true);
    expect(isStopWord("miten", "fi")).toBe(true);
  });

  test("terms never leave a text of words empty", () => {
    expect(terms("What did I say about the databases?")).toEqual(["databas"]);
    expect(terms("what is it")).toEqual(["what", "is", "it"]);
    expect(terms("我住在杭州")).toEqual(["我住", "住在", "在杭", "杭州"]);
    expect(terms("привет")).toEqual(["привет"]);
    fc.assert(fc.property(anything, (text) => Array.isArray(terms(text))));
  });
});
