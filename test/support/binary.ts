/** The executable for tests: built once a run, or given by RECOLLECT_BINARY; run alone in a folder of its own. */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");
let built: string | undefined;

/** Path of the executable. */
export function binary(): string {
  built ??= process.env["RECOLLECT_BINARY"] ?? build();
  return built;
}

function build(): string {
  // One place, overwritten by the next run: the file is large, and nothing runs at the end of a test process.
  const out = join(root, "dist/test");
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, "build.ts", "--out", out], {
    cwd: root,
    stderr: "pipe",
  });
  if (exitCode !== 0) throw new Error(`the executable did not build: ${stderr.toString()}`);
  return join(out, process.platform === "win32" ? "recollect.exe" : "recollect");
}

/** A folder with nothing but the executable and everything in it that must have no influence. */
export function hostileFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), "recollect-hostile-"));
  const marker = join(dir, "EXECUTED");
  const write = `require("node:fs").appendFileSync(${JSON.stringify(marker)}, "x");\n`;
  writeFileSync(
    join(dir, ".env"),
    "PORT=1\nHOST=0.0.0.0\nLOG_LEVEL=nonsense\nREQUIRE_API_KEY=false\nDATA_DIR=/dev/null/nowhere\n",
  );
  writeFileSync(join(dir, ".env.local"), "PORT=2\n");
  writeFileSync(join(dir, ".env.production"), "PORT=3\n");
  writeFileSync(join(dir, "bunfig.toml"), 'preload = ["./preload.js"]\n[test]\npreload = ["./preload.js"]\n');
  writeFileSync(join(dir, "preload.js"), write);
  writeFileSync(
    join(dir, "tsconfig.json"),
    '{"compilerOptions":{"paths":{"*":["./node_modules/evil/index.js"]}}}',
  );
  writeFileSync(join(dir, "package.json"), '{"type":"commonjs","imports":{"#x":"./preload.js"}}');
  for (const name of [
    "onnxruntime-node",
    "sqlite-vec",
    "sqlite-vec-linux-x64",
    "hono",
    "@huggingface/transformers",
    "evil",
  ]) {
    mkdirSync(join(dir, "node_modules", name), { recursive: true });
    writeFileSync(join(dir, "node_modules", name, "index.js"), write);
    writeFileSync(join(dir, "node_modules", name, "package.json"), `{"name":"${name}","main":"index.js"}`);
  }
  copyFileSync(binary(), join(dir, "recollect"));
  return dir;
}

/** True when something in the folder was executed. */
export function wasFooled(dir: string): boolean {
  return existsSync(join(dir, "EXECUTED"));
}

/** With `await using` it does not outlive a test that fails. */
export interface Running extends AsyncDisposable {
  readonly url: string;
  readonly banner: string;
  readonly apiKey: string | null;
  readonly managementToken: string | null;
  readonly pid: number;
  readonly exited: Promise<number>;
  /** Milliseconds from exec until the banner, which comes after listening. */
  readonly startMs: number;
  stderr(): string;
  stop(signal?: NodeJS.Signals): Promise<number>;
}

export interface StartOptions {
  readonly command?: readonly string[];
  readonly cwd?: string;
  readonly dataDir: string;
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
}

/** Starts `serve` on a free port and waits for its banner. Rejects with what it said when it ends before. */
export async function startBinary(options: StartOptions): Promise<Running> {
  const command = options.command ?? [binary()];
  const started = performance.now();
  const child = Bun.spawn(
    [...command, "serve", "--port", "0", "--data-dir", options.dataDir, ...(options.args ?? [])],
    {
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...options.env },
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  let errors = "";
  const errorsEnd = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) errors += text;
  })();
  let banner = "";
  const ready = Promise.withResolvers<void>();
  void (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      banner += text;
      if (/^ {2}Memory {2}/m.test(banner)) ready.resolve();
    }
    await errorsEnd;
    ready.reject(new Error(`serve ended with ${await child.exited}: ${errors}${banner}`));
  })();
  await ready.promise;
  const startMs = performance.now() - started;
  const field = (name: string): string | null =>
    new RegExp(`^ {2}${name} +(\\S+)`, "m").exec(banner)?.[1] ?? null;
  return {
    url: field("API")!.replace(/\/v1$/, ""),
    banner,
    apiKey: field("API key"),
    managementToken: field("Management"),
    pid: child.pid,
    exited: child.exited,
    startMs,
    stderr: () => errors,
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      return await child.exited;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** Runs a verb to its end. */
export async function runBinary(args: readonly string[], options: Partial<StartOptions> = {}) {
  const child = Bun.spawn([...(options.command ?? [binary()]), ...args], {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: process.env["HOME"] ?? "",
      ...(options.dataDir === undefined ? {} : { DATA_DIR: options.dataDir }),
      ...options.env,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** Resident megabytes of a process. */
export function residentMB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1000;
}
