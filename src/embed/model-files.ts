/** Model folders on disk: which files make a model, where a download gathers them, and how they come into their place. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DownloadError, sizeOf, type RemoteFile } from "./download.ts";

export type ModelName = "static" | "transformers";

export const STATIC_FILES = ["config.json", "tokenizer.json", "model.safetensors"] as const;
export const TRANSFORMERS_FILES = ["config.json", "tokenizer.json", "tokenizer_config.json"] as const;
/** In order of preference, with the name transformers.js has for them. */
export const TRANSFORMERS_WEIGHTS = [
  ["onnx/model_quantized.onnx", "q8"],
  ["onnx/model.onnx", "fp32"],
] as const;

/** The files of a model that is complete, else null. */
export function presentFiles(name: ModelName, folder: string): string[] | null {
  const there = (file: string): boolean => sizeOf(join(folder, file)) > 0;
  if (name === "static") return STATIC_FILES.every(there) ? [...STATIC_FILES] : null;
  const weights = TRANSFORMERS_WEIGHTS.map(([file]) => file).find(there);
  return weights !== undefined && TRANSFORMERS_FILES.every(there) ? [...TRANSFORMERS_FILES, weights] : null;
}

export function dimensionsOf(name: ModelName, folder: string): number | null {
  try {
    const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as Record<string, unknown>;
    const value = name === "static" ? config["hidden_dim"] : config["hidden_size"];
    return typeof value === "number" ? value : null;
  } catch {
    return null;
  }
}

/** Name while it gathers; another version of the file has another name. */
export function stagedName(file: RemoteFile): string {
  const tag = new Bun.CryptoHasher("sha256").update(`${file.etag}:${file.size}`).digest("hex").slice(0, 12);
  return `${file.file.replaceAll("/", "--")}.${tag}`;
}

export function dropOthers(stage: string, files: readonly RemoteFile[]): void {
  const keep = new Set(["lock", ...files.flatMap((file) => [stagedName(file), `${stagedName(file)}.part`])]);
  for (const name of readdirSync(stage))
    if (!keep.has(name)) rmSync(join(stage, name), { recursive: true, force: true });
}

export function halfBytes(stage: string): number {
  try {
    return readdirSync(stage).reduce(
      (sum, name) => sum + (name === "lock" ? 0 : sizeOf(join(stage, name))),
      0,
    );
  } catch {
    return 0;
  }
}

export function place(from: string, to: string, move: (from: string, to: string) => void): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  move(from, to);
}

/** Puts a complete folder in its place. An older one is moved aside first, so that no mixture ever counts. */
export function swapIn(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  const old = `${to}.old-${crypto.randomUUID().slice(0, 8)}`;
  if (existsSync(to)) renameSync(to, old);
  renameSync(from, to);
  rmSync(old, { recursive: true, force: true });
}

/** One process at a time gathers files of a model. What a process left that is gone does not count. */
export function lock(stage: string): () => void {
  mkdirSync(stage, { recursive: true, mode: 0o700 });
  const other = otherProcess(stage);
  if (other !== null) {
    throw new DownloadError(`Process ${other} is downloading this model already.`, { again: false });
  }
  const path = join(stage, "lock");
  writeFileSync(path, String(process.pid));
  return () => rmSync(path, { force: true });
}

export function otherProcess(stage: string): number | null {
  try {
    const pid = Number(readFileSync(join(stage, "lock"), "utf8"));
    if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return null;
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM" ? -1 : null;
  }
}
