import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { startConversations, type ConversationServer } from "./support/conversation-server.ts";

// Many rows on a shared machine take their time.
setDefaultTimeout(60_000);

let server: ConversationServer;

beforeAll(async () => {
  server = await startConversations();
});
afterAll(async () => {
  await server.stop();
  server.remove();
});

async function session(externalId: string, owner = "anna"): Promise<number> {
  return (await server.post("/sessions", { externalId }, owner)).json.id;
}

describe("sessions", () => {
  test("a known externalId answers 200 with the same row and merges metadata", async () => {
    const first = await server.post("/sessions", { externalId: "s-merge", metadata: { a: 1, b: { c: 2 } } });
    expect(first.status).toBe(201);
    expect(first.json).toMatchObject({
      externalId: "s-merge",
      apiKeyId: "anna",
      metadata: { a: 1, b: { c: 2 } },
      pinned: false,
    });
    const again = await server.post("/sessions", { externalId: "s-merge", metadata: { b: 3 } });
    expect(again.status).toBe(200);
    expect(again.json).toMatchObject({
      id: first.json.id,
      metadata: { a: 1, b: 3 },
      createdAt: first.json.createdAt,
    });
    const bare = await server.post("/sessions", { externalId: "s-merge" });
    expect(bare.json.metadata).toEqual({ a: 1, b: 3 });
  });

  test("the same externalId posted in parallel is one row", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => server.post("/sessions", { externalId: "s-parallel" })),
    );
    expect(new Set(answers.map((answer) => answer.json.id)).size).toBe(1);
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(1);
  });

  test("two owners may use the same externalId, and neither sees the other's", async () => {
    const anna = await session("s-shared-name");
    const bert = await session("s-shared-name", "bert");
    expect(anna).not.toBe(bert);
    expect((await server.get("/sessions/by-external/s-shared-name", "bert")).json.id).toBe(bert);
    for (const [method, path, body] of [
      ["GET", `/sessions/${anna}`],
      ["GET", `/sessions/${anna}/episodes`],
      ["PATCH", `/sessions/${anna}`, { pinned: true }],
      ["DELETE", `/sessions/${anna}`],
      ["POST", "/episodes", { sessionId: anna, userMessage: "x", aiResponse: "" }],
    ] as const) {
      expect((await server.call("bert", method, path, body)).status).toBe(404);
    }
    expect((await server.get(`/sessions/${anna}`)).json.pinned).toBe(false);
    expect((await server.get("/sessions/by-external/s-shared-name", "management")).status).toBe(400);
  });

  test("lists page from the newest on", async () => {
    const ids: number[] = [];
    for (let index = 0; index < 5; index++) ids.push(await session(`s-page-${index}`, "bert"));
    const newest = ids.toReversed();
    const first = await server.get("/sessions?limit=2", "bert");
    expect(first.json.data.map((row) => row.id)).toEqual(newest.slice(0, 2));
    expect(first.json.total).toBeGreaterThanOrEqual(5);
    const second = await server.get("/sessions?limit=2&offset=2", "bert");
    expect(second.json.data.map((row) => row.id)).toEqual(newest.slice(2, 4));
    const narrowed = await server.get("/sessions?apiKeyId=bert&limit=200", "management");
    expect(new Set(narrowed.json.data.map((row) => row.apiKeyId))).toEqual(new Set(["bert"]));
  });

  test("PATCH sets what is given and nothing else", async () => {
    const id = await session("s-patch");
    expect((await server.call("anna", "PATCH", `/sessions/${id}`, { pinned: true })).json).toMatchObject({
      pinned: true,
      metadata: {},
    });
    const patched = await server.call("anna", "PATCH", `/sessions/${id}`, { metadata: { team: "blue" } });
    expect(patched.json).toMatchObject({ pinned: true, metadata: { team: "blue" } });
  });

  test.each([
    ["/sessions", {}, "externalId"],
    ["/sessions", { externalId: "" }, "externalId"],
    ["/sessions", { externalId: "x".repeat(129) }, "externalId"],
    ["/sessions", { externalId: 7 }, "externalId"],
    ["/sessions", { externalId: "a", metadata: [] }, "metadata"],
    ["/sessions", { externalId: "a", metadata: { big: "x".repeat(17_000) } }, "metadata"],
    ["/sessions", { externalId: "a", extra: 1 }, "extra"],
    ["/episodes", { externalId: "a" }, "userMessage"],
    ["/episodes", { sessionId: 1, userMessage: "", aiResponse: " " }, "userMessage"],
    ["/episodes", { userMessage: "a", aiResponse: "b" }, "sessionId"],
    ["/episodes", { sessionId: 1, externalId: "a", userMessage: "a", aiResponse: "b" }, "sessionId"],
    ["/episodes", { sessionId: 1, userMessage: "a\u0000", aiResponse: "b" }, "userMessage"],
    ["/episodes", { sessionId: 1, userMessage: "\ud800", aiResponse: "b" }, "userMessage"],
    ["/episodes", { sessionId: 1, userMessage: "a", aiResponse: "b", tokenCount: -1 }, "tokenCount"],
    ["/episodes", { sessionId: 1, userMessage: "x".repeat(2_000_001), aiResponse: "" }, "userMessage"],
  ])("POST %s with bad input is 400 and names the field (%#)", async (path, body, field) => {
    const answer = await server.post(path, body);
    expect(answer.status).toBe(400);
    expect(answer.json.error.details[0]?.field).toBe(field);
  });

  test.each(["limit=0", "limit=201", "limit=x", "offset=-1", "limit=1.5", "page=2"])(
    "paging refuses %s",
    async (query) => {
      expect((await server.get(`/sessions?${query}`)).status).toBe(400);
    },
  );

  test.each(["abc", "0", "-1", "1.5", "999999999", "99999999999999999999"])(
    "an id %s that is not there is 404",
    async (id) => {
      expect((await server.get(`/sessions/${id}`)).status).toBe(404);
      expect((await server.get(`/episodes/${id}`)).status).toBe(404);
    },
  );
});

describe("episodes", () => {
  test("are answered as they were stored, oldest first", async () => {
    const id = await session("e-basic");
    const made = await server.post("/episodes", {
      sessionId: id,
      userMessage: "Where is the spare key? 🔑",
      aiResponse: "Under the blue pot.",
      metadata: { mood: "calm" },
    });
    expect(made.status).toBe(201);
    expect(made.json).toMatchObject({
      sessionId: id,
      externalId: "e-basic",
      apiKeyId: "anna",
      userMessage: "Where is the spare key? 🔑",
      aiResponse: "Under the blue pot.",
      metadata: { mood: "calm" },
      complete: true,
      recall: true,
    });
    expect(made.json.tokenCount).toBeGreaterThan(5);
    const second = await server.post("/episodes", {
      externalId: "e-basic",
      userMessage: "",
      aiResponse: "A reply alone.",
      tokenCount: 42,
    });
    expect(second.json.tokenCount).toBe(42);
    const list = await server.get(`/sessions/${id}/episodes?limit=1&offset=1`);
    expect(list.json).toMatchObject({ data: [{ id: second.json.id }], total: 2 });
    expect((await server.get(`/episodes/${made.json.id}`)).json).toEqual(made.json);
  });

  test("an unknown session is 404 and stores nothing", async () => {
    for (const named of [{ sessionId: 999_999 }, { externalId: "no-such-session" }]) {
      const answer = await server.post("/episodes", { ...named, userMessage: "a", aiResponse: "b" });
      expect(answer.status).toBe(404);
    }
    expect((await server.get("/sessions/by-external/no-such-session")).status).toBe(404);
  });

  test("takes a megabyte a side", async () => {
    const id = await session("e-large");
    const text = "wörter und zeichen ".repeat(50_000);
    const made = await server.post("/episodes", { sessionId: id, userMessage: text, aiResponse: text });
    expect(made.status).toBe(201);
    expect((await server.get(`/episodes/${made.json.id}`)).json.userMessage).toBe(text);
  });

  test("management names the owner to write, and spans owners to read", async () => {
    const id = await session("e-management");
    const body = { sessionId: id, userMessage: "a", aiResponse: "b" };
    expect((await server.post("/episodes", body, "management")).status).toBe(400);
    const made = await server.post("/episodes?apiKeyId=anna", body, "management");
    expect(made.status).toBe(201);
    expect((await server.post("/episodes", { ...body, apiKeyId: "bert" }, "management")).status).toBe(404);
    expect((await server.get(`/episodes/${made.json.id}`, "management")).status).toBe(200);
    expect((await server.get(`/episodes/${made.json.id}?apiKeyId=bert`, "management")).status).toBe(404);
  });

  test("deleting one answers 404 the second time", async () => {
    const id = await session("e-delete");
    const made = await server.post("/episodes", { sessionId: id, userMessage: "a", aiResponse: "b" });
    expect((await server.call("bert", "DELETE", `/episodes/${made.json.id}`)).status).toBe(404);
    expect((await server.call("anna", "DELETE", `/episodes/${made.json.id}`)).status).toBe(200);
    expect((await server.call("anna", "DELETE", `/episodes/${made.json.id}`)).status).toBe(404);
    expect((await server.get(`/sessions/${id}/episodes`)).json.total).toBe(0);
  });

  test("other methods are 405 with Allow", async () => {
    const response = await fetch(`${server.url}/episodes/bulk`, {
      method: "PUT",
      headers: { authorization: "Bearer anna" },
    });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toContain("POST");
  });
});

test.each(["conv-26/S1", "100% sure?", "ünï çødé 会話", "a#b&c=d", "search"])(
  "an externalId like %p is found again by its path",
  async (externalId) => {
    const made = await server.post("/sessions", { externalId });
    const found = await server.get(`/sessions/by-external/${encodeURIComponent(externalId)}`);
    expect([found.status, found.json.id]).toEqual([200, made.json.id]);
  },
);
