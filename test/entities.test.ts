import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { namedThings } from "../src/extract/entities.ts";
import { startAppliance, until, type Appliance } from "./support/appliance.ts";

setDefaultTimeout(60_000);

const read = (text: string) =>
  namedThings(text).map(({ label, name, type }) => `${label}: ${name} (${type})`);

describe("namedThings", () => {
  test.each([
    ["My sister is Anna.", "sister: Anna (person)"],
    ["My boss is called Peter Müller.", "boss: Peter Müller (person)"],
    ["Anna is my sister.", "sister: Anna (person)"],
    ["My brother Tadhg plays the fiddle.", "brother: Tadhg (person)"],
    ["Rex is my dog", "dog: Rex (pet)"],
    ["I work for Acme Corp as a designer.", "works at: Acme Corp (organisation)"],
    ["I work at the University of Helsinki", "works at: University of Helsinki (organisation)"],
    ["I moved to Berlin last year.", "lives in: Berlin (place)"],
    ["I'm working on Recollect, a memory tool.", "works on: Recollect (project)"],
    ["We decided to use Postgres for this project.", "uses: Postgres (tool)"],
    ["My favourite editor is Zed.", "favourite editor: Zed (tool)"],
    ["Meine Schwester heißt Anna.", "schwester: Anna (person)"],
    ["Anna ist meine Schwester.", "schwester: Anna (person)"],
    ["Je travaille chez Renault.", "works at: Renault (organisation)"],
    ["Julie est ma sœur.", "sœur: Julie (person)"],
    ["Mi hermana se llama Ana.", "hermana: Ana (person)"],
    ["Giulia è mia sorella", "sorella: Giulia (person)"],
    ["Minha irmã se chama Ana.", "irmã: Ana (person)"],
    ["Anna is mijn zus", "zus: Anna (person)"],
    ["Siskoni on Anna.", "sisko: Anna (person)"],
    ["My mother-in-law is Greta and she is lovely.", "mother-in-law: Greta (person)"],
    ["Anna is my ex-wife.", "ex-wife: Anna (person)"],
    ["My manager is Tadhg.", "manager: Tadhg (person)"],
    ["Priya is my friend.", "friend: Priya (person)"],
    ["My company is called Acme Robotics.", "company: Acme Robotics (organisation)"],
    ["I live in Kyoto and commute to Osaka.", "lives in: Kyoto (place)"],
    ["Mein Sohn ist Paul.", "sohn: Paul (person)"],
    ["Mein Chef ist Herr Müller.", "chef: Herr Müller (person)"],
    ["Karl-Heinz ist mein Onkel.", "onkel: Karl-Heinz (person)"],
    ["Meine Schwester Anna wohnt in Wien.", "schwester: Anna (person)"],
    ["Ich arbeite bei Bosch in Stuttgart.", "works at: Bosch (organisation)"],
    ["Ich lebe in der Schweiz.", "lives in: Schweiz (place)"],
    ["我在腾讯工作。", "works at: 腾讯 (organisation)"],
    ["私の妹は花子です。", "妹: 花子 (person)"],
  ])("%s", (text, expected) => {
    expect(read(text)).toEqual([expected]);
  });

  test("reads two in one sentence", () => {
    expect(read("Anna is my sister and Bob is my brother.")).toEqual([
      "sister: Anna (person)",
      "brother: Bob (person)",
    ]);
  });

  test.each([
    "Is Anna my sister?",
    "If Anna is my sister, she gets the house.",
    'He said "Anna is my sister".',
    "> Anna is my sister",
    "```\nMy sister is Anna.\n```",
    "Translate to German: My sister is Anna.",
    "She is my sister.",
    "This is my brother.",
    "My sister is tired.",
    "My wife is a doctor.",
    "I work at a hospital.",
    "I live in a small village.",
    "I decided to use Monday for planning.",
    "Let's use Italian food as an example.",
    "Monday is my day off.",
    "Kim is my favourite.",
    "Ich habe mich für Kaffee entschieden.",
    "Työskentelen Nokialla.",
    "我在一家小型印刷厂上班。",
    "小さな印刷会社で働いています。",
    "What is the name of my sister?",
    "My dad is American.",
    "We decided to use Plan B.",
    "We decided to adopt Bella from the shelter.",
    "My mother is Jewish.",
    "My brother is CEO of Acme.",
    "My boss is Director of Sales.",
    "My dog is Golden Retriever.",
    "My manager is TERRIBLE",
    "My boss is a nightmare.",
    "Coffee is my friend.",
    "Stack Overflow is my best friend.",
    "Anna is my sister's friend.",
    "If it rains and Anna is my sister, fine.",
    "In the book, Anna is my sister.",
    "Summarize: I live in Oslo. My sister is Anna.",
    "I'm from HR.",
    "I work at Home.",
    "I work with Anna and Bob.",
    "Mein Bruder ist Arzt.",
    "Mein Chef ist Italiener.",
    "Meine Mutter ist Rentnerin.",
    "Zeit ist mein Freund.",
    "Nächsten Montag ist mein Vater, Gott sei Dank, wieder da.",
    "Meine Bank ist Mist.",
    "Ich arbeite bei Nacht.",
    "Ich arbeite in Berlin.",
    "Ich arbeite für die Stadt.",
    "Ich arbeite in Teilzeit.",
    "Ich wohne im Dachgeschoss.",
    "Ich lebe in Scheidung.",
    "Ich bin nach Hause gezogen.",
    "Fasse zusammen: Ich wohne in Oslo.",
    "Im Buch heißt meine Schwester Anna.",
    "Mijn baas is Duitser.",
  ])("names nothing in: %s", (text) => {
    expect(read(text)).toEqual([]);
  });

  test("stays linear on a long text", () => {
    const text = "Anna is my sister, and Bo is my brother. ".repeat(1500);
    expect(read(text).length).toBeGreaterThan(1);
  });

  // Each of these makes a careless pattern take minutes; the test's own limit is what would fail.
  test.each([
    "\n",
    " ",
    ". ",
    "Anna ",
    "Anna, ",
    "A-",
    "my sister and ",
    "Anna is my ",
    "Mein Chef ",
    "and A ",
  ])(
    "reads 64 KiB of %j",
    (piece) => {
      expect(read(piece.repeat(65_536 / piece.length))).toEqual([]);
    },
    10_000,
  );
});

describe("setting extractEntities", () => {
  let appliance: Appliance;

  beforeAll(async () => {
    appliance = await startAppliance({ memory: true });
  });
  afterAll(() => appliance.stop());

  type Row = { id: number; name: string; metadata: Record<string, unknown> };
  const call = async (method: string, path: string, body?: unknown) =>
    (await appliance.call(method, path, body, appliance.key)).body as {
      id: number;
      data: (Row & { label: string; toId: number })[];
    };
  const entities = async () => (await call("GET", "/entities?limit=200")).data;
  const say = async (userMessage: string) =>
    (await call("POST", "/episodes", { externalId: "talk", userMessage, aiResponse: "I see." })).id;
  const learned = (word: string) =>
    until(`the memory about ${word}`, async () => (await call("GET", `/api/memory?q=${word}`)).data[0]);

  test("is off by default; on, the speaker gets links to what was named, one home at a time", async () => {
    await call("POST", "/sessions", { externalId: "talk" });
    await say("My cousin is Ludwig.");
    await learned("Ludwig");
    expect(await entities()).toEqual([]);

    await appliance.call("PUT", "/api/settings/memory", { extractEntities: true });
    await say("My name is Marit and my sister is Solveig.");
    const from = await say("I live in Trondheim.");
    const trondheim = await until("Trondheim", async () =>
      (await entities()).find((row) => row.name === "Trondheim"),
    );
    expect(trondheim.metadata).toMatchObject({ episodeIds: [from] });
    const self = (await entities()).find((row) => row.metadata["self"] === true)!;
    expect(self.name).toBe("Marit");
    const links = async () =>
      (await call("GET", `/entities/${self.id}/relationships`)).data.map((row) => row.label).toSorted();
    expect(await links()).toEqual(["lives in", "sister"]);

    await say("I moved from Trondheim to Bergen.");
    const bergen = await until("Bergen", async () => (await entities()).find((row) => row.name === "Bergen"));
    const homes = (await call("GET", `/entities/${self.id}/relationships`)).data.filter(
      (row) => row.label === "lives in",
    );
    expect(homes.map((row) => row.toId)).toEqual([bergen.id]);
  });

  test("what is corrected, forgotten or deleted is no longer known of the speaker", async () => {
    const names = async () => (await entities()).map((row) => row.name);
    const gone = (name: string) =>
      until(`${name} to go`, async () => ((await names()).includes(name) ? undefined : true));
    const come = (name: string) => until(name, async () => (await names()).find((one) => one === name));
    await say("I work at Bosch. My sister is Sigrid. My favourite editor is Zed.");
    await come("Zed");
    await say("I no longer work at Bosch.");
    await gone("Bosch");
    await say("Forget that my favourite editor is Zed.");
    await gone("Zed");
    expect(await names()).toContain("Sigrid");
    const sister = await learned("Sigrid");
    await call("DELETE", `/api/memory/${sister.id}`);
    expect(await names()).not.toContain("Sigrid");
    expect(await names()).toContain("Bergen");
  });

  test("what stayed when its conversation was deleted is not deleted with another", async () => {
    for (const [externalId, userMessage] of [
      ["keep", "My uncle is Torvald."],
      ["drop", "My niece is Runa."],
    ]) {
      await call("POST", "/sessions", { externalId });
      await call("POST", "/episodes", { externalId, userMessage, aiResponse: "" });
    }
    const names = async () => (await entities()).map((row) => row.name);
    await until("both", async () => (await names()).includes("Torvald") && (await names()).includes("Runa"));
    const remove = async (name: string, query: string) => {
      const { id } = await call("GET", `/sessions/by-external/${name}`);
      await call("DELETE", `/sessions/${id}${query}`);
    };
    await remove("keep", "");
    await remove("drop", "?memories=true");
    expect(await names()).toContain("Torvald");
    expect(await names()).not.toContain("Runa");
  });

  test("the speaker stays while another conversation still speaks of them", async () => {
    await call("POST", "/sessions", { externalId: "brief" });
    const { id } = await call("GET", "/sessions/by-external/talk");
    await call("POST", "/episodes", {
      externalId: "brief",
      userMessage: "My aunt is Hedda.",
      aiResponse: "",
    });
    await until("Hedda", async () => (await entities()).find((row) => row.name === "Hedda"));
    await call("DELETE", `/sessions/${id}?memories=true`);
    const self = (await entities()).find((row) => row.metadata["self"] === true)!;
    const links = (await call("GET", `/entities/${self.id}/relationships`)).data.map((row) => row.label);
    expect(links.toSorted()).toEqual(["aunt", "uncle"]);
  });
});
