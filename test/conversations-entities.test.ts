import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ensureOwner } from "../src/db/owners.ts";
import { openDatabase, transact } from "../src/db/open.ts";
import { registerFold } from "../src/db/memory-list.ts";
import { ensureLexical } from "../src/search/lexical-tables.ts";
import { learnEntities, type FoundEntities } from "../src/conversations/learn.ts";
import { startConversations, type ConversationServer } from "./support/conversation-server.ts";
import { join } from "node:path";

let server: ConversationServer;
let db: ReturnType<typeof openDatabase>;

beforeAll(async () => {
  server = await startConversations();
  db = openDatabase(join(server.dir, "recollect.db"));
  registerFold(db);
  ensureLexical(db);
});
afterAll(async () => {
  db.close();
  await server.stop();
  server.remove();
});

const plain = {
  text: (text: string) => ({ text, count: Number(text.includes("sk-")) }),
  json: <V>(value: V) => ({ value, count: 0 }),
};

/** Stores an exchange and what was read out of it. */
async function say(externalId: string, found: FoundEntities): Promise<number> {
  await server.post("/sessions", { externalId });
  const made = await server.post("/episodes", { externalId, userMessage: "x", aiResponse: "y" });
  const deps = { db, hooks: { changed() {}, removed() {} }, now: Date.now, redact: plain };
  transact(db, () => learnEntities(deps, { owner: ensureOwner(db, "anna"), episodeId: made.json.id }, found));
  return made.json.id;
}

async function named(name: string) {
  const list = await server.get("/entities?limit=200");
  return list.json.data.filter((row) => row.name === name);
}

describe("entities of exchanges", () => {
  test("are merged by name and alias, and name the exchanges they came from", async () => {
    const one = await say("c-1", {
      entities: [{ name: "Ravenna Foods", type: "organisation" }],
      relations: [{ from: "self", to: 0, label: "works at" }],
    });
    const two = await say("c-1", {
      entities: [{ name: "ravenna foods", type: "organisation", aliases: ["RF"] }],
      relations: [{ from: "self", to: 0, label: "works at" }],
    });
    await say("c-1", { entities: [{ name: "rf", type: "organisation" }], relations: [] });
    const [entity, second] = await named("Ravenna Foods");
    expect(second).toBeUndefined();
    expect(entity?.metadata).toMatchObject({ aliases: ["RF"], episodeIds: [one, two, expect.any(Number)] });
    const links = await server.get(`/entities/${entity!.id}/relationships?direction=in`);
    expect(links.json).toMatchObject({
      total: 1,
      data: [{ label: "works at", metadata: { episodeIds: [one, two] } }],
    });
  });

  test("the speaker is one entity and gets a name when there is one", async () => {
    expect(await named("User")).toHaveLength(1);
    await server.engine.memories.create({
      owner: "anna",
      origin: "api",
      content: "Name is Annabel",
      key: "identity:name",
      metadata: { value: "Annabel" },
    });
    await say("c-1", {
      entities: [{ name: "Paula", type: "person" }],
      relations: [{ from: 0, to: "self", label: "sister of" }],
    });
    expect(await named("User")).toHaveLength(0);
    const [self] = await named("Annabel");
    expect(self?.metadata).toMatchObject({ self: true });
    const links = await server.get(`/entities/${self!.id}/relationships?direction=both`);
    expect(links.json.total).toBe(2);
  });

  test("a secret is no name", async () => {
    await say("c-1", { entities: [{ name: "sk-12345", type: "tool" }], relations: [] });
    expect(await named("sk-12345")).toEqual([]);
  });

  test("notes written by hand stay; what only deleted exchanges knew goes with the session when asked", async () => {
    await server.post("/entities", { name: "Oslo", type: "place", notes: "By hand" });
    await say("c-2", {
      entities: [
        { name: "Oslo", type: "place", notes: "learned" },
        { name: "Bergen", type: "place" },
        { name: "Ravenna Foods", type: "organisation" },
      ],
      relations: [{ from: 1, to: 0, label: "near" }],
    });
    const session = (await server.get("/sessions/by-external/c-2")).json.id;
    await server.call("anna", "DELETE", `/sessions/${session}?memories=true`);
    expect(await named("Bergen")).toEqual([]);
    expect((await named("Oslo"))[0]?.notes).toBe("By hand");
    expect(await named("Ravenna Foods")).toHaveLength(1);
  });
});
