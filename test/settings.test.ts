import { expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import fc from "fast-check";
import { migrate } from "../src/db/migrate.ts";
import { readMemorySettings, writeSetting } from "../src/db/settings.ts";
import { defaultSettings, isSetting, settingFields } from "../src/memory/settings.ts";
import { memorySettings } from "../src/memory/settings-schema.ts";

const fields = Object.entries(settingFields);
/** Values near the edges of the fields, beside anything that JSON can hold. */
const numbers = [
  0,
  1,
  -1,
  49,
  50,
  51,
  365,
  366,
  5000,
  5001,
  16_000,
  16_001,
  36_500,
  1e9,
  1e9 + 1,
  2 ** 53,
  0.5,
];
const words = ["hybrid", "auto", "recent", "user", "", "x", "openai/gpt", "/gpt", "openai/", "Ä/x", "a\n/b"];
const lengths = [
  "a".repeat(64),
  "a".repeat(65),
  `p/${"m".repeat(298)}`,
  `p/${"m".repeat(299)}`,
  "u".repeat(2001),
];
const lists = [
  [],
  ["sqlite"],
  ["A"],
  [1],
  Array.from({ length: 10 }, () => "b"),
  Array.from({ length: 11 }, () => "b"),
];
const objects = [{}, { brain: {} }, { brain: { type: "http" } }, { brain: 1 }, { brain: [] }, { Brain: {} }];
const values = fc.oneof(
  fc.constantFrom<unknown>(...numbers, ...words, ...lengths, ...lists, ...objects, null, true, false),
  fc.jsonValue(),
);

test("what is stored is judged as what is sent, field by field", () => {
  fc.assert(
    fc.property(values, (value) => {
      for (const [name, field] of fields) {
        const sent = memorySettings.shape[name as keyof typeof settingFields].safeParse(value).success;
        expect({ name, value, good: isSetting(field, value) }).toEqual({ name, value, good: sent });
      }
    }),
    { numRuns: 500 },
  );
});

test("the defaults are valid", () => {
  expect(memorySettings.parse({})).toEqual(defaultSettings);
  expect(memorySettings.parse(defaultSettings)).toEqual(defaultSettings);
});

test("a stored value that this version does not know is left alone and ignored", () => {
  using db = new Database(":memory:", { strict: true });
  migrate(db, "/nowhere");
  writeSetting(db, "memory:maxTokens", 1234);
  writeSetting(db, "memory:strategy", "telepathic");
  writeSetting(db, "memory:fallbackBackends", ["Not a slug"]);
  writeSetting(db, "memory:ofLater", true);
  expect(readMemorySettings(db)).toEqual({ ...defaultSettings, maxTokens: 1234 });
});
