/** The command line. With server.ts the only file that touches `process`. */
import { readFileSync } from "node:fs";
import { run } from "./cli/run.ts";
import type { World } from "./cli/verb.ts";

const compiled = Bun.isStandaloneExecutable;
const self = compiled ? [process.execPath] : [process.execPath, Bun.main];

/** Resolves at the first signal to end; a second one ends at once. Until it is called signals do what they always do. */
function ended(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
      if (signal === "SIGHUP" && hangupIgnored()) continue;
      process.on(signal, () => {
        if (asked) process.exit(1);
        asked = true;
        resolve();
      });
    }
  });
}

/** Started with nohup: the terminal that goes away must not end it. See proc(5), SigIgn; SIGHUP is signal 1. */
function hangupIgnored(): boolean {
  try {
    const mask = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
    return mask !== undefined && (Number.parseInt(mask.slice(-1), 16) & 1) === 1;
  } catch {
    return false;
  }
}

// Everything this program makes is for its user alone.
process.umask(0o077);

// Who reads the banner may stop reading (`recollect serve | head`); that ends no server.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

const world: World = {
  env: process.env,
  pid: process.pid,
  stdout: { write: (text) => void process.stdout.write(text), terminal: process.stdout.isTTY },
  stderr: { write: (text) => void process.stderr.write(text), terminal: process.stderr.isTTY },
  stdin: () => Bun.stdin.stream(),
  ended,
  self,
};

void run(process.argv.slice(2), world).then((code) => {
  process.exitCode = code;
});
