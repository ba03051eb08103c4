/** Generated calls and messages to `/mcp`: no tool fails inside, no message is answered by 500. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { tools } from "../src/mcp/tools.ts";
import { objectSchema } from "../src/schemas/json-schema.ts";
import { startAppliance, type Appliance } from "./support/appliance.ts";
import { nearly, valid } from "./support/openapi.ts";

let box: Appliance;
const errors: unknown[] = [];
beforeAll(async () => {
  const log = { debug() {}, info() {}, warn() {}, error: (...line: unknown[]) => void errors.push(line) };
  box = await startAppliance({ log });
});
afterAll(() => box.stop());

async function send(body: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${box.url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${box.key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-11-25",
    },
    body,
  });
  return { status: answer.status, text: await answer.text() };
}

test("tools answer right, nearly right and wrong arguments with a result or a sentence", async () => {
  let good = 0;
  for (const tool of tools) {
    const own = (name: string) => (name === "apiKeyId" ? fc.constant(undefined) : null);
    const right = valid(objectSchema(tool.input), null, own);
    const any = fc.oneof(
      right.map((value) => JSON.stringify(value)),
      nearly(right),
    );
    for (const args of fc.sample(any, { seed: 5, numRuns: 60 })) {
      const params = `{"name":"${tool.name}","arguments":${args}}`;
      const { status, text } = await send(
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`,
      );
      expect([tool.name, args, status < 500, text.includes("Internal error")]).toEqual([
        tool.name,
        args,
        true,
        false,
      ]);
      if (text.includes('"structuredContent"')) good++;
    }
  }
  expect(good).toBeGreaterThan(40);
  expect(errors).toEqual([]);
});

test("messages that are none are refused as JSON-RPC says", async () => {
  const noise = fc.oneof(
    fc.json(),
    fc
      .record({
        jsonrpc: fc.constantFrom("2.0", "1.0", 2),
        id: fc.jsonValue(),
        method: fc.string(),
        params: fc.jsonValue(),
      })
      .map((message) => JSON.stringify(message)),
    fc.string({ unit: "binary" }),
  );
  for (const body of fc.sample(noise, { seed: 6, numRuns: 300 })) {
    const { status } = await send(body);
    expect([body, status < 500]).toEqual([body, true]);
  }
  expect(errors).toEqual([]);
});
