/** The neutral shape of the retrieval corpora, and how well a ranking finds what it should. */
import { readFileSync } from "node:fs";

export type Turn = { id: string; speaker: string; role: string; text: string };
export type Conversation = {
  id: string;
  sessions: { id: string; date?: string; turns: Turn[] }[];
  questions: { id: string; category: string | number; question: string; evidence: string[] }[];
};
export type Corpus = { name: string; conversations: Conversation[] };

export function readCorpus(file: string): Corpus {
  return JSON.parse(readFileSync(file, "utf8")) as Corpus;
}

/** "1:56 pm on 8 May, 2023", ISO, or whatever else Date can read; else one day after the other from 2023 on. */
export function sessionTime(date: string | undefined, index: number): number {
  const said = /^(\d{1,2}):(\d{2}) ?(am|pm) on (\d{1,2}) (\w+),? (\d{4})$/i.exec(date ?? "");
  const text = said
    ? `${said[4]} ${said[5]} ${said[6]} ${(Number(said[1]) % 12) + (said[3]!.toLowerCase() === "pm" ? 12 : 0)}:${said[2]} UTC`
    : (date ?? "");
  const parsed = Date.parse(text);
  return Number.isNaN(parsed) ? Date.UTC(2023, 0, 1 + index) : parsed;
}

/** What a turn says, with who says it. */
export const spoken = (turn: Turn) => (turn.speaker === "" ? turn.text : `${turn.speaker}: ${turn.text}`);

/** Means over questions, in per cent. */
export class Scores {
  n = 0;
  #sums = new Map<string, number>();
  #order: string[] = [];

  /** `ranked` best first, each unit once. */
  add(ranked: readonly string[], gold: ReadonlySet<string>, sessionOf: (unit: string) => string): void {
    this.n++;
    const first = ranked.slice(0, 10);
    const hits = first.filter((unit) => gold.has(unit)).length;
    let dcg = 0;
    first.forEach((unit, at) => {
      if (gold.has(unit)) dcg += 1 / Math.log2(at + 2);
    });
    let ideal = 0;
    for (let at = 0; at < Math.min(10, gold.size); at++) ideal += 1 / Math.log2(at + 2);
    const sessions = [...new Set(ranked.map(sessionOf))].slice(0, 10);
    const goldSessions = new Set([...gold].map(sessionOf));
    this.#put("rec@10", hits / gold.size);
    this.#put("nDCG@10", dcg / ideal);
    this.#put("any@5", Number(ranked.slice(0, 5).some((unit) => gold.has(unit))));
    this.#put("all@10", Number(hits === gold.size));
    this.#put(
      "sess@10",
      [...goldSessions].filter((session) => sessions.includes(session)).length / goldSessions.size,
    );
  }

  #put(name: string, value: number): void {
    if (!this.#sums.has(name)) this.#order.push(name);
    this.#sums.set(name, (this.#sums.get(name) ?? 0) + value);
  }

  names(): readonly string[] {
    return this.#order;
  }

  mean(name: string): number {
    return ((this.#sums.get(name) ?? 0) / Math.max(1, this.n)) * 100;
  }
}

/** Lines of a table with columns as wide as their widest cell. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows
    .map((row) =>
      row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!))).join("  "),
    )
    .join("\n");
}
