/**
 * Tables of the vector index: derived data, made when the engine starts. A *space* is one embedding signature and
 * quantisation; a change of either builds a second space beside the one that is searched. Vectors stand in vec0 tables
 * partitioned by owner, or in plain tables where the extension cannot load.
 */
import type { Database } from "bun:sqlite";
import { getMeta, setMeta } from "../db/meta.ts";

const TABLES_VERSION = 2;

/** What has vectors. An episode has one of the whole exchange and, where both sides spoke, one of the user's message. */
export const parts = ["memory", "episode", "episode_user", "entity", "summary"] as const;
export type Part = (typeof parts)[number];

/** Table stem, source table, its id, which rows have vectors, and the columns whose change makes a vector stale. */
export const partShapes: Readonly<
  Record<Part, { table: string; source: string; id: string; when: string; watch: readonly string[] }>
> = {
  memory: {
    table: "memories",
    source: "memories",
    id: "seq",
    when: "new.status = 'active'",
    watch: ["content", "key", "status", "owner_id"],
  },
  episode: {
    table: "episodes",
    source: "episodes",
    id: "id",
    when: "new.recall = 1",
    watch: ["user_message", "ai_response", "recall", "owner_id"],
  },
  episode_user: {
    table: "episode_users",
    source: "episodes",
    id: "id",
    // One side alone is its own whole text.
    when: "new.recall = 1 AND new.user_message <> '' AND new.ai_response <> ''",
    watch: ["user_message", "ai_response", "recall", "owner_id"],
  },
  entity: {
    table: "entities",
    source: "entities",
    id: "id",
    when: "1",
    watch: ["name", "type", "notes", "owner_id"],
  },
  summary: {
    table: "summaries",
    source: "summaries",
    id: "id",
    when: "new.stale = 0",
    watch: ["text", "stale", "owner_id"],
  },
};

export type Quantization = "none" | "int8";

/** One space: what its vectors were made by. */
export interface Space {
  readonly id: number;
  /** `source:model:dim` */
  readonly signature: string;
  readonly dim: number;
  readonly quantization: Quantization;
  readonly state: "active" | "building";
  /** true: vec0; false: plain blobs. */
  readonly vec0: boolean;
}

/** Whether sqlite-vec works on this connection, and why not. */
export type Vec0Status = { vec0: true } | { vec0: false; reason: string };

/** A vector's row number: the item's own for its first window, far above it for the others. */
export const WINDOW = 2 ** 40;
/** Windows of one text at most. */
const WINDOWS = 8;

/** The vec0 or blob table of a part in a space. */
export function vectorTable(space: Pick<Space, "id">, part: Part): string {
  return `vec_${partShapes[part].table}_${space.id}`;
}

/** Loads sqlite-vec from `path` (an earlier failure to find it is passed on) and makes the plain tables. */
export function ensureVectors(db: Database, extension: string | { reason: string }): Vec0Status {
  const status = loadVec0(db, extension);
  if (getMeta(db, "vector_version") !== TABLES_VERSION) {
    db.transaction(() => {
      dropAll(db);
      createAll(db);
      setMeta(db, "vector_version", TABLES_VERSION);
    }).immediate();
  }
  for (const space of spaces(db)) {
    // Made by a box that had the extension, or by one that had not: such an index cannot be read here.
    if (space.vec0 && !status.vec0) db.transaction(() => dropSpace(db, space, true)).immediate();
    else connectSpace(db, space);
  }
  db.query("UPDATE memory_vec_meta SET vec_loaded = ?").run(Number(status.vec0));
  return status;
}

/** Every space there is, the active one first. */
export function spaces(db: Database): Space[] {
  return db
    .query<Omit<Space, "vec0"> & { vec0: number }, []>(
      "SELECT id, signature, dim, quantization, state, vec0 FROM vec_spaces ORDER BY state, id",
    )
    .all()
    .map((row) => ({ ...row, vec0: row.vec0 === 1 }));
}

/** The space that is searched, or null before the first vector. */
export function activeSpace(db: Database): Space | null {
  return spaces(db).find((space) => space.state === "active") ?? null;
}

/**
 * The space that vectors of this signature and quantisation go to: the active one, or one that is built beside it.
 * A building space of another signature is dropped, since it will never be wanted.
 */
export function spaceFor(
  db: Database,
  want: { signature: string; dim: number; quantization: Quantization },
  vec0: boolean,
): Space {
  return db
    .transaction(() => {
      const known = spaces(db);
      const fits = (space: Space) =>
        space.signature === want.signature &&
        space.quantization === want.quantization &&
        space.dim === want.dim &&
        space.vec0 === vec0;
      const active = known.find((space) => space.state === "active");
      for (const space of known) if (space.state === "building" && !fits(space)) dropSpace(db, space, false);
      const found = known.find((space) => fits(space));
      if (found !== undefined) {
        if (found.state === "active")
          for (const space of known) if (space.state === "building") dropSpace(db, space, false);
        return found;
      }
      const state = active === undefined ? "active" : "building";
      const { id } = db
        .query<{ id: number }, [string, number, string, string, number, number]>(
          "INSERT INTO vec_spaces (signature, dim, quantization, state, vec0, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
        )
        .get(want.signature, want.dim, want.quantization, state, Number(vec0), Date.now())!;
      const space: Space = { ...want, id, state, vec0 };
      for (const part of parts) createVectorTable(db, space, part);
      connectSpace(db, space);
      if (state === "active") noteActive(db, space);
      return space;
    })
    .immediate();
}

/** Makes a building space the one that is searched and drops the old one: one transaction. */
export function switchTo(db: Database, space: Space): void {
  db.transaction(() => {
    for (const old of spaces(db)) if (old.id !== space.id) dropSpace(db, old, false);
    db.query("UPDATE vec_spaces SET state = 'active' WHERE id = ?").run(space.id);
    noteActive(db, space);
  }).immediate();
}

/** Vectors that an item still has, over all spaces and windows; 0 after it is gone. */
export function countVectors(db: Database, part: Part, id: number): number {
  let n = 0;
  for (const space of spaces(db)) {
    const found = db.query<{ rowid: number }, [number]>(
      `SELECT rowid FROM ${vectorTable(space, part)} WHERE rowid = ?`,
    );
    // One look-up each: vec0 would walk its whole table for a condition with OR.
    for (let window = 0; window < WINDOWS; window++) if (found.get(id + window * WINDOW) !== null) n++;
  }
  return n;
}

function loadVec0(db: Database, extension: string | { reason: string }): Vec0Status {
  if (typeof extension !== "string") return { vec0: false, reason: extension.reason };
  try {
    db.loadExtension(extension, "sqlite3_vec_init");
    db.query("SELECT vec_version()").get();
    return { vec0: true };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return {
      vec0: false,
      reason: `sqlite-vec could not be loaded (${message}); vectors are scanned instead.`,
    };
  }
}

function noteActive(db: Database, space: Space): void {
  db.query("UPDATE memory_vec_meta SET active_dim = ?, embedding_signature = ?, last_reset_at = ?").run(
    space.dim,
    space.quantization === "none" ? space.signature : `${space.signature}:${space.quantization}`,
    Date.now(),
  );
}

function createAll(db: Database): void {
  db.run(`CREATE TABLE memory_vec_meta (active_dim INTEGER, embedding_signature TEXT, last_reset_at INTEGER,
    vec_loaded INTEGER NOT NULL DEFAULT 0) STRICT`);
  db.run("INSERT INTO memory_vec_meta DEFAULT VALUES");
  db.run(`CREATE TABLE vec_spaces (id INTEGER PRIMARY KEY AUTOINCREMENT, signature TEXT NOT NULL, dim INTEGER NOT NULL,
    quantization TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('active', 'building')), vec0 INTEGER NOT NULL,
    created_at INTEGER NOT NULL) STRICT`);
  // `rev` counts an owner's changes, so that a cache reads only what is new.
  db.run(`CREATE TABLE vec_items (space INTEGER NOT NULL, part TEXT NOT NULL, owner_id INTEGER NOT NULL, item INTEGER NOT NULL,
    window INTEGER NOT NULL, hash BLOB NOT NULL, rev INTEGER NOT NULL,
    PRIMARY KEY (space, part, owner_id, item, window)) STRICT, WITHOUT ROWID`);
  db.run("CREATE INDEX vec_items_rev ON vec_items (space, part, owner_id, rev)");
  db.run(`CREATE TABLE vec_counts (space INTEGER NOT NULL, part TEXT NOT NULL, owner_id INTEGER NOT NULL, n INTEGER NOT NULL,
    items INTEGER NOT NULL, rev INTEGER NOT NULL, PRIMARY KEY (space, part, owner_id)) STRICT, WITHOUT ROWID`);
  // `next_at` NULL: set aside after too many tries, with the reason.
  db.run(`CREATE TABLE vec_pending (part TEXT NOT NULL, item INTEGER NOT NULL, owner_id INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0, next_at INTEGER DEFAULT 0, reason TEXT, PRIMARY KEY (part, item)) STRICT, WITHOUT ROWID`);
  db.run("CREATE INDEX vec_pending_due ON vec_pending (next_at, item)");
  db.run("CREATE INDEX vec_pending_owner ON vec_pending (owner_id)");
  db.run(`CREATE TRIGGER vec_items_delete AFTER DELETE ON vec_items BEGIN
    UPDATE vec_counts SET n = n - 1, items = items - (old.window = 0), rev = rev + 1
    WHERE space = old.space AND part = old.part AND owner_id = old.owner_id; END`);
  for (const part of parts) {
    const { source, id, when, watch } = partShapes[part];
    const drop = (
      row: string,
    ) => `DELETE FROM vec_items WHERE space IN (SELECT id FROM vec_spaces) AND part = '${part}'
      AND owner_id = ${row}.owner_id AND item = ${row}.${id}; DELETE FROM vec_pending WHERE part = '${part}' AND item = ${row}.${id};`;
    const add = `INSERT INTO vec_pending (part, item, owner_id) SELECT '${part}', new.${id}, new.owner_id WHERE ${when};`;
    const changed = watch.map((column) => `old.${column} IS NOT new.${column}`).join(" OR ");
    db.run(`CREATE TRIGGER vec_${part}_insert AFTER INSERT ON ${source} BEGIN ${add} END`);
    db.run(`CREATE TRIGGER vec_${part}_delete AFTER DELETE ON ${source} BEGIN ${drop("old")} END`);
    db.run(`CREATE TRIGGER vec_${part}_update AFTER UPDATE OF ${watch.join(", ")} ON ${source} WHEN ${changed}
      BEGIN ${drop("old")} ${add} END`);
    db.run(`INSERT INTO vec_pending (part, item, owner_id) SELECT '${part}', ${id}, owner_id FROM ${source} AS s
      WHERE ${when.replaceAll("new.", "s.")}`);
  }
}

function dropAll(db: Database): void {
  for (const part of parts)
    for (const event of ["insert", "delete", "update"]) db.run(`DROP TRIGGER IF EXISTS vec_${part}_${event}`);
  const tables = db
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'vec_spaces'",
    )
    .all();
  if (tables.length > 0)
    for (const space of spaces(db))
      for (const part of parts) db.run(`DROP TABLE IF EXISTS ${vectorTable(space, part)}`);
  for (const table of ["memory_vec_meta", "vec_items", "vec_counts", "vec_pending", "vec_spaces"])
    db.run(`DROP TABLE IF EXISTS ${table}`);
}

function createVectorTable(db: Database, space: Space, part: Part): void {
  const table = vectorTable(space, part);
  if (!space.vec0) {
    db.run(
      `CREATE TABLE ${table} (id INTEGER PRIMARY KEY, owner_id INTEGER NOT NULL, embedding BLOB NOT NULL) STRICT`,
    );
    return;
  }
  // Each partition allocates a whole chunk: with 16 a small owner costs 1.7 kB a vector of 256, by default 106 kB.
  const type = space.quantization === "int8" ? "int8" : "float";
  db.run(`CREATE VIRTUAL TABLE ${table} USING vec0(owner_id INTEGER PARTITION KEY,
    embedding ${type}[${space.dim}] distance_metric=cosine, chunk_size=16)`);
}

/**
 * Deleting an item's row of `vec_items` deletes its vector. The trigger is this connection's own: one that has no
 * extension could not run it, and would then not be able to delete at all.
 */
function connectSpace(db: Database, space: Space): void {
  for (const part of parts) {
    const table = vectorTable(space, part);
    // vec0 overwrites the vector's bytes in its chunk, and deletes the chunk with its last row.
    db.run(`CREATE TEMP TRIGGER IF NOT EXISTS ${table}_gone AFTER DELETE ON main.vec_items
      WHEN old.space = ${space.id} AND old.part = '${part}' BEGIN
      DELETE FROM ${table} WHERE rowid = old.item + old.window * ${WINDOW}; END`);
  }
}

/** Drops a space with its vectors; `requeue` puts its items among those that wait for a vector. */
function dropSpace(db: Database, space: Space, requeue: boolean): void {
  if (requeue && space.state === "active") {
    db.query(
      "INSERT INTO vec_pending (part, item, owner_id) SELECT part, item, owner_id FROM vec_items WHERE space = ? AND window = 0 ON CONFLICT DO NOTHING",
    ).run(space.id);
  }
  for (const part of parts) {
    const table = vectorTable(space, part);
    db.run(`DROP TRIGGER IF EXISTS temp.${table}_gone`);
    try {
      db.run(`DROP TABLE IF EXISTS ${table}`);
    } catch {
      // A vec0 table cannot be dropped without its module; its name is not used again.
    }
  }
  db.query("DELETE FROM vec_spaces WHERE id = ?").run(space.id);
  db.query("DELETE FROM vec_counts WHERE space = ?").run(space.id);
  db.query("DELETE FROM vec_items WHERE space = ?").run(space.id);
}
