/** The conversation routes over a real engine and file, on a port of their own, with an API key for each owner. */
import { Hono } from "hono";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Env } from "../../src/auth.ts";
import { conversationOperations } from "../../src/api/conversations.ts";
import { mount } from "../../src/api/mount.ts";
import { resolveConfig } from "../../src/config.ts";
import { openEngine } from "../../src/memory/engine.ts";
import { errorResponse } from "../../src/respond.ts";
import { keyOf, management } from "./principal.ts";

/** Every field that a test reads, of any answer: a test that reads one that is not there fails on its value. */
export type Body = {
  id: number;
  externalId: string;
  apiKeyId: string;
  userMessage: string;
  aiResponse: string;
  tokenCount: number;
  metadata: unknown;
  pinned: boolean;
  createdAt: string;
  data: Body[];
  total: number;
  created: number;
  existing: number;
  refused: { line: number; message: string }[];
  refusedCount: number;
  resolution: unknown;
  name: string;
  notes: string | null;
  text: string;
  stale: boolean;
  error: { code: string; message: string; details: { field: string; message: string }[] };
};

export type Answer = { status: number; json: Body };

export type ConversationServer = Awaited<ReturnType<typeof startConversations>>;

const silent = { debug() {}, info() {}, warn() {}, error() {} };

export async function startConversations() {
  const dir = mkdtempSync(join(tmpdir(), "recollect-conversations-"));
  const config = resolveConfig({ flags: {}, env: { DATA_DIR: dir } }, {});
  let time: number | null = null;
  const opened = openEngine({ config, log: silent, leaseName: "test", now: () => time ?? Date.now() });
  const app = new Hono<Env>();
  app.onError((thrown) => errorResponse(thrown));
  app.notFound((c) => c.json({ error: "no route" }, 404));
  // Bearer `anna` is the key of owner anna; `management` is management.
  app.use(async (c, next) => {
    const name = (c.req.header("authorization") ?? "").replace("Bearer ", "");
    c.set("principal", name === "management" ? management : keyOf(name));
    await next();
  });
  mount(app, conversationOperations(opened.engine), {
    checkAnswers: true,
    admitKey: () => {},
    ownerExists: (name) => ["anna", "bert"].includes(name),
  });
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    maxRequestBodySize: 64 * 1024 * 1024,
    fetch: app.fetch,
  });

  async function call(owner: string, method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${owner}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, json: (await response.json()) as Body };
  }

  return {
    url: `http://127.0.0.1:${server.port}`,
    dir,
    engine: opened.engine,
    /** Stops the engine's clock at this time; null lets it run again. */
    setTime(at: number | null) {
      time = at;
    },
    call,
    get: (path: string, owner = "anna") => call(owner, "GET", path),
    post: (path: string, body: unknown, owner = "anna") => call(owner, "POST", path, body),
    async bulk(
      lines: string | ReadableStream,
      { owner = "anna", query = "", type = "application/x-ndjson" } = {},
    ): Promise<Answer> {
      const response = await fetch(`http://127.0.0.1:${server.port}/episodes/bulk${query}`, {
        method: "POST",
        headers: { authorization: `Bearer ${owner}`, "content-type": type },
        body: lines,
      });
      return { status: response.status, json: (await response.json()) as Body };
    },
    /** Stops everything; the folder stays until `remove`. */
    async stop() {
      await server.stop(true);
      await opened.stop();
    },
    remove() {
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
