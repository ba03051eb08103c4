import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { centre, createHeld, putHeld } from "../src/search/held-vectors.ts";
import { measure, measureRoughly, promising } from "../src/search/nearest.ts";
import { createSimd } from "../src/search/simd.ts";
import { dot } from "../src/search/vector-store.ts";
import { assemble } from "./support/wasm.ts";

// Tens of thousands of vectors on a shared machine take their time.
setDefaultTimeout(60_000);

let state = 3;
const random = () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31 - 0.5;

function unit(dim: number): Float32Array {
  const vector = Float32Array.from({ length: dim }, () => random() + 0.1);
  const length = Math.hypot(...vector);
  return vector.map((x) => x / length);
}

test("the compiled arithmetic is what its source says", async () => {
  const folder = join(import.meta.dir, "../src/search");
  const made = await Bun.file(join(folder, "nearest.wasm")).bytes();
  expect(Buffer.compare(made, await assemble(join(folder, "nearest.wat")))).toBe(0);
});

// Whole vectors, rounded ones, and bits alone; lengths that fill no register and no byte too.
test.each([
  ["whole", 20, 30_000],
  ["codes", 250, 30_000],
  ["codes", 504, 30_000],
  ["bits", 20, 3_000_000],
])("%s of %d dimensions: with and without SIMD the same places and cosines", (form, dim, total) => {
  const fast = createHeld(dim, total, createSimd());
  const plain = createHeld(dim, total, () => null);
  expect(fast.simd).not.toBeNull();
  // More than are all measured.
  const vectors = Array.from({ length: form === "bits" ? 4500 : 25_500 }, () => unit(dim));
  for (const held of [fast, plain]) {
    vectors.forEach((vector, row) => putHeld(held, row, vector));
    centre(held, (at) => vectors[at]!);
  }
  expect(fast.whole !== null ? "whole" : fast.codes !== null ? "codes" : "bits").toBe(form);
  /** The largest difference at these places. */
  const apart = (a: Float32Array, b: Float32Array) =>
    a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!)), 0);
  for (let n = 0; n < 5; n++) {
    const query = unit(dim);
    const places = promising(fast, query, 20)!;
    expect(places.length).toBeGreaterThanOrEqual(1000);
    expect(places).toEqual(promising(plain, query, 20)!);
    if (form === "bits") {
      expect([measure(fast, query, places), measureRoughly(plain, query, places)]).toEqual([null, null]);
      continue;
    }
    for (const asked of [places, null]) {
      const exact = Float32Array.from(asked ?? vectors.keys(), (at) => dot(query, vectors[at]!, 0));
      const rough = measureRoughly(fast, query, asked)!;
      expect(apart(rough, exact)).toBeLessThan(0.005);
      expect(apart(rough, measureRoughly(plain, query, asked)!)).toBeLessThan(1e-3);
      const rounding = form === "whole" ? 1e-6 : 0.005;
      expect(apart(measure(fast, query, asked)!, exact)).toBeLessThan(rounding);
      expect(apart(measure(plain, query, asked)!, exact)).toBeLessThan(rounding);
    }
  }
});
