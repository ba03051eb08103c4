/** Export and import of an owner's rows; `-` is standard output or input. */
import type { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import { exportStream, importStream, ownLines } from "../data/transfer.ts";
import { createKey, findKey } from "../db/keys.ts";
import { memorySettingsPatch } from "../memory/settings-schema.ts";
import { writeMemorySettings } from "../db/settings-write.ts";
import { AppError } from "../error.ts";
import { formats } from "../importers/read.ts";
import type { Format } from "../importers/read.ts";
import type { Piece } from "../importers/types.ts";
import type { CliEngine } from "./engine.ts";
import { ownerFlag, stringFlag, UsageError } from "./verb.ts";
import type { Call } from "./verb.ts";

/** Writes a file that appears whole or not at all; only its owner can read it. */
export async function exportTo(call: Call, engine: CliEngine, owner: string, file: string): Promise<void> {
  const memoriesOnly = call.flags["memories-only"] === true;
  const stream = exportStream((cursor) => engine.data.exportPage({ owner, memoriesOnly, cursor }));
  if (file === "-") {
    const text = new TextDecoder();
    for await (const chunk of stream) call.world.stdout.write(text.decode(chunk, { stream: true }));
    return;
  }
  const temporary = `${file}.${call.world.pid}.part`;
  const handle = create(file, temporary);
  try {
    for await (const chunk of stream) writeSync(handle, chunk);
    closeSync(handle);
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  call.world.stderr.write(`Exported to ${file}.\n`);
}

function create(file: string, temporary: string): number {
  try {
    return openSync(temporary, "wx", 0o600);
  } catch (error) {
    const { code } = error as { code?: string };
    const why = code === "ENOENT" ? "its folder is not there" : (code ?? "unknown");
    throw new AppError("invalid_request", `${file} cannot be written: ${why}.`, { cause: error });
  }
}

type Outcome = {
  created: number;
  updated: number;
  unchanged: number;
  refusedCount: number;
  redacted: number;
  refused: { line: number; message: string }[];
};

/** The format of `--from`; null for our own. */
export function formatFlag(call: Call): Format | null {
  const from = stringFlag(call, "from");
  if (from === undefined) return null;
  const format = formats.find((one) => one === from);
  if (!format) throw new UsageError(`There is no format ${from}; known: ${formats.join(", ")}.`);
  return format;
}

/**
 * Imports our own export, or with `--from` another program's. Refused pieces are named with their numbers; the others
 * are in. OmniRoute's memories keep their keys, as disabled ones of the same id, unless `--key` names one for all.
 */
export async function importFrom(call: Call, engine: CliEngine, owner: string, file: string): Promise<void> {
  const format = formatFlag(call);
  const outcome =
    format === null
      ? await importStream(engine.data, owner, await linesOf(call, file))
      : await importForeign(call, engine, owner, file, format);
  const { created, updated, unchanged, refused, refusedCount, redacted } = outcome;
  call.print(`${created} created, ${updated} updated, ${unchanged} unchanged, ${refusedCount} refused.`);
  if (redacted > 0) call.world.stderr.write(`${redacted} secret(s) were redacted.\n`);
  const what = format === null ? "line" : "item";
  for (const { line, message } of refused) call.world.stderr.write(`${what} ${line}: ${message}\n`);
  if (refusedCount > 0 && created + updated + unchanged === 0) {
    const hint = format === null ? ` A file of another program needs --from ${formats.join("|")}.` : "";
    throw new AppError("invalid_request", `Nothing was imported.${hint}`);
  }
}

async function linesOf(call: Call, file: string): Promise<ReadableStream<Uint8Array>> {
  if (file === "-" || !existsSync(file)) return bytesOf(call, file);
  return ownLines(Bun.file(file));
}

async function bytesOf(call: Call, file: string): Promise<ReadableStream<Uint8Array>> {
  if (file === "-") return call.world.stdin();
  if (!existsSync(file)) throw new UsageError(`There is no file ${file}.`);
  return Bun.file(file).stream();
}

async function importForeign(
  call: Call,
  engine: CliEngine,
  owner: string,
  file: string,
  format: Format,
): Promise<Outcome> {
  const { readExport } = await import("../importers/read.ts");
  const database = format === "omniroute" && file !== "-" && isSqlite(file);
  const { omnirouteRows, omnirouteSettings } = await import("../importers/omniroute.ts");
  const pieces = database ? omnirouteRows(file) : readExport(format, await bytesOf(call, file));
  const named = stringFlag(call, "key") !== undefined;
  const { db } = call.database();
  try {
    if (database) takeSettings(call, db, omnirouteSettings(file));
    return await importPieces(engine, pieces, (piece) => {
      if (named || piece === undefined) return owner === "" ? ownerFlag(call, db) : owner;
      if (!findKey(db, piece)) createKey(db, { name: `from ${format}`, id: piece, disabled: true });
      return piece;
    });
  } finally {
    db.close();
  }
}

/** Takes over the settings that are valid here; the others are named. */
function takeSettings(call: Call, db: Database, settings: { [name: string]: unknown }): void {
  for (const [name, value] of Object.entries(settings)) {
    const parsed = memorySettingsPatch.safeParse({ [name]: value });
    try {
      if (!parsed.success) throw new Error("is not a value of this setting");
      writeMemorySettings(db, parsed.data);
    } catch (error) {
      call.world.stderr.write(
        `setting ${name} was left out: ${error instanceof Error ? error.message : String(error)}\n`,
      );
    }
  }
}

/** Lines sent to the engine at a time. */
const BATCH = 200;

type Running = { id: string; lines: string[]; items: number[]; sent: number };

/** Sends pieces to one import an owner. */
async function importPieces(
  engine: CliEngine,
  pieces: AsyncIterable<Piece> | Iterable<Piece>,
  ownerOf: (piece: string | undefined) => string,
): Promise<Outcome> {
  const outcome: Outcome = {
    created: 0,
    updated: 0,
    unchanged: 0,
    refusedCount: 0,
    redacted: 0,
    refused: [],
  };
  const running = new Map<string, Running>();
  const flush = async (owner: string, one: Running) => {
    if (one.lines.length === 0) return;
    const { items, sent } = one;
    const result = await engine.data.importLines({
      owner,
      id: one.id,
      bytes: new TextEncoder().encode(one.lines.join("\n")),
      firstLine: sent + 1,
      tooLong: [],
    });
    outcome.created += result.created;
    outcome.updated += result.updated;
    outcome.unchanged += result.unchanged;
    outcome.redacted += result.redacted;
    for (const { line, message } of result.refused) refuse(items[line - sent - 1] ?? line, message);
    one.sent += one.lines.length;
    one.lines = [];
    one.items = [];
  };
  const refuse = (line: number, message: string) => {
    outcome.refusedCount++;
    if (outcome.refused.length < 1000) outcome.refused.push({ line, message });
  };
  for await (const piece of pieces) {
    if ("refused" in piece) {
      refuse(piece.item, piece.refused);
      continue;
    }
    const owner = ownerOf(piece.owner);
    let one = running.get(owner);
    if (!one) {
      one = { id: (await engine.data.importBegin({ owner })).id, lines: [], items: [], sent: 0 };
      running.set(owner, one);
    }
    one.lines.push(JSON.stringify(piece.line));
    one.items.push(piece.item);
    if (one.lines.length >= BATCH) await flush(owner, one);
  }
  for (const [owner, one] of running) {
    await flush(owner, one);
    await engine.data.importEnd({ id: one.id });
  }
  return outcome;
}

function isSqlite(file: string): boolean {
  if (!existsSync(file)) throw new UsageError(`There is no file ${file}.`);
  const head = Buffer.alloc(16);
  const handle = openSync(file, "r");
  try {
    readSync(handle, head, 0, 16, 0);
  } finally {
    closeSync(handle);
  }
  return head.toString("latin1") === "SQLite format 3\0";
}
