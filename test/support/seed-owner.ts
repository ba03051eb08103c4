/** Rows of every kind for one owner, put in through the routes, with a word in each text that nobody else may see. */
import type { Database } from "bun:sqlite";
import type { JsonSchema } from "../../src/schemas/json-schema.ts";
import type { Answer, ApiServer } from "./api-server.ts";

export const CANARY = "zebrafink-4711";

export type Seeded = {
  uuids: string[];
  numbers: number[];
  /** External ids, which a caller may well choose to be the same. */
  names: string[];
};

type Call = (method: string, path: string, body?: unknown) => Promise<Answer>;

/** `call` is bound to the owner's key. Routes that are not there yet are left out. */
export async function seedOwner(api: ApiServer, call: Call, owner: string): Promise<Seeded> {
  const seeded: Seeded = { uuids: [], numbers: [], names: [`chat-of-${owner}`] };
  const secret = { note: CANARY };
  for (const body of [
    {
      content: `Keeps a ${CANARY} at home`,
      key: `preference:${CANARY}`,
      metadata: secret,
      sessionId: seeded.names[0],
    },
    { content: `Always answer as a ${CANARY}`, pinned: true },
    { content: `Pending ${CANARY}` },
  ]) {
    seeded.uuids.push((await call("POST", "/api/memory", body)).json.id);
  }
  await call("PUT", `/api/memory/${seeded.uuids[0]}`, { content: `Kept a ${CANARY} at home` });
  api.db.query("UPDATE memories SET status = 'pending' WHERE id = ?").run(seeded.uuids[2]!);
  const session = (await call("POST", "/sessions", { externalId: seeded.names[0], metadata: secret })).json;
  const episode = await call("POST", "/episodes", {
    sessionId: session.id,
    userMessage: `My ${CANARY} sings`,
    aiResponse: `A ${CANARY} does`,
    metadata: secret,
  });
  const entities = [];
  for (const name of ["one", "two"]) {
    entities.push(
      (
        await call("POST", "/entities", {
          name: `${CANARY} ${name}`,
          type: CANARY,
          notes: CANARY,
          metadata: secret,
        })
      ).json,
    );
  }
  const [from, to] = entities;
  await call("POST", "/relationships", { fromId: from?.id, toId: to?.id, label: CANARY, metadata: secret });
  const summary = await call("POST", `/sessions/${session.id}/summaries`, {});
  seeded.numbers.push(session.id, episode.json.id, from?.id, to?.id, summary.json?.id);
  seeded.numbers = [...new Set(seeded.numbers.filter((id) => Number.isInteger(id)))];
  const receipt = crypto.randomUUID();
  api.db
    .query(
      `INSERT INTO receipts (id, owner_id, session_id, provider, model, injected, tokens, placement, latency_ms, candidates, text, created_at)
       SELECT ?, id, ?, ?, ?, 1, 5, 'auto', 1.5, '[]', ?, ? FROM owners WHERE name = ?`,
    )
    .run(receipt, CANARY, CANARY, CANARY, CANARY, Date.now(), owner);
  seeded.uuids.push(receipt);
  return seeded;
}

/** Every row of an owner in every table that has owners, to see that nothing of it changed. */
export function rowsOf(db: Database, owner: string): Record<string, unknown[]> {
  const id = db.query<{ id: number }, [string]>("SELECT id FROM owners WHERE name = ?").get(owner)!.id;
  const tables = db
    .query<{ name: string }, []>(
      "SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c ON c.name = 'owner_id' WHERE t.type = 'table' ORDER BY 1",
    )
    .all();
  return Object.fromEntries(
    tables.map(({ name }) => [name, db.query(`SELECT * FROM "${name}" WHERE owner_id = ?`).all(id)]),
  );
}

/** The ids that a schema takes. */
export function fitting(schema: JsonSchema, { uuids, numbers, names }: Seeded): unknown[] {
  if (schema.format === "uuid") return uuids;
  const digits = typeof schema.pattern === "string" && schema.pattern.includes("\\d");
  return schema.type === "integer" || digits ? numbers : names;
}
