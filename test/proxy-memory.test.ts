import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { startProxy, waitFor } from "./support/proxy.ts";
import type { TestProxy } from "./support/proxy.ts";
import { startUpstream } from "./support/upstream.ts";
import type { MockUpstream } from "./support/upstream.ts";

type Message = Record<string, unknown> & { role: string; content: unknown };
const chat = "/v1/chat/completions";
let upstream: MockUpstream;
let proxy: TestProxy;

beforeAll(async () => {
  upstream = await startUpstream();
  proxy = await startProxy({
    providers: [
      { id: "m", baseUrl: upstream.url, wire: ["chat", "responses", "messages"], systemRole: "system" },
    ],
  });
});
afterAll(async () => {
  await proxy.stop();
  upstream.close();
});
beforeEach(() => upstream.reply(undefined));
afterEach(() => {
  proxy.settings({
    enabled: true,
    injectionPlacement: "auto",
    maxTokens: 2000,
    recordEpisodes: true,
    injectEpisodes: true,
  });
});

/** A person with a key of their own and one conversation that grows as clients make it grow. */
function person(secret = proxy.key(), path = chat) {
  return {
    secret,
    id: () =>
      proxy.rows<{ id: string }>("SELECT id FROM api_keys WHERE prefix = ?", `${secret.slice(0, 7)}…`)[0]!.id,
    send: (messages: Message[], more: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
      proxy.post(
        path,
        { model: "m/x", messages, ...more },
        { authorization: `Bearer ${secret}`, ...headers },
      ),
    async say(messages: Message[], text: string, headers: Record<string, string> = {}) {
      messages.push({ role: "user", content: text });
      const response = await this.send(messages, {}, headers);
      expect(response.status).toBe(200);
      const reply = (await response.json()) as { choices: { message: { content: string } }[] };
      messages.push({ role: "assistant", content: reply.choices[0]!.message.content });
      await proxy.settled();
      return response;
    },
    episodes: () =>
      proxy.rows<{
        user_message: string;
        ai_response: string;
        metadata: string;
        complete: number;
        session_id: number;
      }>(
        "SELECT e.* FROM episodes e JOIN owners o ON o.id = e.owner_id WHERE o.name = (SELECT id FROM api_keys WHERE prefix = ?) ORDER BY e.id",
        `${secret.slice(0, 7)}…`,
      ),
    memories: () =>
      proxy.rows<{ content: string; status: string; key: string }>(
        "SELECT m.* FROM memories m JOIN owners o ON o.id = m.owner_id WHERE o.name = (SELECT id FROM api_keys WHERE prefix = ?) ORDER BY m.seq",
        `${secret.slice(0, 7)}…`,
      ),
  };
}

const sent = () => upstream.last().body["messages"] as Message[];
const blockIn = (messages: Message[]) => JSON.stringify(messages).match(/Memory context:/g)?.length ?? 0;
const session = (response: Response) => response.headers.get("x-omniroute-session-id")!;

describe("learn and recall", () => {
  test("in the next turn, in another session of the same key, never with another key", async () => {
    const ada = person();
    const talk: Message[] = [];
    const first = await ada.say(talk, "I prefer TypeScript for new services.");
    expect(first.headers.get("x-memory-injected")).toBe("0");
    expect(first.headers.get("x-memory-reason")).toBe("nothing-relevant");
    expect(ada.memories().map((memory) => memory.content)).toEqual([expect.stringContaining("TypeScript")]);

    const second = await ada.say(talk, "What do I prefer for new services?");
    expect(Number(second.headers.get("x-memory-injected"))).toBeGreaterThan(0);
    expect(Number(second.headers.get("x-memory-tokens"))).toBeGreaterThan(0);
    expect(second.headers.get("x-memory-reason")).toBeNull();
    expect(session(second)).toBe(session(first));
    const at = sent().findIndex((message) => message.role === "system");
    expect(at).toBe(sent().length - 2);
    expect(sent()[at]!.content).toMatch(/^Memory context:[\s\S]*TypeScript/);

    const fresh: Message[] = [];
    const other = await ada.say(fresh, "What do I prefer for new services?");
    expect(Number(other.headers.get("x-memory-injected"))).toBeGreaterThan(0);
    expect(session(other)).not.toBe(session(first));

    const eve = person();
    const none = await eve.say([], "What do I prefer for new services?");
    expect(none.headers.get("x-memory-injected")).toBe("0");
    expect(upstream.last().raw).not.toContain("TypeScript");
  });

  test("content as parts is read like a string and gets one part more", async () => {
    const ada = person();
    await (
      await ada.send([{ role: "user", content: [{ type: "text", text: "I prefer Rust for tools." }] }])
    ).text();
    await proxy.settled();
    expect(ada.memories()).toHaveLength(1);
    proxy.providers.change("m", { systemRole: "first-only" });
    await (
      await ada.send([{ role: "user", content: [{ type: "text", text: "What do I prefer for tools?" }] }])
    ).text();
    const content = sent()[0]!.content as { type: string; text: string }[];
    expect(content).toHaveLength(2);
    expect(content[0]!.text).toStartWith("Memory context:");
    expect(content[1]!.text).toBe("What do I prefer for tools?");
    await (await ada.send([{ role: "user", content: "What do I prefer for tools?" }])).text();
    expect(sent()[0]!.content).toMatch(/^Memory context:[\s\S]*\n\nWhat do I prefer for tools\?$/);
    proxy.providers.change("m", { systemRole: "system" });
  });

  test("a recalled memory is never learned again from itself", async () => {
    const ada = person();
    const talk: Message[] = [];
    await ada.say(talk, "I prefer Postgres for storage.");
    upstream.reply(() => "You prefer Postgres for storage.");
    for (let i = 0; i < 10; i++) await ada.say(talk, "What do I prefer for storage?");
    expect(ada.memories()).toHaveLength(1);
    // Said ten times in the same words, answered in the same words: ten exchanges.
    expect(ada.episodes()).toHaveLength(11);
  });

  test("the receipt says what was injected, and why", async () => {
    const ada = person();
    await ada.say([], "I prefer Postgres for storage.");
    const response = await ada.say([], "What do I prefer for storage?");
    const id = response.headers.get("x-memory-receipt")!;
    const receipt = await proxy.engine.receipts.get({ owner: ada.id(), id });
    expect(receipt).toMatchObject({
      id,
      apiKeyId: ada.id(),
      sessionId: session(response),
      provider: "m",
      model: "x",
      placement: "before-user",
      reason: null,
    });
    expect(receipt.injected).toBe(Number(response.headers.get("x-memory-injected")));
    expect(receipt.candidates.some((one) => one.injected && one.kind === "memory")).toBe(true);
    expect(receipt.text).toContain("Postgres");
    const usage = proxy.rows("SELECT * FROM usage WHERE receipt_id = ?", id)[0]!;
    expect(usage).toMatchObject({ route: "chat", status: 200, tokens_injected: receipt.tokens });
  });
});

describe("sessions", () => {
  test("two conversations that begin alike stay two, and find themselves again", async () => {
    const ada = person();
    const a: Message[] = [];
    const b: Message[] = [];
    const first = session(await ada.say(a, "hi"));
    const second = session(await ada.say(b, "hi"));
    expect(second).not.toBe(first);
    const nextA = session(await ada.say(a, "I am planning a garden."));
    const nextB = session(await ada.say(b, "I am planning a trip."));
    expect(new Set([nextA, nextB])).toEqual(new Set([first, second]));
    expect(session(await ada.say(a, "go on"))).toBe(nextA);
    expect(session(await ada.say(b, "go on"))).toBe(nextB);
  });

  test("system messages tell conversations apart, a clock in them does not", async () => {
    const ada = person();
    const one: Message[] = [{ role: "system", content: "You are a cook." }];
    const two: Message[] = [{ role: "system", content: "You are a pilot." }];
    const a = session(await ada.say(one, "hello there"));
    const b = session(await ada.say(two, "hello there"));
    expect(session(await ada.say(one, "next"))).toBe(a);
    expect(session(await ada.say(two, "next"))).toBe(b);
    const clock: Message[] = [{ role: "system", content: "It is 12:03." }];
    const c = session(await ada.say(clock, "what a day"));
    clock[0]!.content = "It is 12:07.";
    expect(session(await ada.say(clock, "and more"))).toBe(c);
  });

  test("a name wins: headers in their order, then the body", async () => {
    const ada = person();
    const ask = async (headers: Record<string, string>, more: Record<string, unknown> = {}) =>
      session(await ada.send([{ role: "user", content: "hi" }], more, headers));
    expect(await ask({ "x-omniroute-session-id": " a ", "x-session-id": "b" })).toBe("a");
    expect(await ask({ "x-openwebui-chat-id": "c" })).toBe("c");
    expect(await ask({ "x-session-id": "x".repeat(129), session_id: "d" })).toBe("d");
    expect(await ask({}, { metadata: { session_id: "e" }, prompt_cache_key: "f" })).toBe("e");
    expect(await ask({}, { prompt_cache_key: "f" })).toBe("f");
  });

  test("unknown history gets an id derived from it", async () => {
    const history = [
      { role: "user", content: "an old question" },
      { role: "assistant", content: "an old answer" },
      { role: "user", content: "a new one" },
    ];
    const a = session(await person().send(history));
    const b = session(await person().send(history));
    expect(a).toBe(b);
    expect(a).toMatch(/^h-[0-9a-f]{32}$/);
  });
});

describe("exchanges", () => {
  test("a tool loop of many requests is one exchange", async () => {
    const ada = person();
    const messages: Message[] = [{ role: "user", content: "I prefer metric units. Measure the room." }];
    for (let step = 0; step < 20; step++) {
      upstream.reply(() =>
        step < 19
          ? {
              text: step === 3 ? "Let me look." : "",
              tools: [{ id: `call_${step}`, name: "measure", arguments: "{}" }],
            }
          : "It is 4 m wide.",
      );
      const response = await ada.send(messages);
      expect(response.status).toBe(200);
      const { message } = (
        (await response.json()) as { choices: { message: Message & { tool_calls?: unknown } }[] }
      ).choices[0]!;
      messages.push({
        role: "assistant",
        content: message.content,
        ...(message.tool_calls ? { tool_calls: message.tool_calls } : {}),
      });
      if (step < 19)
        messages.push({ role: "tool", tool_call_id: `call_${step}`, content: "4 m; I prefer feet" });
    }
    await proxy.settled();
    const episodes = ada.episodes();
    expect(episodes).toHaveLength(1);
    expect(episodes[0]).toMatchObject({
      user_message: "I prefer metric units. Measure the room.",
      ai_response: "It is 4 m wide.",
    });
    expect(JSON.parse(episodes[0]!.metadata)).toMatchObject({ toolCalls: 19 });
    expect(ada.memories().map((memory) => memory.content)).toEqual([expect.stringContaining("metric units")]);
    expect(
      proxy.rows(
        "SELECT DISTINCT session_id FROM receipts WHERE owner_id = (SELECT id FROM owners WHERE name = ?)",
        ada.id(),
      ),
    ).toHaveLength(1);
    const next = await ada.say(messages, "thanks");
    expect(ada.episodes()).toHaveLength(2);
    expect(ada.episodes()[1]!.session_id).toBe(ada.episodes()[0]!.session_id);
    expect(next.status).toBe(200);
  });

  test("the same turn again replaces its exchange and what only it taught", async () => {
    const ada = person();
    const messages: Message[] = [{ role: "user", content: "I prefer blue pens." }];
    await ada.say(messages.slice(0, 0).concat(), "hello");
    const talk: Message[] = [
      { role: "user", content: "start" },
      { role: "assistant", content: "Noted." },
    ];
    const named = { "x-session-id": "regenerate" };
    upstream.reply(() => "First answer.");
    await ada.say([...talk], "I prefer blue pens.", named);
    const memory = ada.memories()[0]!;
    upstream.reply(() => "Second answer.");
    await ada.say([...talk], "I prefer blue pens.", named);
    const replies = ada.episodes().map((episode) => episode.ai_response);
    expect(replies).toContain("Second answer.");
    expect(replies).not.toContain("First answer.");
    expect(
      ada
        .memories()
        .filter((one) => one.status === "active")
        .map((one) => one.content),
    ).toEqual([memory.content]);
  });

  test("a memory that a person touched since is kept when its turn is said again", async () => {
    const ada = person();
    const named = { "x-session-id": "kept" };
    await ada.say([], "I prefer green tea.", named);
    const { id } = proxy.rows<{ id: string }>("SELECT id FROM memories WHERE content LIKE '%green tea%'")[0]!;
    await proxy.engine.memories
      .update({ owner: ada.id(), id, patch: { pinned: true } } as never)
      .catch(() => {
        proxy.db.run("UPDATE memories SET by_hand = 1 WHERE id = ?", [id]);
      });
    await ada.say([], "I prefer green tea.", named);
    expect(ada.memories().map((memory) => memory.content)).toContainEqual(
      expect.stringContaining("green tea"),
    );
    expect(proxy.rows("SELECT 1 FROM memories WHERE id = ?", id)).toHaveLength(1);
  });

  test("a stream that is cut is recorded as incomplete and teaches nothing", async () => {
    const ada = person();
    upstream.reply(() => ({ text: "You prefer nothing at all.", fault: { kind: "cut", after: 3 } }));
    await (await ada.send([{ role: "user", content: "I prefer oak tables." }], { stream: true })).text();
    await waitFor(() => ada.episodes().length === 1);
    await proxy.settled();
    expect(ada.episodes()[0]).toMatchObject({ complete: 0, user_message: "I prefer oak tables." });
    expect(ada.memories()).toEqual([]);
  });

  test("when the client leaves, its words teach and the partial reply does not", async () => {
    const ada = person();
    upstream.reply(() => ({ text: `You always prefer pine. ${"x".repeat(4000)}`, every: 5 }));
    const leave = new AbortController();
    const response = await proxy.post(
      chat,
      { model: "m/x", stream: true, messages: [{ role: "user", content: "I prefer walnut shelves." }] },
      { authorization: `Bearer ${ada.secret}` },
      { signal: leave.signal },
    );
    const reader = response.body!.getReader();
    for (let i = 0; i < 12; i++) await reader.read();
    leave.abort();
    await waitFor(() => ada.episodes().length === 1);
    await proxy.settled();
    expect(ada.episodes()[0]!.complete).toBe(0);
    expect(ada.memories().map((memory) => memory.content)).toEqual([expect.stringContaining("walnut")]);
  });

  test("an upstream error leaves usage only", async () => {
    const ada = person();
    upstream.reply(() => ({ status: 401 }));
    await (await ada.send([{ role: "user", content: "I prefer iron." }])).text();
    await waitFor(
      () => proxy.rows("SELECT 1 FROM usage WHERE status = 401 AND key_id = ?", ada.id()).length === 1,
    );
    expect(ada.episodes()).toEqual([]);
    expect(proxy.rows("SELECT 1 FROM jobs")).toEqual([]);
  });

  test("secrets in a chat are not stored", async () => {
    const ada = person();
    await ada.say([], "My key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH and I prefer tea.");
    expect(JSON.stringify(ada.episodes())).not.toContain("abcdefghijklmnopqrstuvwxyz0123456789");
    expect(sent().at(-1)!.content).toContain("sk-proj-");
  });

  test("without recordEpisodes words still teach", async () => {
    proxy.settings({ recordEpisodes: false });
    const ada = person();
    await ada.say([], "I prefer linen shirts.");
    expect(ada.episodes()).toEqual([]);
    expect(ada.memories()).toHaveLength(1);
  });
});

describe("what is left alone", () => {
  const told = "I prefer slow travel by train.";
  const ask = "How do I prefer to travel?";

  async function teller() {
    const ada = person();
    await ada.say([], told);
    return ada;
  }

  test("no-memory: nothing in, nothing kept but usage without text", async () => {
    for (const value of ["true", "1", "YES"]) {
      const ada = await teller();
      const response = await ada.send(
        [{ role: "user", content: `${ask} I prefer night trains.` }],
        {},
        { "x-omniroute-no-memory": value },
      );
      expect(response.headers.get("x-memory-injected")).toBe("0");
      expect(response.headers.get("x-memory-reason")).toBe("opt-out");
      await response.text();
      await waitFor(() => proxy.rows("SELECT 1 FROM usage WHERE key_id = ?", ada.id()).length === 2);
      expect(blockIn(sent())).toBe(0);
      expect(ada.episodes()).toHaveLength(1);
      expect(ada.memories()).toHaveLength(1);
    }
  });

  test("modes: read injects, write records and learns", async () => {
    const ada = await teller();
    const read = await ada.send([{ role: "user", content: `${ask}` }], {}, { "x-memory-mode": "read" });
    expect(Number(read.headers.get("x-memory-injected"))).toBeGreaterThan(0);
    await read.text();
    await proxy.settled();
    expect(ada.episodes()).toHaveLength(1);
    const write = await ada.send(
      [{ role: "user", content: `${ask} I prefer ferries.` }],
      {},
      { "x-memory-mode": "write" },
    );
    expect(write.headers.get("x-memory-reason")).toBe("opt-out");
    await write.text();
    await waitFor(() => ada.episodes().length === 2);
    await proxy.settled();
    expect(ada.memories().map((memory) => memory.content)).toContainEqual(expect.stringContaining("ferries"));
    const off = await ada.send([{ role: "user", content: ask }], {}, { "x-memory-mode": "off" });
    expect(off.headers.get("x-memory-reason")).toBe("opt-out");
  });

  test("scopes of the key", async () => {
    const only = person(proxy.key({ scopes: ["proxy"] }));
    const response = await only.send([{ role: "user", content: told }]);
    expect(response.headers.get("x-memory-reason")).toBe("off");
    await response.text();
    await waitFor(() => proxy.rows("SELECT 1 FROM usage WHERE key_id = ?", only.id()).length === 1);
    expect(only.episodes()).toEqual([]);
    const writer = person(proxy.key({ scopes: ["proxy", "write:memory"] }));
    await writer.say([], told);
    expect(writer.memories()).toHaveLength(1);
    expect((await writer.say([], ask)).headers.get("x-memory-injected")).toBe("0");
  });

  test("memory off, on the box or for the key, stores no word", async () => {
    const off = person(proxy.key({ memory: "off" }));
    expect((await off.send([{ role: "user", content: told }])).headers.get("x-memory-reason")).toBe("off");
    proxy.settings({ enabled: false });
    const ada = person(proxy.key({ memory: "on" }));
    await waitFor(async () => {
      const response = await ada.send([{ role: "user", content: told }]);
      await response.text();
      return response.headers.get("x-memory-reason") === "off";
    });
    const before = ada.episodes().length;
    await (await ada.send([{ role: "user", content: told }])).text();
    await waitFor(() => proxy.rows("SELECT 1 FROM usage WHERE key_id = ?", ada.id()).length >= 2);
    expect(ada.episodes()).toHaveLength(before);
    expect(off.episodes()).toEqual([]);
  });

  test("a budget of 0 or a narrower one, never a wider one", async () => {
    const ada = await teller();
    const zero = await ada.send([{ role: "user", content: ask }], {}, { "x-memory-max-tokens": "0" });
    expect(zero.headers.get("x-memory-reason")).toBe("off");
    proxy.settings({ maxTokens: 90 });
    const wide = await ada.send([{ role: "user", content: ask }], {}, { "x-memory-max-tokens": "16000" });
    expect(Number(wide.headers.get("x-memory-tokens"))).toBeLessThanOrEqual(90);
  });

  test("housekeeping calls of clients", async () => {
    const ada = await teller();
    const calls: [Message[], Record<string, unknown>][] = [
      [
        [
          {
            role: "user",
            content: `### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n${ask}`,
          },
        ],
        {},
      ],
      [[{ role: "user", content: `### Task:\nSuggest 3-5 relevant follow-up questions\n${ask}` }], {}],
      [
        [
          { role: "system", content: "You are a title generator. You output ONLY a thread title." },
          { role: "user", content: ask },
        ],
        {},
      ],
      [[{ role: "user", content: "quota" }], { max_tokens: 1 }],
    ];
    for (const [messages, more] of calls) {
      const response = await ada.send(messages, more);
      expect(response.headers.get("x-memory-reason")).toBe("housekeeping");
      await response.text();
      expect(blockIn(sent())).toBe(0);
    }
    await proxy.settled();
    expect(ada.episodes()).toHaveLength(1);
  });

  test("keyless requests have no owner", async () => {
    const open = await startProxy({
      providers: [{ id: "m", baseUrl: upstream.url }],
      env: { REQUIRE_API_KEY: "false" },
    });
    const response = await open.post(
      chat,
      { model: "m/x", messages: [{ role: "user", content: told }] },
      { authorization: "" },
    );
    expect(response.status).toBe(200);
    expect(response.headers.get("x-memory-reason")).toBe("no-owner");
    await response.text();
    expect(open.rows("SELECT 1 FROM episodes")).toEqual([]);
    expect((await open.post(chat, {}, { authorization: "Bearer rk-unknown" })).status).toBe(401);
    await open.stop();
  });

  test("an image alone has no query; a body whose only user text is an agent's wrapper has no turn", async () => {
    const ada = await teller();
    const image = await ada.send([
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }] },
    ]);
    expect(image.status).toBe(200);
    expect(image.headers.get("x-memory-injected")).toBe("0");
    const wrapped = await ada.send([
      { role: "user", content: `<environment_context>${ask}</environment_context>` },
    ]);
    expect(wrapped.headers.get("x-memory-injected")).toBe("0");
  });
});

describe("the prefix that providers cache", () => {
  test("is byte-identical from turn to turn, with blocks in it", async () => {
    const ada = person();
    await ada.say([], "I prefer TypeScript for new services.");
    await ada.say([], "My favourite city is Turku.");
    await ada.say([], "I prefer tea in the morning.");
    const talk: Message[] = [{ role: "system", content: "Be brief." }];
    const bodies: Message[][] = [];
    for (const question of [
      "What do I prefer for new services?",
      "What is my favourite city?",
      "Tell me a joke.",
      "What do I prefer in the morning?",
      "What do I prefer for new services?",
    ]) {
      await ada.say(talk, question);
      bodies.push(sent());
    }
    expect(blockIn(bodies.at(-1)!)).toBeGreaterThanOrEqual(3);
    for (const [index, messages] of bodies.entries()) {
      const next = bodies[index + 1];
      if (next) expect(next.slice(0, messages.length)).toEqual(messages);
    }
    // What was given once is not repeated.
    const all = JSON.stringify(bodies.at(-1));
    expect(all.split("Prefers TypeScript").length).toBe(2);
  });

  test("a tool loop keeps the block of its turn and gets no other", async () => {
    const ada = person();
    await ada.say([], "I prefer TypeScript for new services.");
    const messages: Message[] = [{ role: "user", content: "Use what I prefer for new services." }];
    upstream.reply(() => ({ tools: [{ id: "call_1", name: "f", arguments: "{}" }] }));
    const { message } = ((await (await ada.send(messages)).json()) as { choices: { message: Message }[] })
      .choices[0]!;
    await proxy.settled();
    const first = sent();
    await ada.say([], "I prefer short functions in services.");
    messages.push(message, { role: "tool", tool_call_id: "call_1", content: "ok" });
    upstream.reply(() => "Done.");
    const response = await ada.send(messages);
    await response.text();
    expect(sent().slice(0, first.length)).toEqual(first);
    expect(blockIn(sent())).toBe(1);
    expect(Number(response.headers.get("x-memory-injected"))).toBeGreaterThan(0);
  });

  test("no cached token is lost against talking to the provider directly", async () => {
    const ada = person();
    await ada.say([], "I prefer TypeScript for new services.");
    const talk: Message[] = [{ role: "system", content: "A long and stable instruction. ".repeat(40) }];
    let lost = 0;
    for (const question of [
      "What do I prefer for new services?",
      "and why is that?",
      "fine, thanks",
      "one more thing",
    ]) {
      const before = talk.length;
      await ada.say(talk, question);
      const row = proxy.rows<{ tokens_cached: number }>(
        "SELECT tokens_cached FROM usage WHERE key_id = ? ORDER BY id DESC LIMIT 1",
        ada.id(),
      )[0]!;
      const direct = before === 1 ? 0 : JSON.stringify(talk.slice(0, before - 1)).length / 4;
      if (before > 1 && row.tokens_cached < direct * 0.8) lost++;
    }
    expect(lost).toBe(0);
  });

  test("after an hour without a request old blocks are dropped", async () => {
    const ada = person();
    await ada.say([], "I prefer TypeScript for new services.");
    const talk: Message[] = [];
    await ada.say(talk, "What do I prefer for new services?");
    const old = blockIn(sent());
    expect(old).toBe(1);
    proxy.db.run("UPDATE blocks SET used_at = used_at - 3700000");
    await ada.say(talk, "Tell me a joke about cats.");
    expect(blockIn(sent().slice(0, 2))).toBe(0);
  });

  test("old blocks are paid first; with less than a fifth left nothing new goes in", async () => {
    const ada = person();
    await ada.say([], "I prefer TypeScript for new services.");
    await ada.say([], "My favourite city is Turku.");
    const talk: Message[] = [];
    const first = await ada.say(talk, "What do I prefer for new services?");
    const budget = Number(first.headers.get("x-memory-tokens")) + 10;
    const second = await ada.say(talk, "What is my favourite city?", {
      "x-memory-max-tokens": String(budget),
    });
    expect(blockIn(sent())).toBe(1);
    expect(Number(second.headers.get("x-memory-tokens"))).toBeLessThanOrEqual(budget);
    expect(JSON.stringify(sent()[0])).toContain("TypeScript");
  });
});

describe("a provider that refuses the form", () => {
  test("is asked again in weaker forms, and the one that worked is remembered", async () => {
    for (const [roles, form] of [
      ["first-only", "user"],
      ["none", "user"],
    ] as const) {
      const picky = await startUpstream({ roles });
      const id = `picky-${roles}`;
      proxy.providers.create({ id, baseUrl: picky.url, systemRole: "system" });
      const ada = person();
      await ada.say([], "I prefer TypeScript for new services.");
      const ask = () =>
        ada.send(
          [
            { role: "user", content: "hello" },
            { role: "assistant", content: "Hello." },
            { role: "user", content: "What do I prefer for new services?" },
          ],
          { model: `${id}/x` },
        );
      await waitFor(async () => (await ask()).status === 200);
      expect(
        picky
          .asked()
          .map((one) => one.refused === null)
          .slice(0, 2),
      ).toEqual([false, true]);
      expect(JSON.stringify(picky.last().body)).toContain("Memory context:");
      const before = picky.asked().length;
      const again = await ask();
      expect(Number(again.headers.get("x-memory-injected"))).toBeGreaterThan(0);
      expect(picky.asked().length - before).toBe(1);
      expect(
        JSON.parse(
          proxy.rows<{ learned: string }>("SELECT learned FROM providers WHERE id = ?", id)[0]!.learned,
        ),
      ).toMatchObject({ forms: { x: form } });
      proxy.providers.change(id, { systemRole: "system" });
      expect(
        proxy.rows<{ learned: string }>("SELECT learned FROM providers WHERE id = ?", id)[0]!.learned,
      ).toBe("{}");
      picky.close();
    }
  });

  test("goes through without memory as the last resort, and says so", async () => {
    const ada = person();
    await ada.say([], "I prefer TypeScript for new services.");
    upstream.reply((seen) =>
      seen.raw.includes("Memory context:")
        ? { status: 500, body: "Jinja template error: message order" }
        : "fine",
    );
    const response = await ada.send([{ role: "user", content: "What do I prefer for new services?" }], {
      model: "m/last",
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-memory-injected")).toBe("0");
    expect(response.headers.get("x-memory-reason")).toBe("rejected");
    const receipt = await proxy.engine.receipts
      .get({ owner: ada.id(), id: response.headers.get("x-memory-receipt")! })
      .catch(() => null);
    await waitFor(
      async () =>
        (await proxy.engine.receipts.list({ owner: ada.id(), limit: 1, offset: 0 })).data[0]?.reason ===
        "rejected",
    );
    void receipt;
    proxy.providers.change("m", {});
  });

  test("when every form fails the client gets the first answer and nothing is remembered", async () => {
    const ada = person();
    await ada.say([], "I prefer TypeScript for new services.");
    upstream.reply((_, count) => ({ status: 400, body: { error: { message: `refused ${count}` } } }));
    const before = upstream.asked().length;
    const response = await ada.send([{ role: "user", content: "What do I prefer for new services?" }]);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: { message: "refused 0" } });
    expect(upstream.asked().length - before).toBe(3);
    expect(proxy.rows<{ learned: string }>("SELECT learned FROM providers WHERE id = 'm'")[0]!.learned).toBe(
      "{}",
    );
  });
});

describe("many people behind one key", () => {
  test("by header and by body field, apart from each other", async () => {
    for (const [fields, name] of [
      [{ userHeader: "x-openwebui-user-id" }, "header"],
      [{ userField: "user" }, "field"],
    ] as const) {
      const secret = proxy.key(fields);
      const as = async (who: string | null, text: string) => {
        const response = await proxy.post(
          chat,
          {
            model: "m/x",
            messages: [{ role: "user", content: text }],
            ...(name === "field" && who ? { user: who } : {}),
          },
          {
            authorization: `Bearer ${secret}`,
            ...(name === "header" && who ? { "x-openwebui-user-id": who } : {}),
          },
        );
        await response.text();
        await proxy.settled();
        return response;
      };
      await as("ada", "I prefer TypeScript for new services.");
      expect(
        Number((await as("ada", "What do I prefer for new services?")).headers.get("x-memory-injected")),
      ).toBeGreaterThan(0);
      expect((await as("bob", "What do I prefer for new services?")).headers.get("x-memory-injected")).toBe(
        "0",
      );
      expect((await as(null, "What do I prefer for new services?")).headers.get("x-memory-reason")).toBe(
        "no-owner",
      );
    }
  });
});

test("the budget is at most a tenth of the model's context where that is known", async () => {
  const small = await startUpstream({ models: [{ id: "tiny", context_length: 900 }] });
  proxy.providers.create({ id: "small", baseUrl: small.url, systemRole: "system" });
  const ada = person();
  for (const thing of ["tea", "bread", "soup", "rice", "beans"])
    await ada.say([], `I prefer ${thing} with a rather long explanation of why that is so for lunch.`);
  const response = await ada.send([{ role: "user", content: "What do I prefer for lunch?" }], {
    model: "small/tiny",
  });
  expect(Number(response.headers.get("x-memory-tokens"))).toBeGreaterThan(0);
  expect(Number(response.headers.get("x-memory-tokens"))).toBeLessThanOrEqual(90);
  small.close();
});

test("a value that was replaced meanwhile is told anew in a conversation that had the old one", async () => {
  const ada = person();
  await ada.say([], "I live in Trondheim.");
  const open: Message[] = [];
  await ada.say(open, "Where do I live?");
  await ada.say([], "I moved to Bodø.");
  await ada.say(open, "So where do I live now?");
  expect(upstream.last().raw).toContain("Lives in Bodø");
  // Once is enough.
  await ada.say(open, "And where do I live today?");
  expect(upstream.last().raw.split("Lives in Bodø")).toHaveLength(2);
});

test("what was to be forgotten is not put back into a conversation that had it", async () => {
  const ada = person();
  await ada.say([], "I live in Trondheim.");
  const open: Message[] = [];
  await ada.say(open, "Where do I live?");
  expect(upstream.last().raw).toContain("Lives in Trondheim");
  await ada.say([], "Please forget that I live in Trondheim.");
  await ada.say(open, "Thanks. And what is a fjord?");
  expect(upstream.last().raw).not.toContain("Trondheim");
});

test("what was archived by hand is not put back either", async () => {
  const ada = person();
  await ada.say([], "I prefer walnut bread.");
  const open: Message[] = [];
  await ada.say(open, "Which bread do I prefer?");
  const line = "Prefers walnut bread";
  expect(upstream.last().raw).toContain(line);
  const { data } = await proxy.engine.memories.list({ owner: ada.id(), limit: 1, offset: 0 });
  await proxy.engine.memories.update({ owner: ada.id(), id: data[0]!.id, patch: { status: "archived" } });
  await ada.say(open, "Thanks. And what is a fjord?");
  expect(upstream.last().raw).not.toContain(line);
  const it = { owner: ada.id(), id: data[0]!.id };
  await proxy.engine.memories.update({ ...it, patch: { status: "active" } });
  const other: Message[] = [];
  await ada.say(other, "Which bread do I prefer?");
  expect(upstream.last().raw).toContain(line);
  const history = await proxy.engine.memories.history(it);
  const archived = history.findIndex((version) => version.cause === "unarchive") + 1;
  expect(await proxy.engine.memories.restore({ ...it, version: archived })).toMatchObject({
    status: "archived",
  });
  await ada.say(other, "Thanks. And what is a fjord?");
  expect(upstream.last().raw).not.toContain(line);
});

test("a receipt that is not kept is not named: errors, and replies that break off", async () => {
  const ada = person();
  await ada.say([], "I prefer walnut bread.");
  for (const plan of [
    { status: 429, body: { error: { message: "Slow down" } }, headers: { "retry-after": "60" } },
    { text: "This one breaks off", fault: { kind: "cut" as const, after: 1 } },
  ]) {
    upstream.reply(() => plan);
    const response = await ada.send([{ role: "user", content: "Which bread do I prefer?" }]);
    expect(response.status).toBeGreaterThan(400);
    expect(response.headers.get("x-memory-injected")).toBe("1");
    expect(response.headers.get("x-memory-receipt")).toBeNull();
    await response.text();
  }
});

test("the demo shows the whole loop without a model", async () => {
  const demo = await startProxy({ demo: true });
  const say = async (content: string) =>
    (await (await demo.post(chat, { model: "demo/echo", messages: [{ role: "user", content }] })).json()) as {
      choices: { message: { content: string } }[];
    };
  expect((await say("I prefer TypeScript over Go.")).choices[0]!.message.content).toBe(
    "You said: I prefer TypeScript over Go.",
  );
  await demo.settled();
  const second = (await say("What do I prefer over Go?")).choices[0]!.message.content;
  expect(second).toMatch(/^You said: What do I prefer over Go\?\n\nI remember:\n- \[.*TypeScript/);
  // Its answers do not grow by holding one another.
  for (let i = 0; i < 3; i++) {
    await demo.settled();
    const again = (await say("What do I prefer over Go?")).choices[0]!.message.content;
    expect(again).toContain("User said: What do I prefer over Go?");
    expect(again.split("I remember:")).toHaveLength(2);
  }
  await demo.stop();
});

test("passthroughAuth: the client's own authorization goes to the provider, our key does not", async () => {
  const theirs = await startUpstream({ key: "client-own-token" });
  proxy.providers.create({ id: "theirs", baseUrl: theirs.url, passthroughAuth: true });
  const body = { model: "theirs/x", messages: [{ role: "user", content: "hi" }] };
  const good = await proxy.post(chat, body, {
    authorization: "Bearer client-own-token",
    "x-recollect-key": proxy.secret,
  });
  expect(good.status).toBe(200);
  expect(theirs.last().headers["x-recollect-key"]).toBeUndefined();
  const ours = await proxy.post(chat, body);
  expect(ours.status).toBe(401);
  expect(theirs.last().headers.authorization).toBeUndefined();
  theirs.close();
});

test("a fallback provider gets a body made by its own policy, from what the client sent", async () => {
  const first = await startUpstream();
  const second = await startUpstream({ roles: "first-only" });
  first.reply(() => ({ status: 503, headers: { "retry-after": "0" } }));
  proxy.providers.create({ id: "second", baseUrl: second.url, systemRole: "first-only" });
  proxy.providers.create({ id: "first", baseUrl: first.url, systemRole: "system", fallbacks: ["second"] });
  const ada = person();
  await ada.say([], "I prefer TypeScript for new services.");
  const response = await ada.send(
    [
      { role: "system", content: "Be brief." },
      { role: "user", content: "hello" },
      { role: "assistant", content: "Hello." },
      { role: "user", content: "What do I prefer for new services?" },
    ],
    { model: "first/x" },
  );
  expect(response.status).toBe(200);
  expect(second.last().refused).toBeNull();
  const roles = (one: MockUpstream) =>
    (one.last().body["messages"] as Message[]).map((message) => message.role);
  expect(roles(first)).toEqual(["system", "user", "assistant", "system", "user"]);
  expect(roles(second)).toEqual(["system", "user", "assistant", "user"]);
  await response.text();
  const receipt = await proxy.engine.receipts.get({
    owner: ada.id(),
    id: response.headers.get("x-memory-receipt")!,
  });
  expect(receipt).toMatchObject({
    provider: "second",
    placement: "in-user",
    fallbacks: expect.arrayContaining(["provider second"]),
  });
  first.close();
  second.close();
});

test("system-first puts the block at the very front; session scope sees its session alone", async () => {
  const ada = person();
  await ada.say([], "I prefer TypeScript for new services.", { "x-session-id": "work" });
  proxy.settings({ injectionPlacement: "system-first" });
  const messages: Message[] = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "What do I prefer for new services?" },
  ];
  await (await ada.send(messages)).text();
  expect(sent()[0]!.content).toMatch(/^Memory context:/);
  expect(sent().slice(1)).toEqual(messages);
  const other = await ada.send(
    messages,
    {},
    { "x-memory-scope": "session", "x-session-id": "elsewhere", "x-memory-mode": "read" },
  );
  expect(other.headers.get("x-memory-injected")).toBe("0");
  const same = await ada.send(
    messages,
    {},
    { "x-memory-scope": "session", "x-session-id": "work", "x-memory-mode": "read" },
  );
  expect(Number(same.headers.get("x-memory-injected"))).toBeGreaterThan(0);
});
