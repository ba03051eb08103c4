import { afterEach, beforeEach, expect, test } from "bun:test";
import { openSeal } from "../src/seal.ts";
import type { MemorySettingsPatch } from "../src/memory/settings.ts";
import { createProviders } from "../src/upstream/providers.ts";
import { until } from "./support/appliance.ts";
import { startTestEngine } from "./support/engine.ts";
import type { TestEngine } from "./support/engine.ts";

type Memory = {
  category: string;
  content: string;
  value: string;
  negative: boolean;
  slot: string | null;
  replaces: string | null;
  speaker: string;
};
type Answer = { memories: Memory[]; forget: string[]; entities: object[]; relationships: object[] };

/** A chat completion server that insists on a strict JSON schema and answers what the test says. */
function startModel() {
  const asked: { user: string }[] = [];
  let answer: Partial<Answer> | string | number = {};
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (new URL(request.url).pathname !== "/v1/chat/completions")
        return new Response("no such path", { status: 404 });
      const body = (await request.json()) as {
        model: string;
        messages: { role: string; content: string }[];
        response_format?: {
          type: string;
          json_schema: { name: string; strict: boolean; schema: { required: string[] } };
        };
      };
      const format = body.response_format;
      const strict =
        format?.type === "json_schema" &&
        format.json_schema.strict &&
        format.json_schema.schema.required.length === 4;
      if (body.model !== "reader" || !strict)
        return Response.json({ error: { message: "bad request" } }, { status: 400 });
      asked.push({ user: body.messages.at(-1)!.content });
      if (typeof answer === "number") return new Response("down", { status: answer });
      const content =
        typeof answer === "string"
          ? answer
          : JSON.stringify({ memories: [], forget: [], entities: [], relationships: [], ...answer });
      return Response.json({
        id: "c",
        object: "chat.completion",
        created: 1,
        model: "reader",
        choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
        usage: { prompt_tokens: 400, completion_tokens: 100, total_tokens: 500 },
      });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    asked,
    says(next: Partial<Answer> | string | number) {
      answer = next;
    },
    stop: () => server.stop(true),
  };
}

const memory = (content: string, value: string, more: Partial<Memory> = {}): Memory => ({
  category: "preference",
  content,
  value,
  negative: false,
  slot: null,
  replaces: null,
  speaker: "user",
  ...more,
});

let model: ReturnType<typeof startModel>;
let box: TestEngine;
async function start(settings: MemorySettingsPatch = {}) {
  box = startTestEngine({ settings: { enabled: true, extractionModel: "box/reader", ...settings } });
  createProviders({ db: box.db, seal: openSeal(box.dataDir) }).create({ id: "box", baseUrl: model.url });
  await box.engine.conversations.createSession({ owner: "anna", externalId: "chat" });
  box.start();
}
beforeEach(() => {
  model = startModel();
});
afterEach(async () => {
  await box.stop();
  await model.stop();
});

async function say(userMessage: string, aiResponse = ""): Promise<void> {
  await box.engine.conversations.createEpisode({
    owner: "anna",
    externalId: "chat",
    userMessage,
    aiResponse,
    extract: true,
  });
}
const idle = () =>
  until("no job to be due", async () => {
    const due = box.db
      .query("SELECT 1 FROM jobs WHERE state = 'running' OR run_at <= ?")
      .get(box.clock.now());
    return due === null;
  });
const active = async () =>
  (await box.engine.memories.list({ owner: "anna", status: "active", limit: 50, offset: 0 })).data;

test("the model is asked instead of the patterns, and what it read is stored as its own", async () => {
  await start();
  model.says({ memories: [memory("Finds long meetings tiring", "long meetings", { negative: true })] });
  await say("Honestly, long meetings just drain me.");
  await idle();
  const [stored, ...more] = await active();
  expect(more).toEqual([]);
  expect(stored).toMatchObject({
    content: "Finds long meetings tiring",
    origin: "user",
    metadata: { source: "model", polarity: "-" },
  });
});

test("what the model invents, and what it is told not to read, teaches nothing", async () => {
  await start();
  model.says({ memories: [memory("Loves skydiving", "skydiving")] });
  await say("I prefer tea. My key is sk-abcdefghijklmnop1234.\n```\nI like code\n```");
  await idle();
  expect(await active()).toEqual([]);
  expect(model.asked[0]!.user).not.toContain("sk-abcdefghijklmnop1234");
  expect(model.asked[0]!.user).not.toContain("I like code");
});

test.each([
  ["is down", 500],
  ["answers nonsense", "I think you are great."],
  ["answers another shape", '{"facts":[]}'],
])("a model that %s is replaced by the patterns, and the job is done", async (_, answer) => {
  await start();
  model.says(answer);
  await say("I prefer oat milk.");
  await idle();
  expect((await active()).map((one) => one.content)).toEqual(["Prefers oat milk"]);
});

test("beyond the tokens of a day the patterns read", async () => {
  await start({ extractionDailyTokens: 100 });
  await say("I prefer oat milk.");
  await idle();
  expect(model.asked).toEqual([]);
  expect(await active()).toHaveLength(1);
});

test("turns are read several at once, and each statement belongs to the exchange it was said in", async () => {
  await start({ extractEveryTurns: 3 });
  model.says({ memories: [memory("Keeps bees", "bees"), memory("Sails on weekends", "sail")] });
  await say("I have kept bees for years.");
  await say("What should I cook?");
  await idle();
  expect(model.asked).toEqual([]);
  await say("On weekends I mostly sail.");
  await idle();
  expect(model.asked).toHaveLength(1);
  const stored = await active();
  const episodes = (
    await box.engine.conversations.listEpisodes({ owner: "anna", sessionId: 1, limit: 10, offset: 0 })
  ).data;
  const home = (value: string) =>
    episodes.find((one) => one.id === stored.find((kept) => kept.metadata["value"] === value)!.episodeId)!
      .userMessage;
  expect(home("bees")).toContain("bees");
  expect(home("sail")).toContain("sail");
});

test("the rest of a batch is read when its session was quiet for ten minutes", async () => {
  await start({ extractEveryTurns: 5 });
  model.says({ memories: [memory("Keeps bees", "bees")] });
  await say("I have kept bees for years.");
  await idle();
  expect(await active()).toEqual([]);
  box.clock.offset = 10 * 60_000 + 1000;
  await until("the batch to be read", async () => (await active()).length === 1);
});

test("entities that the model names are stored when asked for, with what they are to the user", async () => {
  await start({ extractEntities: true });
  model.says({
    entities: [{ name: "Mirja", type: "person" }],
    relationships: [{ from: "user", label: "sister", to: "Mirja" }],
  });
  await say("Mirja, my sister, is visiting.");
  await idle();
  const { data } = await box.engine.conversations.listEntities({ owner: "anna", limit: 10, offset: 0 });
  expect(data.map((one) => [one.name, one.type])).toContainEqual(["Mirja", "person"]);
});
