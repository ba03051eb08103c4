import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "bun:sqlite";
import { changeKey, createKey, revokeKey, rotateKey, touchKeys } from "../src/db/keys.ts";
import { migrate } from "../src/db/migrate.ts";
import { openDatabase } from "../src/db/open.ts";
import { deleteProviderRow, providerRow, putProviderRow, writeLearned } from "../src/db/providers.ts";
import { writeStoredConfig } from "../src/db/settings.ts";
import { writeMemorySettings } from "../src/db/settings-write.ts";
import { createWatch } from "../src/db/watch.ts";
import { openSeal } from "../src/seal.ts";
import { createProviders } from "../src/upstream/providers.ts";

const folder = mkdtempSync(join(tmpdir(), "recollect-watch-"));
const file = join(folder, "a.db");
const db = openDatabase(file);
migrate(db, null);
const other = openDatabase(file);
afterAll(() => {
  other.close();
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

const changes: [name: string, write: (db: Database) => void][] = [
  ["a setting", (on) => writeMemorySettings(on, { maxTokens: 100 })],
  ["a setting again", (on) => writeMemorySettings(on, { maxTokens: 200 })],
  ["configuration", (on) => writeStoredConfig(on, "LOG_LEVEL", "error")],
  ["a setting removed", (on) => void on.run("DELETE FROM settings WHERE name = 'config:LOG_LEVEL'")],
  ["a key", (on) => void createKey(on, { id: "k", name: "k" })],
  ["a key's fields", (on) => void changeKey(on, "k", { scopes: ["proxy"] })],
  ["a key's secret", (on) => void rotateKey(on, "k")],
  ["a key's end", (on) => void revokeKey(on, "k")],
  [
    "a provider",
    (on) =>
      void createProviders({ db: on, seal: openSeal(folder) }).create({ id: "p", baseUrl: "http://a.b" }),
  ],
  ["a provider again", (on) => putProviderRow(on, { ...providerRow(on, "p")!, enabled: 0 })],
  ["a provider removed", (on) => void deleteProviderRow(on, "p")],
  ["a key removed", (on) => void on.run("DELETE FROM api_keys")],
];

test.each([
  ["its own connection", db],
  ["another one", other],
])("every change by %s is noticed; a fresh answer is believed until it is forgotten", (_, on) => {
  for (const [name, write] of changes) {
    const exact = createWatch(db);
    const lasting = createWatch(db, 60_000);
    const before = exact();
    expect(lasting()).toBe(before);
    write(on);
    expect(exact(), name).not.toBe(before);
    expect(lasting(), name).toBe(before);
    lasting.forget();
    expect(lasting(), name).toBe(exact());
  }
});

test("when a key was used and what a provider taught is no change", () => {
  createKey(db, { id: "used", name: "used" });
  createProviders({ db, seal: openSeal(folder) }).create({ id: "taught", baseUrl: "http://a.b" });
  const watch = createWatch(db);
  const before = watch();
  touchKeys(other, new Map([["used", 1]]));
  writeLearned(other, "taught", providerRow(db, "taught")!.updated_at, '{"noStreamOptions":true}');
  expect(watch()).toBe(before);
});
