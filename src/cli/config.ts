/** `recollect config show|set`. */
import { checkValue, variables } from "../config.ts";
import type { VariableName } from "../config.ts";
import { writeStoredConfig } from "../db/settings.ts";
import { exit, UsageError } from "./verb.ts";
import type { Verb } from "./verb.ts";

export const verb: Verb = {
  usage: ["recollect config show [--json]", "recollect config set NAME VALUE"],
  options: { json: { type: "boolean" } },
  async run(call) {
    const [action, ...rest] = call.args;
    if (action === "show" && rest.length === 0) {
      const config = call.config();
      const rows = (Object.keys(variables) as VariableName[]).map((name) => {
        const secret = "secret" in variables[name] && config[name] !== null;
        return {
          name,
          value: secret ? "(set)" : config[name],
          source: config.sources[name],
          help: variables[name].help,
        };
      });
      const dataDirSource = call.inputs.flags.DATA_DIR
        ? "flag"
        : call.world.env["DATA_DIR"]
          ? "environment"
          : "default";
      const all = [
        { name: "DATA_DIR", value: config.dataDir, source: dataDirSource, help: "folder of all data" },
        ...rows,
      ];
      if (call.flags["json"] === true) {
        call.print(JSON.stringify(all, null, 2));
        return exit.ok;
      }
      const width = Math.max(...all.map((row) => row.name.length));
      for (const row of all) {
        const value = Array.isArray(row.value)
          ? row.value.join(",")
          : row.value === null
            ? "–"
            : String(row.value);
        call.print(`${row.name.padEnd(width)}  ${value}  (${row.source}) ${row.help}`);
      }
      return exit.ok;
    }
    if (action === "set" && rest.length === 2) {
      const [name, value] = rest as [string, string];
      const known = checkValue(name, value);
      if ("secret" in variables[known]) {
        throw new UsageError(`${name} is a secret and is not stored. Set it in the environment.`);
      }
      const { db } = call.database();
      writeStoredConfig(db, known, value);
      db.close();
      call.print(`${known} is ${value} from the next start on.`);
      return exit.ok;
    }
    throw new UsageError("This takes: show, or set NAME VALUE.");
  },
};
