/** `recollect bench retrieval|latency`: quality and speed on this box, with this box's embedding model, in a folder of their own. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { readCorpus, Scores, sessionTime, spoken, table } from "../bench/corpus.ts";
import type { Conversation } from "../bench/corpus.ts";
import { openDatabase } from "../db/open.ts";
import { readMemorySettings } from "../db/settings.ts";
import { writeMemorySettings } from "../db/settings-write.ts";
import { openEngine } from "../memory/engine.ts";
import { breathe } from "../memory/breathe.ts";
import { exit, stringFlag, UsageError } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";

export const verb: Verb = {
  usage: [
    "recollect bench retrieval FILE",
    "recollect bench latency [--rows N]",
    "",
    '  FILE   {"name", "conversations": [{"id", "sessions": [{"id", "date", "turns": [{"id", "speaker", "role", "text"}]}],',
    '         "questions": [{"id", "category", "question", "evidence": [turn ids]}]}]}',
    "  --rows memories of one owner (10000)",
  ],
  options: { rows: { type: "string" } },
  async run(call) {
    const [action, ...args] = call.args;
    if (action === "retrieval" && args.length === 1) {
      if (!existsSync(args[0]!)) throw new UsageError(`There is no file ${args[0]}.`);
      await withBenchEngine(call, (engine) => retrieval(call, engine, args[0]!));
    } else if (action === "latency" && args.length === 0) {
      const rows = Number(stringFlag(call, "rows") ?? "10000");
      if (!Number.isInteger(rows) || rows < 1 || rows > 1_000_000) {
        throw new UsageError(`--rows is ${stringFlag(call, "rows")}; give a whole number from 1 to 1000000.`);
      }
      await withBenchEngine(call, (engine) => latency(call, engine, rows));
    } else throw new UsageError("This takes: retrieval FILE, or latency.");
    return exit.ok;
  },
};

type Engine = ReturnType<typeof openEngine>["engine"];
const OWNER = "bench";

/** An engine on a temporary folder, with the settings and models of this box's own. */
async function withBenchEngine(call: Call, work: (engine: Engine) => Promise<void>): Promise<void> {
  const { db, config } = call.database();
  const own = readMemorySettings(db);
  db.close();
  const dataDir = mkdtempSync(join(tmpdir(), "recollect-bench-"));
  const models = config.MEMORY_STATIC_CACHE_DIR ?? join(config.dataDir, "embeddings");
  const opened = openEngine({
    config: { ...config, dataDir, MEMORY_STATIC_CACHE_DIR: models },
    log: call.log(config),
    leaseName: "bench",
  });
  try {
    const bench = openDatabase(join(dataDir, "recollect.db"));
    const { embeddingSource, staticEnabled, transformersEnabled, fusion, strategy } = own;
    writeMemorySettings(bench, {
      embeddingSource,
      staticEnabled,
      transformersEnabled,
      fusion,
      strategy,
      retentionDays: 0,
    });
    bench.close();
    opened.start();
    await work(opened.engine);
  } finally {
    await opened.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Waits until every row has its vector; at once where no model is in force. */
async function embedded(call: Call, engine: Engine): Promise<string> {
  const { source, model, reason } = await engine.models.embedding();
  if (source === null) return `words alone (${reason})`;
  await engine.index.start({ force: false });
  for (;;) {
    const { pending, setAside } = await engine.index.progress();
    if (pending === 0)
      return `${source}, ${model}${setAside.count > 0 ? `, ${setAside.count} rows set aside` : ""}`;
    const status = await engine.models.embedding();
    if (!status.available && !status.reason.includes("downloaded") && status.dimensions === null) {
      const { embedder } = await probe(engine);
      if (!embedder) return `words alone (${status.reason})`;
    }
    if (call.world.stderr.terminal) call.world.stderr.write(`\r${pending} to embed `);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Whether a text can be embedded now. */
async function probe(engine: Engine): Promise<{ embedder: boolean }> {
  const { resolution } = await engine.retrieval.retrieve({
    owner: OWNER,
    query: "probe",
    mode: "interactive",
  });
  return { embedder: resolution.embeddingModel !== null };
}

async function retrieval(call: Call, engine: Engine, file: string): Promise<void> {
  let corpus: ReturnType<typeof readCorpus>;
  try {
    corpus = readCorpus(file);
    if (!Array.isArray(corpus.conversations)) throw new Error("it has no list of conversations");
  } catch (error) {
    throw new UsageError(
      `${file} is not such a corpus: ${error instanceof Error ? error.message : String(error)}.`,
    );
  }
  for (const conversation of corpus.conversations) await load(engine, conversation);
  const used = await embedded(call, engine);
  const byCategory = new Map<string, Scores>([["all", new Scores()]]);
  for (const conversation of corpus.conversations) await ask(engine, conversation, byCategory);
  call.print(`${corpus.name}: ${byCategory.get("all")!.n} questions; ${used}`);
  const names = byCategory.get("all")!.names();
  const rows = [...byCategory].toSorted(([a], [b]) => (a === "all" ? -1 : b === "all" ? 1 : a < b ? -1 : 1));
  call.print(
    table([
      ["category", "questions", ...names],
      ...rows.map(([name, scores]) => [
        name,
        String(scores.n),
        ...names.map((one) => scores.mean(one).toFixed(1)),
      ]),
    ]),
  );
}

async function load(engine: Engine, { id, sessions }: Conversation): Promise<void> {
  const lines = sessions.flatMap((session, index) =>
    session.turns.map((turn, at) =>
      JSON.stringify({
        id: turn.id,
        externalId: session.id,
        [turn.role === "user" ? "userMessage" : "aiResponse"]: spoken(turn),
        createdAt: new Date(sessionTime(session.date, index) + at * 1000).toISOString(),
      }),
    ),
  );
  for (let at = 0; at < lines.length; at += 500) {
    const result = await engine.conversations.bulk({
      owner: `${OWNER}-${id}`,
      bytes: new TextEncoder().encode(lines.slice(at, at + 500).join("\n")),
      firstLine: at + 1,
      tooLong: [],
      extract: false,
    });
    const [refused] = result.refused;
    if (refused)
      throw new UsageError(`Turn ${refused.line} of conversation ${id} was refused: ${refused.message}`);
  }
}

async function ask(
  engine: Engine,
  conversation: Conversation,
  byCategory: Map<string, Scores>,
): Promise<void> {
  const owner = `${OWNER}-${conversation.id}`;
  const turns = conversation.sessions.flatMap((session) =>
    session.turns.map((turn) => [turn.id, session.id] as const),
  );
  const sessionOf = new Map(turns);
  const texts = new Map(
    conversation.sessions.flatMap((session) =>
      session.turns.map((turn) => [`${session.id}\n${spoken(turn)}`, turn.id] as const),
    ),
  );
  for (const { question, category, evidence } of conversation.questions) {
    const gold = new Set(evidence.filter((unit) => sessionOf.has(unit)));
    if (gold.size === 0) continue;
    const { data } = await engine.conversations.searchEpisodes({
      owner,
      query: question,
      limit: 200,
      mode: "hybrid",
    });
    const ranked = data
      .map((row) => texts.get(`${row.externalId}\n${row.userMessage || row.aiResponse}`))
      .filter((unit) => unit !== undefined);
    const own = byCategory.get(String(category)) ?? new Scores();
    byCategory.set(String(category), own);
    for (const scores of [byCategory.get("all")!, own])
      scores.add(ranked, gold, (unit) => sessionOf.get(unit) ?? "");
  }
}

async function latency(call: Call, engine: Engine, rows: number): Promise<void> {
  const topics = [
    "tea",
    "sailing",
    "Postgres",
    "Turku",
    "chess",
    "hiking",
    "bread",
    "violin",
    "TypeScript",
    "gardening",
  ];
  const started = performance.now();
  for (let i = 0; i < rows; i++) {
    const content = `Note ${i}: ${topics[i % 10]} and ${topics[(i * 7 + 3) % 10]} on day ${i % 365}, place ${i % 97}`;
    await engine.memories.create({ owner: OWNER, origin: "import", content });
  }
  const written = performance.now() - started;
  const used = await embedded(call, engine);
  const times: number[] = [];
  for (let i = 0; i < 200; i++) {
    const query = `What did I note about ${topics[i % 10]} at place ${(i * 13) % 97}?`;
    const before = performance.now();
    await engine.retrieval.retrieve({
      owner: OWNER,
      query,
      mode: "interactive",
      kinds: ["memory"],
      count: false,
    });
    times.push(performance.now() - before);
    // As between two requests: what the engine reads in slices gets its turn.
    await breathe();
  }
  times.sort((a, b) => a - b);
  const at = (share: number) =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))]!.toFixed(2);
  call.print(`${cpus()[0]?.model.trim() ?? "?"} × ${cpus().length}, ${rows} memories of one owner, ${used}`);
  call.print(
    `write ${Math.round(rows / (written / 1000))} a second · retrieve p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms (200 questions)`,
  );
}
