// One suite over every backend: the same operations give the same results.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { MemoryBackend } from "../../src/backends/types.ts";
import type { Memory } from "../../src/memory/types.ts";

export interface Subject {
  backend: MemoryBackend;
  /** An exchange that a memory may come from; null where there is none. */
  episodeId?: null;
  /** Puts many rows in without the backend, where its own way would take minutes. */
  seed?(rows: Memory[]): Promise<void> | void;
  /** Makes the other side unreachable, and reachable again. */
  kill?(): Promise<void>;
  revive?(): Promise<void> | void;
  stop(): Promise<void>;
}

let clock = Date.parse("2026-05-01T10:00:00.000Z");

/** A whole memory; each is a second younger than the one before. */
export function memoryOf(fields: Partial<Memory> = {}): Memory {
  const at = new Date((clock += 1000)).toISOString();
  return {
    id: crypto.randomUUID(),
    apiKeyId: "k1",
    sessionId: null,
    type: "factual",
    key: null,
    content: "Prefers TypeScript",
    metadata: {},
    origin: "api",
    status: "active",
    supersededBy: null,
    pinned: false,
    episodeId: null,
    createdAt: at,
    updatedAt: at,
    confirmedAt: at,
    expiresAt: null,
    accessCount: 0,
    lastAccessedAt: null,
    version: 1,
    ...fields,
  };
}

export function conformance(name: string, start: () => Promise<Subject>): void {
  describe(name, () => {
    let subject: Subject;
    let backend: MemoryBackend;
    beforeAll(async () => {
      subject = await start();
      ({ backend } = subject);
      await backend.initialize?.();
    });
    afterAll(async () => {
      await backend.shutdown?.();
      await subject.stop();
    });

    test("a memory comes back whole", async () => {
      const memory = memoryOf({
        sessionId: "chat-7",
        type: "procedural",
        key: "preference:c++",
        metadata: { category: "preference", nested: { list: [1, null, true, "x: y"] } },
        origin: "user",
        pinned: true,
        episodeId: subject.episodeId === null ? null : 12,
        expiresAt: "2030-01-02T03:04:05.000Z",
        version: 3,
      });
      expect(await backend.create(memory)).toEqual(memory);
      expect(await backend.get("k1", memory.id)).toEqual(memory);
    });

    test("nobody gets, changes or deletes what is another owner's", async () => {
      const memory = await backend.create(memoryOf());
      expect(await backend.get("k2", memory.id)).toBeNull();
      expect(await backend.update("k2", memory.id, { content: "stolen" })).toBe(false);
      expect(await backend.delete("k2", memory.id)).toBe(false);
      expect((await backend.get("k1", memory.id))?.content).toBe("Prefers TypeScript");
    });

    test("what is not there is null or false", async () => {
      const id = crypto.randomUUID();
      expect(await backend.get("k1", id)).toBeNull();
      expect(await backend.update("k1", id, { content: "x" })).toBe(false);
      expect(await backend.delete("k1", id)).toBe(false);
    });

    test("an update changes what it names and nothing else; a deletion is final", async () => {
      const memory = await backend.create(memoryOf({ key: "identity:home", content: "Lives in Helsinki" }));
      const patch = {
        content: "Lives in Turku",
        metadata: { source: "hand" },
        status: "archived",
        pinned: true,
        expiresAt: "2031-01-01T00:00:00.000Z",
        updatedAt: "2026-06-01T00:00:00.000Z",
        version: 2,
      } as const;
      expect(await backend.update("k1", memory.id, patch)).toBe(true);
      expect(await backend.get("k1", memory.id)).toEqual({ ...memory, ...patch });
      expect(await backend.update("k1", memory.id, { key: null, expiresAt: null })).toBe(true);
      expect(await backend.get("k1", memory.id)).toMatchObject({ key: null, expiresAt: null });
      expect(await backend.delete("k1", memory.id)).toBe(true);
      expect(await backend.get("k1", memory.id)).toBeNull();
      expect(await backend.delete("k1", memory.id)).toBe(false);
    });

    test.each([
      ["scripts and emoji", "我喜欢乌龙茶 · ชอบชา · שלום 👩‍👩‍👧 🇫🇮 e\u0301"],
      [
        "markdown and yaml",
        "---\nid: other\n---\n# Title: x\n- [ ] a: {b}\n\t'quoted' \"double\" \\ back\u2028slash",
      ],
      ["line ends", "one\r\ntwo\n\nthree"],
      ["32,768 characters", "aé漢🙂 ".repeat(5462).slice(0, 32_767) + "!"],
    ])("contents stay as they are: %s", async (_, content) => {
      const memory = await backend.create(
        memoryOf({
          content,
          key: `note:ä: "b" ${content.length}`,
          metadata: { note: content.slice(0, 500) },
        }),
      );
      expect(await backend.get("k1", memory.id)).toEqual(memory);
    });

    test("lists are the owner's, filtered, newest first, in pages that miss nothing", async () => {
      const owner = `list-${crypto.randomUUID().slice(0, 8)}`;
      const rows: Memory[] = [];
      for (let i = 0; i < 25; i++)
        rows.push(
          await backend.create(
            memoryOf({
              apiKeyId: owner,
              content: `Row ${i} ${i % 5 === 0 ? "Ünïque" : "plain"}`,
              type: i % 2 ? "episodic" : "factual",
              sessionId: i < 4 ? "s" : null,
              status: i === 24 ? "archived" : "active",
            }),
          ),
        );
      const seen: string[] = [];
      for (let offset = 0; offset < 25; offset += 10) {
        const page = await backend.list({ apiKeyId: owner, limit: 10, offset });
        expect(page.total).toBe(25);
        expect(page.byType).toEqual({ factual: 13, episodic: 12 });
        seen.push(...page.data.map((m) => m.id));
      }
      expect(seen).toEqual(rows.map((r) => r.id).toReversed());
      const count = async (filter: object): Promise<number> =>
        (await backend.list({ apiKeyId: owner, limit: 200, offset: 0, ...filter })).total;
      expect(await count({ type: "episodic" })).toBe(12);
      expect(await count({ sessionId: "s" })).toBe(4);
      expect(await count({ status: "archived" })).toBe(1);
      expect(await count({ q: "üNÏQUE" })).toBe(5);
      expect(await count({ q: "Row_1" })).toBe(0);
      const oldest = await backend.list({ apiKeyId: owner, limit: 1, offset: 0, orderDir: "asc" });
      expect(oldest.data).toEqual([rows[0]!]);
      expect(await backend.list({ apiKeyId: "nobody", limit: 10, offset: 0 })).toEqual({
        data: [],
        total: 0,
        byType: {},
      });
    });

    test("rows of one moment are each on one page, in either direction", async () => {
      const owner = `same-${crypto.randomUUID().slice(0, 8)}`;
      const { createdAt } = memoryOf();
      const rows = Array.from({ length: 23 }, (_, i) =>
        memoryOf({ apiKeyId: owner, content: `Together ${i}`, createdAt, updatedAt: createdAt }),
      );
      for (const row of rows) await backend.create(row);
      for (const orderDir of ["asc", "desc"] as const) {
        const seen: string[] = [];
        for (let offset = 0; offset < 23; offset += 5)
          seen.push(
            ...(await backend.list({ apiKeyId: owner, limit: 5, offset, orderDir })).data.map((m) => m.id),
          );
        expect(seen.toSorted()).toEqual(rows.map((r) => r.id).toSorted());
      }
    });

    test("an ordinary question finds the row that answers it, among the owner's active ones", async () => {
      const owner = `search-${crypto.randomUUID().slice(0, 8)}`;
      const make = (content: string, more: Partial<Memory> = {}): Promise<Memory> =>
        backend.create(memoryOf({ apiKeyId: owner, content, ...more }));
      const tea = await make("Drinks oolong tea every morning");
      await make("Lives in Helsinki with two cats");
      await make("Prefers dark themes in editors");
      const chinese = await make("喜欢乌龙茶");
      await make("Used to drink oolong tea", { status: "archived" });
      await make("Oolong tea in another session", { sessionId: "other" });
      await backend.create(memoryOf({ apiKeyId: "somebody", content: "Drinks oolong tea too" }));
      const search = async (query: string, more: object = {}): Promise<Memory[]> =>
        (await backend.search({ query, apiKeyId: owner, limit: 2, sessionId: "mine", ...more })).map(
          (f) => f.memory,
        );
      expect((await search("What oolong tea do I drink?"))[0]).toEqual(tea);
      expect((await search("乌龙"))[0]?.id).toBe(chinese.id);
      const all = await search("oolong tea", { limit: 20 });
      expect(all.every((m) => m.apiKeyId === owner && m.status === "active" && m.sessionId !== "other")).toBe(
        true,
      );
      expect((await search("oolong", { limit: 1, sessionId: null })).length).toBe(1);
    });

    test("concurrent writes all arrive", async () => {
      const owner = `many-${crypto.randomUUID().slice(0, 8)}`;
      const rows = Array.from({ length: 40 }, (_, i) => memoryOf({ apiKeyId: owner, content: `Fact ${i}` }));
      await Promise.all(rows.map((row) => backend.create(row)));
      await Promise.all(
        rows.slice(0, 20).map((row) => backend.update(owner, row.id, { content: `${row.content} changed` })),
      );
      const { data, total } = await backend.list({ apiKeyId: owner, limit: 200, offset: 0 });
      expect(total).toBe(40);
      expect(data.filter((m) => m.content.endsWith("changed"))).toHaveLength(20);
    });

    test("10,000 rows are paged to the end", async () => {
      const owner = `bulk-${crypto.randomUUID().slice(0, 8)}`;
      const rows = Array.from({ length: 10_000 }, (_, i) =>
        memoryOf({ apiKeyId: owner, content: `Bulk row ${i}` }),
      );
      if (subject.seed) await subject.seed(rows);
      else
        for (let at = 0; at < rows.length; at += 100)
          await Promise.all(rows.slice(at, at + 100).map((r) => backend.create(r)));
      const newest = await backend.list({ apiKeyId: owner, limit: 200, offset: 0 });
      expect(newest.total).toBe(10_000);
      expect(newest.data[0]).toEqual(rows.at(-1)!);
      const last = await backend.list({ apiKeyId: owner, limit: 200, offset: 9_900 });
      expect(last.data.map((m) => m.id)).toEqual(
        rows
          .slice(0, 100)
          .map((r) => r.id)
          .toReversed(),
      );
    }, 60_000);

    test("when the other side is gone, calls fail with a sentence and health says so", async () => {
      expect(await backend.health()).toEqual({ ok: true, latencyMs: expect.any(Number) });
      // The database of the process itself cannot be out of reach.
      if (!subject.kill) return;
      await subject.kill();
      const error: unknown = await backend.create(memoryOf()).catch((e: unknown) => e);
      expect(error).toBeInstanceOf(Error);
      expect((error as Error).message).toMatch(/^[A-Z].+\.$/);
      const health = await backend.health();
      expect(health).toEqual({ ok: false, latencyMs: expect.any(Number), error: expect.any(String) });
      await subject.revive?.();
      expect((await backend.health()).ok).toBe(true);
    });
  });
}
