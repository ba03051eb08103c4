/**
 * `bun build.ts [--target NAME …] [--all] [--out DIR] [--record]`: one executable a target, models excepted, with SHA-256
 * sums.
 * Native libraries go in compressed; src/native.ts writes them out once. Two builds of one commit are byte-identical.
 */
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { parseArgs } from "node:util";
import type { BunPlugin } from "bun";
import { THREADS } from "./src/threads.ts";

const root = import.meta.dir;
const modules = join(root, "node_modules");

interface Target {
  readonly bun: Bun.Build.CompileTarget;
  readonly sqliteVec: string | null;
  readonly onnxruntime: { readonly folder: string; readonly files: readonly string[] } | null;
}

const windowsOnnx = {
  folder: "win32/x64",
  files: ["onnxruntime_binding.node", "onnxruntime.dll", "DirectML.dll"],
};
const linuxOnnx = (arch: string) => ({
  folder: `linux/${arch}`,
  files: ["onnxruntime_binding.node", "libonnxruntime.so.1"],
});

/** What each platform's packages hold; null: there is none, and the executable says so. */
const targets: Readonly<Record<string, Target>> = {
  "linux-x64": { bun: "bun-linux-x64-modern", sqliteVec: "linux-x64/vec0.so", onnxruntime: linuxOnnx("x64") },
  "linux-x64-baseline": { bun: "bun-linux-x64-baseline", sqliteVec: "linux-x64/vec0.so", onnxruntime: linuxOnnx("x64") },
  "linux-x64-musl": { bun: "bun-linux-x64-musl", sqliteVec: null, onnxruntime: null },
  "linux-arm64": { bun: "bun-linux-arm64", sqliteVec: "linux-arm64/vec0.so", onnxruntime: linuxOnnx("arm64") },
  "darwin-arm64": {
    bun: "bun-darwin-arm64",
    sqliteVec: "darwin-arm64/vec0.dylib",
    onnxruntime: { folder: "darwin/arm64", files: ["onnxruntime_binding.node", "libonnxruntime.1.dylib"] },
  },
  "darwin-x64": { bun: "bun-darwin-x64", sqliteVec: "darwin-x64/vec0.dylib", onnxruntime: null },
  "windows-x64": { bun: "bun-windows-x64", sqliteVec: "windows-x64/vec0.dll", onnxruntime: windowsOnnx },
}; // prettier-ignore

/** Functions that a start uses, as `--record` found them. Kept, so that two builds are the same; an old one still helps. */
const PROFILE = join(root, "scripts/start.order.zst");

/** Where the compressed libraries of a target wait to be embedded. */
const packedDir = join(modules, ".cache", "recollect-native");

/** Compresses the target's libraries and gives the source text that stands for src/native-files.ts. */
function nativeModule(name: string, target: Target): string {
  const found: { library: string; path: string }[] = [];
  if (target.sqliteVec !== null) {
    const [platform = "", file = ""] = target.sqliteVec.split("/");
    found.push({ library: "sqlite-vec", path: join(modules, `sqlite-vec-${platform}`, file) });
  }
  for (const file of target.onnxruntime?.files ?? []) {
    const path = join(modules, "onnxruntime-node/bin/napi-v6", target.onnxruntime!.folder, file);
    found.push({ library: "onnxruntime", path });
  }
  mkdirSync(packedDir, { recursive: true });
  const imports: string[] = [];
  const entries: string[] = [];
  found.forEach(({ library, path }, at) => {
    if (!existsSync(path)) {
      throw new Error(
        `${relative(root, path)} is not there; bun install --os '*' --cpu '*' brings every platform's packages.`,
      );
    }
    const bytes = readFileSync(path);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const packed = join(packedDir, `${basename(path)}-${sha256.slice(0, 16)}.zst`);
    if (!existsSync(packed)) writeFileSync(packed, Bun.zstdCompressSync(bytes, { level: 19 }));
    imports.push(`import file${at} from ${JSON.stringify(packed)} with { type: "file" };`);
    entries.push(
      JSON.stringify({ library, name: basename(path), sha256 }).replace(/\}$/, `,"source":file${at}}`),
    );
  });
  return `${imports.join("\n")}
export const nativeBundle = { target: ${JSON.stringify(name)}, files: [${entries.join(", ")}] };
`;
}

/** onnxruntime-node loads its binding by a computed path; transformers.js finds onnxruntime-node by createRequire; sharp is for images. */
function natives(name: string, target: Target): BunPlugin {
  return {
    name: "natives",
    setup(build) {
      build.onLoad({ filter: /[/\\]src[/\\]native-files\.ts$/ }, () => ({
        contents: nativeModule(name, target),
        loader: "ts",
      }));
      build.onLoad({ filter: /onnxruntime-node[/\\]dist[/\\]binding\.js$/ }, ({ path }) => ({
        contents: replaceOnce(
          path,
          "require(`../bin/napi-v6/${process.platform}/${process.arch}/onnxruntime_binding.node`)",
          `require(${JSON.stringify(join(root, "src/native.ts"))}).onnxBinding()`,
        ),
        loader: "js",
      }));
      build.onLoad({ filter: /transformers\.node\.mjs$/ }, ({ path }) => ({
        contents: replaceOnce(path, 'requireFromHere("onnxruntime-node")', 'require("onnxruntime-node")'),
        loader: "js",
      }));
      build.onResolve({ filter: /^sharp$/ }, () => ({ path: "sharp", namespace: "stub" }));
      build.onLoad({ filter: /.*/, namespace: "stub" }, () => ({
        contents: 'export default function sharp() { throw new Error("images are not supported"); }',
        loader: "js",
      }));
    },
  };
}

/** The text of a package's file with one place changed. Another version of the package may look otherwise: then no build. */
function replaceOnce(path: string, from: string, to: string): string {
  const text = readFileSync(path, "utf8");
  if (text.split(from).length !== 2) throw new Error(`expected exactly one ${from} in ${path}`);
  return text.replace(from, () => to);
}

/**
 * `profile` says which functions a start uses: Bun then lays their bytecode side by side, and 6 MB less of the file
 * become resident.
 */
async function compile(name: string, target: Target, out: string, profile: string | null): Promise<string> {
  const file = join(out, name.startsWith("windows") ? `recollect-${name}.exe` : `recollect-${name}`);
  const result = await Bun.build({
    entrypoints: ["main.ts", ...THREADS].map((file) => join(root, "src", file)),
    root: join(root, "src"),
    target: "bun",
    format: "esm",
    minify: true,
    bytecode: true,
    // A start then loads what it runs, and both threads share one copy.
    splitting: true,
    plugins: [natives(name, target)],
    // Packages that ask where they lie would carry the path of this machine into the executable.
    define: { "process.env.NODE_ENV": '"production"', __dirname: '"/"', __filename: '"/recollect"' },
    compile: {
      target: target.bun,
      outfile: file,
      autoloadDotenv: false,
      autoloadBunfig: false,
      bytecodeOrder: profile,
    },
  });
  if (!result.success) throw new AggregateError(result.logs, `${name} did not build`);
  return file;
}

/** Starts `program` once, on an empty folder and again, and writes down which functions that takes. */
async function recordStart(program: string, scratch: string): Promise<void> {
  const found = join(scratch, "recorded");
  for (const round of [1, 2]) {
    const child = Bun.spawn([program, "serve", "--port", "0", "--data-dir", join(scratch, "data")], {
      env: { HOME: scratch, ...(round === 2 ? { BUN_BYTECODE_ORDER_OUT: found } : {}) },
      stdin: "ignore",
      stdout: "pipe",
    });
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream()))
      if (text.includes("Memory")) break;
    // What comes just after the start belongs to it.
    await Bun.sleep(2000);
    child.kill("SIGTERM");
    await child.exited;
  }
  writeFileSync(PROFILE, Bun.zstdCompressSync(readFileSync(found), { level: 19 }));
}

function hostTarget(): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  return `${platform}-${process.arch}`;
}

const { values: options } = parseArgs({
  options: {
    target: { type: "string", multiple: true },
    all: { type: "boolean" },
    record: { type: "boolean" },
    out: { type: "string", default: join(root, "dist") },
  },
});
const names = options.all ? Object.keys(targets) : (options.target ?? [hostTarget()]);
mkdirSync(options.out, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "recollect-start-"));
const profile = join(scratch, "order");
if (existsSync(PROFILE)) writeFileSync(profile, Bun.zstdDecompressSync(readFileSync(PROFILE)));
for (const name of names) {
  const target = targets[name];
  if (target === undefined) {
    process.stderr.write(`There is no target ${name}; known: ${Object.keys(targets).join(", ")}.\n`);
    process.exit(2);
  }
  const started = performance.now();
  const file = await compile(name, target, options.out, existsSync(profile) ? profile : null);
  if (name === hostTarget()) {
    // Copied in pieces: written at once it would lie in huge pages of the cache, and whole ones count as resident.
    const copy = join(options.out, "recollect");
    // One that runs cannot be overwritten; it goes on with the file it was started from.
    rmSync(copy, { force: true });
    copyFileSync(file, copy);
    if (options.record) await recordStart(file, scratch);
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(
    `${relative(root, file)}  ${(statSync(file).size / 1e6).toFixed(1)} MB  ${seconds} s\n`,
  );
}
rmSync(scratch, { recursive: true, force: true });
const sums = readdirSync(options.out)
  .filter((name) => name.startsWith("recollect"))
  .toSorted()
  .map(
    (name) =>
      `${createHash("sha256")
        .update(readFileSync(join(options.out, name)))
        .digest("hex")}  ${name}\n`,
  );
writeFileSync(join(options.out, "SHA256SUMS"), sums.join(""));
