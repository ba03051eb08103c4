import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { startApi, type ApiServer } from "./support/api-server.ts";

// Many rows on a shared machine take their time.
setDefaultTimeout(60_000);

let api: ApiServer;
let other: ApiServer;

beforeAll(async () => {
  api = await startApi();
  other = await startApi();
});
afterAll(async () => {
  await api.stop();
  await other.stop();
});

type Row = {
  kind?: string;
  id?: string | number;
  content?: string;
  format?: string;
  [name: string]: unknown;
};

async function exported(server: ApiServer, secret: string, query = ""): Promise<Row[]> {
  const answer = await server.send(secret, "GET", `/api/memory/export${query}`);
  expect(answer.status).toBe(200);
  return answer.text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);
}

function importInto(
  server: ApiServer,
  secret: string,
  text: string,
  type = "application/x-ndjson",
  query = "",
) {
  return server.send(secret, "POST", `/api/memory/import${query}`, {
    body: text,
    headers: { "content-type": type },
  });
}

const jsonl = (rows: unknown[]) => rows.map((row) => JSON.stringify(row)).join("\n");
/** What another box may number differently: rows by what they say. */
const said = (rows: Row[]) =>
  rows.slice(1).map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !numbered.has(name))));
const numbered = new Set(
  "id fromId toId firstEpisodeId lastEpisodeId episodeId confirmedAt updatedAt".split(" "),
);

async function fill(): Promise<void> {
  const session = (await api.anna("POST", "/sessions", { externalId: "trip", metadata: { city: "Rome" } }))
    .json.id;
  await api.anna("PATCH", `/sessions/${session}`, { pinned: true });
  for (const text of ["We fly on Friday.", "The hotel is near the river."]) {
    await api.anna("POST", "/episodes", { sessionId: session, userMessage: text, aiResponse: "Noted." });
  }
  await api.anna("POST", `/sessions/${session}/summaries`, {});
  const a = (
    await api.anna("POST", "/entities", { name: "Rome", type: "place", metadata: { aliases: ["Roma"] } })
  ).json.id;
  const b = (await api.anna("POST", "/entities", { name: "Italy", type: "place" })).json.id;
  await api.anna("POST", "/relationships", { fromId: a, toId: b, label: "is in" });
  const first = await api.anna("POST", "/api/memory", {
    content: "Prefers trains",
    key: "travel",
    sessionId: "trip",
  });
  await api.anna("PUT", `/api/memory/${first.json.id}`, { content: "Prefers planes" });
  const archived = await api.anna("POST", "/api/memory", { content: "Used to like ships", pinned: true });
  await api.anna("PUT", `/api/memory/${archived.json.id}`, { status: "archived" });
  await api.bert("POST", "/api/memory", { content: "Bert's own secret plan" });
}

describe("export and import", () => {
  test("everything goes to another box and back, with history, and a second time changes nothing", async () => {
    await fill();
    const rows = await exported(api, api.secrets.anna);
    expect(rows[0]).toEqual({ format: "recollect/1" });
    const kinds = Object.fromEntries(
      [...Map.groupBy(rows.slice(1), (row) => row.kind)].map(([kind, group]) => [kind, group.length]),
    );
    expect(kinds).toEqual({
      session: 1,
      episode: 2,
      memory: 2,
      version: 2,
      entity: 2,
      relationship: 1,
      summary: 1,
    });
    expect(JSON.stringify(rows)).not.toContain("secret plan");

    // The other box has rows of its own, so that its numbers are others.
    await other.bert("POST", "/sessions", { externalId: "shift" });
    await other.bert("POST", "/episodes", { externalId: "shift", userMessage: "a", aiResponse: "b" });
    await other.bert("POST", "/entities", { name: "shift", type: "x" });
    const first = await importInto(other, other.secrets.anna, jsonl(rows));
    expect(first.json).toEqual({ created: 11, updated: 0, unchanged: 0, refused: [] });
    const there = await exported(other, other.secrets.anna);
    expect(said(there)).toEqual(said(rows));
    // Numbers that rows know each other by were put right.
    const entity = there.find((row) => row.name === "Rome");
    expect(there.find((row) => row.kind === "relationship")?.["fromId"]).toBe(entity?.id);
    const episodes = there.filter((row) => row.kind === "episode");
    expect(there.find((row) => row.kind === "summary")?.["lastEpisodeId"]).toBe(episodes[1]?.id);

    expect((await importInto(other, other.secrets.anna, jsonl(rows))).json).toMatchObject({
      created: 0,
      updated: 0,
      unchanged: 11,
    });
    expect((await importInto(api, api.secrets.anna, jsonl(rows))).json).toMatchObject({
      created: 0,
      unchanged: 11,
    });
    expect(said(await exported(api, api.secrets.anna))).toEqual(said(rows));
  });

  test("what exchanges taught knows them by their numbers here, and goes with them alone", async () => {
    const learned = (episodeIds: number[]) => ({ metadata: { learned: true, episodeIds } });
    const told = { kind: "episode", externalId: "told", aiResponse: "ok" };
    const lines = [
      { ...told, id: 9001, userMessage: "My sister is Ylva.", createdAt: "2024-01-01T00:00:00Z" },
      { kind: "entity", id: 9101, name: "Ylva", type: "person", ...learned([9001]) },
      { kind: "entity", id: 9102, name: "Narvik", type: "place", ...learned([1, 9999]) },
      { kind: "entity", id: 9103, name: "Me", type: "person" },
      { kind: "relationship", fromId: 9103, toId: 9101, label: "sister", ...learned([9001]) },
    ];
    const file = jsonl([{ format: "recollect/1" }, ...lines]);
    expect((await importInto(other, other.secrets.bert, file)).json).toMatchObject({
      created: 5,
      refused: [],
    });
    expect((await importInto(other, other.secrets.bert, file)).json).toMatchObject({ unchanged: 5 });
    const session = (await other.bert("GET", "/sessions/by-external/told")).json.id;
    const [episode] = (await other.bert("GET", `/sessions/${session}/episodes`)).json.data;
    const find = async (name: string) =>
      (await other.bert("GET", "/entities?limit=200")).json.data.find((row: Row) => row["name"] === name);
    const ylva = await find("Ylva");
    expect(ylva.metadata).toEqual({ learned: true, episodeIds: [episode.id] });
    const links = (await other.bert("GET", `/entities/${ylva.id}/relationships?direction=in`)).json.data;
    expect(links[0].metadata).toEqual({ learned: true, episodeIds: [episode.id] });
    expect((await find("Narvik")).metadata).toEqual({});
    await other.bert("DELETE", `/sessions/${session}?memories=true`);
    expect([await find("Ylva"), (await find("Narvik")).name]).toEqual([undefined, "Narvik"]);
  });

  test("an older file does not undo a later edit, a newer one updates with history", async () => {
    const made = (await other.anna("POST", "/api/memory", { content: "Version one", key: "v" })).json.memory;
    const old = await exported(other, other.secrets.anna, "?memoriesOnly=true");
    await other.anna("PUT", `/api/memory/${made.id}`, { content: "Version two" });
    expect((await importInto(other, other.secrets.anna, jsonl(old))).json.updated).toBe(0);
    expect((await other.anna("GET", `/api/memory/${made.id}`)).json.memory.content).toBe("Version two");
    const line = { kind: "memory", id: made.id, key: "v", content: "Version three" };
    expect((await importInto(other, other.secrets.anna, jsonl([line]))).json.updated).toBe(1);
    const history = (await other.anna("GET", `/api/memory/${made.id}/history`)).json;
    expect(JSON.stringify(history)).toContain("Version two");
  });

  test("the owner is the caller, never the file's; another owner's id is not taken over", async () => {
    const rows = await exported(api, api.secrets.anna, "?memoriesOnly=true");
    const before = await exported(api, api.secrets.anna);
    expect((await importInto(api, api.secrets.bert, jsonl(rows))).json.created).toBeGreaterThan(0);
    expect(await exported(api, api.secrets.anna)).toEqual(before);
    const list = await api.bert("GET", "/api/memory?q=planes");
    expect(list.json.data[0]).toMatchObject({ apiKeyId: "bert", content: "Prefers planes" });
    const again = await importInto(api, api.secrets.bert, jsonl(rows));
    expect(again.json).toMatchObject({ created: 0, updated: 0 });
  });

  test("what was replaced or summed up names its successor by the id it has here", async () => {
    const [old, heir, summary, original] = Array.from({ length: 4 }, () => crypto.randomUUID());
    const line = { kind: "memory", type: "semantic" };
    const rows = [
      { ...line, id: old, content: "Sails a Laser", status: "superseded", supersededBy: heir },
      { ...line, id: heir, content: "Sails a Finn" },
      { ...line, id: summary, content: "[semantic] Raced in Kiel", origin: "summary" },
      { ...line, id: original, content: "Raced in Kiel.", status: "archived", supersededBy: summary },
    ];
    expect((await importInto(api, api.secrets.anna, jsonl(rows))).json.created).toBe(4);
    expect((await importInto(api, api.secrets.bert, jsonl(rows))).json.created).toBe(4);
    const mine = await exported(api, api.secrets.bert, "?memoriesOnly=true");
    const by = (content: string) => mine.find((row) => row.content === content)!;
    expect(by("Sails a Laser")["supersededBy"]).toBe(by("Sails a Finn").id);
    const sum = by("[semantic] Raced in Kiel").id!;
    expect(by("Raced in Kiel.")["supersededBy"]).toBe(sum);
    expect((await api.bert("POST", `/api/memory/${sum}/restore-originals`, {})).status).toBe(200);
    for (const { id } of rows) await api.anna("DELETE", `/api/memory/${id}`);
  });

  test("an import that broke off behind a memory brings its history the second time", async () => {
    const id = crypto.randomUUID();
    const row = { kind: "memory", id, content: "Skis in Lech", key: "ski", version: 2 };
    const version = {
      kind: "version",
      memoryId: id,
      version: 1,
      cause: "api",
      at: "2024-01-01T00:00:00Z",
      type: "factual",
      key: "ski",
      content: "Skis in Ischgl",
      metadata: {},
      status: "active",
    };
    expect((await importInto(other, other.secrets.bert, jsonl([row]))).json.created).toBe(1);
    const file = jsonl([row, version]);
    expect((await importInto(other, other.secrets.bert, file)).json).toMatchObject({ created: 1 });
    expect((await importInto(other, other.secrets.bert, file)).json).toMatchObject({ unchanged: 2 });
    expect(JSON.stringify((await other.bert("GET", `/api/memory/${id}/history`)).json)).toContain("Ischgl");
  });

  test("lines without ids are known by what they say", async () => {
    const lines = [
      { kind: "memory", content: "Plays the cello", createdAt: "2020-02-02T00:00:00Z" },
      { kind: "memory", content: "Plays the cello" },
      { kind: "episode", externalId: "old", userMessage: "Hello", createdAt: "2020-02-02T00:00:00Z" },
    ];
    expect((await importInto(other, other.secrets.bert, jsonl(lines))).json).toMatchObject({
      created: 2,
      unchanged: 1,
    });
    expect((await importInto(other, other.secrets.bert, jsonl(lines))).json).toMatchObject({
      created: 0,
      unchanged: 3,
    });
    const found = (await other.bert("GET", "/api/memory?q=cello")).json.data[0];
    expect(found).toMatchObject({ origin: "import", createdAt: "2020-02-02T00:00:00.000Z" });
  });

  test("a key that is taken updates its memory once", async () => {
    await other.bert("POST", "/api/memory", { content: "Drinks tea", key: "drink" });
    const line = jsonl([{ kind: "memory", id: crypto.randomUUID(), key: "drink", content: "Drinks mate" }]);
    const counts = async () => {
      const { created, updated, unchanged } = (await importInto(other, other.secrets.bert, line)).json;
      return { created, updated, unchanged };
    };
    expect(await counts()).toEqual({ created: 0, updated: 1, unchanged: 0 });
    expect(await counts()).toEqual({ created: 0, updated: 0, unchanged: 1 });
    expect((await other.bert("GET", "/api/memory?q=Drinks")).json.data).toHaveLength(1);
  });

  test("refuses line by line and keeps the rest", async () => {
    const text = [
      JSON.stringify({ format: "recollect/1" }),
      "{",
      JSON.stringify({ kind: "memory", content: "" }),
      JSON.stringify({ kind: "memory", content: "x", type: "odd" }),
      JSON.stringify({ kind: "planet", content: "x" }),
      JSON.stringify({ kind: "memory", content: "x", metadata: { big: "y".repeat(20_000) } }),
      JSON.stringify({ kind: "memory", content: "x", createdAt: "yesterday" }),
      JSON.stringify({ kind: "version", memoryId: crypto.randomUUID(), version: 1 }),
      JSON.stringify({ kind: "relationship", fromId: 77, toId: 78, label: "x" }),
      JSON.stringify({ kind: "memory", content: "The one good line" }),
    ].join("\n");
    const answer = await importInto(other, other.secrets.bert, text);
    expect(answer.json.created).toBe(1);
    expect(answer.json.refused.map((one: { line: number }) => one.line)).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    expect(answer.json.refused[3].message).toStartWith("kind: must be one of memory, version, session,");
    const wrong = await importInto(other, other.secrets.bert, JSON.stringify({ format: "mem/9" }));
    expect(wrong.json.refused[0]).toMatchObject({ line: 1, message: expect.stringContaining("recollect/1") });
  });

  test("management exports all owners or one, and names one to import", async () => {
    const all = await exported(api, api.token);
    expect(new Set(all.flatMap((row) => row["apiKeyId"] ?? []))).toEqual(new Set(["anna", "bert"]));
    const one = await exported(api, api.token, "?apiKeyId=bert");
    expect(new Set(one.flatMap((row) => row["apiKeyId"] ?? []))).toEqual(new Set(["bert"]));
    expect((await importInto(api, api.token, "{}")).status).toBe(400);
    const line = jsonl([{ kind: "memory", content: "Given by management" }]);
    expect((await importInto(api, api.token, line, "text/plain", "?apiKeyId=bert")).json.created).toBe(1);
    expect((await importInto(api, api.secrets.anna, line, "application/json")).status).toBe(415);
  });

  test("a large export is streamed whole", async () => {
    const lines = Array.from({ length: 2500 }, (_, index) => ({
      kind: "memory",
      content: `Fact number ${index}`,
    }));
    expect((await importInto(other, other.secrets.bert, jsonl(lines))).json.created).toBe(2500);
    const rows = await exported(other, other.secrets.bert, "?memoriesOnly=true");
    expect(rows.filter((row) => row.content?.startsWith("Fact number"))).toHaveLength(2500);
  });
});

test("compacting over HTTP: dry run, run, undo", async () => {
  const { id } = (await other.anna("POST", "/api/memory", { content: "An old fact worth keeping" })).json;
  const dry = await other.anna("POST", "/api/memory/summarize", { dryRun: true });
  expect(dry.json).toMatchObject({ candidateCount: 0, dryRun: true, summaryId: null });
  other.db.run("UPDATE memories SET confirmed_at = 0 WHERE id = ?", [id]);
  const done = await other.anna("POST", "/api/memory/summarize", {});
  expect(done.json).toMatchObject({ candidateCount: 1, archivedCount: 1 });
  expect((await other.bert("POST", `/api/memory/${done.json.summaryId}/restore-originals`)).status).toBe(404);
  const back = await other.anna("POST", `/api/memory/${done.json.summaryId}/restore-originals`);
  expect(back.json).toMatchObject({ restored: 1, held: [] });
  expect((await other.anna("POST", `/api/memory/${id}/restore-originals`)).status).toBe(409);
  expect((await other.anna("POST", "/api/memory/summarize", { mode: "all" })).status).toBe(400);
});
