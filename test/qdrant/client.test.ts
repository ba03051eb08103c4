import { afterAll, beforeAll, expect, test } from "bun:test";
import { connectQdrant, QdrantError } from "../../src/search/qdrant/client.ts";
import type { Qdrant } from "../../src/search/qdrant/client.ts";
import { startTarget, until } from "../support/qdrant-target.ts";
import type { QdrantTarget } from "../support/qdrant-target.ts";
import { startQdrant } from "../support/qdrant.ts";

let target: QdrantTarget;
beforeAll(async () => {
  target = await startTarget();
});
afterAll(() => target.stop());

const ask = (q: Qdrant, signal?: AbortSignal): Promise<unknown> =>
  q.call("search", (api, init) => api.getCollections({}, init), signal);
const faultOf = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "none",
    (e: unknown) => (e instanceof QdrantError ? e.fault : String(e)),
  );

test("five failures open the breaker; a probe closes it", async () => {
  const changes: boolean[] = [];
  const q = await target.connect({ probeEveryMs: 20, onBreaker: (c) => changes.push(c.open) });
  await target.proxy.kill();
  for (let i = 0; i < 5; i++) expect(await faultOf(ask(q))).toBe("unreachable");
  expect(q.open).toBe(true);
  const before = target.proxy.seen.length;
  expect(await faultOf(ask(q))).toBe("open");
  expect(target.proxy.seen.length).toBe(before);
  target.proxy.revive();
  await until(() => !q.open);
  expect(await faultOf(ask(q))).toBe("none");
  expect(changes).toEqual([true, false]);
});

test("a slow server costs the deadline and no more", async () => {
  const q = await target.connect({ searchTimeoutMs: 30 });
  target.proxy.fault({ delay: 1000, times: 1 });
  expect(await faultOf(ask(q))).toBe("timeout");
  target.proxy.fault({ delay: 1000, times: 1 });
  // A caller that gave up is no failure of the server, a caller's own deadline is.
  expect(await faultOf(ask(q, AbortSignal.abort("gone")))).toBe("gone");
  target.proxy.heal();
});

test("statuses become faults, and no answer is repeated in the message", async () => {
  const q = await target.connect();
  for (const [status, fault] of [
    [401, "unauthorized"],
    [403, "unauthorized"],
    [404, "not_found"],
    [409, "conflict"],
    [429, "busy"],
    [400, "refused"],
    [500, "server"],
    [507, "full"],
    [302, "server"],
  ] as const) {
    target.proxy.fault({
      status,
      body: '{"status":{"error":"Format error: secret text"},"time":0}',
      times: 1,
    });
    const error: unknown = await ask(q).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(QdrantError);
    expect((error as QdrantError).fault).toBe(fault);
    expect((error as QdrantError).message).not.toContain("secret");
  }
  const error =
    "Service internal error: No space left on device: WAL buffer size exceeds available disk space";
  target.proxy.fault({ status: 500, body: JSON.stringify({ status: { error }, time: 0 }), times: 1 });
  expect(await faultOf(ask(q))).toBe("full");
});

test("a wrong key is named as such, and a path prefix is kept", async () => {
  const server = startQdrant({ apiKey: "right" });
  const wrong = await connectQdrant({ url: server.url, apiKey: "wrong" });
  expect(await faultOf(ask(wrong))).toBe("unauthorized");
  expect(await faultOf(ask(await connectQdrant({ url: server.url, apiKey: null })))).toBe("unauthorized");
  expect(await faultOf(ask(await connectQdrant({ url: server.url, apiKey: "right" })))).toBe("none");
  const prefixed = await connectQdrant({ url: `${server.url}/q/`, apiKey: "right" });
  await faultOf(ask(prefixed));
  expect(server.requests.at(-1)).toBe("GET /q/collections");
  await server.stop();
});
