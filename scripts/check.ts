/**
 * Every check of this repository, in one command: types, lint, format, unused code, the executable, tests. Stops at the
 * first that fails.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const bun = process.execPath;
const steps: [name: string, args: string[]][] = [
  ["types", ["x", "--bun", "tsc", "--noEmit"]],
  ["lint", ["x", "--bun", "oxlint", "--type-aware"]],
  ["format", ["x", "--bun", "oxfmt", "--check"]],
  ["unused", ["x", "--bun", "knip"]],
  ["build", ["build.ts"]],
  // A machine may be slow or busy: no test decides by the clock.
  ["tests", ["test", "--timeout", "120000", ...process.argv.slice(2)]],
];

for (const [name, args] of steps) {
  const started = performance.now();
  const { status } = spawnSync(bun, args, {
    stdio: "inherit",
    // The end-to-end tests run the executable that was just built.
    env: { ...process.env, RECOLLECT_BINARY: join(import.meta.dir, "../dist/recollect") },
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (status !== 0) {
    process.stderr.write(`check: ${name} failed after ${seconds} s\n`);
    process.exit(1);
  }
  process.stderr.write(`check: ${name} ok in ${seconds} s\n`);
}
