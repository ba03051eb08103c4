import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createSalience } from "../src/conversations/salience.ts";
import { startConversations, type ConversationServer } from "./support/conversation-server.ts";

let server: ConversationServer;

beforeAll(async () => {
  server = await startConversations();
});
afterAll(async () => {
  await server.stop();
  server.remove();
});

const garden: [string, string][] = [
  ["Hi there!", "Hello! How can I help?"],
  [
    "I want to plan a vegetable garden behind the house.",
    "A vegetable garden needs at least six hours of sun.",
  ],
  ["The vegetable garden gets sun from the east until noon.", "East light is good for lettuce and spinach."],
  ["ok thanks", "You are welcome."],
  [
    "We decided to plant tomatoes along the southern wall.",
    "Tomatoes like a warm wall. Water them in the morning.",
  ],
  ["The budget for the garden is 400 euros.", "With 400 euros you can build two raised beds."],
  ["```\nconst unrelated = code();\n```", "That looks fine."],
  [
    "The tomatoes should be planted in the second week of May.",
    "The second week of May is after the last frost.",
  ],
];

async function talk(externalId: string, turns = garden): Promise<{ session: number; episodes: number[] }> {
  const session = (await server.post("/sessions", { externalId })).json.id;
  const episodes: number[] = [];
  for (const [userMessage, aiResponse] of turns) {
    episodes.push((await server.post("/episodes", { sessionId: session, userMessage, aiResponse })).json.id);
  }
  return { session, episodes };
}

describe("summaries of sessions", () => {
  test("take the sentences that carry the session, in their order, within the budget", async () => {
    const { session, episodes } = await talk("sum-1");
    const made = await server.post(`/sessions/${session}/summaries`, { maxTokens: 60 });
    expect(made.status).toBe(201);
    expect(made.json as object).toMatchObject({
      sessionId: session,
      firstEpisodeId: episodes[0],
      lastEpisodeId: episodes.at(-1),
      stale: false,
    });
    const text = made.json.text;
    expect(made.json.tokenCount).toBeLessThanOrEqual(60);
    expect(text).toContain("garden");
    expect(text).toContain("tomatoes");
    for (const noise of ["Hi there", "ok thanks", "You are welcome", "unrelated"])
      expect(text).not.toContain(noise);
    const order = garden.flat().flatMap((message) => message.split(/(?<=\.) /));
    const places = text.split("\n").map((line) => order.indexOf(line.replace(/^(User|Assistant): /, "")));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
    // The episodes stay.
    expect((await server.get(`/sessions/${session}/episodes`)).json.total).toBe(garden.length);
    expect((await server.get(`/summaries/${made.json.id}`)).json).toEqual(made.json);
    expect((await server.get(`/sessions/${session}/summaries`)).json).toMatchObject({
      total: 1,
      data: [{ id: made.json.id }],
    });
  });

  test("go up to an episode when asked", async () => {
    const { session, episodes } = await talk("sum-through");
    const made = await server.post(`/sessions/${session}/summaries`, { through: episodes[2] });
    expect(made.json as object).toMatchObject({ firstEpisodeId: episodes[0], lastEpisodeId: episodes[2] });
    expect(made.json.text).not.toContain("omatoes");
    expect((await server.post(`/sessions/${session}/summaries`, { through: 999_999 })).status).toBe(404);
  });

  test("cover imported exchanges by their time, whatever their ids", async () => {
    const said = [
      ["2024-05-01", "The zebra warehouse in Rotterdam opens with forty workers."],
      ["2024-01-01", "Good morning!"],
      ["2024-03-01", "We decided that contractor Miller delivers the steel beams to Antwerp."],
    ].map(([createdAt, userMessage]) => JSON.stringify({ externalId: "sum-import", createdAt, userMessage }));
    await server.bulk(said.join("\n"));
    const session = (await server.get("/sessions/by-external/sum-import")).json.id;
    const [first, middle] = (await server.get(`/sessions/${session}/episodes`)).json.data;
    const summary = (await server.post(`/sessions/${session}/summaries`, {})).json;
    const part = (await server.post(`/sessions/${session}/summaries`, { through: first!.id })).json;
    expect(summary.text).toContain("Miller");
    await server.call("anna", "DELETE", `/episodes/${middle!.id}`);
    const after = (await server.get(`/summaries/${summary.id}`)).json;
    expect([after.stale, after.text.includes("Miller")]).toEqual([true, false]);
    expect((await server.get(`/summaries/${part.id}`)).json.stale).toBe(false);
  });

  test("of nothing but code lose its lines with it", async () => {
    const code = "```\nfunction   secretRecipe() {\n    return   'three   spoons of salt';\n}\n```";
    const { session, episodes } = await talk("sum-code-lines", [[code, ""]]);
    const summary = (await server.post(`/sessions/${session}/summaries`, {})).json;
    expect(summary.text).toContain("secretRecipe");
    await server.call("anna", "DELETE", `/episodes/${episodes[0]}`);
    expect((await server.get(`/summaries/${summary.id}`)).json).toMatchObject({ stale: true, text: "" });
  });

  test("a deleted episode leaves no sentence behind and makes its summaries stale", async () => {
    const { session, episodes } = await talk("sum-stale");
    const whole = (await server.post(`/sessions/${session}/summaries`, {})).json;
    const early = (await server.post(`/sessions/${session}/summaries`, { through: episodes[2] })).json;
    expect(whole.text).toContain("400 euros");
    await server.call("anna", "DELETE", `/episodes/${episodes[5]}`);
    const after = (await server.get(`/summaries/${whole.id}`)).json;
    expect(after.stale).toBe(true);
    expect(after.text).not.toContain("400 euros");
    expect(after.text).toContain("tomatoes");
    expect((await server.get(`/summaries/${early.id}`)).json.stale).toBe(false);
  });

  test("an empty session is 409, an unknown or foreign one 404, nonsense 400", async () => {
    const session = (await server.post("/sessions", { externalId: "sum-empty" })).json.id;
    expect((await server.post(`/sessions/${session}/summaries`, {})).status).toBe(409);
    expect((await server.post(`/sessions/${session}/summaries`, {}, "bert")).status).toBe(404);
    expect((await server.post("/sessions/999999/summaries", {})).status).toBe(404);
    expect((await server.post(`/sessions/${session}/summaries`, { maxTokens: 1 })).status).toBe(400);
    expect((await server.get("/summaries/999999")).status).toBe(404);
  });

  test("the body may be absent, and nothing but code or greetings still gives a text", async () => {
    for (const [name, turns] of [
      ["sum-code", [["```\nlet x = 1;\n```", "```\nlet y = 2;\n```"]]],
      ["sum-hi", [["hi", "hello"]]],
    ] as [string, [string, string][]][]) {
      const { session } = await talk(name, turns);
      const made = await server.post(`/sessions/${session}/summaries`, undefined);
      expect(made.status).toBe(201);
      expect(made.json.text.length).toBeGreaterThan(1);
    }
  });

  test("go with their session and can be deleted alone", async () => {
    const { session } = await talk("sum-delete");
    const one = (await server.post(`/sessions/${session}/summaries`, {})).json.id;
    const two = (await server.post(`/sessions/${session}/summaries`, {})).json.id;
    expect((await server.call("bert", "DELETE", `/summaries/${one}`)).status).toBe(404);
    expect((await server.call("anna", "DELETE", `/summaries/${one}`)).status).toBe(200);
    expect((await server.call("anna", "DELETE", `/summaries/${one}`)).status).toBe(404);
    expect((await server.call("anna", "DELETE", `/sessions/${session}`)).status).toBe(200);
    expect((await server.get(`/summaries/${two}`)).status).toBe(404);
  });
});

describe("the nightly run", () => {
  test("sums up long sessions that are quiet, once, and renews its own summary only", async () => {
    const turns = Array.from({ length: 21 }, (_, at): [string, string] => [
      `The harvest of row ${at} brought ${at} baskets of apples.`,
      "Written down.",
    ]);
    const { session, episodes } = await talk("quiet-long", turns);
    const short = await talk("quiet-short");
    const own = (await server.post(`/sessions/${session}/summaries`, { through: episodes[2] })).json.id;
    const run = () => server.engine.conversations.summarizeQuiet();
    expect(await run()).toBe(0);
    const later = Date.now() + 2 * 86_400_000;
    server.setTime(later);
    expect(await run()).toBe(1);
    expect(await run()).toBe(0);
    const list = async () =>
      (await server.get(`/sessions/${session}/summaries`)).json.data.map((row) => row.id);
    const [first, automatic] = await list();
    expect(first).toBe(own);
    expect((await server.get(`/sessions/${short.session}/summaries`)).json.total).toBe(0);
    await server.post("/episodes", {
      sessionId: session,
      userMessage: "The cellar is full of apples.",
      aiResponse: "",
    });
    expect(await run()).toBe(0);
    server.setTime(later + 2 * 86_400_000);
    expect(await run()).toBe(1);
    expect((await list()).includes(automatic!)).toBe(false);
    expect((await list())[0]).toBe(own);
    expect(await list()).toHaveLength(2);
    server.setTime(null);
  });
});

describe("createSalience", () => {
  test("covers subjects instead of saying one thing twice, in scripts without blanks too", () => {
    const salience = createSalience((text) => text.length);
    for (const [exchange, text] of [
      "我们决定在五月搬到柏林的新办公室。",
      "我们决定在五月搬到柏林的新办公室。",
      "预算是四十万欧元，由财务部批准。",
      "我们决定在五月搬到柏林的新办公室。",
    ].entries()) {
      salience.add({ exchange, role: "user", text });
    }
    expect(salience.best(40).map((sentence) => sentence.text)).toEqual([
      "我们决定在五月搬到柏林的新办公室。",
      "预算是四十万欧元，由财务部批准。",
    ]);
  });

  test("keeps what it is about and what was decided, though those words came up before", () => {
    const salience = createSalience((text) => text.length);
    for (const [exchange, [user, assistant]] of [
      ["Hallo!", "Hallo, wie kann ich helfen?"],
      [
        "Wir wollen unser Haus in Freiburg dämmen.",
        "Eine Dämmung von Dach und Fassade senkt den Verbrauch um 40 Prozent.",
      ],
      [
        "Das Angebot für die Fassade liegt bei 38.000 Euro, für das Dach bei 24.000 Euro.",
        "Üblich sind 30.000 Euro.",
      ],
      [
        "Wir haben uns entschieden, zuerst das Dach zu machen.",
        "Über das Dach geht am meisten Wärme verloren.",
      ],
      [
        "Der Installateur Weber kommt am 3. Mai um 9 Uhr mit zwei Leuten.",
        "Gut, dann ist Platz für das Gerüst.",
      ],
    ].entries()) {
      salience.add({ exchange, role: "user", text: user! });
      salience.add({ exchange, role: "assistant", text: assistant! });
    }
    const texts = salience.best(240).map((sentence) => sentence.text);
    expect(texts).toContain("Wir wollen unser Haus in Freiburg dämmen.");
    expect(texts).toContain("Wir haben uns entschieden, zuerst das Dach zu machen.");
  });
});
