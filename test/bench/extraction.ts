/**
 * Extraction quality over labelled exchanges: `bun run bench:extraction [FILE] [--misses] [--lang=xx] [--engine]`.
 * Runs the pure functions with a ledger in the place of the engine, or with `--engine` a real one, and prints the figures that the description of
 * the data asks for: by language, by family, quiet negatives, multi-turn lines; with --misses every fault with its text.
 */
import { existsSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import { resolve } from "node:path";
import { corrected, corrects, matchesForget } from "../../src/extract/correct.ts";
import { extractExchange } from "../../src/extract/exchange.ts";
import type { Fact, Forget } from "../../src/extract/types.ts";
import { until } from "../support/appliance.ts";
import { startTestEngine, type TestEngine } from "../support/engine.ts";

interface Expectation {
  category: string;
  type: string | null;
  polarity: string;
  value: string;
  mustContain: string[];
  mustNotContain: string[];
  origin: string;
  supersedes?: string;
  forgets?: string;
}

interface Line {
  id: string;
  lang: string;
  note: string;
  before?: string[];
  user?: string;
  assistant?: string;
  expect?: Expectation[];
  turns?: Array<{ role: string; content: string }>;
  finalActive?: string[];
  finalAbsent?: string[];
}

interface Prediction {
  category: string;
  type: string | null;
  polarity: string;
  content: string;
  origin: string;
  fact: Stored | null;
}

const LANGS = ["en", "de", "fr", "es", "pt", "it", "nl", "fi", "zh", "ja"];
const FAMILIES = ["preference", "decision", "pattern", "identity", "instruction", "correction", "forget"];
const out = (text = "") => process.stdout.write(`${text}\n`);

/** What one owner's memory holds. */
interface Stored {
  category: string;
  type: string | null;
  polarity: string;
  content: string;
  origin: string;
  patternId: string;
}

/** One owner: says something, and shows what is active. */
interface Owner {
  say(user: string, assistant: string): Promise<{ changed: Stored[]; forgets: Forget[] }>;
  active(): Promise<Stored[]>;
}

/** The pure functions, and the engine's rules in their shortest form. */
function ledger(): Owner {
  let active: Fact[] = [];
  return {
    active: () => Promise.resolve(active),
    say(user, assistant) {
      const { facts, forgets } = extractExchange(user, assistant);
      for (const forget of forgets) active = active.filter((known) => !matchesForget(forget, known));
      const changed: Fact[] = [];
      for (const fact of facts) {
        let next = fact;
        if (fact.correction) {
          const meant = active.findLast((known) => corrects(fact, known));
          if (meant !== undefined) {
            next = corrected(fact, meant);
            active = active.filter((known) => known !== meant);
          }
        }
        active = [...active.filter((known) => known.key !== next.key), next];
        changed.push(next);
      }
      return Promise.resolve({ changed: changed.filter((fact) => active.includes(fact)), forgets });
    },
  };
}

/** The same through the engine: recorded, learned by the job, read back. */
function engineOwner(box: TestEngine, owner: string): Owner {
  let known = new Map<string, string>();
  const rows = async () =>
    (await box.engine.memories.list({ owner, status: "active", limit: 200, offset: 0 })).data;
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  const stored = (row: Awaited<ReturnType<typeof rows>>[number]): Stored => ({
    category: text(row.metadata["category"]),
    type: row.type,
    polarity: text(row.metadata["polarity"]),
    content: row.content,
    origin: row.origin,
    patternId: text(row.metadata["patternId"]),
  });
  return {
    active: async () => (await rows()).map(stored),
    async say(userMessage, aiResponse) {
      await box.engine.conversations.createSession({ owner, externalId: "chat" }).catch(() => undefined);
      await box.engine.conversations.createEpisode({
        owner,
        externalId: "chat",
        userMessage,
        aiResponse,
        extract: true,
      });
      await until("the jobs to end", async () => {
        const { queued, running } = await box.engine.jobs.counts({ owner: null });
        return queued + running === 0;
      });
      const now = await rows();
      const state = (row: (typeof now)[number]) => `${row.content} ${row.confirmedAt}`;
      const changed = now.filter((row) => known.get(row.id) !== state(row)).map(stored);
      known = new Map(now.map((row) => [row.id, state(row)]));
      return { changed, forgets: extractExchange(userMessage, aiResponse).forgets };
    },
  };
}

const fold = (text: string) =>
  text.normalize("NFC").toLowerCase().replaceAll("’", "'").replaceAll(/\s+/g, " ");
const holds = (text: string, part: string) => fold(text).includes(fold(part));

function categoryFits(prediction: Prediction, expected: Expectation): boolean {
  if (expected.category === "forget") return prediction.category === "forget";
  if (expected.category === "correction") return prediction.category !== "forget";
  return prediction.category === expected.category;
}

function wordsFit(prediction: Prediction, expected: Expectation, forbidden: boolean): boolean {
  return (
    expected.mustContain.every((part) => holds(prediction.content, part)) &&
    (!forbidden || expected.mustNotContain.every((part) => !holds(prediction.content, part)))
  );
}

const polarityFits = (prediction: Prediction, expected: Expectation) =>
  expected.category === "forget" || prediction.polarity === expected.polarity;

interface Counts {
  matched: number;
  predicted: number;
  expected: number;
  polarity: number;
}
const counts = (): Counts => ({ matched: 0, predicted: 0, expected: 0, polarity: 0 });

const args = process.argv.slice(2);
const misses = args.includes("--misses");
const only = args.find((arg) => arg.startsWith("--lang="))?.slice(7);
const folder = process.env["RECOLLECT_EVAL"] ?? resolve(import.meta.dir, "../../../shared/eval");
const file = args.find((arg) => !arg.startsWith("--")) ?? resolve(folder, "extraction-dev.jsonl");
if (!existsSync(file)) {
  out(`no data at ${file}`);
  process.exit(1);
}
const lines = readFileSync(file, "utf8")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map((line) => JSON.parse(line) as Line)
  .filter((line) => only === undefined || line.lang === only);

const byLang = new Map<string, Counts>([...LANGS, "all"].map((name) => [name, counts()]));
const byFamily = new Map<string, Counts>([...FAMILIES, "all"].map((name) => [name, counts()]));
const quiet = new Map<string, { quiet: number; all: number }>();
const faults: string[] = [];
const totals = {
  contaminated: 0,
  secrets: 0,
  wrongOrigin: 0,
  wrongType: 0,
  superseded: 0,
  supersededAll: 0,
  forgotten: 0,
  forgottenAll: 0,
  multi: 0,
  multiAll: 0,
};
const SECRET = /FAKEfake|AKIAFAKE|4111 ?1111|eyJhbGci|Xxx-secret/;

function bump(line: Line, family: string, field: keyof Counts): void {
  for (const row of [byLang.get(line.lang), byLang.get("all"), byFamily.get(family), byFamily.get("all")])
    if (row) row[field] += 1;
}

function predictionsOf(changed: readonly Stored[], forgets: readonly Forget[]): Prediction[] {
  return [
    ...changed.map((fact) => ({
      category: fact.category,
      type: fact.type,
      polarity: fact.polarity,
      content: fact.content,
      origin: fact.origin,
      fact,
    })),
    ...forgets.map((forget) => ({
      category: "forget",
      type: null,
      polarity: "+",
      content: forget.phrase,
      origin: "user",
      fact: null,
    })),
  ];
}

async function runExchange(line: Line, owner: Owner): Promise<void> {
  for (const text of line.before ?? []) await owner.say(text, "");
  const earlier = [...(await owner.active())];
  const { changed, forgets } = await owner.say(line.user ?? "", line.assistant ?? "");
  const active = await owner.active();
  const predictions = predictionsOf(changed, forgets);
  const expected = line.expect ?? [];
  for (const one of predictions)
    if (SECRET.test(one.content)) {
      totals.secrets += 1;
      faults.push(`SECRET ${line.id} ${one.content}`);
    }
  const left = new Set(predictions);
  const unmet: Expectation[] = [];
  for (const one of expected) {
    bump(line, one.category, "expected");
    const fits = [...left]
      .filter(
        (prediction) =>
          categoryFits(prediction, one) && polarityFits(prediction, one) && wordsFit(prediction, one, true),
      )
      .sort(
        (a, b) =>
          Number(b.origin === one.origin) - Number(a.origin === one.origin) ||
          a.content.length - b.content.length,
      );
    const match = fits[0];
    if (match === undefined) {
      unmet.push(one);
      continue;
    }
    left.delete(match);
    bump(line, one.category, "matched");
    bump(line, one.category, "predicted");
    if (match.origin !== one.origin) {
      totals.wrongOrigin += 1;
      faults.push(`ORIGIN ${line.id} ${match.content}`);
    }
    if (one.type !== null && match.type !== one.type) {
      totals.wrongType += 1;
      faults.push(`TYPE ${line.id} ${match.type} ${match.content}`);
    }
    if (one.supersedes !== undefined) {
      totals.supersededAll += 1;
      const old = one.supersedes;
      const known = earlier.filter((fact) => holds(fact.content, old));
      const gone =
        (line.before ?? []).length > 0
          ? known.every((fact) => !active.some((now) => now.content === fact.content))
          : !active.some((fact) => fact.content !== match.content && holds(fact.content, old));
      if (gone) totals.superseded += 1;
      else faults.push(`NOT SUPERSEDED ${line.id} ${JSON.stringify(active.map((fact) => fact.content))}`);
    }
    if (one.forgets !== undefined) {
      totals.forgottenAll += 1;
      const old = one.forgets;
      const right = earlier.every(
        (fact) => active.some((now) => now.content === fact.content) !== holds(fact.content, old),
      );
      if (right) totals.forgotten += 1;
      else
        faults.push(
          `NOT FORGOTTEN ${line.id} ${JSON.stringify(earlier.map((fact) => fact.content))} by ${match.content}`,
        );
    }
  }
  for (const one of unmet) {
    const near = [...left].find(
      (prediction) =>
        categoryFits(prediction, one) && !polarityFits(prediction, one) && wordsFit(prediction, one, true),
    );
    if (near !== undefined) {
      bump(line, one.category, "polarity");
      faults.push(`POLARITY ${line.id} [${one.category}${one.polarity}] got ${near.content}`);
    }
    if (
      [...left].some(
        (prediction) =>
          categoryFits(prediction, one) && polarityFits(prediction, one) && wordsFit(prediction, one, false),
      )
    ) {
      totals.contaminated += 1;
      faults.push(`CONTAMINATED ${line.id}`);
    }
    faults.push(
      `MISS ${line.id} [${one.category}${one.polarity}] ${JSON.stringify(one.mustContain)} in ${JSON.stringify((one.origin === "user" ? line.user : line.assistant)?.slice(0, 300))}`,
    );
  }
  for (const one of left) {
    bump(line, one.category, "predicted");
    faults.push(
      `FALSE ${line.id} (${line.note}) [${one.category}${one.polarity} ${one.fact?.patternId ?? ""}] ${one.content}`,
    );
  }
  if (expected.length === 0) {
    const kind = line.note.split(":")[0] ?? "";
    const row = quiet.get(kind) ?? { quiet: 0, all: 0 };
    row.all += 1;
    if (predictions.length === 0) row.quiet += 1;
    quiet.set(kind, row);
  }
}

async function runTurns(line: Line, owner: Owner): Promise<void> {
  const turns = line.turns ?? [];
  for (let at = 0; at < turns.length; at += 2)
    await owner.say(turns[at]?.content ?? "", turns[at + 1]?.content ?? "");
  const contents = (await owner.active()).map((fact) => fact.content);
  const right =
    (line.finalActive ?? []).every((part) => contents.some((content) => holds(content, part))) &&
    (line.finalAbsent ?? []).every((part) => contents.every((content) => !holds(content, part)));
  totals.multiAll += 1;
  if (right) totals.multi += 1;
  else
    faults.push(
      `TURNS ${line.id} (${line.note}) ${JSON.stringify(contents)} wants ${JSON.stringify(line.finalActive)} without ${JSON.stringify(line.finalAbsent)}`,
    );
  for (const content of contents) if (SECRET.test(content)) totals.secrets += 1;
}

const percent = (part: number, whole: number) => (whole === 0 ? "    –" : (part / whole).toFixed(3));
function table(title: string, rows: Map<string, Counts>): void {
  out(`\n${title.padEnd(12)} precision recall  polarity matched predicted expected`);
  for (const [name, row] of rows) {
    if (row.expected === 0 && row.predicted === 0) continue;
    out(
      `${name.padEnd(12)} ${percent(row.matched, row.predicted).padStart(9)} ${percent(row.matched, row.expected).padStart(6)} ${String(row.polarity).padStart(9)} ${String(row.matched).padStart(7)} ${String(row.predicted).padStart(9)} ${String(row.expected).padStart(8)}`,
    );
  }
}

extractExchange("I like tea.", "ok");
const box = args.includes("--engine") ? startTestEngine({ settings: { enabled: true } }) : null;
box?.start();
for (const line of lines) {
  const owner = box === null ? ledger() : engineOwner(box, line.id);
  if (line.turns === undefined) await runExchange(line, owner);
  else await runTurns(line, owner);
}
await box?.stop();

out(`${file}: ${lines.length} lines; bun ${Bun.version}, ${cpus()[0]?.model ?? "?"}`);
table("language", byLang);
table("family", byFamily);
out("\nquiet");
for (const [kind, row] of quiet) out(`${kind.padEnd(16)} ${row.quiet}/${row.all}`);
out(
  `\ncontaminated ${totals.contaminated}, secrets ${totals.secrets}, wrong origin ${totals.wrongOrigin}, wrong type ${totals.wrongType}`,
);
out(
  `superseded ${totals.superseded}/${totals.supersededAll}, forgotten ${totals.forgotten}/${totals.forgottenAll}, multi-turn ${totals.multi}/${totals.multiAll}`,
);
if (misses) {
  out();
  for (const fault of faults) out(fault);
} else if (faults.length > 0) out(`\n${faults.length} faults; --misses shows them`);
