import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startApi, type ApiServer } from "./support/api-server.ts";
import { until } from "./support/appliance.ts";

// Many rows on a shared machine take their time.
setDefaultTimeout(60_000);

let api: ApiServer;

beforeAll(async () => {
  api = await startApi();
});
afterAll(async () => {
  await api.stop();
});

/** Files of the data folder that hold the word, in any part of them. */
function filesWith(word: string): string[] {
  return readdirSync(api.dir).filter(
    (name) => name.startsWith("recollect.db") && readFileSync(join(api.dir, name)).includes(word),
  );
}

/** A session of `count` exchanges that all hold `word`, a memory learned from the first, and copies of its text. */
async function talk(externalId: string, word: string, count = 2) {
  const session = (await api.anna("POST", "/sessions", { externalId, metadata: { topic: word } })).json.id;
  const lines = Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      externalId,
      userMessage: `Something about ${word} ${index}`,
      aiResponse: `Yes, ${word}.`,
    }),
  );
  await api.send(api.secrets.anna, "POST", "/episodes/bulk", {
    body: lines.join("\n"),
    headers: { "content-type": "application/x-ndjson" },
  });
  const episodes = (await api.anna("GET", `/sessions/${session}/episodes`)).json.data.map(
    (row: { id: number }) => row.id,
  ) as number[];
  await api.anna("POST", `/sessions/${session}/summaries`, {});
  const memory = (await api.anna("POST", "/api/memory", { content: `Learned ${word} here`, key: externalId }))
    .json.id;
  const db = api.db;
  db.run("UPDATE memories SET episode_id = ? WHERE id = ?", [episodes[0]!, memory]);
  const owner = db.query<{ id: number }, []>("SELECT id FROM owners WHERE name = 'anna'").get()!.id;
  const receipt = crypto.randomUUID();
  const candidates = JSON.stringify([{ kind: "episode", id: String(episodes[0]), text: `recalled ${word}` }]);
  db.run(
    `INSERT INTO receipts (id, owner_id, session_id, injected, tokens, latency_ms, candidates, text, created_at)
     VALUES (?, ?, 'elsewhere', 1, 9, 1, ?, ?, 1)`,
    [receipt, owner, candidates, `Memory context: recalled ${word}`],
  );
  db.run("INSERT INTO receipt_uses VALUES ('episode', ?, ?)", [String(episodes[0]), receipt]);
  db.run("INSERT INTO blocks VALUES (?, ?, 'elsewhere', ?, 9, ?, 1, 1)", [
    owner,
    new TextEncoder().encode(receipt),
    `Memory context: recalled ${word}`,
    JSON.stringify([`episode:${episodes[0]}`]),
  ]);
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  expect(filesWith(word)).not.toEqual([]);
  return { session, episodes, memory, receipt };
}

describe("deleting a session", () => {
  test("leaves none of its words in the files, with what was learned from it when asked", async () => {
    const { session, memory, receipt } = await talk("gone-1", "marzipanfisch");
    await talk("stays-1", "bernsteinzimmer");
    expect((await api.anna("DELETE", `/sessions/${session}?memories=true`)).status).toBe(200);
    expect(filesWith("marzipanfisch")).toEqual([]);
    expect(filesWith("bernsteinzimmer")).not.toEqual([]);
    expect((await api.anna("GET", `/api/memory/${memory}`)).status).toBe(404);
    // The receipt itself stays, without the text.
    const row = api.db
      .query<{ text: string | null }, [string]>("SELECT text FROM receipts WHERE id = ?")
      .get(receipt);
    expect(row).toEqual({ text: null });
    expect((await api.anna("DELETE", `/sessions/${session}?memories=true`)).status).toBe(404);
  });

  test("keeps what was learned unless asked, without the link", async () => {
    const { session, memory } = await talk("gone-2", "fliederhammer");
    expect((await api.anna("DELETE", `/sessions/${session}`)).status).toBe(200);
    expect((await api.anna("GET", `/api/memory/${memory}`)).json.memory).toMatchObject({
      content: "Learned fliederhammer here",
      episodeId: null,
    });
  });

  test("a long one goes whole while other calls are answered", async () => {
    const { session } = await talk("gone-3", "quittenmond", 3000);
    let running = true;
    const deleted = api.anna("DELETE", `/sessions/${session}?memories=true`).finally(() => (running = false));
    let answered = 0;
    while (running) {
      await api.anna("GET", "/sessions?limit=1");
      if (running) answered += 1;
    }
    expect((await deleted).status).toBe(200);
    expect(answered).toBeGreaterThan(3);
    // Nothing finds it any more, while its words may still be on their way out of the files.
    const search = await api.anna("GET", "/episodes/search?mode=keyword&q=quittenmond");
    expect(search.json).toMatchObject({ data: [], total: 0 });
    await until("the words are in no file", () => filesWith("quittenmond").length === 0);
  });
});

test("deleting one exchange leaves none of its words, and the memory without its link", async () => {
  const { session, episodes, memory } = await talk("part", "distelkrone", 1);
  await api.anna("POST", "/episodes", {
    sessionId: session,
    userMessage: "Nothing to see",
    aiResponse: "Indeed",
  });
  expect((await api.anna("DELETE", `/episodes/${episodes[0]}`)).status).toBe(200);
  expect((await api.anna("GET", `/api/memory/${memory}`)).json.memory.episodeId).toBeNull();
  await api.anna("DELETE", `/api/memory/${memory}`);
  await api.anna("PATCH", `/sessions/${session}`, { metadata: {} });
  api.db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  expect(filesWith("distelkrone")).toEqual([]);
});

test("clearing many memories leaves none of their words, nor of the exchanges they came from", async () => {
  const { session } = await talk("many", "nebelkrähe", 300);
  const lines = Array.from({ length: 300 }, (_, index) =>
    JSON.stringify({ kind: "memory", content: `The nebelkrähe number ${index} was seen` }),
  );
  await api.send(api.secrets.bert, "POST", "/api/memory/import", {
    body: lines.join("\n"),
    headers: { "content-type": "application/x-ndjson" },
  });
  const cleared = await api.bert("POST", "/api/memory/bulk-delete", { q: "nebelkrähe" });
  expect(cleared.json).toMatchObject({ matched: 300, deleted: 300 });
  expect((await api.anna("DELETE", `/sessions/${session}?memories=true`)).status).toBe(200);
  await until("the words are in no file", () => filesWith("nebelkr").length === 0);
});
