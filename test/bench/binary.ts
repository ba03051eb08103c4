/** `bun run bench:binary`: size, time from exec to listening, resident memory when idle. RECOLLECT_BINARY names another build. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { binary, residentMB, startBinary } from "../support/binary.ts";

const ROUNDS = Number(process.argv[2] ?? 15);
const file = binary();
const sorted = (numbers: number[]) => numbers.toSorted((a, b) => a - b);
const spread = (numbers: number[]) => {
  const all = sorted(numbers);
  return `min ${all[0]!.toFixed(0)}  median ${all[all.length >> 1]!.toFixed(0)}  max ${all.at(-1)!.toFixed(0)}`;
};

const dir = mkdtempSync(join(tmpdir(), "bench-binary-"));
try {
  const empty: number[] = [];
  const used: number[] = [];
  const bare: number[] = [];
  const idle: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const version = performance.now();
    Bun.spawnSync([file, "version"]);
    bare.push(performance.now() - version);
    const dataDir = join(dir, String(round));
    const first = await startBinary({ dataDir });
    empty.push(first.startMs);
    await first.stop();
    const second = await startBinary({ dataDir });
    used.push(second.startMs);
    if (round < 3) {
      await Bun.sleep(3000);
      idle.push(residentMB(second.pid));
    }
    await second.stop();
  }
  const print = (name: string, value: string, goal: string) =>
    process.stdout.write(`${name.padEnd(44)} ${value.padEnd(34)} goal ${goal}\n`);
  process.stdout.write(`${cpus()[0]?.model ?? "?"} × ${cpus().length}, Bun ${Bun.version}, ${file}\n`);
  print("size, MB", (statSync(file).size / 1e6).toFixed(1), "≤ 165");
  print("exec to listening, folder in use, ms", spread(used), "≤ 60");
  print("exec to listening, empty folder, ms", spread(empty), "≤ 60");
  print("exec to end of `version`, for comparison, ms", spread(bare), "–");
  print("resident, idle for 3 s, MB", spread(idle), "≤ 70");
} finally {
  rmSync(dir, { recursive: true, force: true });
}
