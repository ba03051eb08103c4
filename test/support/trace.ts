/** What is asked of SQLite while something runs, by any connection of this process that was opened after the trace began. */
import { Database, type Statement } from "bun:sqlite";

const METHODS = ["get", "all", "values", "raw", "run", "iterate"] as const;

export type Trace = {
  /** Every statement run meanwhile, in order, with the number of rows it gave or changed. */
  during<T>(work: () => Promise<T>): Promise<{ result: T; steps: string[] }>;
  stop(): void;
};

/** Begins before the connections are opened: a statement that was made earlier is not seen. */
export function traceStatements(): Trace {
  let steps: string[] | null = null;
  const seen = new WeakSet<object>();
  const note = (sql: string, rows: number) => void steps?.push(`${sql.replaceAll(/\s+/g, " ")} → ${rows}`);

  function watch(statement: Statement, sql: string): Statement {
    if (seen.has(statement)) return statement;
    seen.add(statement);
    const methods = statement as unknown as Record<string, (...values: unknown[]) => unknown>;
    for (const method of METHODS) {
      const original = methods[method]!;
      methods[method] = function (this: unknown, ...values: unknown[]) {
        const result = original.apply(this, values);
        if (method === "iterate") return counted(sql, result as Iterable<unknown>);
        note(sql, rowsIn(result));
        return result;
      };
    }
    return statement;
  }

  function* counted(sql: string, rows: Iterable<unknown>): Generator<unknown> {
    let n = 0;
    for (const row of rows) {
      n++;
      yield row;
    }
    note(sql, n);
  }

  const { prototype } = Database;
  // oxlint-disable-next-line typescript/unbound-method
  const { query, prepare, run } = prototype;
  prototype.query = function (this: Database, sql: string) {
    return watch(query.call(this, sql), sql);
  } as typeof query;
  prototype.prepare = function (this: Database, ...input: Parameters<typeof prepare>) {
    return watch(prepare.apply(this, input), input[0]);
  } as typeof prepare;
  prototype.run = function (this: Database, ...input: Parameters<typeof run>) {
    const result = run.apply(this, input);
    note(input[0], result?.changes ?? 0);
    return result;
  } as typeof run;

  return {
    async during(work) {
      steps = [];
      try {
        const result = await work();
        return { result, steps };
      } finally {
        steps = null;
      }
    },
    stop: () => void Object.assign(prototype, { query, prepare, run }),
  };
}

function rowsIn(result: unknown): number {
  if (Array.isArray(result)) return result.length;
  if (typeof result === "object" && result !== null && "lastInsertRowid" in result && "changes" in result)
    return Number(result.changes);
  return result == null ? 0 : 1;
}
