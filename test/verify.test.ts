import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { VERIFY_OWNER } from "../src/memory/verify.ts";
import { ensureOwner } from "../src/db/owners.ts";
import { startApi, type ApiServer } from "./support/api-server.ts";

let api: ApiServer;

beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

/** Rows of the reserved owner, in whatever table. */
function left(): number {
  const owner = ensureOwner(api.db, VERIFY_OWNER);
  return ["memories", "memories_terms", "tombstones", "vec_items"]
    .map(
      (table) =>
        api.db
          .query<{ n: number }, [number]>(`SELECT count(*) AS n FROM ${table} WHERE owner_id = ?`)
          .get(owner)!.n,
    )
    .reduce((sum, n) => sum + n, 0);
}

describe("GET /api/memory/health", () => {
  test("does the round trip, leaves nothing behind, and gives the same result for a while", async () => {
    await api.anna("POST", "/api/memory", { content: "Anna's own memory" });
    const first = await api.anna("GET", "/api/memory/health");
    expect(first.json).toMatchObject({ working: true });
    expect(first.json.latencyMs).toBeGreaterThan(0);
    expect((await api.management("GET", "/api/memory/health")).json).toEqual(first.json);
    expect(left()).toBe(0);
    const list = await api.management("GET", "/api/memory");
    expect(list.json.data.map((row: { content: string }) => row.content)).toEqual(["Anna's own memory"]);
    expect((await api.anonymous("GET", "/api/memory/health")).status).toBe(401);
  });
});

test("an index that lost its rows is seen, and what a crash left behind goes", async () => {
  const broken = await startApi();
  const owner = ensureOwner(broken.db, VERIFY_OWNER);
  broken.db.run(
    `INSERT INTO memories (id, owner_id, type, content, origin, tokens, created_at, updated_at, confirmed_at)
     VALUES (?, ?, 'factual', 'left by a crash', 'user', 3, 1, 1, 1)`,
    [crypto.randomUUID(), owner],
  );
  // New rows are indexed no more.
  broken.db.run("DROP TRIGGER memories_terms_insert");
  const answer = await broken.management("GET", "/api/memory/health");
  expect(answer.json).toMatchObject({ working: false, error: expect.stringContaining("words") });
  const shown = await broken.anna("GET", "/api/memory/health");
  expect(shown.json.working).toBe(false);
  expect(shown.json).not.toHaveProperty("error");
  expect(
    broken.db
      .query<{ n: number }, [number]>("SELECT count(*) AS n FROM memories WHERE owner_id = ?")
      .get(owner)!.n,
  ).toBe(0);
  await broken.stop();
});
