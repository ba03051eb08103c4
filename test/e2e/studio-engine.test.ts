import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser } from "playwright-core";
import { type Appliance, startAppliance, until } from "../support/appliance.ts";
import { launch, visit } from "../support/browser.ts";
import { type Hub, startHub } from "../support/hub.ts";
import { STATIC_REPO, testModels } from "../support/models.ts";
import { startQdrant } from "../support/qdrant.ts";
import { remember } from "../support/studio.ts";

setDefaultTimeout(120_000);

const models = testModels();

describe.skipIf(models === null)("a model from the hub to the first vector", () => {
  let hub: Hub;
  let box: Appliance;
  let browser: Browser;
  beforeAll(async () => {
    hub = await startHub(models!);
    box = await startAppliance({ env: { HF_ENDPOINT: hub.endpoint, MEMORY_STATIC_MODEL: STATIC_REPO } });
    for (let i = 0; i < 40; i++) await remember(box, `Waters the plants of neighbour number ${i}`);
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await box?.stop();
    await hub?.close();
  });

  test("the switch downloads, the index fills, the playground shows cosines", async () => {
    const { page, context, trouble } = await visit(browser, box.url, box.token);
    await page.goto(`${box.url}/dashboard/memory?tab=engine`);
    await page.getByText("No embedding source is on").waitFor();
    await page.getByRole("switch", { name: "Static model" }).check();
    await page.locator("#model-static", { hasText: "ready" }).waitFor();
    await until(
      "every row has a vector",
      async () => {
        await page.goto(`${box.url}/dashboard/memory?tab=engine`);
        return page.getByText("Every row has a current vector.").isVisible();
      },
      60_000,
    );
    expect(await page.locator("#engine-status").textContent()).toContain("static");
    await page.getByRole("button", { name: "Rebuild everything" }).click();
    await page.locator("#reindex progress, #reindex button").first().waitFor();
    await page.getByText("Every row has a current vector.").waitFor();
    await page.goto(
      `${box.url}/dashboard/memory?tab=playground&query=Who+waters+the+plants+of+the+neighbours&strategy=semantic`,
    );
    await page.locator(".channel", { hasText: "vector" }).filter({ hasNotText: "none" }).first().waitFor();
    expect(trouble).toEqual([]);
    await context.close();
  });

  test("Qdrant: connected, filled, searched, and said when it is gone", async () => {
    const qdrant = startQdrant({ apiKey: "qdrant-secret-0123456789" });
    const { page, context, trouble } = await visit(browser, box.url, box.token);
    await page.goto(`${box.url}/dashboard/memory?tab=engine`);
    const card = page.locator("#qdrant-form");
    await card.getByLabel("Use Qdrant").check();
    await card.getByLabel("Host").fill("127.0.0.1");
    await card.getByLabel("Port").fill(new URL(qdrant.url).port);
    await card.getByLabel(/^API key/).fill("qdrant-secret-0123456789");
    await card.getByRole("button", { name: "Save" }).click();
    await page.locator(".toast", { hasText: "Saved." }).waitFor();
    // The collection is made in the background; until then the test says that it is not there.
    await until(
      "a good answer",
      async () => {
        await card.getByRole("button", { name: "Test connection" }).click();
        await page.locator("#qdrant-state .banner").waitFor();
        return (await page.locator("#qdrant-state").textContent())?.includes("answers");
      },
      60_000,
    );
    expect(await page.content()).not.toContain("qdrant-secret-0123456789");
    await until(
      "a memory in Qdrant",
      async () => {
        await page.locator("#q-search").fill("neighbour number 7");
        await page.getByRole("button", { name: "Search", exact: true }).click();
        await page.waitForLoadState("networkidle");
        return page.locator("#qdrant-search li").first().isVisible();
      },
      60_000,
    );
    await card.getByRole("link", { name: "Clean up expired points…" }).click();
    await page
      .getByRole("dialog", { name: "Clean up Qdrant?" })
      .getByRole("button", { name: "Clean up" })
      .click();
    await page.locator(".toast", { hasText: "deleted from Qdrant" }).waitFor();
    await qdrant.stop();
    await card.getByRole("button", { name: "Test connection" }).click();
    await page.locator("#qdrant-state .banner-bad").waitFor();
    await card.getByLabel("Use Qdrant").uncheck();
    await card.getByRole("button", { name: "Save" }).click();
    await page.locator("#engine-status", { hasText: "not used" }).waitFor();
    expect(trouble).toEqual([]);
    await context.close();
  });
});
