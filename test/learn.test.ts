import { afterEach, beforeEach, expect, test } from "bun:test";
import { ensureOwner } from "../src/db/owners.ts";
import { bury, isBuried, settleTombstones } from "../src/db/tombstones.ts";
import { writeMemorySettings } from "../src/db/settings-write.ts";
import type { MemorySettingsPatch } from "../src/memory/settings.ts";
import type { Memory, MemoryStatus } from "../src/memory/types.ts";
import { until } from "./support/appliance.ts";
import { startTestEngine } from "./support/engine.ts";
import type { TestEngine } from "./support/engine.ts";

let box: TestEngine;
beforeEach(async () => {
  box = startTestEngine({ settings: { enabled: true } });
  await box.engine.conversations.createSession({ owner: "anna", externalId: "chat" });
  box.start();
});
afterEach(() => box.stop());

/** One exchange, learned from before this resolves. */
async function say(userMessage: string, aiResponse = "", owner = "anna"): Promise<number> {
  const { episode } = await box.engine.conversations.createEpisode({
    owner,
    externalId: "chat",
    userMessage,
    aiResponse,
    extract: true,
  });
  await learned();
  return episode.id;
}

/** Stores settings as another process would. */
async function set(patch: MemorySettingsPatch): Promise<void> {
  writeMemorySettings(box.db, patch);
  await Promise.resolve();
}

async function learned(): Promise<void> {
  await until("the jobs to end", async () => {
    const { queued, running } = await box.engine.jobs.counts({ owner: null });
    return queued + running === 0;
  });
}

async function memories(status: MemoryStatus = "active", owner = "anna"): Promise<Memory[]> {
  return (await box.engine.memories.list({ owner, status, limit: 200, offset: 0 })).data;
}
const contents = async (status: MemoryStatus = "active") =>
  (await memories(status)).map((memory) => memory.content);

test("a statement becomes a memory that knows its exchange, session and category", async () => {
  const episodeId = await say("I prefer oat milk in my coffee.");
  const [memory, ...rest] = await memories();
  expect(rest).toEqual([]);
  expect(memory).toMatchObject({
    origin: "user",
    type: "factual",
    status: "active",
    sessionId: "chat",
    episodeId,
    metadata: { category: "preference", polarity: "+", source: "user_message" },
  });
});

test("a changed mind replaces the old value, keeps it as history, and it is not active any more", async () => {
  await say("I like jazz.");
  await say("I don't like jazz.");
  const all = await memories();
  expect(all).toHaveLength(1);
  expect(all[0]!.metadata["polarity"]).toBe("-");
  const history = await box.engine.memories.history({ owner: "anna", id: all[0]!.id });
  expect(history).toHaveLength(2);
});

test("a new home replaces the old one in its slot", async () => {
  await say("I live in Bergen.");
  await say("I moved from Bergen to Tampere.");
  const active = await contents();
  expect(active).toHaveLength(1);
  expect(active[0]).toContain("Tampere");
});

test("a correction without a slot supersedes the memory that holds the old value", async () => {
  await say("I decided to use Postgres for the billing service.");
  await say("Actually, it's MySQL, not Postgres.");
  expect((await contents()).join()).not.toContain("Decided to use Postgres");
  expect((await contents()).join()).toContain("MySQL");
});

test("what replaced an older value has the day it was said, not that of the older one", async () => {
  const day = (text: string | undefined) => text?.match(/\[(.*?)\]/)?.[1];
  const line = async () =>
    (
      await box.engine.retrieval.retrieve({
        owner: "anna",
        query: "Where do I live?",
        mode: "interactive",
        kinds: ["memory"],
      })
    ).results[0]?.text;
  await say("I live in Bergen.");
  const before = day(await line());
  box.clock.offset = 3 * 86_400_000;
  await say("I moved to Tampere.");
  const moved = await line();
  expect(moved).toContain("Tampere");
  expect(day(moved)).toBe(new Date(Date.parse(before!) + 3 * 86_400_000).toISOString().slice(0, 10));
  // Saying it once more does not make it newer.
  box.clock.offset = 5 * 86_400_000;
  await say("I live in Tampere.");
  expect(await line()).toBe(moved);
});

test("what is to be forgotten is archived, can be brought back, and everything else stays", async () => {
  await say("I prefer window seats.");
  await say("I love sailing.");
  await say("Forget what I said about window seats.");
  expect((await contents("archived")).join()).toContain("window seats");
  expect((await contents()).join()).toContain("sailing");
  const [archived] = await memories("archived");
  await box.engine.memories.restore({ owner: "anna", id: archived!.id, version: 1 });
  expect((await contents()).join()).toContain("window seats");
});

test("exchanges that say what was to be forgotten are not recalled in its place; others are", async () => {
  await say("I live in Lisbon.", "A fine town.");
  await say("Where do I live?", "You live in Lisbon.");
  await say("The tram in Lisbon is yellow.", "It is.");
  const ask = async () =>
    (
      await box.engine.retrieval.retrieve({
        owner: "anna",
        query: "Do I live in Lisbon with its yellow tram?",
        mode: "interactive",
      })
    ).results.map((row) => row.text);
  expect((await ask()).join()).toContain("You live in Lisbon.");
  await say("Please forget that I live in Lisbon.", "It is forgotten.");
  const left = await ask();
  expect(left).toHaveLength(1);
  expect(left[0]).toContain("The tram in Lisbon is yellow.");
});

test("a forgetting that was approved keeps the exchanges out of recall as well", async () => {
  await say("I live in Lisbon.", "A fine town.");
  for (const trip of ["ferry", "market", "museum", "castle", "bridge"]) {
    const content = `Lisbon has a ${trip}`;
    await box.engine.memories.create({ owner: "anna", origin: "api", content });
  }
  await say("Forget what I said about Lisbon.");
  const [asked] = await memories("pending");
  expect(asked?.metadata).toMatchObject({ forget: true });
  await box.engine.memories.approve({ owner: "anna", id: asked!.id });
  expect(await contents()).toEqual([]);
  const { results } = await box.engine.retrieval.retrieve({
    owner: "anna",
    query: "Do I live in Lisbon?",
    mode: "interactive",
  });
  expect(results.map((row) => row.text)).toEqual([]);
});

test("what was deleted for good is not learned again from an older exchange, and may be said anew", async () => {
  await say("I prefer window seats.");
  const [memory] = await memories();
  await box.engine.memories.remove({ owner: "anna", id: memory!.id });
  // The same exchange comes again with an old date, as from an import.
  box.clock.offset = -60_000;
  await box.engine.conversations.createEpisode({
    owner: "anna",
    externalId: "chat",
    userMessage: "I prefer window seats.",
    aiResponse: "",
    extract: true,
  });
  box.clock.offset = 0;
  await learned();
  expect(await contents()).toEqual([]);
  await say("I prefer window seats.");
  expect(await contents()).toHaveLength(1);
});

test("nothing is learned while memory is off", async () => {
  await set({ enabled: false });
  await say("I prefer oat milk.");
  expect(await contents()).toEqual([]);
});

test("what had expired is known again when it is said again, also when it is approved first", async () => {
  const over = (content: string, key: string) =>
    box.engine.memories.create({
      owner: "anna",
      origin: "api",
      content,
      key,
      expiresAt: "2020-01-01T00:00:00Z",
    });
  await over("Lives in Turku", "identity:home");
  await over("Works at Acme", "identity:employer");
  await say("I live in Turku. I work at Globex.");
  const known = Object.fromEntries((await memories()).map(({ content, expiresAt }) => [content, expiresAt]));
  expect(known).toEqual({ "Lives in Turku": null, "Works at Globex": null });
  await set({ autoApprove: false });
  await over("Called Ann", "identity:name");
  await say("My name is Anna.");
  const [pending] = await memories("pending");
  expect(await box.engine.memories.approve({ owner: "anna", id: pending!.id })).toMatchObject({
    key: "identity:name",
    expiresAt: null,
  });
});

test("without autoApprove everything waits, a repetition does not fill the inbox, and approving makes it active", async () => {
  await set({ autoApprove: false });
  await say("I prefer oat milk.");
  await say("I prefer oat milk.");
  expect(await contents()).toEqual([]);
  const [pending, ...more] = await memories("pending");
  expect(more).toEqual([]);
  await box.engine.memories.approve({ owner: "anna", id: pending!.id });
  expect(await contents()).toEqual([pending!.content]);
});

test("a version from before the approval is restored as active; one of a waiting memory waits on", async () => {
  await set({ autoApprove: false });
  await say("I live in Bergen.");
  const [pending] = await memories("pending");
  const it = { owner: "anna", id: pending!.id };
  await box.engine.memories.update({ ...it, patch: { content: "Lives in Oslo" } });
  expect(await box.engine.memories.restore({ ...it, version: 1 })).toMatchObject({
    content: "Lives in Bergen",
    status: "pending",
  });
  await box.engine.memories.approve(it);
  await box.engine.memories.update({ ...it, patch: { content: "Lives in Turku" } });
  expect(await box.engine.memories.restore({ ...it, version: 1 })).toMatchObject({
    content: "Lives in Bergen",
    status: "active",
  });
});

test("approving a change updates the memory that holds its key, with history", async () => {
  await say("I live in Bergen.");
  await set({ autoApprove: false, extractEntities: true });
  const told = await say("I live in Tampere.");
  const [old] = await memories();
  const [pending] = await memories("pending");
  await box.engine.memories.update({ owner: "anna", id: pending!.id, patch: { pinned: true } });
  const approved = await box.engine.memories.approve({ owner: "anna", id: pending!.id });
  expect(approved.id).toBe(old!.id);
  expect(approved.content).toContain("Tampere");
  // It came from that exchange now, and what was learned with it stays.
  expect([approved.episodeId, approved.origin, approved.pinned]).toEqual([told, "user", true]);
  const places = await box.engine.conversations.listEntities({ owner: "anna", limit: 50, offset: 0 });
  expect(places.data.map((entity) => entity.name)).toContain("Tampere");
  expect(await box.engine.memories.history({ owner: "anna", id: old!.id })).toHaveLength(2);
});

test("what was queued while the clock was ahead holds nothing up when it is put back", async () => {
  await box.stop();
  box = startTestEngine({ settings: { enabled: true } });
  await box.engine.conversations.createSession({ owner: "anna", externalId: "chat" });
  box.clock.offset = 7_200_000;
  const exchange = { owner: "anna", externalId: "chat", aiResponse: "", extract: true };
  await box.engine.conversations.createEpisode({ ...exchange, userMessage: "I prefer oat milk." });
  box.clock.offset = 0;
  box.start();
  await say("I live in Bergen.");
  expect((await contents()).join()).toMatch(/Bergen.*oat milk|oat milk.*Bergen/);
});

test("what was said while the clock was ahead is corrected when it is put back", async () => {
  box.clock.offset = 365 * 86_400_000;
  await say("I live in Bergen.");
  await say("I moved from Bergen to Oulu.");
  box.clock.offset = 0;
  await say("I moved from Oulu to Tampere.");
  expect(await contents()).toEqual([expect.stringContaining("Tampere")]);
});

test("a deletion while the clock was ahead does not outlast it", () => {
  const day = 86_400_000;
  const owner = ensureOwner(box.db, "anna");
  const now = box.clock.now();
  bury(box.db, owner, "k", "Prefers tea", now + 365 * day);
  settleTombstones(box.db, now);
  const buried = (saidAt: number) => isBuried(box.db, owner, "k", "Prefers tea", saidAt);
  expect([buried(now - day), buried(now + 1)]).toEqual([true, false]);
});

test("the same statement said again confirms it and adds nothing", async () => {
  await say("I prefer oat milk.");
  const [before] = await memories();
  box.clock.offset = 5000;
  await say("I prefer oat milk.");
  const [after, ...more] = await memories();
  expect(more).toEqual([]);
  expect(after!.version).toBe(1);
  expect(Date.parse(after!.confirmedAt)).toBeGreaterThan(Date.parse(before!.confirmedAt));
});

test("the assistant's restatement of what is known teaches nothing, and the user's word stands against it", async () => {
  await say("I prefer oat milk.");
  await say("Thanks.", "You prefer oat milk.");
  const [memory, ...more] = await memories();
  expect(more).toEqual([]);
  expect(memory!.origin).toBe("user");
});

test("jobs of one owner are done in the order of their exchanges", async () => {
  const cities = ["Oslo", "Bergen", "Turku", "Espoo", "Malmö", "Lund"];
  await Promise.all(
    cities.map((city) =>
      box.engine.conversations.createEpisode({
        owner: "anna",
        externalId: "chat",
        userMessage: `I live in ${city}.`,
        aiResponse: "",
        extract: true,
      }),
    ),
  );
  await learned();
  const [home, ...more] = await memories();
  expect(more).toEqual([]);
  expect(home!.content).toContain("Lund");
});

test.each([
  ["de", "Ich wohne in Berlin.", "Ich bin nach Lissabon gezogen.", "Wo wohne ich?", "Lissabon"],
  ["de", "Ich arbeite bei Siemens.", "Ich arbeite jetzt bei Bosch.", "Wo arbeite ich?", "Bosch"],
  ["nl", "Ik woon in Utrecht.", "Ik ben verhuisd naar Leiden.", "Waar woon ik?", "Leiden"],
  ["fr", "J'habite à Lyon.", "J'ai déménagé à Nantes.", "Où est-ce que j'habite ?", "Nantes"],
  ["es", "Vivo en Madrid.", "Me mudé a Lisboa.", "¿Dónde vivo?", "Lisboa"],
  ["pt", "Moro em São Paulo.", "Me mudei para Lisboa.", "Onde eu moro?", "Lisboa"],
  ["it", "Vivo a Milano.", "Mi sono trasferito a Torino.", "Dove vivo?", "Torino"],
  ["fi", "Asun Turussa.", "Muutin Tampereelle.", "Missä asun?", "Tampereelle"],
  ["fi", "Olen töissä Nokialla.", "Olen nyt töissä Koneella.", "Missä olen töissä?", "Koneella"],
  ["zh", "我住在北京。", "我搬到了上海。", "我住在哪里？", "上海"],
  ["ja", "私は東京に住んでいます。", "大阪に引っ越しました。", "私はどこに住んでいますか？", "大阪"],
])("what is so now answers a question in %s by words alone, before what was so: %s %s", async (...told) => {
  const [, before, now, query, answer] = told;
  await say(before);
  await say(now);
  const { results } = await box.engine.retrieval.retrieve({ owner: "anna", query, mode: "interactive" });
  expect(results[0]?.kind).toBe("memory");
  expect(results[0]?.text).toContain(answer);
});

test("what is over takes the place of what was known, and is nothing where nothing was", async () => {
  await say("I got fired. We sold the boat. Nadia and I broke up. My parrot died.");
  expect(await contents()).toEqual([]);
  await say("I work at Globex.");
  await say("My girlfriend is Nadia. My boat is a Hallberg. My parrot is called Rio.");
  await say("I left Initech and we sold the house.");
  expect((await contents()).toSorted()).toEqual([
    "Boat is a Hallberg",
    "Girlfriend is Nadia",
    "Parrot: Rio",
    "Works at Globex",
  ]);
  await say("I quit my job and we sold the boat. Nadia and I broke up. Rio died last night.");
  expect((await contents()).toSorted()).toEqual([
    "Broke up with Nadia",
    "No longer works at Globex",
    "Rio died",
    "Sold the boat",
  ]);
  await say("My new girlfriend is called Imke. I'm starting at the clinic in Wels in May.");
  expect(await contents()).toContain("Girlfriend: Imke");
  expect(await contents()).toContain("Works at the clinic in Wels");
  expect(await contents()).toHaveLength(4);
});

test("in German too: a parting, a sale, a notice, a death", async () => {
  await say("Ich arbeite bei Aldi. Mein Freund heißt Malik. Mein Hund heißt Bello. Unser Auto ist ein Opel.");
  await say("Malik und ich haben uns getrennt. Ich habe gekündigt.");
  await say("Bello ist gestorben. Wir haben den Opel verkauft.");
  expect((await contents()).toSorted()).toEqual([
    "Arbeitet nicht mehr bei Aldi",
    "Bello ist gestorben",
    "Getrennt von Malik",
    "Opel: verkauft",
  ]);
});

test.each([
  ["Je travaille chez Orange. Ma copine s'appelle Léa.", "J'ai démissionné. Léa et moi, on s'est séparés."],
  ["Trabajo en Repsol. Mi novia se llama Inés.", "Dejé mi trabajo. Inés y yo rompimos."],
  ["Lavoro per Fiat. La mia ragazza si chiama Gaia.", "Ho lasciato il lavoro. Gaia e io ci siamo lasciati."],
  ["Trabalho na Vale. Minha namorada se chama Rita.", "Pedi demissão. Rita e eu terminamos."],
  ["Ik werk bij Philips. Mijn vriendin heet Noor.", "Ik ben ontslagen. Noor en ik zijn uit elkaar."],
])("%j, then %j", async (before, after) => {
  await say(before);
  expect(await contents()).toHaveLength(2);
  await say(after);
  const all = await memories();
  expect(all.map((memory) => memory.metadata["polarity"])).toEqual(["-", "-"]);
});

test("what is no longer used ends what it filled", async () => {
  await say("My phone is a Nokia 8 with two cards. I decided to use Trello.");
  await say("I don't use the Nokia any more. I no longer use Trello.");
  expect((await contents()).toSorted()).toEqual(["No longer: use Trello", "No longer: use the Nokia"]);
});

test("a preference turned round replaces the first", async () => {
  await say("I prefer trains to planes.");
  await say("I prefer planes over trains.");
  expect(await contents()).toEqual(["Prefers planes over trains"]);
  await say("I prefer planes with wifi.");
  expect(await contents()).toHaveLength(2);
});

const recalled = async (query: string) =>
  (await box.engine.retrieval.retrieve({ owner: "anna", query, mode: "interactive" })).results.map(
    (row) => row.text,
  );

test("an exchange is not recalled for a statement that a memory here has replaced", async () => {
  await say("My favourite band is Portishead.");
  await say("I prefer trains to planes.");
  await say("My favourite band is Low.");
  await say("I prefer planes to trains.");
  const band = await recalled("What is my favourite band?");
  expect(band.join()).toContain("Low");
  expect(band.join()).not.toContain("Portishead");
  const ride = (await recalled("trains or planes, what do I prefer?")).join();
  expect(ride).toContain("Prefers planes to trains");
  expect(ride).not.toContain("trains to planes");
});

test("an exchange that says more than its memory is recalled beside it", async () => {
  await say(
    "I no longer use the Nokia for calls, it fell into the harbour at Kotka. The ferry to Tallinn left without me.",
  );
  expect((await recalled("What about my Nokia?")).join()).toContain("harbour");
});

test("what nobody made a memory of is forgotten as it was said, unless it is said all over", async () => {
  await say("The rival firm Vantablik sells cheaper lamps.");
  await say("Lamps of all kinds are nice.");
  expect((await recalled("Who is Vantablik?")).join()).toContain("rival");
  await say("Forget what I said about Vantablik.");
  expect(await recalled("Who is Vantablik?")).toEqual([]);
  for (let i = 0; i < 6; i += 1) await say(`Lamp number ${i} stands on shelf ${i}.`);
  await say("Forget what I said about lamps.");
  expect(await recalled("On which shelf is lamp number 3?")).not.toEqual([]);
});

test("a role-play goes on until it is left, and nothing said in it is learned", async () => {
  await say("I love role-playing games. I work at Globex.");
  await say("Let's role-play. You are a smuggler, I am the harbour master.", "Aye!");
  await say("I live in the lighthouse and I hate smugglers.", "You prefer honest folk.");
  await say("My name is Bjarne.");
  expect((await contents()).toSorted()).toEqual(["Prefers role-playing games", "Works at Globex"]);
  await say("Okay, stop. I live in Aarhus.");
  await say("I prefer rye bread.");
  expect(await contents()).toHaveLength(4);
});
