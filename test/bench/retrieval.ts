/**
 * `bun run bench:retrieval [FILE…] [--model none,static,transformers] [--by-category]`: how well conversations are found,
 * through the routes of a real appliance (POST /episodes/bulk, GET /episodes/search). A turn is an episode: the user's
 * words in `userMessage`, anybody else's in `aiResponse`. Each conversation belongs to an owner of its own. Beside our
 * ranking: plain FTS5 BM25 (porter, stop words dropped from the query), computed here from the same texts.
 */
import { Database } from "bun:sqlite";
import { readdirSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../src/log.ts";
import { isStopWord } from "../../src/text/stopwords.ts";
import { startAppliance, until, type Appliance } from "../support/appliance.ts";
import { STATIC_REPO, testModels, TRANSFORMERS_REPO } from "../support/models.ts";
import {
  readCorpus,
  Scores,
  sessionTime,
  spoken,
  table,
  type Conversation,
  type Corpus,
} from "../../src/bench/corpus.ts";
import { unrelated } from "./unrelated.ts";

/** Folder of the development corpora. */
const evalFolder = process.env["RECOLLECT_EVAL"] ?? join(import.meta.dir, "../../../shared/eval");

const args = process.argv.slice(2);
const option = (name: string) => {
  const at = args.indexOf(`--${name}`);
  return at < 0 ? null : (args.splice(at, 2)[1] ?? null);
};
const models = (option("model") ?? "none,static,transformers").split(",");
const limit = Number(option("limit") ?? 200);
const files =
  args.length > 0
    ? args
    : readdirSync(evalFolder)
        .filter((file) => file.endsWith(".json"))
        .map((file) => join(evalFolder, file));
const folder = testModels();
const out = (text: string) => process.stdout.write(`${text}\n`);

type Sorted = { conversation: Conversation; question: Conversation["questions"][number]; gold: Set<string> };

function questionsOf(corpus: Corpus): Sorted[] {
  return corpus.conversations.flatMap((conversation) => {
    const turns = new Set(conversation.sessions.flatMap((session) => session.turns.map((turn) => turn.id)));
    return conversation.questions
      .map((question) => ({
        conversation,
        question,
        gold: new Set(question.evidence.filter((id) => turns.has(id))),
      }))
      .filter(({ gold }) => gold.size > 0);
  });
}

function sessionsOf(conversation: Conversation): (turn: string) => string {
  const of = new Map(
    conversation.sessions.flatMap((session) => session.turns.map((turn) => [turn.id, session.id])),
  );
  return (turn) => of.get(turn) ?? "";
}

/** FTS5's own BM25 over "speaker: text". */
function plain(corpus: Corpus): Map<string, Scores> {
  const scores = newScores();
  for (const conversation of corpus.conversations) {
    const db = new Database(":memory:");
    db.run("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61')");
    const turns = conversation.sessions.flatMap((session) => session.turns);
    const insert = db.query("INSERT INTO t (rowid, text) VALUES (?, ?)");
    turns.forEach((turn, at) => insert.run(at + 1, spoken(turn)));
    const find = db.query<{ rowid: number }, [string, number]>(
      "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?",
    );
    for (const { question, gold } of questionsOf({ ...corpus, conversations: [conversation] })) {
      const words = question.question.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
      const kept = words.filter((word) => !isStopWord(word, "en"));
      const match = (kept.length > 0 ? kept : words).map((word) => `"${word}"`).join(" OR ");
      const ranked = match === "" ? [] : find.all(match, limit).map(({ rowid }) => turns[rowid - 1]!.id);
      note(scores, question.category, ranked, gold, sessionsOf(conversation));
    }
    db.close();
  }
  return scores;
}

function newScores(): Map<string, Scores> {
  return new Map([["all", new Scores()]]);
}

function note(
  scores: Map<string, Scores>,
  category: string | number,
  ranked: readonly string[],
  gold: ReadonlySet<string>,
  sessionOf: (turn: string) => string,
): void {
  const one = scores.get(`category ${category}`) ?? new Scores();
  scores.set(`category ${category}`, one);
  for (const score of [scores.get("all")!, one]) score.add(ranked, gold, sessionOf);
}

async function load(box: Appliance, corpus: Corpus, keys: Map<string, string>): Promise<void> {
  for (const conversation of corpus.conversations) {
    const made = await box.call("POST", "/api/keys", { name: `bench ${conversation.id}` });
    const { secret } = made.body as { secret: string };
    if (made.status !== 201) throw new Error(`key: ${made.status} ${JSON.stringify(made.body)}`);
    keys.set(conversation.id, secret);
    const lines = conversation.sessions.flatMap((session, index) =>
      session.turns.map((turn, at) =>
        JSON.stringify({
          id: turn.id,
          externalId: session.id,
          [turn.role === "user" ? "userMessage" : "aiResponse"]: spoken(turn),
          createdAt: new Date(sessionTime(session.date, index) + at * 1000).toISOString(),
        }),
      ),
    );
    const response = await fetch(`${box.url}/episodes/bulk`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/x-ndjson" },
      body: lines.join("\n"),
    });
    const answer = (await response.json()) as { created?: number; refused?: unknown[] };
    if (answer.created !== lines.length)
      throw new Error(`bulk: ${response.status} ${JSON.stringify(answer).slice(0, 500)}`);
  }
}

async function embedded(box: Appliance): Promise<number> {
  const started = performance.now();
  const { index } = box.server.thread.engine;
  await until(
    "vectors",
    async () => {
      const { pending, current } = await index.progress();
      return pending === 0 && current > 0;
    },
    3_600_000,
  );
  return performance.now() - started;
}

/**
 * The relevance floor through POST /context: unrelated questions that get nothing, gold among the first ten of the search
 * that is still given, tokens given to a question that can be answered.
 */
async function floor(box: Appliance, corpus: Corpus, keys: Map<string, string>): Promise<string> {
  let rejected = 0;
  let asked = 0;
  let found = 0;
  let given = 0;
  const tokens: number[] = [];
  const context = async (key: string, query: string) => {
    const { status, body } = await box.call("POST", "/context", { query, maxTokens: 2000 }, key);
    if (status !== 200) throw new Error(`context: ${status} ${JSON.stringify(body)}`);
    return body as { data: { kind: string; id: number | string }[]; totalTokensUsed: number };
  };
  for (const conversation of corpus.conversations) {
    const key = keys.get(conversation.id)!;
    const ids = await unitsOf(box, conversation, key);
    for (const question of unrelated) {
      asked++;
      if ((await context(key, question)).data.length === 0) rejected++;
    }
    for (const { question, gold } of questionsOf({ ...corpus, conversations: [conversation] })) {
      const searched = await box.call(
        "GET",
        `/episodes/search?q=${encodeURIComponent(question.question)}&limit=10`,
        undefined,
        key,
      );
      const first = (searched.body as { data: { id: number }[] }).data.map((row) => row.id);
      const { data, totalTokensUsed } = await context(key, question.question);
      const kept = new Set(data.filter((row) => row.kind === "episode").map((row) => Number(row.id)));
      const golden = first.filter((id) => gold.has(ids.get(id) ?? ""));
      found += golden.length;
      given += golden.filter((id) => kept.has(id)).length;
      tokens.push(totalTokensUsed);
    }
  }
  const sorted = tokens.toSorted((a, b) => a - b);
  const share = (n: number, of: number) => `${((100 * n) / Math.max(1, of)).toFixed(1)} %`;
  return `${share(rejected, asked)} of ${asked} unrelated questions get nothing; ${share(given, found)} of the gold in the first ten is given; an answerable question gets ${sorted[sorted.length >> 1]} tokens (median)`;
}

/** Row ids with the units they are. */
async function unitsOf(
  box: Appliance,
  conversation: Conversation,
  key: string,
): Promise<Map<number, string>> {
  const ids = new Map<number, string>();
  for (const session of conversation.sessions) {
    const { body } = await box.call(
      "GET",
      `/sessions/by-external/${encodeURIComponent(session.id)}`,
      undefined,
      key,
    );
    const { id } = body as { id: number };
    for (let offset = 0; offset < session.turns.length; offset += 200) {
      const page = await box.call(
        "GET",
        `/sessions/${id}/episodes?limit=200&offset=${offset}`,
        undefined,
        key,
      );
      (page.body as { data: { id: number }[] }).data.forEach((row, at) =>
        ids.set(row.id, session.turns[offset + at]!.id),
      );
    }
  }
  return ids;
}

async function ours(
  box: Appliance,
  corpus: Corpus,
  keys: Map<string, string>,
  mode: string,
): Promise<{ scores: Map<string, Scores>; ms: number[] }> {
  const scores = newScores();
  const ms: number[] = [];
  for (const conversation of corpus.conversations) {
    const key = keys.get(conversation.id)!;
    const ids = await unitsOf(box, conversation, key);
    for (const { question, gold } of questionsOf({ ...corpus, conversations: [conversation] })) {
      const started = performance.now();
      const { status, body } = await box.call(
        "GET",
        `/episodes/search?q=${encodeURIComponent(question.question)}&limit=${limit}&mode=${mode}`,
        undefined,
        key,
      );
      ms.push(performance.now() - started);
      if (status !== 200) throw new Error(`search: ${status} ${JSON.stringify(body)}`);
      const ranked = (body as { data: { id: number }[] }).data.map((row) => ids.get(row.id) ?? "?");
      note(scores, question.category, ranked, gold, sessionsOf(conversation));
    }
  }
  return { scores, ms };
}

out(
  `${cpus()[0]?.model ?? "?"} × ${cpus().length}, Bun ${Bun.version}; static is the stand-in ${STATIC_REPO}, transformers ${TRANSFORMERS_REPO}`,
);
for (const file of files) {
  const corpus = readCorpus(file);
  const found: { name: string; scores: Map<string, Scores> }[] = [
    { name: "plain FTS5 BM25", scores: plain(corpus) },
  ];
  const times: string[] = [];
  const floors: string[] = [];
  for (const model of models) {
    if (model !== "none" && folder === null) continue;
    const box = await startAppliance({
      memory: false,
      demo: false,
      log: {
        ...silentLog,
        error: (event, fields) => process.stderr.write(`${event} ${Bun.inspect(fields)}\n`),
      },
      env: {
        MEMORY_STATIC_MODEL: STATIC_REPO,
        MEMORY_TRANSFORMERS_MODEL: TRANSFORMERS_REPO,
        ...(folder === null ? {} : { MEMORY_STATIC_CACHE_DIR: folder }),
      },
    });
    try {
      const settings = await box.call("PUT", "/api/settings/memory", {
        retentionDays: 0,
        embeddingSource: model === "none" ? "auto" : model,
      });
      if (settings.status !== 200) throw new Error(`settings: ${JSON.stringify(settings.body)}`);
      const keys = new Map<string, string>();
      await load(box, corpus, keys);
      if (model !== "none") times.push(`${model} embedded in ${((await embedded(box)) / 1000).toFixed(1)} s`);
      for (const mode of model === "none" ? ["hybrid"] : ["semantic", "hybrid"]) {
        const { scores, ms } = await ours(box, corpus, keys, mode);
        found.push({ name: model === "none" ? "ours, no model" : `ours, ${model}, ${mode}`, scores });
        const sorted = ms.toSorted((a, b) => a - b);
        times.push(`${model} ${mode} p50 ${sorted[sorted.length >> 1]!.toFixed(1)} ms over HTTP`);
      }
      floors.push(`${model}: ${await floor(box, corpus, keys)}`);
    } finally {
      await box.stop();
    }
  }
  const all = found[0]!.scores.get("all")!;
  out(
    `\n${corpus.name}: ${all.n} questions, ${corpus.conversations.length} conversations (a unit is a turn; sess@10: sessions in the order of their first turn)`,
  );
  const columns = all.names();
  out(
    table([
      ["ranking", ...columns],
      ...found.map(({ name, scores }) => [
        name,
        ...columns.map((column) => scores.get("all")!.mean(column).toFixed(1)),
      ]),
    ]),
  );
  const categories = [...found[0]!.scores.keys()].filter((key) => key !== "all").sort();
  out(`\nrec@10 / nDCG@10 by category`);
  out(
    table([
      ["ranking", ...categories.map((name) => `${name} (${found[0]!.scores.get(name)!.n})`)],
      ...found.map(({ name, scores }) => [
        name,
        ...categories.map((category) => {
          const one = scores.get(category);
          return one ? `${one.mean("rec@10").toFixed(1)} / ${one.mean("nDCG@10").toFixed(1)}` : "–";
        }),
      ]),
    ]),
  );
  out(`\nrelevance floor, budget 2,000 tokens\n${floors.join("\n")}`);
  out(`\n${times.join("; ")}`);
}
