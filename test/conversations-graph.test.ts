import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startConversations, type ConversationServer } from "./support/conversation-server.ts";

let server: ConversationServer;

beforeAll(async () => {
  server = await startConversations();
});
afterAll(async () => {
  await server.stop();
  server.remove();
});

async function entity(name: string, type = "person", owner = "anna"): Promise<number> {
  return (await server.post("/entities", { name, type }, owner)).json.id;
}

describe("entities", () => {
  test("create is an upsert: notes replaced when given, metadata merged", async () => {
    const first = await server.post("/entities", {
      name: "Apollo",
      type: "project",
      notes: "Moon rocket",
      metadata: { a: 1 },
    });
    expect(first.status).toBe(201);
    const second = await server.post("/entities", { name: "Apollo", type: "project", metadata: { b: 2 } });
    expect(second.status).toBe(200);
    expect(second.json).toMatchObject({ id: first.json.id, notes: "Moon rocket", metadata: { a: 1, b: 2 } });
    const third = await server.post("/entities", { name: "Apollo", type: "project", notes: null });
    expect(third.json.notes).toBeNull();
    expect((await server.post("/entities", { name: "Apollo", type: "place" })).status).toBe(201);
    expect((await server.post("/entities", { name: "Apollo", type: "project" }, "bert")).status).toBe(201);
  });

  test("an alias is the same entity, whatever its case", async () => {
    const first = await server.post("/entities", {
      name: "Robert Smith",
      type: "person",
      metadata: { aliases: ["Bob", "Robbie"] },
    });
    const second = await server.post("/entities", { name: "bob", type: "person", notes: "plays chess" });
    expect(second.status).toBe(200);
    expect(second.json).toMatchObject({ id: first.json.id, name: "Robert Smith", notes: "plays chess" });
    expect((await server.post("/entities", { name: "Bob", type: "pet" })).status).toBe(201);
    expect((await server.post("/entities", { name: "Bob", type: "person" }, "bert")).status).toBe(201);
  });

  test("by-type is a literal path, also for a type that looks like an id", async () => {
    const id = await entity("Seven", "7");
    const list = await server.get("/entities/by-type/7");
    expect(list.json).toMatchObject({ total: 1, data: [{ id }] });
    expect((await server.get("/entities/by-type/none")).json).toMatchObject({ total: 0, data: [] });
    const all = await server.get("/entities?limit=1");
    expect(all.json.data[0]?.id).toBe(id);
    expect(all.json.total).toBeGreaterThan(1);
  });

  test("another owner's entity is 404 everywhere", async () => {
    const id = await entity("Private person");
    for (const [method, path, body] of [
      ["GET", `/entities/${id}`],
      ["GET", `/entities/${id}/relationships`],
      ["DELETE", `/entities/${id}`],
      ["POST", "/relationships", { fromId: id, toId: id, label: "is" }],
      ["DELETE", "/relationships", { fromId: id, toId: id, label: "is" }],
    ] as const) {
      expect((await server.call("bert", method, path, body)).status).toBe(404);
    }
    const list = await server.get("/entities?limit=200", "bert");
    expect(list.json.data.map((row) => row.name)).not.toContain("Private person");
  });

  test.each([
    [{ type: "person" }, "name"],
    [{ name: "A" }, "type"],
    [{ name: " ", type: "person" }, "name"],
    [{ name: "x".repeat(201), type: "person" }, "name"],
    [{ name: "A", type: "person", notes: 1 }, "notes"],
  ])("bad input is 400 and names the field (%#)", async (body, field) => {
    const answer = await server.post("/entities", body);
    expect([answer.status, answer.json.error.details[0]?.field]).toEqual([400, field]);
  });
});

test("blanks around a type do not make another one", async () => {
  const one = await server.post("/entities", { name: "Vera", type: "person" });
  const two = await server.post("/entities", { name: "Vera", type: " person " });
  expect([two.status, two.json.id]).toEqual([200, one.json.id]);
});

describe("relationships", () => {
  test("are listed by direction; the same link twice is one", async () => {
    const [anna, paul, acme] = [await entity("Anna"), await entity("Paul"), await entity("Acme", "company")];
    const link = { fromId: anna, toId: paul, label: "sister of" };
    expect((await server.post("/relationships", { ...link, metadata: { since: 1990 } })).status).toBe(201);
    const again = await server.post("/relationships", { ...link, metadata: { sure: true } });
    expect([again.status, again.json.metadata]).toEqual([200, { since: 1990, sure: true }]);
    await server.post("/relationships", { fromId: acme, toId: anna, label: "employs" });
    const labels = async (query: string) => {
      const list = await server.get(`/entities/${anna}/relationships${query}`);
      return (list.json.data as unknown as { label: string }[]).map((row) => row.label);
    };
    expect(await labels("")).toEqual(["sister of"]);
    expect(await labels("?direction=in")).toEqual(["employs"]);
    expect(await labels("?direction=both")).toEqual(["sister of", "employs"]);
    expect((await server.get(`/entities/${anna}/relationships?direction=up`)).status).toBe(400);
    expect((await server.call("anna", "DELETE", "/relationships", link)).status).toBe(200);
    expect((await server.call("anna", "DELETE", "/relationships", link)).status).toBe(404);
    expect(await labels("?direction=both")).toEqual(["employs"]);
  });

  test("management names the owner in the body of a deletion too", async () => {
    const link = { fromId: await entity("Ida"), toId: await entity("Ole"), label: "knows" };
    await server.post("/relationships", link);
    const remove = (apiKeyId?: string) =>
      server.call("management", "DELETE", "/relationships", { ...link, ...(apiKeyId ? { apiKeyId } : {}) });
    expect((await remove()).status).toBe(400);
    expect((await remove("bert")).status).toBe(404);
    expect((await remove("anna")).status).toBe(200);
  });

  test("a link to itself is allowed once and listed once", async () => {
    const id = await entity("Narcissus");
    const link = { fromId: id, toId: id, label: "admires" };
    expect((await server.post("/relationships", link)).status).toBe(201);
    expect((await server.post("/relationships", link)).status).toBe(200);
    expect((await server.get(`/entities/${id}/relationships?direction=both`)).json.total).toBe(1);
  });

  test("both ends must be there and the caller's", async () => {
    const mine = await entity("Mine");
    const theirs = await entity("Theirs", "person", "bert");
    for (const [fromId, toId] of [
      [mine, 999_999],
      [999_999, mine],
      [mine, theirs],
      [theirs, mine],
    ]) {
      expect((await server.post("/relationships", { fromId, toId, label: "knows" })).status).toBe(404);
    }
    // Management, too, cannot join two owners' entities.
    const body = { fromId: mine, toId: theirs, label: "knows", apiKeyId: "anna" };
    expect((await server.post("/relationships", body, "management")).status).toBe(404);
    expect((await server.get(`/entities/${mine}/relationships?direction=both`)).json.total).toBe(0);
  });

  test("go with either end", async () => {
    const [one, two] = [await entity("One"), await entity("Two")];
    await server.post("/relationships", { fromId: one, toId: two, label: "before" });
    expect((await server.call("anna", "DELETE", `/entities/${two}`)).status).toBe(200);
    expect((await server.get(`/entities/${one}/relationships?direction=both`)).json.total).toBe(0);
    expect((await server.call("anna", "DELETE", `/entities/${two}`)).status).toBe(404);
  });
});

test("two owners that become one keep names, notes and imported exchanges of both", async () => {
  const two = await startConversations();
  const line = JSON.stringify({ id: "line-1", externalId: "import", userMessage: "Hello from the file" });
  for (const owner of ["anna", "bert"]) {
    await two.bulk(line, { owner });
    for (const name of ["Robert", `Me ${owner}`]) {
      const metadata = { aliases: [`${name} of ${owner}`], ...(name === "Robert" ? {} : { self: true }) };
      const notes = owner === "bert" ? "Notes of bert" : null;
      await two.post("/entities", { name, type: "person", notes, metadata }, owner);
    }
    await two.post(
      "/entities",
      { name: `Only ${owner}`, type: "place", metadata: { aliases: [`Spot ${owner}`] } },
      owner,
    );
  }
  await two.engine.owners.merge({ from: "bert", to: "anna" });
  const list = (await two.get("/entities")).json.data;
  expect(list.map((row) => row.name).toSorted()).toEqual(["Me anna", "Only anna", "Only bert", "Robert"]);
  expect(list.find((row) => row.name === "Robert")).toMatchObject({
    notes: "Notes of bert",
    metadata: { aliases: ["Robert of anna", "Robert of bert"] },
  });
  for (const [alias, type, name] of [
    ["Robert of bert", "person", "Robert"],
    ["Me bert of bert", "person", "Me anna"],
    ["Spot bert", "place", "Only bert"],
  ] as const) {
    const found = await two.post("/entities", { name: alias, type });
    expect([found.status, found.json.name]).toEqual([200, name]);
  }
  const session = (await two.get("/sessions/by-external/import")).json.id;
  expect((await two.get(`/sessions/${session}/episodes`)).json.total).toBe(2);
  expect((await two.bulk(line)).json).toMatchObject({ created: 0, existing: 1 });
  await two.stop();
  two.remove();
});
