import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { startAppliance, type Appliance } from "./support/appliance.ts";

let box: Appliance;
beforeEach(async () => {
  box = await startAppliance();
});
afterEach(() => box.stop());

const auth = () => ({ authorization: `Bearer ${box.token}` });
const total = async (key = box.key) =>
  ((await box.call("GET", "/api/memory", undefined, key)).body as { total: number }).total;
const restore = (body: BodyInit, type = "application/x-tar") =>
  fetch(`${box.url}/api/restore`, { method: "POST", headers: { ...auth(), "content-type": type }, body });

test("a backup is a download that restores the running server to what it was", async () => {
  await box.call("POST", "/api/memory", { content: "Before the backup" }, box.key);
  const backup = await fetch(`${box.url}/api/backup`, { method: "POST", headers: auth() });
  expect(backup.headers.get("content-disposition")).toMatch(/attachment; filename="recollect-.*\.tar"/);
  const bytes = await backup.bytes();
  await box.call("POST", "/api/memory", { content: "After the backup" }, box.key);
  const later = (await box.call("POST", "/api/keys", { name: "Later" })).body as { secret: string };
  expect(await total()).toBe(2);

  const restored = await restore(bytes);
  expect(restored.status).toBe(200);
  expect(await restored.json()).toMatchObject({ success: true, rows: { memories: 1 }, secretKey: "here" });
  expect(await total()).toBe(1);
  expect((await box.call("GET", "/api/memory", undefined, later.secret)).status).toBe(401);
  // It goes on working: the engine writes, finds and answers.
  await box.call("POST", "/api/memory", { content: "After the restore" }, box.key);
  expect(await total()).toBe(2);
  const kept = readdirSync(join(box.dataDir, "backups"));
  expect(kept.filter((name) => name.startsWith("before-restore-") && name.endsWith(".db"))).toHaveLength(1);
  expect(kept.filter((name) => /^(upload|download)-/.test(name))).toEqual([]);
});

test("a running stream ends before the swap, and new requests meanwhile are asked to wait", async () => {
  const backup = await (await fetch(`${box.url}/api/backup`, { method: "POST", headers: auth() })).bytes();
  const { promise: hold, resolve: release } = Promise.withResolvers<void>();
  const slow = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode('{"kind":"memory","content":"Slow"}\n'));
      await hold;
      controller.close();
    },
  });
  const importing = fetch(`${box.url}/api/memory/import`, {
    method: "POST",
    headers: { authorization: `Bearer ${box.key}`, "content-type": "application/x-ndjson" },
    body: slow,
  });
  const restoring = restore(backup);
  for (;;) {
    const answer = await fetch(`${box.url}/health`);
    if (answer.status === 503) {
      expect(answer.headers.get("retry-after")).toBe("2");
      break;
    }
    await Bun.sleep(5);
  }
  release();
  expect((await importing).status).toBe(200);
  expect((await restoring).status).toBe(200);
  expect((await fetch(`${box.url}/health`)).status).toBe(200);
});

test("what is no backup changes nothing and says why", async () => {
  await box.call("POST", "/api/memory", { content: "Stays" }, box.key);
  const wrong = await restore("this is no backup");
  expect(wrong.status).toBe(400);
  const { error } = (await wrong.json()) as { error: { param: string; message: string } };
  expect(error.param).toBe("file");
  expect(error.message).not.toContain(box.dataDir);
  const cut = (
    await (await fetch(`${box.url}/api/backup`, { method: "POST", headers: auth() })).bytes()
  ).slice(0, -90_000);
  expect((await restore(cut)).status).toBe(400);
  expect((await restore("", "application/x-tar")).status).toBe(400);
  expect((await restore("{}", "application/json")).status).toBe(415);
  expect(await total()).toBe(1);
  expect((await box.call("POST", "/api/restore", undefined, box.key)).status).toBe(403);
});
