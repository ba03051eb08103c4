/**
 * `bun run bench:recall [FILE]`: the main job on real conversations. Each is sent through POST /v1/chat/completions turn by
 * turn, as a client does (its history grows, the provider answers with the next turn); then its questions are asked in
 * fresh sessions with `x-memory-mode: read`, and what reaches the provider is searched for the gold turns. Beside it:
 * plain FTS5 BM25 over the same turns, filled to the tokens that our block had.
 */
import { Database } from "bun:sqlite";
import { cpus } from "node:os";
import { join } from "node:path";
import { readCorpus, spoken, table } from "../../src/bench/corpus.ts";
import type { Conversation, Turn } from "../../src/bench/corpus.ts";
import { estimateTokens } from "../../src/memory/budget.ts";
import { isStopWord } from "../../src/text/stopwords.ts";
import { startAppliance, until } from "../support/appliance.ts";
import type { Appliance } from "../support/appliance.ts";

const out = (text: string) => process.stdout.write(`${text}\n`);
const file =
  process.argv[2] ??
  join(process.env["RECOLLECT_EVAL"] ?? join(import.meta.dir, "../../../shared/eval"), "locomo-dev.json");

type Message = { role: "user" | "assistant"; content: string };

/** The provider: answers with what the script says, and keeps what it was sent. */
const upstream = { reply: "", received: [] as { role: string; content: string }[] };
using server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    if (!new URL(request.url).pathname.endsWith("/chat/completions"))
      return new Response("no", { status: 404 });
    const body = (await request.json()) as { messages: { role: string; content: string }[] };
    upstream.received = body.messages;
    return Response.json({
      id: "chatcmpl-bench",
      object: "chat.completion",
      created: 1,
      model: "script",
      choices: [{ index: 0, message: { role: "assistant", content: upstream.reply }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    });
  },
});

async function chat(
  box: Appliance,
  key: string,
  messages: Message[],
  headers: Record<string, string>,
): Promise<Response> {
  const response = await fetch(`${box.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "script", messages }),
  });
  if (!response.ok) throw new Error(`chat: ${response.status} ${await response.text()}`);
  await response.arrayBuffer();
  return response;
}

/** A session as exchanges: the speaker who has the first word of the conversation is the user; a session that the other side opens gets a greeting. */
function exchanges(turns: readonly Turn[], person: string): { user: string; assistant: string }[] {
  const found: { user: string[]; assistant: string[] }[] = [];
  for (const turn of turns) {
    let last = found.at(-1);
    const user = turn.speaker === person;
    if (!last || (user && last.assistant.length > 0)) found.push((last = { user: [], assistant: [] }));
    (user ? last.user : last.assistant).push(spoken(turn));
  }
  return found.map(({ user, assistant }) => ({
    user: user.join("\n") || "Hello!",
    assistant: assistant.join("\n"),
  }));
}

async function feed(box: Appliance, key: string, { sessions }: Conversation): Promise<number> {
  let sent = 0;
  const person = sessions[0]?.turns[0]?.speaker ?? "";
  for (const session of sessions) {
    const history: Message[] = [];
    for (const { user, assistant } of exchanges(session.turns, person)) {
      history.push({ role: "user", content: user });
      upstream.reply = assistant;
      await chat(box, key, history, { "x-session-id": session.id });
      history.push({ role: "assistant", content: assistant });
      sent++;
    }
  }
  return sent;
}

const plain = (text: string) => text.replace(/\s+/g, " ").trim().toLowerCase();

/** Whether a text holds a turn: whole, or at least one sentence of it of 20 characters or more (recall may give an excerpt). */
function holds(text: string, turn: Turn): { whole: boolean; part: boolean } {
  const said = plain(turn.text);
  const whole = said !== "" && text.includes(said);
  const part =
    whole ||
    said.split(/(?<=[.!?…])\s+/).some((sentence) => sentence.length >= 20 && text.includes(sentence));
  return { whole, part };
}

/** Turns of plain BM25 in rank order. */
function reference(conversation: Conversation): (question: string) => Turn[] {
  const db = new Database(":memory:");
  db.run("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61')");
  const turns = conversation.sessions.flatMap((session) => session.turns);
  const insert = db.query("INSERT INTO t (rowid, text) VALUES (?, ?)");
  turns.forEach((turn, at) => insert.run(at + 1, spoken(turn)));
  const find = db.query<{ rowid: number }, [string]>(
    "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 100",
  );
  return (question) => {
    const words = question.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
    const kept = words.filter((word) => !isStopWord(word, "en"));
    const match = (kept.length > 0 ? kept : words).map((word) => `"${word}"`).join(" OR ");
    return match === "" ? [] : find.all(match).map(({ rowid }) => turns[rowid - 1]!);
  };
}

class Tally {
  questions = 0;
  gold = 0;
  whole = 0;
  part = 0;
  any = 0;
  tokens = 0;
  nothing = 0;

  add(text: string, gold: readonly Turn[], tokens: number): void {
    const found = gold.map((turn) => holds(text, turn));
    this.questions++;
    this.gold += gold.length;
    this.whole += found.filter((one) => one.whole).length;
    this.part += found.filter((one) => one.part).length;
    this.any += Number(found.some((one) => one.part));
    this.tokens += tokens;
    this.nothing += Number(text === "");
  }

  row(name: string): string[] {
    const share = (n: number, of: number) => `${((100 * n) / Math.max(1, of)).toFixed(1)} %`;
    return [
      name,
      share(this.any, this.questions),
      share(this.part, this.gold),
      share(this.whole, this.gold),
      share(this.nothing, this.questions),
      String(Math.round(this.tokens / Math.max(1, this.questions))),
    ];
  }
}

const corpus = readCorpus(file);
const box = await startAppliance({ demo: false, upstream: `http://127.0.0.1:${server.port}/v1` });
const settled = () =>
  until(
    "what was said to be learned",
    async () => {
      const { queued, running } = await box.server.thread.engine.jobs.counts({ owner: null });
      return queued + running === 0;
    },
    600_000,
  );
const ours = new Tally();
const bm25 = new Tally();
const ten = new Tally();
let sent = 0;
const started = performance.now();
for (const conversation of corpus.conversations) {
  const { body } = await box.call("POST", "/api/keys", { name: `bench ${conversation.id}` });
  const key = (body as { secret: string }).secret;
  sent += await feed(box, key, conversation);
  await settled();
  const turns = new Map(
    conversation.sessions.flatMap(({ turns: all }) => all.map((turn) => [turn.id, turn])),
  );
  const ranked = reference(conversation);
  for (const { id, question, evidence } of conversation.questions) {
    const gold = evidence.map((unit) => turns.get(unit)).filter((turn) => turn !== undefined);
    if (gold.length === 0) continue;
    upstream.reply = "I see.";
    await chat(box, key, [{ role: "user", content: question }], {
      "x-memory-mode": "read",
      "x-session-id": `ask-${id}`,
    });
    const sentText = upstream.received.map((message) => message.content).join("\n");
    const block = sentText.includes("Memory context:") ? sentText.replace(question, "") : "";
    const tokens = estimateTokens(block);
    ours.add(plain(block), gold, tokens);
    const filled: string[] = [];
    let left = tokens;
    const order = ranked(question);
    for (const turn of order) {
      const cost = estimateTokens(spoken(turn));
      if (cost > left) continue;
      left -= cost;
      filled.push(spoken(turn));
    }
    bm25.add(plain(filled.join("\n")), gold, tokens - left);
    const first = order.slice(0, 10).map(spoken).join("\n");
    ten.add(plain(first), gold, estimateTokens(first));
  }
}
const { total } = await box.server.thread.engine.memories.list({
  owner: null,
  status: "active",
  limit: 1,
  offset: 0,
});
out(`${cpus()[0]?.model.trim() ?? "?"} × ${cpus().length}, Bun ${Bun.version}; ${corpus.name}, words alone`);
out(
  `${corpus.conversations.length} conversations, ${sent} exchanges through /v1/chat/completions, ${total} memories learned; ${ours.questions} questions in fresh sessions, ${((performance.now() - started) / 1000).toFixed(0)} s in all`,
);
out("");
out(
  table([
    ["inside the injected text", "a gold turn", "gold turns", "of them whole", "nothing given", "tokens"],
    ours.row("Recollect, 2,000 tokens at most"),
    bm25.row("plain BM25, filled to the same tokens"),
    ten.row("plain BM25, first ten turns"),
  ]),
);
await box.stop();
