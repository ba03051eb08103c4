/** `recollect doctor`: what works on this box, what does not, and what to do. Nothing is changed. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../db/open.ts";
import type { Finding } from "../doctor/types.ts";
import { VERSION } from "../version.ts";
import { exit, expectArgs } from "./verb.ts";
import type { Call, Verb } from "./verb.ts";

export const verb: Verb = {
  usage: ["recollect doctor [--json]"],
  options: { json: { type: "boolean" } },
  async run(call) {
    expectArgs(call);
    const findings = await examine(call);
    const healthy = findings.every((finding) => finding.state !== "bad");
    if (call.flags["json"] === true)
      call.print(JSON.stringify({ version: VERSION, healthy, findings }, null, 2));
    else {
      const width = Math.max(...findings.map((finding) => finding.check.length));
      const signs = { ok: "ok  ", off: "–   ", warn: "warn", bad: "BAD " };
      for (const { check, state, found, todo } of findings) {
        call.print(`${signs[state]}  ${check.padEnd(width)}  ${found}`);
        if (todo !== null) call.print(`${" ".repeat(width + 8)}→ ${todo}`);
      }
      call.print("");
      const warnings = findings.filter((finding) => finding.state === "warn").length;
      call.print(
        !healthy
          ? "Something needs attention."
          : warnings === 0
            ? "All is well."
            : `Recollect itself works; ${warnings === 1 ? "1 warning" : `${warnings} warnings`} above.`,
      );
    }
    return healthy ? exit.ok : exit.failed;
  },
};

async function examine(call: Call): Promise<Finding[]> {
  const [box, data, parts] = await Promise.all([
    import("../doctor/box.ts"),
    import("../doctor/data.ts"),
    import("../doctor/parts.ts"),
  ]);
  const { resolveConfig } = await import("../config.ts");
  const first = resolveConfig(call.inputs, {});
  const { finding, newestRow } = data.database(first.dataDir);
  const path = join(first.dataDir, "recollect.db");
  const db = finding.state === "ok" && existsSync(path) ? openDatabase(path, { readonly: true }) : null;
  try {
    const config = db === null ? first : call.config();
    return [
      box.cpu(),
      box.clock(Date.now(), newestRow),
      box.dataFolder(config.dataDir),
      box.disk(config.dataDir),
      finding,
      box.port(config),
      data.fts5(),
      data.sqliteVec(config.dataDir),
      ...(await parts.models(config, db)),
      await parts.qdrant(config, db),
      ...(await parts.upstreams(db)),
    ];
  } finally {
    db?.close();
  }
}
