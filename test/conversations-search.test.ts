import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { startConversations, type ConversationServer } from "./support/conversation-server.ts";

// Many rows on a shared machine take their time.
setDefaultTimeout(60_000);

let server: ConversationServer;
let first: number;

beforeAll(async () => {
  server = await startConversations();
  const lines = [
    ["s-1", "The ferry to Tallinn leaves at nine.", "Be there at half past eight."],
    ["s-1", "What shall we eat on the ferry?", "Salmon soup is the classic choice."],
    ["s-2", "My bicycle has a flat tyre again.", "Patch it before the weekend tour."],
    ["s-2", "", "The ferry museum opens on Sunday."],
    ["s-2", "乌龙茶很好喝", "好的"],
  ].map(([externalId, userMessage, aiResponse]) => JSON.stringify({ externalId, userMessage, aiResponse }));
  expect((await server.bulk(lines.join("\n"))).json.created).toBe(5);
  await server.post("/sessions", { externalId: "s-1" }, "bert");
  await server.post(
    "/episodes",
    { externalId: "s-1", userMessage: "Bert's ferry secret", aiResponse: "" },
    "bert",
  );
  first = (await server.get("/sessions/by-external/s-1")).json.id;
});
afterAll(async () => {
  await server.stop();
  server.remove();
});

const search = (query: string, owner = "anna") => server.get(`/episodes/search?${query}`, owner);
const users = (answer: { json: { data: { userMessage: string }[] } }) =>
  answer.json.data.map((row) => row.userMessage);

describe("/episodes/search", () => {
  test.each(["keyword", "hybrid", "semantic"])(
    "%s finds this owner's exchanges, best first, scores explained",
    async (mode) => {
      const answer = await search(`q=when+does+the+ferry+to+Tallinn+leave&mode=${mode}`);
      expect(answer.status).toBe(200);
      const [best] = answer.json.data as unknown as Record<string, unknown>[];
      expect(best).toMatchObject({
        userMessage: "The ferry to Tallinn leaves at nine.",
        apiKeyId: "anna",
        ftsRank: 1,
      });
      expect(best!["score"]).toBeGreaterThan(0);
      expect(users(answer)).not.toContain("Bert's ferry secret");
      expect(answer.json.resolution).toMatchObject({ rerankApplied: false });
    },
  );

  test("keeps to a session, by either id; a foreign or unknown one is 404", async () => {
    const all = await search("q=ferry&mode=keyword");
    expect(all.json.total).toBe(3);
    const byRow = await search(`q=ferry&mode=keyword&sessionId=${first}`);
    expect(byRow.json.total).toBe(2);
    expect((await search("q=ferry&mode=keyword&externalId=s-2")).json.total).toBe(1);
    expect((await search(`q=ferry&sessionId=${first}`, "bert")).status).toBe(404);
    expect((await search("q=ferry&externalId=nowhere")).status).toBe(404);
  });

  test("finds words of scripts without blanks", async () => {
    expect(users(await search(`mode=keyword&q=${encodeURIComponent("乌龙")}`))).toEqual(["乌龙茶很好喝"]);
  });

  test("limit cuts and total does not", async () => {
    const answer = await search("q=ferry&mode=keyword&limit=1");
    expect([answer.json.data.length, answer.json.total]).toEqual([1, 3]);
  });

  test.each([
    "",
    "q=",
    "q=%20",
    "q=a&limit=0",
    "q=a&limit=201",
    "q=a&mode=magic",
    "q=a&sessionId=x",
    "q=a&colour=red",
  ])("bad input %p is 400", async (query) => {
    expect((await search(query)).status).toBe(400);
  });

  test.each([
    '"',
    "AND OR NOT",
    "ferry*",
    "(",
    "NEAR(a b)",
    "a'b; DROP TABLE episodes",
    "said : ferry",
    "???",
    "\u0301",
  ])("query %p is text, never syntax", async (query) => {
    expect((await search(`q=${encodeURIComponent(query)}`)).status).toBe(200);
  });

  test("management names the owner", async () => {
    expect((await search("q=ferry", "management")).status).toBe(400);
    expect(users(await search("q=ferry&apiKeyId=bert", "management"))).toEqual(["Bert's ferry secret"]);
  });

  test("what is deleted, or not to be recalled, is not found", async () => {
    const session = (await server.post("/sessions", { externalId: "s-gone" })).json.id;
    const made = await server.post("/episodes", {
      sessionId: session,
      userMessage: "The walrus wears a monocle.",
      aiResponse: "",
    });
    expect((await search("q=walrus")).json.total).toBe(1);
    await server.call("anna", "DELETE", `/episodes/${made.json.id}`);
    expect((await search("q=walrus")).json.total).toBe(0);
  });

  test("what was stored long ago leaves search unless its session is pinned", async () => {
    const session = (await server.post("/sessions", { externalId: "s-old" })).json.id;
    await server.post("/episodes", {
      sessionId: session,
      userMessage: "The lighthouse keeper sings.",
      aiResponse: "",
    });
    server.setTime(Date.now() + 40 * 86_400_000);
    expect((await search("q=lighthouse")).json.total).toBe(0);
    await server.call("anna", "PATCH", `/sessions/${session}`, { pinned: true });
    expect((await search("q=lighthouse")).json.total).toBe(1);
    server.setTime(null);
  });
});

test("/entities/search finds by name, alias, type and notes, this owner's only", async () => {
  const made = await server.post("/entities", {
    name: "Karla",
    type: "person",
    notes: "repairs organs in Lübeck",
  });
  await server.post("/entities", { name: "Karla", type: "person", notes: "somebody else" }, "bert");
  for (const query of ["Karla", "who repairs organs", "lubeck"]) {
    const answer = await server.get(`/entities/search?q=${encodeURIComponent(query)}`);
    expect(answer.json.data.map((row) => row.id)).toEqual([made.json.id]);
  }
  expect((await server.get("/entities/search?q=")).status).toBe(400);
  const metadata = { aliases: ["Karlchen"] };
  await server.post("/entities", { name: "Karla", type: "person", metadata });
  expect((await server.get("/entities/search?q=Karlchen")).json.data.map((row) => row.id)).toEqual([
    made.json.id,
  ]);
});
