import { expect, test } from "bun:test";
import fc from "fast-check";
import { replaceMembers } from "../src/proxy/splice.ts";

test("any object keeps everything but the changed members", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()),
      fc.nat(3),
      fc.jsonValue(),
      fc.constantFrom(0, 1, 2),
      (object, pick, value, indent) => {
        const text = JSON.stringify(object, null, indent);
        expect(replaceMembers(text, {})).toBe(text);
        const name = Object.keys(object)[pick] ?? "model";
        const got = JSON.parse(replaceMembers(text, { [name]: JSON.stringify(value) })) as object;
        const expected = JSON.parse(JSON.stringify({ ...object })) as Record<string, unknown>;
        Object.defineProperty(expected, name, {
          value,
          enumerable: true,
          configurable: true,
          writable: true,
        });
        expect(JSON.stringify(got)).toBe(JSON.stringify(JSON.parse(JSON.stringify(expected))));
      },
    ),
    { numRuns: 500 },
  );
});

test("numbers, order and white space outside the change stay as they were sent", () => {
  const text =
    ' { "seed" : 12345678901234567890,"x":1.0, "m\\u006fdel":"a\\"}", "y":[{"model":"b"}] , "z":1e400 } ';
  expect(replaceMembers(text, { model: '"c"', stream_options: "{}" })).toBe(
    ' { "seed" : 12345678901234567890,"x":1.0, "m\\u006fdel":"c", "y":[{"model":"b"}] , "z":1e400 ,"stream_options":{}} ',
  );
  expect(replaceMembers("{}", { a: "1" })).toBe('{"a":1}');
});
