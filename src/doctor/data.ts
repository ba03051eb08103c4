/** The database and what SQLite can do here. */
import { Database } from "bun:sqlite";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { migrations } from "../db/migrations.ts";
import { schemaVersion } from "../db/migrate.ts";
import { openDatabase } from "../db/open.ts";
import { sqliteVecPath } from "../native.ts";
import { bad, ok, warn, why, type Finding } from "./types.ts";

const RESTORE =
  "Stop the server and bring a backup back: recollect restore FILE --force (what is there is kept).";

/** Integrity and version. The file is never changed. */
export function database(dataDir: string): { finding: Finding; newestRow: number | null } {
  const check = "database";
  const path = join(dataDir, "recollect.db");
  if (!existsSync(path))
    return { finding: ok(check, "There is none yet; the first start makes it."), newestRow: null };
  let db: Database | null = null;
  try {
    db = openDatabase(path, { readonly: true });
    const version = schemaVersion(db);
    if (version > migrations.length) {
      const found = `It is of a newer version (${version}) than this program (${migrations.length}).`;
      return {
        finding: bad(check, found, "Install the newer program; nothing was changed."),
        newestRow: null,
      };
    }
    const verdicts = db.query<{ integrity_check: string }, []>("PRAGMA integrity_check(3)").all();
    const problems = verdicts.map((row) => row.integrity_check).filter((text) => text !== "ok");
    if (problems.length > 0)
      return { finding: bad(check, `It is damaged: ${problems.join("; ")}.`, RESTORE), newestRow: null };
    const older =
      version < migrations.length
        ? ` It is of version ${version}; the next start brings it to ${migrations.length}, after a copy.`
        : "";
    const found = `${(statSync(path).size / 1e6).toFixed(1)} MB, no damage found.${older}`;
    return { finding: ok(check, found), newestRow: newestRow(db) };
  } catch (error) {
    const { code } = error as { code?: string };
    const denied = code === "SQLITE_CANTOPEN" || code === "SQLITE_READONLY" || code === "SQLITE_PERM";
    const finding = denied
      ? bad(
          check,
          `It cannot be opened: ${why(error)}.`,
          "Give this user the files in the data folder (chown).",
        )
      : bad(check, `It is damaged: ${why(error)}.`, RESTORE);
    return { finding, newestRow: null };
  } finally {
    db?.close();
  }
}

function newestRow(db: Database): number | null {
  try {
    return (
      db.query<{ at: number | null }, []>("SELECT max(updated_at) AS at FROM memories").get()?.at ?? null
    );
  } catch {
    return null;
  }
}

export function fts5(): Finding {
  const db = new Database(":memory:");
  try {
    db.run("CREATE VIRTUAL TABLE probe USING fts5 (text)");
    return ok("full text", "FTS5 is there.");
  } catch (error) {
    return warn(
      "full text",
      `FTS5 is not there (${why(error)}).`,
      "Search by words scans all rows; use the SQLite that comes with this program.",
    );
  } finally {
    db.close();
  }
}

/** A real load: the file written out, verified, opened. */
export function sqliteVec(dataDir: string): Finding {
  const check = "sqlite-vec";
  const todo = "Vectors are compared one by one without it: slower, with the same results.";
  const path = existsSync(dataDir) ? sqliteVecPath(dataDir) : { reason: "The data folder is not there yet." };
  if (typeof path !== "string")
    return existsSync(dataDir) ? warn(check, path.reason, todo) : ok(check, path.reason);
  const db = new Database(":memory:");
  try {
    db.loadExtension(path, "sqlite3_vec_init");
    const version = db.query<{ version: string }, []>("SELECT vec_version() AS version").get()?.version;
    return ok(check, `${version} is loaded from ${path}.`);
  } catch (error) {
    const more = isNoexec(path)
      ? " The data folder lies on a file system mounted noexec: mount it without, or move DATA_DIR."
      : "";
    return warn(check, `It could not be loaded: ${why(error)}.`, todo + more);
  } finally {
    db.close();
  }
}

/** Whether the file system that holds `path` runs no programs. See proc(5), /proc/self/mountinfo. */
function isNoexec(path: string): boolean {
  let longest = "";
  let options = "";
  for (const line of mounts()) {
    const columns = line.split(" ");
    const point = (columns[4] ?? "").replaceAll("\\040", " ");
    const below = path === point || path.startsWith(point.endsWith("/") ? point : `${point}/`);
    if (!below || point.length < longest.length) continue;
    longest = point;
    options = columns[5] ?? "";
  }
  return options.split(",").includes("noexec");
}

function mounts(): string[] {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  } catch {
    return [];
  }
}
