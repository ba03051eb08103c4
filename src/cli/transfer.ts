/** Export and import of one owner's rows as JSON lines; `-` is standard output or input. */
import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { exportStream, importStream } from "../data/transfer.ts";
import type { CliEngine } from "./engine.ts";
import { UsageError } from "./verb.ts";
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
  const handle = openSync(temporary, "wx", 0o600);
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

/** Imports what `export` wrote. Refused lines are named with their numbers; the others are in. */
export async function importFrom(call: Call, engine: CliEngine, owner: string, file: string): Promise<void> {
  const source = file === "-" ? call.world.stdin() : await opened(file);
  const { created, updated, unchanged, refused, refusedCount, redacted } = await importStream(
    engine.data,
    owner,
    source,
  );
  call.print(`${created} created, ${updated} updated, ${unchanged} unchanged, ${refusedCount} refused.`);
  if (redacted > 0) call.world.stderr.write(`${redacted} secret(s) were redacted.\n`);
  for (const { line, message } of refused) call.world.stderr.write(`line ${line}: ${message}\n`);
}

async function opened(file: string): Promise<ReadableStream<Uint8Array>> {
  const blob = Bun.file(file);
  if (!(await blob.exists())) throw new UsageError(`There is no file ${file}.`);
  return blob.stream();
}
