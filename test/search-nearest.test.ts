import { expect, test } from "bun:test";
import { join } from "node:path";
import { centre, createHeld, measure, promising, putHeld } from "../src/search/nearest.ts";
import { createSimd } from "../src/search/simd.ts";
import { dot } from "../src/search/vector-store.ts";
import { assemble } from "./support/wasm.ts";

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
  ["whole", 20, 5000],
  ["whole", 250, 5000],
  ["codes", 250, 30_000],
  ["codes", 768, 6000],
  ["bits", 20, 3_000_000],
])("%s of %d dimensions: with and without SIMD the same places and cosines", (form, dim, total) => {
  const openSimd = createSimd();
  const fast = createHeld(dim, total, openSimd);
  const plain = createHeld(dim, total, () => null);
  expect(fast.simd).not.toBeNull();
  const vectors = Array.from({ length: 4500 }, () => unit(dim));
  for (const held of [fast, plain]) {
    vectors.forEach((vector, row) => putHeld(held, row, vector));
    centre(held, (at) => vectors[at]!);
  }
  expect(fast.whole !== null ? "whole" : fast.codes !== null ? "codes" : "bits").toBe(form);
  for (let n = 0; n < 10; n++) {
    const query = unit(dim);
    const places = promising(fast, query, 20)!;
    expect(places.length).toBeGreaterThanOrEqual(form === "bits" ? 180 : 1500);
    expect(places).toEqual(promising(plain, query, 20)!);
    const [a, b] = [measure(fast, query, places), measure(plain, query, places)];
    if (form === "bits") {
      expect([a, b]).toEqual([null, null]);
      continue;
    }
    const rounding = form === "whole" ? 1e-6 : 0.01;
    places.forEach((at, i) => {
      const exact = dot(query, vectors[at]!, 0);
      expect(Math.abs(a![i]! - exact)).toBeLessThan(rounding);
      expect(Math.abs(b![i]! - exact)).toBeLessThan(rounding);
      expect(Math.abs(a![i]! - b![i]!)).toBeLessThan(1e-3);
    });
    expect(measure(fast, query, null)).toHaveLength(4500);
  }
});
