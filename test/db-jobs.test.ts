/** Jobs of the same type and value: at most one of them waits, whatever ended the process or the job. */
import { Database } from "bun:sqlite";
import { beforeEach, expect, test } from "bun:test";
import { claim, enqueue, freeLeases, putBack, retryFailedJobs, retryJob } from "../src/db/jobs.ts";
import { migrate } from "../src/db/migrate.ts";

let db: Database;
beforeEach(() => {
  db = new Database(":memory:", { strict: true });
  migrate(db, null);
});

const queue = () => enqueue(db, { type: "embed", ownerId: null, payload: {}, dedupe: "embed" }, 1);
const take = (by = "server") => claim(db, ["embed"], { by, until: 1000 }, 10)!.id;
const jobs = () => db.query("SELECT id, state FROM jobs ORDER BY id").all();
const one = (id: number) => [{ id, state: "queued" }];

test("a process that was killed at a job that waits once more is followed by another", () => {
  queue();
  take();
  queue();
  freeLeases(db, "server");
  expect(jobs()).toEqual(one(2));
});

test("two that ran beside each other wait as one", () => {
  queue();
  take();
  queue();
  take();
  freeLeases(db, "server");
  expect(jobs()).toEqual(one(1));
});

test("what another process does stays its own", () => {
  queue();
  take("cli");
  queue();
  freeLeases(db, "server");
  expect(jobs()).toEqual([{ id: 1, state: "running" }, ...one(2)]);
});

test("a job that has to wait leaves it to the one that waits already", () => {
  queue();
  const id = take();
  queue();
  putBack(db, id, 99, "down", { free: true });
  expect(jobs()).toEqual(one(2));
});

test("trying failed ones again leaves one of a value", () => {
  queue();
  putBack(db, take(), 99, "broken", { failed: true });
  queue();
  expect(retryJob(db, null, 1, 10)).toBe(true);
  expect(jobs()).toEqual(one(1));
  putBack(db, take(), 99, "broken", { failed: true });
  queue();
  putBack(db, take(), 99, "broken", { failed: true });
  queue();
  expect(retryFailedJobs(db, 10)).toBe(1);
  expect(jobs()).toEqual(one(1));
});
