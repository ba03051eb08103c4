import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Database } from "bun:sqlite";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { insertMemory } from "../src/db/memories.ts";
import { migrate } from "../src/db/migrate.ts";
import { openDatabase } from "../src/db/open.ts";
import { ensureOwner } from "../src/db/owners.ts";
import { EmbeddingError, type Embedder } from "../src/embed/types.ts";
import { sqliteVecPath } from "../src/native.ts";
import { coverage, embedBatch, retryVectors, type BatchResult } from "../src/search/indexing.ts";
import { ensureLexical } from "../src/search/lexical-tables.ts";
import { createSight } from "../src/search/sight.ts";
import { createSimd } from "../src/search/simd.ts";
import { itemOf, nearestRows, putVectors } from "../src/search/vector-store.ts";
import {
  activeSpace,
  countVectors,
  ensureVectors,
  spaceFor,
  spaces,
  vectorTable,
} from "../src/search/vector-tables.ts";
import { createVectorIndex } from "../src/search/vectors.ts";

let dir: string;
let db: Database;
let vec0: boolean;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "recollect-vectors-"));
  open();
});
afterEach(() => {
  db.close();
  rmSync(dir, { recursive: true, force: true });
});

function open(extension: string | { reason: string } = sqliteVecPath(dir)): void {
  db = openDatabase(join(dir, "recollect.db"));
  migrate(db, join(dir, "backups"));
  ensureLexical(db);
  ({ vec0 } = ensureVectors(db, extension));
}

function add(content: string, owner = "a"): number {
  const now = Date.now();
  return insertMemory(db, {
    id: crypto.randomUUID(),
    ownerId: ensureOwner(db, owner),
    sessionId: null,
    type: "factual",
    key: null,
    content,
    metadata: {},
    origin: "api",
    status: "active",
    pinned: false,
    standing: false,
    byHand: false,
    episodeId: null,
    tokens: 1,
    createdAt: now,
    updatedAt: now,
    confirmedAt: now,
    expiresAt: null,
  });
}

/** An embedder of letters: the vector counts which letters a text has. `refuse` makes it fail for some texts. */
function letters(
  options: { name?: string; dim?: number; refuse?: (text: string) => Error | null } = {},
): Embedder {
  const { name = "letters", dim = 32, refuse } = options;
  return {
    source: "static",
    model: name,
    dimensions: dim,
    signature: `static:${name}:${dim}`,
    windows: (text) => (text.length <= 40 ? [text] : text.match(/.{1,40}/gs)!.slice(0, 8)),
    async embed(texts) {
      return texts.map((text) => {
        const error = refuse?.(text);
        if (error) throw error;
        const vector = new Float32Array(dim);
        for (const char of text.toLowerCase()) vector[char.charCodeAt(0) % dim]! += 1;
        const length = Math.hypot(...vector) || 1;
        return vector.map((x) => x / length);
      });
    },
    async close() {},
  };
}

const batch = (embedder: Embedder, now = Date.now(), limit = 16): Promise<BatchResult> =>
  embedBatch({ db, embedder, quantization: "none", vec0, now }, limit);
async function all(embedder: Embedder): Promise<void> {
  while ((await batch(embedder)).more);
}
const everything = (owner = "a") =>
  createSight(db, "memory", {
    owner: ensureOwner(db, owner),
    session: null,
    retentionDays: 0,
    now: Date.now(),
  });
async function nearestTo(text: string, embedder: Embedder, k = 3, owner = "a"): Promise<number[]> {
  const [query] = await embedder.embed([text]);
  const found = createVectorIndex(db).search("memory", everything(owner), query!, k);
  return found!.hits.map((hit) => hit.id);
}

describe("rows get vectors", () => {
  test("new, changed and archived rows; what is deleted leaves no vector", async () => {
    const first = add("zzzz");
    const second = add("yyyy");
    expect(coverage(db)).toMatchObject({ rows: 2, current: 0, pending: 2 });
    await all(letters());
    expect(coverage(db)).toMatchObject({ rows: 2, current: 2, pending: 0 });
    expect(await nearestTo("zzz", letters(), 1)).toEqual([first]);
    db.query("UPDATE memories SET content = 'xxxx' WHERE seq = ?").run(first);
    expect(coverage(db)).toMatchObject({ rows: 2, current: 1, pending: 1 });
    expect(await nearestTo("zzz", letters(), 1)).toEqual([second]);
    await all(letters());
    expect(await nearestTo("xxx", letters(), 1)).toEqual([first]);
    db.query("UPDATE memories SET status = 'archived' WHERE seq = ?").run(second);
    expect(countVectors(db, "memory", second)).toBe(0);
    db.query("DELETE FROM memories WHERE seq = ?").run(first);
    expect(countVectors(db, "memory", first)).toBe(0);
    expect(coverage(db)).toMatchObject({ rows: 0, current: 0, pending: 0 });
  });

  test("counting an access or changing metadata makes no new vector", async () => {
    add("zzzz");
    await all(letters());
    db.run("UPDATE memories SET access_count = 7, metadata = '{\"a\":1}', pinned = 1");
    expect(coverage(db)).toMatchObject({ current: 1, pending: 0 });
  });

  test("the bytes of a deleted vector are gone from the file", async () => {
    const gone = add("q9q9q9q9");
    await all(letters());
    const [vector] = await letters().embed(["q9q9q9q9"]);
    const bytes = Buffer.from(vector!.buffer);
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    expect(readFileSync(join(dir, "recollect.db")).includes(bytes)).toBe(true);
    db.query("DELETE FROM memories WHERE seq = ?").run(gone);
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    expect(readFileSync(join(dir, "recollect.db")).includes(bytes)).toBe(false);
  });

  test("the bytes of a deleted vector are gone while others of its chunk stay, rounded to bytes as well", async () => {
    const words = ["hhhh", "iiii", "jjjj", "kkkk", "q8q8"];
    const rows = words.map((word) => add(word));
    for (const quantization of ["none", "int8"] as const) {
      while ((await embedBatch({ db, embedder: letters(), quantization, vec0, now: Date.now() }, 16)).more);
      const table = vectorTable(activeSpace(db)!, "memory");
      const gone = add("q9q9q9q9");
      await embedBatch({ db, embedder: letters(), quantization, vec0, now: Date.now() }, 16);
      const bytes = db
        .query<{ embedding: Uint8Array }, [number]>(`SELECT embedding FROM ${table} WHERE rowid = ?`)
        .get(gone)!.embedding;
      db.run("PRAGMA wal_checkpoint(TRUNCATE)");
      expect(readFileSync(join(dir, "recollect.db")).includes(bytes)).toBe(true);
      db.query("DELETE FROM memories WHERE seq = ?").run(gone);
      db.run("PRAGMA wal_checkpoint(TRUNCATE)");
      expect(readFileSync(join(dir, "recollect.db")).includes(bytes)).toBe(false);
      for (const row of rows) expect(countVectors(db, "memory", row)).toBe(1);
    }
  });

  test("a long text is as near as its best window", async () => {
    const long = add(`${"a".repeat(40)}${"b".repeat(40)}${"w".repeat(40)}`);
    for (let i = 0; i < 20; i++) add("abw");
    await all(letters());
    expect(db.query("SELECT count(*) AS n FROM vec_items WHERE item = ?").get(long)).toEqual({ n: 3 });
    expect(await nearestTo("wwww", letters(), 1)).toEqual([long]);
  });

  test("a text that fails is tried five times, with growing waits, then set aside with the reason", async () => {
    add("good");
    add("bad text");
    const picky = letters({ refuse: (text) => (text === "bad text" ? new Error("cannot read this") : null) });
    let now = Date.now();
    const waits: (number | null)[] = [];
    for (let tries = 0; tries < 5; tries++) {
      const { waitMs, embedded, failed } = await batch(picky, now);
      expect([embedded, failed]).toEqual([tries === 0 ? 1 : 0, 1]);
      waits.push(waitMs);
      now += waitMs ?? 0;
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, null]);
    expect(coverage(db)).toMatchObject({
      rows: 2,
      current: 1,
      pending: 0,
      setAside: { count: 1, reason: "cannot read this" },
    });
    retryVectors(db, false, now);
    expect(coverage(db)).toMatchObject({ pending: 1, setAside: { count: 0 } });
    await batch(letters(), now);
    expect(coverage(db)).toMatchObject({ current: 2, setAside: { count: 0 } });
  });

  test("a part that is down costs no text a try", async () => {
    add("one");
    const down = letters({ refuse: () => new EmbeddingError("the endpoint is down", { partDown: true }) });
    for (let n = 0; n < 7; n++)
      expect(await batch(down).catch((error: unknown) => error)).toBeInstanceOf(EmbeddingError);
    expect(db.query("SELECT tries FROM vec_pending").all()).toEqual([{ tries: 0 }]);
  });

  test("NaN and vectors of another length are refused, not stored", async () => {
    add("one");
    const broken = { ...letters(), embed: async () => [new Float32Array(32).fill(Number.NaN)] };
    expect(await batch(broken)).toMatchObject({ embedded: 0, failed: 1 });
    const short = { ...letters(), embed: async () => [new Float32Array(31)] };
    expect(await batch(short, Date.now() + 60_000)).toMatchObject({ embedded: 0, failed: 1 });
    expect(coverage(db).current).toBe(0);
  });
});

describe("another model", () => {
  test("its index is built beside the old one, which is searched until it is complete; a crash goes on where it was", async () => {
    const rows = Array.from({ length: 40 }, (_, i) => add(`${"abcdefghij"[i % 10]!.repeat(5)} ${i}`));
    await all(letters());
    const next = letters({ name: "next", dim: 48 });
    await batch(next);
    expect(spaces(db).map(({ state, dim }) => [state, dim])).toEqual([
      ["active", 32],
      ["building", 48],
    ]);
    expect(coverage(db).building).toMatchObject({ done: 16, total: 40 });
    expect(await nearestTo("ccccc", letters(), 4)).toContain(rows[2]!);
    // The process dies; the next one opens the same files.
    db.close();
    open();
    const late = add("late comer");
    for (let n = 0; n < 10 && activeSpace(db)!.dim === 32; n++) await batch(next);
    expect(spaces(db).map(({ state, dim }) => [state, dim])).toEqual([["active", 48]]);
    expect(await nearestTo("ccccc", next, 4)).toContain(rows[2]!);
    expect(await nearestTo("late comer", next, 1)).toEqual([late]);
    expect(coverage(db)).toMatchObject({ rows: 41, current: 41, building: null });
    expect(db.query("SELECT name FROM sqlite_schema WHERE name LIKE 'vec_memories_1%'").all()).toEqual([]);
    expect(db.query("SELECT active_dim, embedding_signature FROM memory_vec_meta").get()).toEqual({
      active_dim: 48,
      embedding_signature: "static:next:48",
    });
  });

  test("going back before it is complete leaves the old index as it was", async () => {
    for (let i = 0; i < 40; i++) add(`row ${i}`);
    await all(letters());
    await batch(letters({ name: "next", dim: 48 }));
    await all(letters());
    expect(spaces(db).map(({ state, dim }) => [state, dim])).toEqual([["active", 32]]);
    expect(coverage(db)).toMatchObject({ current: 40, pending: 0, building: null });
  });

  test("another quantisation is another index", async () => {
    const row = add("hello there");
    await all(letters());
    for (let n = 0; n < 3; n++)
      await embedBatch({ db, embedder: letters(), quantization: "int8", vec0, now: Date.now() }, 16);
    expect(spaces(db)).toMatchObject([{ state: "active", quantization: "int8" }]);
    expect(await nearestTo("hello there", letters(), 1)).toEqual([row]);
  });
});

test("without the extension vectors are scanned; with it again they are made anew", async () => {
  const row = add("zzzz");
  add("yyyy");
  await all(letters());
  db.close();
  open({ reason: "this build has none" });
  expect(vec0).toBe(false);
  expect(coverage(db)).toMatchObject({ rows: 2, current: 0, pending: 2 });
  await all(letters());
  expect(await nearestTo("zzz", letters(), 1)).toEqual([row]);
  db.query("DELETE FROM memories WHERE seq = ?").run(row);
  expect(countVectors(db, "memory", row)).toBe(0);
  db.close();
  open();
  await all(letters());
  expect(coverage(db)).toMatchObject({ rows: 1, current: 1 });
});

test.each([
  ["", createSimd()],
  [", also without SIMD", () => null],
])(
  "many vectors: bits choose and whole vectors decide, within two in a thousand of the exact answer%s",
  async (_, openSimd) => {
    const owner = ensureOwner(db, "a");
    const dim = 64;
    const space = spaceFor(db, { signature: "static:random:64", dim, quantization: "none" }, vec0);
    let state = 1;
    const random = () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31 - 0.5;
    // Clusters around a common direction, as real embeddings are.
    const centres = Array.from({ length: 30 }, () =>
      Float32Array.from({ length: dim }, () => random() * 2 + 0.4),
    );
    const make = () => {
      const centre = centres[Math.floor((random() + 0.5) * 30)]!;
      const vector = centre.map((x) => x + random() * 1.5);
      const length = Math.hypot(...vector);
      return vector.map((x) => x / length);
    };
    const count = 6000;
    const vectors = new Map<number, Float32Array>();
    db.transaction(() => {
      for (let i = 0; i < count; i++) {
        const seq = add(`row ${i}`);
        vectors.set(seq, make());
        putVectors(db, space, "memory", owner, seq, new Uint8Array(8), [vectors.get(seq)!]);
      }
    })();
    const index = createVectorIndex(db, openSimd);
    await index.warm("memory", owner);
    let same = 0;
    for (let n = 0; n < 40; n++) {
      const query = make();
      const found = index.search("memory", everything(), query, 20)!.hits.map((hit) => hit.id);
      const exact = nearestRows(db, space, "memory", owner, query, 20).map(({ row }) => itemOf(row));
      same += exact.filter((id) => found.includes(id)).length;
    }
    expect(same / 800).toBeGreaterThanOrEqual(0.998);
    // Where memory knows which may be seen, the nearest of these few are found, in whatever place they are.
    for (const share of [0.3, 0.02, 0.004]) {
      const few = new Set([...vectors.keys()].filter(() => random() + 0.5 < share));
      const sees = (id: number) => few.has(id);
      const of = (ids: readonly number[]) => new Set(ids.filter(sees));
      const sight = { ...everything(), of, held: { sees, seesSlot: sees } };
      same = 0;
      for (let n = 0; n < 20; n++) {
        const query = make();
        const nearness = (id: number) => vectors.get(id)!.reduce((sum, x, d) => sum + x * query[d]!, 0);
        const exact = [...few].toSorted((a, b) => nearness(b) - nearness(a)).slice(0, 20);
        const { hits, mean, deviation } = index.search("memory", sight, query, 20)!;
        expect(hits).toHaveLength(Math.min(20, few.size));
        same += hits.filter(({ id }) => exact.includes(id)).length / hits.length;
        // How near a random row is, is told by all of them.
        const plain = index.search("memory", everything(), query, 20)!;
        expect(mean).toBeCloseTo(plain.mean, 1);
        expect(deviation).toBeCloseTo(plain.deviation, 1);
      }
      expect(same / 20).toBeGreaterThanOrEqual(0.98);
    }
    // What comes and goes afterwards is seen.
    const query = make();
    const added = add("added");
    putVectors(db, space, "memory", owner, added, new Uint8Array(8), [query]);
    expect(index.search("memory", everything(), query, 1)!.hits[0]!.id).toBe(added);
    db.query("DELETE FROM memories WHERE seq = ?").run(added);
    expect(index.search("memory", everything(), query, 1)!.hits[0]!.id).not.toBe(added);
  },
);

test("reading an owner's vectors looks each chunk up instead of searching all of them for it", async () => {
  for (let n = 0; n < 500; n++) add(`row ${n}`);
  await all(letters());
  const asked: string[] = [];
  const watched = new Proxy(db, {
    get(of, name) {
      if (name === "query")
        return (sql: string) => {
          asked.push(sql);
          return of.query(sql);
        };
      const value: unknown = Reflect.get(of, name);
      return typeof value === "function" ? (value.bind(of) as unknown) : value;
    },
  });
  const index = createVectorIndex(watched);
  await index.warm("memory", ensureOwner(db, "a"));
  const [query] = await letters().embed(["row 7"]);
  expect(index.search("memory", everything(), query!, 5)!.rows).toBe(500);
  const bulk = asked.filter((sql) => sql.includes("vector_chunks"));
  expect(bulk.length).toBeGreaterThan(0);
  const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${bulk[0]!.replace("?", "'[1]'")}`).all();
  expect(plan.filter(({ detail }) => /^SCAN [cv]/.test(detail))).toEqual([]);
});

test("an owner without vectors beside one with them finds nothing and fails nothing", async () => {
  add("zzzz", "b");
  await all(letters());
  expect(await nearestTo("zzzz", letters(), 3, "a")).toEqual([]);
});
