/**
 * The lexical index: derived data, made when the engine starts and rebuilt when the tokens change. Each kind has a plain
 * table of tokens, from which words are counted exactly, and an FTS5 table over it. Triggers keep both in step.
 */
import type { Database } from "bun:sqlite";
import { getMeta, setMeta } from "../db/meta.ts";
import { indexTokens, keyWords, TOKENS_VERSION } from "./tokens.ts";

/** Whether FTS5 is there, and why not. */
export type LexicalStatus = { fts5: true } | { fts5: false; reason: string };

/** Tables of tokens: `columns` hold tokens, `source` is the table they are made from, `when` says which of its rows are searched. */
interface Shape {
  readonly name: string;
  readonly source: string;
  readonly id: string;
  readonly columns: Readonly<Record<string, string>>;
  /** A condition over `NEW`. */
  readonly when: string;
  /** Further columns, kept as they are made here, and an index on them. */
  readonly place?: { readonly columns: Readonly<Record<string, string>>; readonly index: string };
  /** Columns of the source whose change matters. */
  readonly watch: readonly string[];
}

const shapes: readonly Shape[] = [
  {
    name: "memories",
    source: "memories",
    id: "seq",
    columns: { text: "fts_text(new.owner_id, new.key, new.content)" },
    when: "new.status = 'active'",
    watch: ["content", "key", "status", "owner_id"],
  },
  {
    name: "episodes",
    source: "episodes",
    id: "id",
    columns: {
      said: "fts_text(new.owner_id, NULL, new.user_message)",
      reply: "fts_text(new.owner_id, NULL, new.ai_response)",
    },
    when: "new.recall = 1",
    // Its place in the session by order of arrival: neighbours are found by one look into an index.
    place: {
      columns: {
        session_id: "new.session_id",
        created_at: "new.created_at",
        pos: "(SELECT coalesce(max(pos), 0) + 1 FROM episodes_terms WHERE session_id = new.session_id)",
      },
      index: "session_id, pos",
    },
    watch: ["user_message", "ai_response", "recall", "owner_id"],
  },
  {
    name: "entities",
    source: "entities",
    id: "id",
    columns: {
      text: `fts_text(new.owner_id, new.type, new.name || ' ' || coalesce(new.notes, '') || coalesce(
        (SELECT ' ' || group_concat(value, ' ') FROM json_each(new.metadata, '$.aliases') WHERE type = 'text'), ''))`,
    },
    when: "1",
    watch: ["name", "type", "notes", "metadata", "owner_id"],
  },
  {
    name: "summaries",
    source: "summaries",
    id: "id",
    columns: { text: "fts_text(new.owner_id, NULL, new.text)" },
    when: "new.stale = 0",
    watch: ["text", "stale", "owner_id"],
  },
];

/** Registers `fts_text` on a connection. Every connection that writes memories or conversations needs it. */
export function registerFtsText(db: Database): void {
  db.function("fts_text", (owner: number, key: string | null, content: string) =>
    indexTokens(owner, key === null ? content : `${keyWords(key)}\n${content}`),
  );
}

/**
 * Makes the index where it is missing or was made by an older version, and registers its function. Indexing existing
 * rows takes about 30 µs a row; it happens in one transaction, so a crash leaves the old index.
 */
export function ensureLexical(db: Database): LexicalStatus {
  registerFtsText(db);
  const status = probeFts5(db);
  const wanted = `${TOKENS_VERSION}${status.fts5 ? "" : " without fts5"}`;
  if (getMeta(db, "lexical_version") === wanted) return status;
  db.transaction(() => {
    for (const shape of shapes) {
      dropShape(db, shape);
      createShape(db, shape, status.fts5);
    }
    db.run("DROP TABLE IF EXISTS term_counts");
    db.run(`CREATE TABLE term_counts (
      kind TEXT NOT NULL, owner_id INTEGER NOT NULL, n INTEGER NOT NULL, first INTEGER NOT NULL, second INTEGER NOT NULL,
      first_n INTEGER NOT NULL, second_n INTEGER NOT NULL, PRIMARY KEY (kind, owner_id)) STRICT, WITHOUT ROWID`);
    for (const shape of shapes) fillShape(db, shape);
    setMeta(db, "lexical_version", wanted);
  }).immediate();
  return status;
}

/** Index rows that a row still has; 0 after it is gone. */
export function countLexical(db: Database, name: "memories" | "episodes", id: number): number {
  const kept = db
    .query<{ n: number }, [number]>(`SELECT count(*) AS n FROM ${name}_terms WHERE id = ?`)
    .get(id);
  return kept?.n ?? 0;
}

function probeFts5(db: Database): LexicalStatus {
  try {
    db.run("CREATE VIRTUAL TABLE temp.fts5_probe USING fts5(a)");
    db.run("DROP TABLE temp.fts5_probe");
    return { fts5: true };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { fts5: false, reason: `This SQLite has no FTS5 (${message}); words are searched row by row.` };
  }
}

function dropShape(db: Database, { name }: Shape): void {
  for (const trigger of ["insert", "update", "delete"])
    db.run(`DROP TRIGGER IF EXISTS ${name}_terms_${trigger}`);
  for (const part of ["fts_words", "fts_columns"]) db.run(`DROP TABLE IF EXISTS ${name}_${part}`);
  db.run(`DROP TABLE IF EXISTS ${name}_fts`);
  db.run(`DROP TABLE IF EXISTS ${name}_terms`);
}

function createShape(db: Database, shape: Shape, fts5: boolean): void {
  const { name, source, id } = shape;
  const columns = Object.keys(shape.columns);
  // Lengths beside the tokens, in front of them, so that reading a length reads no overflow page.
  const lengths = columns.map((column) => `${column}_n`);
  const places = Object.keys(shape.place?.columns ?? {});
  db.run(`CREATE TABLE ${name}_terms (id INTEGER PRIMARY KEY, owner_id INTEGER NOT NULL,
    ${places.map((column) => `${column} INTEGER NOT NULL, `).join("")}${lengths.map((length) => `${length} INTEGER NOT NULL`).join(", ")}, ${columns.map((column) => `${column} TEXT NOT NULL`).join(", ")}) STRICT`);
  if (shape.place !== undefined)
    db.run(`CREATE INDEX ${name}_terms_place ON ${name}_terms (${shape.place.index})`);
  db.run(`CREATE INDEX ${name}_terms_owner ON ${name}_terms (owner_id, id)`);
  if (fts5) {
    // Tokens arrive folded and whole; `ascii` with every mark a token keeps is the tokenizer that takes them as they are.
    db.run(`CREATE VIRTUAL TABLE ${name}_fts USING fts5(${columns.join(", ")}, content='${name}_terms', content_rowid='id',
      columnsize=1, tokenize="ascii tokenchars '''+#.,_'")`);
    db.run(`INSERT INTO ${name}_fts (${name}_fts, rank) VALUES ('secure-delete', 1)`);
    db.run(`CREATE VIRTUAL TABLE ${name}_fts_words USING fts5vocab(${name}_fts, row)`);
    db.run(`CREATE VIRTUAL TABLE ${name}_fts_columns USING fts5vocab(${name}_fts, col)`);
  }
  const list = columns.join(", ");
  const unlist = (id: string) => `
    ${fts5 ? `INSERT INTO ${name}_fts (${name}_fts, rowid, ${list}) SELECT 'delete', id, ${list} FROM ${name}_terms WHERE id = ${id};` : ""}
    ${countSql(shape, -1, id)}`;
  const enlist = (id: string) => `
    ${fts5 ? `INSERT INTO ${name}_fts (rowid, ${list}) SELECT id, ${list} FROM ${name}_terms WHERE id = ${id};` : ""}
    ${countSql(shape, 1, id)}`;
  // A row that changes keeps its place.
  const changing = ["owner_id", ...lengths, ...columns].map((column) => `${column} = excluded.${column}`);
  const put = `INSERT INTO ${name}_terms ${addSelect(shape)} WHERE ${shape.when}
    ON CONFLICT (id) DO UPDATE SET ${changing.join(", ")};`;
  const changed = shape.watch.map((column) => `old.${column} IS NOT new.${column}`).join(" OR ");
  db.run(
    `CREATE TRIGGER ${name}_terms_insert AFTER INSERT ON ${source} BEGIN ${put} ${enlist(`new.${id}`)} END`,
  );
  db.run(`CREATE TRIGGER ${name}_terms_delete AFTER DELETE ON ${source} BEGIN ${unlist(`old.${id}`)}
    DELETE FROM ${name}_terms WHERE id = old.${id}; END`);
  db.run(`CREATE TRIGGER ${name}_terms_update AFTER UPDATE OF ${shape.watch.join(", ")} ON ${source}
    WHEN ${changed} BEGIN ${unlist(`old.${id}`)} DELETE FROM ${name}_terms WHERE id = old.${id} AND NOT (${shape.when});
    ${put} ${enlist(`new.${id}`)} END`);
}

/** The row of tokens as a SELECT over `new`. */
function addSelect({ id, columns, place }: Shape): string {
  const names = Object.keys(columns);
  const count = (name: string) =>
    `CASE ${name} WHEN '' THEN 0 ELSE length(${name}) - length(replace(${name}, ' ', '')) + 1 END`;
  const made = Object.entries({ ...place?.columns, ...columns }).map(([name, sql]) => `${sql} AS ${name}`);
  const places = Object.keys(place?.columns ?? {}).map((name) => `${name}, `);
  // The LIMIT keeps SQLite from putting the calls of fts_text in place of every mention of a column.
  return `SELECT id, owner_id, ${places.join("")}${names.map(count).join(", ")}, ${names.join(", ")}
    FROM (SELECT new.${id} AS id, new.owner_id AS owner_id, ${made.join(", ")} LIMIT -1)`;
}

/** Adds (or takes) the row `id` of tokens to the counts of its owner. */
function countSql({ name, columns }: Shape, sign: 1 | -1, id: string): string {
  const [first, second] = Object.keys(columns);
  const other = second === undefined ? "0" : `${second}_n`;
  return `INSERT INTO term_counts SELECT '${name}', owner_id, ${sign}, ${sign} * ${first}_n, ${sign} * ${other},
      ${sign} * (${first}_n > 0), ${sign} * (${other} > 0) FROM ${name}_terms WHERE id = ${id}
    ON CONFLICT DO UPDATE SET n = n + excluded.n, first = first + excluded.first, second = second + excluded.second,
      first_n = first_n + excluded.first_n, second_n = second_n + excluded.second_n;`;
}

/** Indexes what is already there by the very statements of the insert trigger. */
function fillShape(db: Database, shape: Shape): void {
  const { name, source } = shape;
  const names = Object.keys(shape.columns);
  const select = addSelect(shape)
    // The rows are there already, so they are numbered by their order.
    .replace(
      /\(SELECT coalesce\(max\(pos\).*?\)(?= AS pos)/,
      "row_number() OVER (PARTITION BY s.session_id ORDER BY s.created_at, s.id)",
    )
    .replaceAll("new.", "s.")
    .replace("LIMIT -1", ` FROM ${source} s WHERE ${shape.when.replaceAll("new.", "s.")} LIMIT -1`);
  db.run(`INSERT INTO ${name}_terms ${select} WHERE 1`);
  if (db.query(`SELECT 1 FROM sqlite_schema WHERE name = '${name}_fts'`).get())
    db.run(
      `INSERT INTO ${name}_fts (rowid, ${names.join(", ")}) SELECT id, ${names.join(", ")} FROM ${name}_terms`,
    );
  const [first, second] = names;
  const other = second === undefined ? "0" : `${second}_n`;
  db.run(`INSERT INTO term_counts SELECT '${name}', owner_id, count(*), sum(${first}_n), sum(${other}),
    sum(${first}_n > 0), sum(${other} > 0) FROM ${name}_terms GROUP BY owner_id`);
}
