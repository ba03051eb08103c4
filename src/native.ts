/**
 * Native libraries. Nothing can be loaded from inside a compiled program, so each library is written once to
 * `DATA_DIR/native/<hash>/` (temporary name, fsync, rename) and its hash is checked before every load.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { nativeBundle, type NativeBundle, type NativeFile } from "./native-files.ts";

export interface Unavailable {
  /** One sentence for people. */
  readonly reason: string;
}

/** What onnxruntime_binding.node exports, as far as onnxruntime-node uses it. */
export interface OnnxBinding {
  initOrtOnce(logLevel: number, tensor: unknown, isMainThread: boolean): void;
}

const ONNX_BINDING = "onnxruntime_binding.node";

/** Path of the sqlite-vec extension, entry point `sqlite3_vec_init`, or why this box has none. */
export function sqliteVecPath(dataDir: string, bundle = nativeBundle): string | Unavailable {
  const extension = { darwin: "dylib", win32: "dll" }[process.platform as string] ?? "so";
  const name = `vec0.${extension}`;
  if (bundle === null) {
    const os = process.platform === "win32" ? "windows" : process.platform;
    return fromNodeModules(`sqlite-vec-${os}-${process.arch}/${name}`, "sqlite-vec");
  }
  const folder = unpack(dataDir, bundle, "sqlite-vec");
  return typeof folder === "string" ? join(folder, name) : folder;
}

let onnx: OnnxBinding | undefined;

/**
 * Makes ONNX Runtime loadable in this thread; to be called before transformers.js is imported. Null when all is well.
 * A library is a matter of the whole process, hence the module's one variable.
 */
export function loadOnnx(dataDir: string, bundle = nativeBundle): Unavailable | null {
  if (onnx !== undefined) return null;
  if (bundle === null) {
    const path = `onnxruntime-node/bin/napi-v6/${process.platform}/${process.arch}/${ONNX_BINDING}`;
    const found = fromNodeModules(path, "ONNX Runtime");
    return typeof found === "string" ? null : found;
  }
  const folder = unpack(dataDir, bundle, "onnxruntime");
  if (typeof folder !== "string") return folder;
  try {
    const module = { exports: {} };
    process.dlopen(module, join(folder, ONNX_BINDING));
    onnx = module.exports as OnnxBinding;
    return null;
  } catch (error) {
    return { reason: `ONNX Runtime could not be loaded from ${folder}: ${sentence(error)}.` };
  }
}

/** The loaded binding: build.ts puts a call of this in the place of onnxruntime-node's own loader. @public */
export function onnxBinding(): OnnxBinding {
  if (onnx === undefined) throw new Error("loadOnnx() comes before the first import of onnxruntime-node");
  return onnx;
}

/** Gives memory that a library has freed back to the machine; glibc keeps it otherwise (65 MB after a model was loaded). */
export async function trimHeap(): Promise<void> {
  if (process.platform !== "linux") return;
  try {
    const { dlopen } = await import("bun:ffi");
    const libc = dlopen("libc.so.6", { malloc_trim: { args: ["u64"], returns: "i32" } });
    libc.symbols.malloc_trim(0);
    libc.close();
  } catch {
    // Another C library.
  }
}

/** Folder that holds every file of `library`, each just verified; damaged or missing ones are written anew. */
function unpack(dataDir: string, bundle: NativeBundle, library: NativeFile["library"]): string | Unavailable {
  const files = bundle.files.filter((file) => file.library === library);
  if (files.length === 0) return { reason: `${library} has no build for ${bundle.target}.` };
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${file.name}\0${file.sha256}\n`);
  const folder = join(dataDir, "native", hash.digest("hex").slice(0, 16));
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const file of files) {
      const path = join(folder, file.name);
      if (sha256Of(path) !== file.sha256) writeVerified(path, file);
    }
    return folder;
  } catch (error) {
    return { reason: `${library} could not be written to ${folder}: ${sentence(error)}.` };
  }
}

/** Another process may do the same at the same time: each writes its own temporary file, and the last rename wins. */
function writeVerified(path: string, file: NativeFile): void {
  const bytes = Bun.zstdDecompressSync(readFileSync(file.source));
  if (createHash("sha256").update(bytes).digest("hex") !== file.sha256) {
    throw new Error(`this executable is damaged (${file.name})`);
  }
  const temporary = `${path}.${process.pid}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  const handle = openSync(temporary, "wx", 0o600);
  try {
    for (let at = 0; at < bytes.byteLength;) at += writeSync(handle, bytes, at);
    fsyncSync(handle);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, path);
}

/** Read in pieces: the largest library has 46 MB, which would stay resident. Null when it cannot be read. */
function sha256Of(path: string): string | null {
  let handle: number;
  try {
    handle = openSync(path, "r");
  } catch {
    return null;
  }
  try {
    const hash = createHash("sha256");
    const piece = Buffer.allocUnsafe(1 << 20);
    for (let count: number; (count = readSync(handle, piece, 0, piece.length, null)) > 0;) {
      hash.update(piece.subarray(0, count));
    }
    return hash.digest("hex");
  } catch {
    return null;
  } finally {
    closeSync(handle);
  }
}

function fromNodeModules(specifier: string, library: string): string | Unavailable {
  try {
    return createRequire(import.meta.url).resolve(specifier);
  } catch {
    return { reason: `${library} has no build for ${process.platform}-${process.arch} in node_modules.` };
  }
}

function sentence(error: unknown): string {
  return error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
}
