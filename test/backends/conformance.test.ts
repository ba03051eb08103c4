import { GenericMemoryBackend } from "../../src/backends/http.ts";
import { ObsidianBackend } from "../../src/backends/obsidian.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { searchBy, SqliteBackend } from "../../src/backends/sqlite.ts";
import { registerFold } from "../../src/db/memory-list.ts";
import { migrate } from "../../src/db/migrate.ts";
import { openDatabase } from "../../src/db/open.ts";
import { createStore } from "../../src/memory/store.ts";
import { ensureLexical } from "../../src/search/lexical-tables.ts";
import { rankKind } from "../../src/search/rank.ts";
import { queryTerms } from "../../src/search/tokens.ts";
import { QdrantBackend } from "../../src/backends/qdrant.ts";
import { fullPayload, SPARSE, sparseOfMemory } from "../../src/backends/qdrant-payload.ts";
import { openStatic } from "../../src/embed/static.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { startTarget } from "../support/qdrant-target.ts";
import { NotionBackend } from "../../src/backends/notion.ts";
import { toProperties } from "../../src/backends/notion-page.ts";
import { writeNote } from "../../src/backends/obsidian-note.ts";
import { startFlaky } from "../support/flaky.ts";
import { startHttpBackend } from "../support/http-backend.ts";
import { startNotion } from "../support/notion.ts";
import { startObsidian } from "../support/obsidian.ts";
import { conformance } from "./conformance.ts";

conformance("sqlite", async () => {
  const dir = mkdtempSync(join(tmpdir(), "backend-"));
  const db = openDatabase(join(dir, "recollect.db"));
  migrate(db, null);
  registerFold(db);
  const { fts5 } = ensureLexical(db);
  const store = createStore({ db, now: Date.now, hooks: { changed() {}, removed() {}, dropEpisode() {} } });
  const search = searchBy(db, async ({ owner, kind, query, limit, session }) =>
    rankKind(
      { db, fts5, words: null, vectors: null, topK: 20, rrfK: 60, cohesion: () => ({ next: 0, second: 0 }) },
      { terms: queryTerms(owner, query), vector: null, date: null },
      {
        kind,
        predicate: { owner, session, retentionDays: 0, now: Date.now() },
        limit,
        fusion: "scored",
        strategy: "lexical",
      },
    ),
  );
  return {
    backend: new SqliteBackend({ db, store, search }),
    episodeId: null,
    stop: async () => {
      db.close();
      rmSync(dir, { recursive: true });
    },
  };
});

conformance("http", async () => {
  const server = startHttpBackend({ apiKey: "secret" });
  const proxy = startFlaky(server.url);
  const backend = new GenericMemoryBackend("brain", "Brain", {
    baseUrl: `${proxy.url}/api/v1`,
    apiKey: "secret",
  });
  return {
    backend,
    kill: () => proxy.kill(),
    revive: () => proxy.revive(),
    stop: async () => {
      await proxy.stop();
      await server.stop();
    },
  };
});

conformance("obsidian", async () => {
  const server = startObsidian({ apiKey: "secret" });
  const proxy = startFlaky(server.url);
  const backend = new ObsidianBackend("obsidian", "Obsidian", { baseUrl: proxy.url, apiKey: "secret" });
  return {
    backend,
    seed: (rows) => {
      for (const row of rows) server.files.set(`Recollect/${row.id}.md`, writeNote(row));
    },
    kill: () => proxy.kill(),
    revive: () => proxy.revive(),
    stop: async () => {
      await proxy.stop();
      await server.stop();
    },
  };
});

conformance("notion", async () => {
  const server = startNotion({ apiKey: "secret" });
  const proxy = startFlaky(server.url);
  const backend = new NotionBackend("notion", "Notion", {
    baseUrl: `${proxy.url}/v1`,
    apiKey: "secret",
    databaseId: server.databaseId,
  });
  return {
    backend,
    seed: (rows) => {
      for (const row of rows) server.seed(toProperties(row, "Name"));
    },
    kill: () => proxy.kill(),
    revive: () => proxy.revive(),
    stop: async () => {
      await proxy.stop();
      await server.stop();
    },
  };
});

const models = testModels();
for (const withModel of models === null ? [false] : [false, true])
  conformance(`qdrant, ${withModel ? "dense and words" : "words alone"}`, async () => {
    const target = await startTarget();
    const q = await target.connect();
    const collection = target.name();
    const embedder = withModel ? await openStatic(join(models!, STATIC_REPO), "test") : null;
    const backend = new QdrantBackend("qdrant", "Qdrant", {
      connect: async () => q,
      embedder: async () => embedder,
      collection,
      quantization: "none",
      efConstruct: null,
      boxId: "box",
    });
    return {
      backend,
      // In batches: one write at a time would measure the server and not the paging.
      seed: async (rows) => {
        for (let at = 0; at < rows.length; at += 500) {
          const points = rows.slice(at, at + 500).map((row) => ({
            id: row.id,
            vector: { [SPARSE]: sparseOfMemory(row) },
            payload: fullPayload(row, "box"),
          }));
          await target.direct.call("write", (api, init) =>
            api.upsertPoints({ collection_name: collection, wait: true, points }, init),
          );
        }
      },
      kill: () => target.proxy.kill(),
      revive: () => target.proxy.revive(),
      stop: () => target.stop(),
    };
  });
