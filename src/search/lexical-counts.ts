/** What the tables of words say: how an owner's rows look, and how many of them hold a word. */
import type { Database } from "bun:sqlite";
import { weighedTerm, type OwnerShape, type WeighedTerm } from "./bm25.ts";
import { MOST_TIMES } from "./postings.ts";
import { tables } from "./predicate.ts";
import type { QueryTerm } from "./tokens.ts";
import type { Kind } from "./types.ts";

/** How an owner's rows of a kind look, all zero when there are none, and the counts that this is made of. */
export function countsOf(
  db: Database,
  kind: Kind,
  owner: number,
): { shape: OwnerShape; counts: { n: number; first: number; second: number } } {
  const row = db
    .query<{ n: number; first: number; second: number; first_n: number; second_n: number }, [string, number]>(
      "SELECT n, first, second, first_n, second_n FROM term_counts WHERE kind = ? AND owner_id = ?",
    )
    .get(tables[kind].index, owner);
  if (row === null || row.n <= 0) {
    const shape = { rows: 0, saidRows: 0, replyRows: 0, length: 0, saidLength: 0, replyLength: 0 };
    return { shape, counts: { n: 0, first: 0, second: 0 } };
  }
  const shape = {
    rows: row.n,
    saidRows: row.first_n,
    replyRows: row.second_n,
    length: (row.first + row.second) / row.n,
    saidLength: row.first_n > 0 ? row.first / row.first_n : 0,
    replyLength: row.second_n > 0 ? row.second / row.second_n : 0,
  };
  return { shape, counts: { n: row.n, first: row.first, second: row.second } };
}

/** How many rows hold each word, by FTS5's own dictionary. */
export function countByIndex(
  db: Database,
  kind: Kind,
  _owner: number,
  terms: readonly QueryTerm[],
  shape: OwnerShape,
): WeighedTerm[] {
  const { index, columns } = tables[kind];
  const whole = db.query<{ doc: number }, [string]>(`SELECT doc FROM ${index}_fts_words WHERE term = ?`);
  const first = db.query<{ doc: number }, [string]>(
    `SELECT doc FROM ${index}_fts_columns WHERE term = ? AND col = '${columns[0]}'`,
  );
  return terms.map((term) => {
    let rows = 0;
    let saidRows = 0;
    for (const form of term.forms) {
      const found = whole.get(form)?.doc ?? 0;
      rows += found;
      if (found > 0 && columns.length > 1) saidRows += first.get(form)?.doc ?? 0;
    }
    return weighedTerm(term, rows, columns.length > 1 ? saidRows : rows, shape);
  });
}

/** The same by reading every row of the owner. */
export function countByScan(
  db: Database,
  kind: Kind,
  owner: number,
  terms: readonly QueryTerm[],
  shape: OwnerShape,
): WeighedTerm[] {
  const { index, columns } = tables[kind];
  const rows = terms.map(() => 0);
  const said = terms.map(() => 0);
  const all = db.query<Record<string, string>, [number]>(
    `SELECT ${columns.join(", ")} FROM ${index}_terms WHERE owner_id = ?`,
  );
  for (const row of all.iterate(owner)) {
    terms.forEach((term, at) => {
      const hits = columns.map((column) => term.forms.some((form) => count(row[column] ?? "", form) > 0));
      if (hits.some(Boolean)) rows[at]! += 1;
      if (hits[0]) said[at]! += 1;
    });
  }
  return terms.map((term, at) => weighedTerm(term, rows[at]!, said[at]!, shape));
}

/** The id of the owner's n-th newest row; 0 when there are fewer. */
export function nthNewest(db: Database, kind: Kind, owner: number, n: number): number {
  return (
    db
      .query<{ id: number }, [number, number]>(
        `SELECT id FROM ${tables[kind].index}_terms WHERE owner_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?`,
      )
      .get(owner, n)?.id ?? 0
  );
}

/** How often a token stands in a text of tokens, up to {@link MOST_TIMES}. */
export function count(tokens: string, token: string): number {
  let n = 0;
  for (
    let at = tokens.indexOf(token);
    at >= 0 && n < MOST_TIMES;
    at = tokens.indexOf(token, at + token.length)
  ) {
    const end = at + token.length;
    if ((at === 0 || tokens[at - 1] === " ") && (end === tokens.length || tokens[end] === " ")) n++;
  }
  return n;
}
