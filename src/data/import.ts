/**
 * Import of JSON lines, piece by piece. What is there already, by id or else by content, is not made again; a line that
 * cannot be taken is refused with its number and stops no other. The owner is the caller, whatever the file says.
 */
import type { Database } from "bun:sqlite";
import type { MemoryRow } from "../db/memories.ts";
import { transact } from "../db/open.ts";
import { ensureOwner } from "../db/owners.ts";
import { AppError, invalid } from "../error.ts";
import { nextBatch, type RecordHooks } from "../conversations/deps.ts";
import { breathe } from "../memory/breathe.ts";
import type { Redact } from "../memory/fields.ts";
import type { Store } from "../memory/store.ts";
import type { headLine, importLine, ImportLine } from "../schemas/import.ts";
import { check } from "../validate.ts";
import { FORMAT } from "./export.ts";
import { createConversationWriter } from "./import-conversations.ts";
import { createMemoryWriter } from "./import-memories.ts";

export type ImportDeps = {
  db: Database;
  store: Store;
  hooks: RecordHooks;
  redact: Redact;
  now: () => number;
  /** An import is at work: what can wait does. */
  hold: () => void;
  /** A memory of the file is here already, as it is. */
  kept: (row: MemoryRow) => void;
};

export type ImportInput = {
  owner: string;
  /** What `begin` gave. */
  id: string;
  /** Whole lines; see `linePieces`. */
  bytes: Uint8Array;
  firstLine: number;
  tooLong: readonly number[];
};

export type ImportCounts = { created: number; updated: number; unchanged: number };
export type ImportResult = ImportCounts & { refused: { line: number; message: string }[]; redacted: number };

/** What became of one line. */
export type Outcome = keyof ImportCounts;

/** The file's own numbers and what they became here, kept while an import runs. */
export type Import = {
  owner: number;
  episodes: Map<number, number>;
  entities: Map<number, number>;
  /** uuid in the file → uuid here, where that is another one, and memories that this import made. */
  memories: Map<string, string>;
  made: Set<string>;
  usedAt: number;
};

/** An import that nobody goes on with is forgotten after this long. */
const IDLE_MS = 10 * 60_000;
const MAX_BATCH = 100;
const LF = 10;

/** Loaded with the first import: schemas take time, and every start would pay it. */
type Schemas = { headLine: typeof headLine; importLine: typeof importLine };

export function createImport(deps: ImportDeps) {
  const { db, now } = deps;
  const running = new Map<string, Import>();
  const memories = createMemoryWriter(deps);
  const conversations = createConversationWriter(deps);

  async function importBegin(input: { owner: string }): Promise<{ id: string }> {
    for (const [id, one] of running) if (one.usedAt < now() - IDLE_MS) running.delete(id);
    const id = crypto.randomUUID();
    running.set(id, {
      owner: transact(db, () => ensureOwner(db, input.owner)),
      episodes: new Map(),
      entities: new Map(),
      memories: new Map(),
      made: new Set(),
      usedAt: now(),
    });
    return { id };
  }

  async function importEnd(input: { id: string }): Promise<void> {
    running.delete(input.id);
  }

  async function importLines(input: ImportInput): Promise<ImportResult> {
    const schemas = await import("../schemas/import.ts");
    const state = running.get(input.id);
    if (state === undefined || state.owner !== ensureOwner(db, input.owner)) {
      throw new AppError("conflict", "This import is not running any more; start it again.");
    }
    const result: ImportResult = { created: 0, updated: 0, unchanged: 0, refused: [], redacted: 0 };
    for (const line of input.tooLong) result.refused.push({ line, message: "The line is too long." });
    let size = 10;
    let at = 0;
    for (let number = input.firstLine; at < input.bytes.length;) {
      const started = performance.now();
      deps.hold();
      transact(db, () => {
        for (let seen = 0; seen < size && at < input.bytes.length; seen += 1, number += 1) {
          const end = input.bytes.indexOf(LF, at);
          const stop = end < 0 ? input.bytes.length : end;
          take(schemas, state, number, input.bytes.subarray(at, stop), result);
          at = stop + 1;
        }
      });
      state.usedAt = now();
      size = nextBatch(size, performance.now() - started, MAX_BATCH);
      await breathe();
    }
    return result;
  }

  function take(
    schemas: Schemas,
    state: Import,
    number: number,
    bytes: Uint8Array,
    result: ImportResult,
  ): void {
    try {
      const value = parse(bytes);
      if (value === undefined) return;
      if (number === 1 && isHead(schemas.headLine, value)) return;
      const line = check(schemas.importLine, value);
      // A line that fails half-way leaves nothing behind.
      db.run("SAVEPOINT line");
      try {
        result[store(state, line, (count) => (result.redacted += count))] += 1;
        db.run("RELEASE line");
      } catch (thrown) {
        db.run("ROLLBACK TO line");
        db.run("RELEASE line");
        throw thrown;
      }
    } catch (thrown) {
      if (!(thrown instanceof AppError)) throw thrown;
      result.refused.push({ line: number, message: thrown.message });
    }
  }

  function store(state: Import, line: ImportLine, redacted: (count: number) => void): Outcome {
    switch (line.kind) {
      case "memory":
        return memories.memory(state, line, redacted);
      case "version":
        return memories.version(state, line, redacted);
      case "session":
        return conversations.session(state, line, redacted);
      case "episode":
        return conversations.episode(state, line, redacted);
      case "entity":
        return conversations.entity(state, line, redacted);
      case "relationship":
        return conversations.relationship(state, line, redacted);
      case "summary":
        return conversations.summary(state, line, redacted);
    }
  }

  return { importBegin, importLines, importEnd };
}

/** True for the head line of our own format; another format is refused by name. */
function isHead(head: Schemas["headLine"], value: unknown): boolean {
  const read = head.safeParse(value);
  if (!read.success) return false;
  if (read.data.format !== FORMAT) {
    throw invalid("format", `must be ${FORMAT}; this file says ${read.data.format.slice(0, 40)}`);
  }
  return true;
}

/** The JSON value of a line; undefined when it is blank. */
function parse(bytes: Uint8Array): unknown {
  let line: string;
  try {
    line = new TextDecoder("utf-8", { fatal: true }).decode(bytes).trim();
  } catch {
    throw new AppError("invalid_json", "The line is not valid UTF-8.");
  }
  if (line === "") return undefined;
  try {
    return JSON.parse(line) as unknown;
  } catch {
    throw new AppError("invalid_json", "The line is not valid JSON.");
  }
}
