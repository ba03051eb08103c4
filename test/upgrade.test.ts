/** Data of every released version opens in this one. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyArchive } from "../src/db/backup-archive.ts";
import { restoreBackup } from "../src/db/restore.ts";
import { startAppliance } from "./support/appliance.ts";
import { placeToyModel, TOY_MODEL } from "./support/fixture.ts";

setDefaultTimeout(30_000);
const folder = join(import.meta.dir, "fixtures");
const fixtures = readdirSync(folder).filter((name) => name.endsWith(".tar.zst"));

test("there is a fixture", () => {
  expect(fixtures.length).toBeGreaterThan(0);
});

for (const fixture of fixtures) {
  test(`data of ${fixture} opens, is complete, and is recalled`, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "upgrade-"));
    const file = join(dataDir, "fixture.tar");
    writeFileSync(file, Bun.zstdDecompressSync(readFileSync(join(folder, fixture))));
    const manifest = verifyArchive(file);
    const restored = restoreBackup({ dataDir, file });
    expect(restored.rows).toEqual(manifest.rows);
    placeToyModel(dataDir);
    const box = await startAppliance({ dataDir, env: { MEMORY_STATIC_MODEL: TOY_MODEL } });
    try {
      const keys = (await box.call("GET", "/api/keys")).body as { data: { id: string }[] };
      const owner = keys.data[0]!.id;
      const list = async (path: string) =>
        JSON.stringify(
          (await box.call("GET", `${path}${path.includes("?") ? "&" : "?"}apiKeyId=${owner}`)).body,
        );
      const memories = await list("/api/memory");
      for (const text of ["Helix", "Lives in Oulu", "Always answer in Finnish"])
        expect(memories).toContain(text);
      expect(memories).not.toContain("Turku");
      const home = (JSON.parse(memories) as { data: { id: string; key: string | null }[] }).data.find(
        (one) => one.key === "identity:home",
      )!;
      expect(await list(`/api/memory/${home.id}/history`)).toContain("Lives in Turku");
      expect(await list("/sessions")).toContain("tea-talk");
      expect(await list("/entities")).toContain("Oulu");
      const preview = await box.call("POST", "/api/memory/retrieve-preview", {
        apiKeyId: owner,
        query: "Which editor is my favourite?",
      });
      expect(JSON.stringify(preview.body)).toContain("Helix");
      type Status = { vectorStore: { coverage: number; rowCount: number; signature: string } };
      const status = (await box.call("GET", "/api/memory/engine-status")).body as Status;
      expect(status.vectorStore).toMatchObject({ coverage: 1, signature: `static:${TOY_MODEL}:8` });
    } finally {
      await box.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
}
