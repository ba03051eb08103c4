import { expect, test } from "bun:test";
import { createRateLimiter } from "../src/limit.ts";

test("admits the limit in any window and says how long to wait", () => {
  let at = 1_000_000;
  const limiter = createRateLimiter({ now: () => at });
  expect([limiter.take("a", 2), limiter.take("a", 2)]).toEqual([0, 0]);
  expect(limiter.take("a", 2)).toBe(60);
  expect(limiter.take("b", 2)).toBe(0);
  at += 59_500;
  expect(limiter.take("a", 2)).toBe(1);
  at += 500;
  expect(limiter.take("a", 2)).toBe(0);
  at += 30_000;
  expect(limiter.take("a", 2)).toBe(0);
  expect(limiter.take("a", 2)).toBe(30);
});

test("what is refused is not counted, and a lower limit holds at once", () => {
  let at = 0;
  const limiter = createRateLimiter({ now: () => at });
  for (let n = 0; n < 5; n++) limiter.take("a", 5);
  expect(limiter.take("a", 5)).toBe(60);
  expect(limiter.take("a", 1)).toBe(60);
  at += 60_000;
  expect(limiter.take("a", 1)).toBe(0);
  expect(limiter.take("a", 0)).toBeGreaterThan(0);
});

test("remembers a bounded number of names", () => {
  const limiter = createRateLimiter({ names: 2, now: () => 0 });
  for (const name of ["a", "b", "c"]) limiter.take(name, 1);
  expect(limiter.take("a", 1)).toBe(0);
  expect(limiter.take("c", 1)).toBe(60);
});
