import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "./support/cli.ts";

let dir: string;
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), "recollect-cli-"))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const recollect = (args: string[], env?: Record<string, string>) => runCli(dir, args, env);

test("search finds by words, export and import carry memories to another folder", async () => {
  await recollect(["key", "create", "me", "--id", "me"]);
  await recollect(["memory", "add", "Keeps bees behind the barn"]);
  expect((await recollect(["memory", "search", "where are the bees?"])).out).toContain(
    "Keeps bees behind the barn",
  );
  const file = join(dir, "export.jsonl");
  expect((await recollect(["memory", "export", file])).code).toBe(0);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8").split("\n")[0]).toBe('{"format":"recollect/1"}');
  const other = { DATA_DIR: join(dir, "other") };
  await recollect(["key", "create", "me", "--id", "me"], other);
  expect((await recollect(["memory", "import", file], other)).out).toBe(
    "1 created, 0 updated, 0 unchanged, 0 refused.\n",
  );
  expect((await recollect(["memory", "import", file], other)).out).toBe(
    "0 created, 0 updated, 1 unchanged, 0 refused.\n",
  );
  expect((await recollect(["memory", "import", join(dir, "missing")], other)).code).toBe(2);
});

test("a page of the list that was saved as JSON is imported, once", async () => {
  const row = {
    id: crypto.randomUUID(),
    type: "factual",
    content: "Keeps bees",
    key: null,
    metadata: { n: 1 },
  };
  const file = join(dir, "page.json");
  writeFileSync(file, JSON.stringify({ data: [row], total: 1 }, null, 2));
  const other = { DATA_DIR: join(dir, "page") };
  await recollect(["key", "create", "page"], other);
  expect((await recollect(["memory", "import", file], other)).out).toBe(
    "1 created, 0 updated, 0 unchanged, 0 refused.\n",
  );
  expect((await recollect(["memory", "import", file], other)).out).toContain("1 unchanged");
});

test("providers are added with a key from the environment, shown masked, tested and removed", async () => {
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) =>
      request.headers.get("authorization") === "Bearer sk-secret-0123456789"
        ? Response.json({
            object: "list",
            data: [{ id: "tiny", object: "model", created: 1, owned_by: "me" }],
          })
        : new Response("no", { status: 401 }),
  });
  const url = `http://127.0.0.1:${server.port}`;
  const added = await recollect(["provider", "add", "box", url, "--key-env", "BOX_KEY"], {
    BOX_KEY: "sk-secret-0123456789",
  });
  expect(added.out).toBe(`box  ${url}/v1  (default)\n`);
  const listed = await recollect(["provider", "list"]);
  expect(listed.out).toContain("sk-…6789");
  expect(listed.out).not.toContain("secret");
  expect((await recollect(["provider", "test", "box"])).out).toMatch(/^box works, .*model tiny/);
  await recollect(["provider", "add", "keyless", url]);
  const failed = await recollect(["provider", "test", "keyless"]);
  expect(failed.code).toBe(1);
  expect(failed.err).toContain("does not work");
  expect((await recollect(["provider", "remove", "box"])).code).toBe(0);
  expect((await recollect(["provider", "remove", "box"])).code).toBe(1);
});

test.each([
  ["http://169.254.169.254/latest", /link-local|metadata/],
  ["ftp://example.com", /http/],
  ["http://user:pass@example.com", /credentials|user/],
])("provider add refuses %s by name", async (url, reason) => {
  const { code, err } = await recollect(["provider", "add", "bad", url]);
  expect(code).toBe(1);
  expect(err).toStartWith("recollect: baseUrl: ");
  expect(err).toMatch(reason);
  expect((await recollect(["provider", "list"])).out).toContain("No providers yet");
});

test("merging two keys moves memories, the newer statement of a key wins, and the first is revoked", async () => {
  await recollect(["key", "create", "old", "--id", "old"]);
  await recollect(["key", "create", "new", "--id", "new"]);
  await recollect(["memory", "add", "Lives in Oslo", "--name", "identity:home", "--key", "old"]);
  await recollect(["memory", "add", "Plays the cello", "--key", "old"]);
  await recollect(["memory", "add", "Lives in Turku", "--name", "identity:home", "--key", "new"]);
  const merged = await recollect(["key", "merge", "old", "new"]);
  expect(merged.out).toStartWith("Moved 2 memories");
  const { out } = await recollect(["memory", "list", "--key", "new"]);
  expect(out).toContain("Lives in Turku");
  expect(out).toContain("Plays the cello");
  expect(out).not.toContain("Lives in Oslo");
  expect((await recollect(["memory", "search", "cello", "--key", "new"])).out).toContain("Plays the cello");
  expect((await recollect(["key", "list"])).out).toMatch(/old .*revoked/);
});

test("an OmniRoute database brings memories under disabled keys of their ids, and its settings", async () => {
  const file = join(dir, "storage.sqlite");
  const db = new Database(file, { create: true });
  db.run(
    "CREATE TABLE memories (id TEXT PRIMARY KEY, api_key_id TEXT NOT NULL, session_id TEXT, type TEXT NOT NULL, key TEXT, content TEXT NOT NULL, metadata TEXT, created_at TEXT, updated_at TEXT, expires_at TEXT)",
  );
  db.run(
    "INSERT INTO memories VALUES ('0b1f3c52-7d0a-4d0e-9b0c-111111111111', 'k1', NULL, 'factual', 'preference:tea', 'Prefers tea', '{}', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', NULL)",
  );
  db.run(
    "INSERT INTO memories VALUES ('0b1f3c52-7d0a-4d0e-9b0c-222222222222', 'k2', NULL, 'factual', NULL, 'Plays go', '{}', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', NULL)",
  );
  db.run("INSERT INTO memories VALUES ('odd', 'k2', NULL, 'factual', NULL, '', '{}', '', '', NULL)");
  db.run("CREATE TABLE key_value (namespace TEXT, key TEXT, value TEXT)");
  db.run(
    "INSERT INTO key_value VALUES ('settings', 'memoryMaxTokens', '1234'), ('settings', 'memoryRetentionDays', '9999')",
  );
  db.close();
  const first = await recollect(["memory", "import", file, "--from", "omniroute"]);
  expect(first.out).toBe("2 created, 0 updated, 0 unchanged, 1 refused.\n");
  expect(first.err).toContain("item 3: has no content");
  expect(first.err).toContain("setting retentionDays was left out");
  expect((await recollect(["memory", "import", file, "--from", "omniroute"])).out).toContain(
    "0 created, 0 updated, 2 unchanged",
  );
  expect((await recollect(["key", "list"])).out).toMatch(/k1 .*revoked[\s\S]*k2 .*revoked/);
  expect((await recollect(["memory", "list", "--key", "k2"])).out).toContain("Plays go");
  const all = await recollect(["memory", "import", file, "--from", "omniroute", "--key", "k1"]);
  expect(all.code).toBe(0);
});

test("a ChatGPT export becomes sessions and exchanges that are found, once", async () => {
  await recollect(["key", "create", "me"]);
  const file = join(dir, "conversations.json");
  const message = (id: string, role: string, text: string) => ({
    id,
    author: { role },
    content: { content_type: "text", parts: [text] },
    create_time: 1_760_000_000,
  });
  await Bun.write(
    file,
    JSON.stringify([
      {
        id: "c1",
        title: "Beekeeping",
        create_time: 1_760_000_000,
        current_node: "2",
        mapping: {
          "1": { parent: null, children: ["2"], message: message("m1", "user", "How do I calm a swarm?") },
          "2": { parent: "1", children: [], message: message("m2", "assistant", "With smoke and patience.") },
        },
      },
    ]),
  );
  expect((await recollect(["memory", "import", file, "--from", "chatgpt"])).out).toBe(
    "2 created, 0 updated, 0 unchanged, 0 refused.\n",
  );
  expect((await recollect(["memory", "import", file, "--from", "chatgpt"])).out).toBe(
    "0 created, 0 updated, 2 unchanged, 0 refused.\n",
  );
  expect((await recollect(["memory", "import", file, "--from", "nothing"])).code).toBe(2);
});

test("summarize and reindex say what they did, and why they cannot", async () => {
  await recollect(["key", "create", "me"]);
  expect((await recollect(["summarize", "--dry-run"])).out).toContain("nothing was changed");
  expect((await recollect(["summarize", "--budget", "x"])).code).toBe(2);
  const reindex = await recollect(["reindex"]);
  expect(reindex.code).toBe(1);
  expect(reindex.err).toContain("Turn a source on");
});

test("--key takes an id or a name; what belongs to nobody is refused instead of being kept where no key finds it", async () => {
  await recollect(["key", "create", "phone", "--id", "k-phone"]);
  await recollect(["key", "create", "desk"]);
  const named = await recollect(["memory", "add", "Prefers tea", "--key", "phone"]);
  expect(named.code).toBe(0);
  expect((await recollect(["memory", "list", "--key", "k-phone"])).out).toContain("Prefers tea");
  expect((await recollect(["memory", "add", "Prefers tea", "--key", "k-phone:ann"])).code).toBe(0);
  for (const args of [["add", "Lost"], ["list"], ["export", join(dir, "none.jsonl")]]) {
    const { code, err } = await recollect(["memory", ...args, "--key", "nobody"]);
    expect({ args, code }).toEqual({ args, code: 1 });
    expect(err).toContain("There is no key nobody. Known: k-phone (phone), ");
  }
  await recollect(["key", "create", "phone"]);
  const twice = await recollect(["memory", "list", "--key", "phone"]);
  expect(twice.code).toBe(2);
  expect(twice.err).toContain("2 keys have the name phone; give an id. Known: k-phone (phone), ");
});

test.each([
  [["key", "create"], "key create takes NAME; 0 given. See: recollect help key"],
  [["key", "list", "x"], "key list takes no arguments; 1 given. See: recollect help key"],
  [["key", "merge", "x"], "key merge takes FROM TO; 1 given. See: recollect help key"],
  [["provider", "add", "x"], "provider add takes ID URL; 1 given. See: recollect help provider"],
  [["memory", "search"], "memory search takes QUERY; 0 given. See: recollect help memory"],
  [["key", "list", "--jsn"], "Unknown option '--jsn'. See: recollect help key"],
  [["help", "nosuch"], "There is no verb nosuch. See: recollect help"],
  [["key", "create", " "], "Give the key a name. See: recollect help key"],
])("%p says what it takes", async (args, sentence) => {
  expect(await recollect(args)).toEqual({ out: "", err: `recollect: ${sentence}\n`, code: 2 });
});

test("doctor does not call a box well whose provider cannot be reached", async () => {
  using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  await recollect(["provider", "add", "gone", `http://127.0.0.1:${server.port}`]);
  await server.stop(true);
  const { out, code } = await recollect(["doctor"], { PORT: "0" });
  expect(code).toBe(0);
  expect(out).toContain("warn  upstream gone");
  expect(out).toEndWith("\nRecollect itself works; 1 warning above.\n");
});

test("an import of which nothing could be taken fails, and says how another program's file is read", async () => {
  await recollect(["key", "create", "me"]);
  const file = join(dir, "conversations.json");
  writeFileSync(file, JSON.stringify([{ title: "Old", mapping: {} }]));
  const { out, err, code } = await recollect(["memory", "import", file]);
  expect([code, out]).toEqual([1, "0 created, 0 updated, 0 unchanged, 1 refused.\n"]);
  expect(err).toContain(
    "line 1: must be an object\nrecollect: Nothing was imported. A file of another program needs --from mem0|chatgpt|",
  );
  writeFileSync(file, '{"format":"recollect/1"}\n');
  expect((await recollect(["memory", "import", file])).code).toBe(0);
});

test("an export into a folder that is not there is a sentence", async () => {
  await recollect(["key", "create", "me"]);
  const file = join(dir, "nowhere", "export.jsonl");
  const { code, err } = await recollect(["memory", "export", file]);
  expect([code, err]).toEqual([1, `recollect: ${file} cannot be written: its folder is not there.\n`]);
});
