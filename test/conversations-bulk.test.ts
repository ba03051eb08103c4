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

const jsonl = (lines: unknown[]) => lines.map((line) => JSON.stringify(line)).join("\n");

async function texts(externalId: string): Promise<string[]> {
  const found = await server.get(`/sessions/by-external/${externalId}`);
  const list = await server.get(`/sessions/${found.json.id}/episodes?limit=200`);
  return list.json.data.map((row) => row.userMessage);
}

describe("bulk import", () => {
  test("makes sessions, keeps times, and orders by them", async () => {
    const answer = await server.bulk(
      jsonl([
        { externalId: "b-1", userMessage: "second", createdAt: "2023-05-09T10:00:00Z" },
        { externalId: "b-1", userMessage: "first", createdAt: "2023-05-08T13:56:00+02:00" },
        { externalId: "b-2", aiResponse: "a reply", createdAt: "2023-05-08" },
      ]),
    );
    expect(answer.status).toBe(200);
    expect(answer.json as unknown).toEqual({ created: 3, existing: 0, sessions: 2, refused: [] });
    expect(await texts("b-1")).toEqual(["first", "second"]);
    const found = await server.get("/sessions/by-external/b-1");
    const list = await server.get(`/sessions/${found.json.id}/episodes`);
    expect(list.json.data[0]?.createdAt).toBe("2023-05-08T11:56:00.000Z");
  });

  test("the same line twice is one, by id or by content", async () => {
    const lines = [
      { id: "l1", externalId: "b-twice", userMessage: "hello", createdAt: "2024-01-01T00:00:00Z" },
      { id: "l2", externalId: "b-twice", userMessage: "hello", createdAt: "2024-01-01T00:00:00Z" },
      { externalId: "b-twice", userMessage: "no id", createdAt: "2024-01-02T00:00:00Z" },
      { externalId: "b-twice", userMessage: "no id", createdAt: "2024-01-03T00:00:00Z" },
      { externalId: "b-twice", userMessage: "no time" },
      { externalId: "b-twice", userMessage: "no time" },
    ];
    expect((await server.bulk(jsonl(lines))).json).toMatchObject({ created: 5, existing: 1, sessions: 1 });
    expect((await server.bulk(jsonl(lines))).json).toMatchObject({ created: 0, existing: 6, sessions: 0 });
    expect(await texts("b-twice")).toHaveLength(5);
    // Another owner's line of the same id is that owner's own.
    expect((await server.bulk(jsonl(lines), { owner: "bert" })).json).toMatchObject({ created: 5 });
  });

  test("refuses line by line with numbers and keeps the rest", async () => {
    const answer = await server.bulk(
      [
        JSON.stringify({ externalId: "b-bad", userMessage: "good one" }),
        "",
        "not json",
        JSON.stringify({ userMessage: "no session" }),
        JSON.stringify({ externalId: "b-bad", userMessage: "", aiResponse: "" }),
        JSON.stringify({ externalId: "b-bad", userMessage: "x", createdAt: "yesterday" }),
        JSON.stringify({ externalId: "b-bad", userMessage: "x", colour: 1 }),
        JSON.stringify(["b-bad"]),
        '{"externalId":"b-bad","userMessage":"\\ud800"}',
        "[".repeat(100_000),
        JSON.stringify({ externalId: "b-bad", userMessage: "good two" }),
      ].join("\r\n"),
    );
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({ created: 2, sessions: 1 });
    expect(answer.json.refused.map((one) => one.line)).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
    const messages = answer.json.refused.map((one) => one.message);
    for (const [at, part] of [
      [0, "JSON"],
      [2, "userMessage"],
      [3, "createdAt"],
      [4, "colour"],
    ] as const) {
      expect(messages[at]).toContain(part);
    }
    expect(await texts("b-bad")).toEqual(["good one", "good two"]);
  });

  test("invalid UTF-8 is refused by line", async () => {
    const good = new TextEncoder().encode(
      `${JSON.stringify({ externalId: "b-utf", userMessage: "fine" })}\n`,
    );
    const bytes = new Uint8Array([...good, 0x7b, 0xff, 0xfe, 0x0a, ...good]);
    const answer = await server.bulk(new Response(bytes).body!);
    expect(answer.json).toMatchObject({ created: 1, existing: 1, refused: [{ line: 2 }] });
  });

  test("streams: what came before a cut-off is stored, and sending it again resumes", async () => {
    const lines = Array.from({ length: 3000 }, (_, index) => ({
      id: `r${index}`,
      externalId: "b-resume",
      userMessage: `message number ${index} ${"filler ".repeat(60)}`,
    }));
    const all = new TextEncoder().encode(jsonl(lines));
    const cut = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(all.subarray(0, 900_000));
      },
      pull(controller) {
        controller.error(new Error("the client went away"));
      },
    });
    await server.bulk(cut).catch(() => {});
    const answer = await server.bulk(jsonl(lines));
    expect(answer.json.created + answer.json.existing).toBe(3000);
    const found = await server.get("/sessions/by-external/b-resume");
    expect((await server.get(`/sessions/${found.json.id}/episodes`)).json.total).toBe(3000);
  });

  test("says what it does not take", async () => {
    expect((await server.bulk("{}", { type: "application/json" })).status).toBe(415);
    expect((await server.bulk("x".repeat(32 * 1024 * 1024 + 1))).status).toBe(413);
    expect((await server.bulk("{}", { query: "?colour=1" })).status).toBe(400);
    expect((await server.bulk("{}", { owner: "management" })).status).toBe(400);
  });

  test("a line that is too long is refused and the next one stored", async () => {
    const long = JSON.stringify({ externalId: "b-long", userMessage: "x".repeat(9 * 1024 * 1024) });
    const answer = await server.bulk(`${long}\n${jsonl([{ externalId: "b-long", userMessage: "short" }])}`);
    expect(answer.json).toMatchObject({ created: 1, refused: [{ line: 1 }] });
  });

  test("thousands of refused lines are counted, the first thousand named", async () => {
    const answer = await server.bulk("x\n".repeat(5000));
    expect(answer.json.refusedCount).toBe(5000);
    expect(answer.json.refused).toHaveLength(1000);
  });

  test("other calls are answered while a large file comes in", async () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => ({
      externalId: `b-busy-${index % 50}`,
      userMessage: `something about subject ${index} that somebody said`,
      aiResponse: `and an answer of some length to it, number ${index}`,
    }));
    let running = true;
    const import_ = server.bulk(jsonl(lines)).finally(() => (running = false));
    let answered = 0;
    while (running) {
      await server.get("/sessions?limit=1");
      if (running) answered += 1;
    }
    expect((await import_).json.created).toBe(20_000);
    expect(answered).toBeGreaterThan(20);
  });
});
