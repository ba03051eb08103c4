import { afterEach, expect, jest, test } from "bun:test";
import { eventStream } from "../src/api/events.ts";

afterEach(() => jest.useRealTimers());

test("a client that left while the work is slow stops the beat, and nothing is thrown", async () => {
  jest.useFakeTimers();
  const response = eventStream(async function* slow() {
    yield { event: "progress", data: 1 };
    await new Promise(() => {});
  });
  const reader = response.body!.getReader();
  await reader.read();
  jest.advanceTimersByTime(8000);
  expect(new TextDecoder().decode((await reader.read()).value as Uint8Array)).toBe(": working\n\n");
  await reader.cancel();
  expect(jest.getTimerCount()).toBe(1);
  jest.advanceTimersByTime(8000);
  expect(jest.getTimerCount()).toBe(0);
});
