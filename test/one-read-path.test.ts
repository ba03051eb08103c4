/** The proxy, the preview, MCP and the context package read through one function: same input, same rows. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { startAppliance, until, type Appliance } from "./support/appliance.ts";

let box: Appliance;
beforeAll(async () => {
  box = await startAppliance();
  for (const [key, content, pinned] of [
    ["pet", "Keeps a zebra finch called Pip", false],
    ["feeding", "Feeds the zebra finch at noon with millet", false],
    ["drink", "Drinks oolong in the evening", false],
    ["language", "Always answer in short sentences", true],
  ] as const) {
    await box.call("POST", "/api/memory", { key, content, pinned }, box.key);
  }
});
afterAll(() => box.stop());

type Row = { id: string; content: string; score: number | null; tier: string };

const post = async <T>(path: string, body: object) => (await box.call("POST", path, body, box.key)).body as T;
const QUERY = "When does the zebra finch get its millet?";

test("preview, proxy, MCP and context give the same memories in the same order, and the same text", async () => {
  const preview = await post<{ memories: Row[]; text: string; totalTokensUsed: number }>(
    "/api/memory/retrieve-preview",
    { query: QUERY },
  );
  expect(preview.memories.map(({ content }) => content)).toEqual([
    expect.stringContaining("short sentences"),
    expect.stringContaining("noon"),
    expect.stringContaining("Pip"),
  ]);

  const client = new Client({ name: "test", version: "1" });
  const headers = { authorization: `Bearer ${box.key}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL("/mcp", box.url), { requestInit: { headers } }),
  );
  const { structuredContent } = await client.callTool({
    name: "omniroute_memory_search",
    arguments: { query: QUERY },
  });
  expect((structuredContent as { memories: Row[] }).memories).toEqual(preview.memories);
  await client.close();

  const context = await post<{ data: { id: string }[]; text: string }>("/context", {
    query: QUERY,
    kinds: ["memory"],
  });
  expect(context.data.map(({ id }) => id)).toEqual(preview.memories.map(({ id }) => id));
  expect(context.text).toBe(preview.text);

  const chat = await fetch(`${box.url}/v1/chat/completions`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: QUERY }] }),
  });
  const { choices } = (await chat.json()) as { choices: [{ message: { content: string } }] };
  const lines = preview.text.split("\n").filter((line) => line.startsWith("- "));
  expect(lines).toHaveLength(3);
  expect(choices[0].message.content.split("\n").filter((line) => line.startsWith("- "))).toEqual(lines);
  expect(Number(chat.headers.get("x-memory-tokens"))).toBe(preview.totalTokensUsed);

  const receipt = await until("the receipt", async () => {
    const { status, body } = await box.call(
      "GET",
      `/api/memory/receipts/${chat.headers.get("x-memory-receipt")}`,
      undefined,
      box.key,
    );
    return status === 200
      ? (body as { receipt: { candidates: { id: string; injected: boolean }[]; text: string } })
      : null;
  });
  const injected = receipt.receipt.candidates.filter((one) => one.injected).map(({ id }) => id);
  expect(injected).toEqual(preview.memories.map(({ id }) => id));
  expect(receipt.receipt.text).toBe(preview.text);
});
