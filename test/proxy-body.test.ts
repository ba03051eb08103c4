import { expect, test } from "bun:test";
import { AppError } from "../src/error.ts";
import { createByteBudget } from "../src/proxy/body.ts";

test("large bodies share a budget; one alone is never refused", () => {
  const budget = createByteBudget(100);
  const first = budget.take(500);
  expect(() => budget.take(1)).toThrow(AppError);
  first();
  first();
  const second = budget.take(60);
  const third = budget.take(40);
  expect(() => budget.take(1)).toThrow(/try again/);
  second();
  budget.take(60)();
  third();
});
