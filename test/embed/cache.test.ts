import { expect, test } from "bun:test";
import { createEmbeddingCache } from "../../src/embed/cache.ts";
import type { Embedder } from "../../src/embed/types.ts";

/** A model outside the process: it answers when told to, and counts what it was asked. */
function slowModel(signature = "remote:m:1") {
  const asked: string[][] = [];
  const answers: PromiseWithResolvers<void>[] = [];
  let aborted = 0;
  const embedder: Embedder = {
    source: "remote",
    model: "m",
    dimensions: 1,
    signature,
    async embed(texts, signal) {
      asked.push([...texts]);
      const gate = Promise.withResolvers<void>();
      answers.push(gate);
      signal?.addEventListener("abort", () => {
        aborted++;
        gate.reject(signal.reason);
      });
      await gate.promise;
      return texts.map((text) => Float32Array.of(text.length));
    },
    windows: (text) => [text],
    close: () => Promise.resolve(),
  };
  return {
    embedder,
    asked,
    answer: () => answers.shift()!.resolve(),
    fail: (why: Error) => answers.shift()!.reject(why),
    aborted: () => aborted,
  };
}

const numbers = (vectors: Float32Array[]) => vectors.map((vector) => vector[0]);

test("a text is made once, kept, and counted", async () => {
  const { embedder, asked, answer } = slowModel();
  const cache = createEmbeddingCache({ max: 10, ttlMs: 60_000 });
  const cached = cache.wrap(embedder);
  const first = cached.embed(["a", "bb", "a"]);
  answer();
  expect(numbers(await first)).toEqual([1, 2, 1]);
  expect(numbers(await cached.embed(["bb", "a"]))).toEqual([2, 1]);
  expect(asked).toEqual([["a", "bb"]]);
  expect(cache.stats()).toEqual({ hits: 3, misses: 2, size: 2, max: 10 });
});

test("concurrent callers share one call, each with what it asked for", async () => {
  const { embedder, asked, answer } = slowModel();
  const cached = createEmbeddingCache({ max: 10, ttlMs: 60_000 }).wrap(embedder);
  const one = cached.embed(["a", "bb"]);
  const two = cached.embed(["bb", "ccc", "a"]);
  answer();
  answer();
  expect(numbers(await one)).toEqual([1, 2]);
  expect(numbers(await two)).toEqual([2, 3, 1]);
  expect(asked).toEqual([["a", "bb"], ["ccc"]]);
});

test("a caller that leaves ends the call only when nobody else waits for it", async () => {
  const { embedder, answer, aborted } = slowModel();
  const cached = createEmbeddingCache({ max: 10, ttlMs: 60_000 }).wrap(embedder);
  const abort = new AbortController();
  const leaves = cached.embed(["a"], abort.signal);
  const stays = cached.embed(["a"]);
  abort.abort(new Error("gone"));
  expect(leaves).rejects.toThrow("gone");
  await leaves.catch(() => undefined);
  expect(aborted()).toBe(0);
  answer();
  expect(numbers(await stays)).toEqual([1]);

  const again = new AbortController();
  const last = cached.embed(["dddd"], again.signal);
  again.abort(new Error("gone too"));
  expect(last).rejects.toThrow("gone too");
  await last.catch(() => undefined);
  expect(aborted()).toBe(1);
  const next = cached.embed(["dddd"]);
  answer();
  answer();
  expect(numbers(await next)).toEqual([4]);
});

test("a failure reaches every caller and is not kept", async () => {
  const { embedder, answer, fail } = slowModel();
  const cached = createEmbeddingCache({ max: 10, ttlMs: 60_000 }).wrap(embedder);
  const both = [cached.embed(["a"]), cached.embed(["a"])];
  fail(new Error("401"));
  expect(await Promise.allSettled(both)).toMatchObject([{ status: "rejected" }, { status: "rejected" }]);
  const next = cached.embed(["a"]);
  answer();
  expect(numbers(await next)).toEqual([1]);
});

test("models do not share vectors; the oldest leave; zero keeps nothing", async () => {
  const cache = createEmbeddingCache({ max: 2, ttlMs: 60_000 });
  const small = slowModel("remote:small:1");
  const large = slowModel("remote:large:1");
  for (const { embedder, answer } of [small, large]) {
    const made = cache.wrap(embedder).embed(["a"]);
    answer();
    await made;
  }
  expect([small.asked.length, large.asked.length]).toEqual([1, 1]);
  const third = cache.wrap(large.embedder).embed(["b"]);
  large.answer();
  await third;
  expect(cache.stats().size).toBe(2);
  const evicted = cache.wrap(small.embedder).embed(["a"]);
  small.answer();
  await evicted;
  expect(small.asked.length).toBe(2);

  for (const off of [
    { max: 0, ttlMs: 1000 },
    { max: 10, ttlMs: 0 },
  ]) {
    const { embedder, asked, answer } = slowModel();
    const none = createEmbeddingCache(off);
    for (let times = 0; times < 2; times++) {
      const made = none.wrap(embedder).embed(["a"]);
      answer();
      await made;
    }
    expect(asked).toHaveLength(2);
    expect(none.stats().size).toBe(0);
  }
});
