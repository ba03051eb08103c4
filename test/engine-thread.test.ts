import { afterEach, beforeEach, expect, test } from "bun:test";
import { startAppliance, until } from "./support/appliance.ts";
import type { Appliance } from "./support/appliance.ts";

let box: Appliance;
beforeEach(async () => (box = await startAppliance()));
afterEach(() => box.stop());

test("an error of the engine crosses the thread with its code and field", async () => {
  const { engine } = box.server.thread;
  const failed = engine.memories.create({ owner: box.keyId, origin: "api", content: "" });
  expect(failed).rejects.toMatchObject({ code: "invalid_request", status: 400, param: "content" });
  expect(engine.memories.get({ owner: box.keyId, id: "nope" })).rejects.toMatchObject({ code: "not_found" });
});

test("a thread that dies is started again, and what was stored is there", async () => {
  const { thread } = box.server;
  const { memory } = await thread.engine.memories.create({
    owner: box.keyId,
    origin: "api",
    content: "Survives",
  });
  thread.crash();
  await until("a second start", () => thread.starts() === 2);
  const found = await until("an answer", () =>
    thread.engine.memories.get({ owner: box.keyId, id: memory.id }).catch(() => null),
  );
  expect(found.content).toBe("Survives");
});

test("a server that is stopped while its thread is gone does not start it again", async () => {
  const { thread } = box.server;
  thread.crash();
  await until("the loss", () =>
    thread.engine.jobs.groups().then(
      () => null,
      () => true,
    ),
  );
  await thread.stop();
  const starts = thread.starts();
  // Longer than the wait before a restart.
  await Bun.sleep(400);
  expect(thread.starts()).toBe(starts);
});
