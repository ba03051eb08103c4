/** The pool that keys may be given: what each door shows of it, to a key and to the one who asks in its name. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startAppliance, type Appliance } from "./support/appliance.ts";
import { signIn } from "./support/studio.ts";

const query = "What is the office wifi called?";
let box: Appliance;
let reader: { secret: string; id: string };

beforeAll(async () => {
  box = await startAppliance();
  const made = await box.call("POST", "/api/keys", { name: "Reader", sharedPool: true });
  const { secret, key } = made.body as { secret: string; key: { id: string } };
  reader = { secret, id: key.id };
  await box.call("POST", "/api/memory", { content: "The office wifi is called Heron.", apiKeyId: "shared" });
  await box.call("POST", "/api/memory", { content: "Takes tea at four.", apiKeyId: reader.id });
});
afterAll(() => box.stop());

/** Whether the pool is in the answer of preview, `/context` and MCP's search, for the key or in the name of an owner. */
async function seen(secret: string, owner?: string): Promise<boolean[]> {
  const named = owner === undefined ? {} : { apiKeyId: owner };
  const search = { name: "omniroute_memory_search", arguments: { query, ...named } };
  const mcp = await fetch(`${box.url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${secret}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: search }),
  });
  const answers = [
    JSON.stringify(
      (await box.call("POST", "/api/memory/retrieve-preview", { query, ...named }, secret)).body,
    ),
    JSON.stringify((await box.call("POST", "/context", { query, ...named }, secret)).body),
    await mcp.text(),
  ];
  return answers.map((text) => text.includes("Heron"));
}

test("management asking for an owner sees the pool exactly where that owner's key does", async () => {
  const visitor = await signIn(box);
  const play = `/dashboard/memory?tab=playground&query=${encodeURIComponent(query)}&apiKeyId=${reader.id}`;
  for (const scope of ["apiKey", "global"] as const) {
    const may = scope === "global";
    await box.call("PUT", "/api/settings/memory", { scope });
    expect(await seen(reader.secret)).toEqual([may, may, may]);
    expect(await seen(box.token, reader.id)).toEqual([may, may, may]);
    expect(await seen(box.token, `${reader.id}:eve`).then((all) => all.some(Boolean))).toBe(false);
    expect((await visitor.get(play)).html.includes("Heron")).toBe(may);
    // A key that was not given it, itself and by name.
    expect(await seen(box.key)).toEqual([false, false, false]);
    expect(await seen(box.token, box.keyId)).toEqual([false, false, false]);
  }
});

test("a key writes nothing there and reaches no row of it by id", async () => {
  const { data } = (await box.call("GET", "/api/memory?apiKeyId=shared")).body as { data: { id: string }[] };
  const path = `/api/memory/${data[0]!.id}`;
  for (const [method, body] of [["GET"], ["PUT", { content: "x" }], ["DELETE"]] as const) {
    expect((await box.call(method, path, body, reader.secret)).status).toBe(404);
  }
  const added = await box.call("POST", "/api/memory", { content: "x", apiKeyId: "shared" }, reader.secret);
  expect(added.status).toBe(404);
});
