/** `bun run fuzz [count] [seed]`: generated requests to every route of a fresh server; fails when one answers 500. */
import { startApi } from "../support/api-server.ts";
import { fuzzApi } from "../support/fuzz-api.ts";
import { seedOwner } from "../support/seed-owner.ts";

const BATCH = 2000;
const count = Number(process.argv[2] ?? 100_000);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000);
const started = performance.now();
let sent = 0;
const statuses: Record<string, number> = {};
const failures: string[] = [];

while (sent < count && failures.length === 0) {
  // A fresh server now and then, so that limits on rows do not hide what comes after.
  const api = await startApi();
  const seeded = await seedOwner(api, api.anna, "anna");
  for (let batch = 0; batch < 5 && sent < count; batch++) {
    const report = await fuzzApi(api, Math.min(BATCH, count - sent), seeded, seed + sent);
    sent += report.sent;
    for (const [status, n] of Object.entries(report.statuses)) statuses[status] = (statuses[status] ?? 0) + n;
    failures.push(...report.failures, ...api.errors.map(String));
  }
  await api.stop();
  process.stdout.write(`${sent} requests, statuses ${JSON.stringify(statuses)}\n`);
}

const seconds = ((performance.now() - started) / 1000).toFixed(0);
process.stdout.write(`fuzz: ${sent} requests in ${seconds} s, seed ${seed}, ${failures.length} failures\n`);
for (const failure of failures.slice(0, 20)) process.stdout.write(`${failure}\n`);
process.exit(failures.length === 0 ? 0 : 1);
