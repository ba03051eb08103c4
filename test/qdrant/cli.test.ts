import { expect, test } from "bun:test";
import { join } from "node:path";
import { startAppliance, until } from "../support/appliance.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { startTarget } from "../support/qdrant-target.ts";

const models = testModels();

test.skipIf(models === null)(
  "`qdrant reconcile` repairs beside a running server, and says what it did",
  async () => {
    const target = await startTarget();
    const collection = target.name();
    const env = { MEMORY_STATIC_CACHE_DIR: models!, MEMORY_STATIC_MODEL: STATIC_REPO };
    const box = await startAppliance({ env });
    await box.call("PUT", "/api/settings/memory", { embeddingSource: "static" });
    const key = target.apiKey === null ? {} : { apiKey: target.apiKey };
    await box.call("PUT", "/api/settings/qdrant", { enabled: true, host: target.url, collection, ...key });
    const { body } = await box.call("POST", "/api/memory", { content: "Drinks tea" }, box.key);
    const { id } = body as { id: string };
    const count = async (): Promise<number> =>
      (
        await target.direct.call("search", (api, init) =>
          api.countPoints({ collection_name: collection, exact: true }, init),
        )
      ).count;
    await until("the point", async () => (await count().catch(() => 0)) === 1);
    const idle = async () => ((await box.call("GET", "/api/jobs")).body as { total: number }).total === 0;
    await until("the fill has ended", idle);
    await target.direct.call("write", (api, init) =>
      api.deletePoints({ collection_name: collection, wait: true, points: [id] }, init),
    );
    const recollect = async (...args: string[]) => {
      const child = Bun.spawn(
        [process.execPath, join(import.meta.dir, "../../src/main.ts"), "qdrant", ...args],
        {
          env: { PATH: process.env["PATH"] ?? "", DATA_DIR: box.dataDir, ...env },
          stdout: "pipe",
          stderr: "pipe",
        },
      );
      const [out, err, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      return { out: out.trim(), err, code };
    };
    expect(await recollect("reconcile", "--dry-run")).toMatchObject({
      code: 0,
      out: "1 missing, 0 stale, 0 orphaned; nothing was changed.",
    });
    expect(await recollect("reconcile", "--json")).toMatchObject({
      code: 0,
      out: JSON.stringify({ missing: 1, stale: 0, orphaned: 0, repaired: 1 }),
    });
    expect(await count()).toBe(1);
    expect((await recollect()).code).toBe(2);
    await box.call("PUT", "/api/settings/qdrant", { enabled: false });
    const off = await recollect("reconcile");
    expect([off.code, off.out]).toEqual([1, ""]);
    expect(off.err).toContain("not enabled");
    await box.stop();
    await target.stop();
  },
  30_000,
);
