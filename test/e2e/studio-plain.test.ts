import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { type Appliance, startAppliance, until } from "../support/appliance.ts";
import { desktop, launch, phone, visit } from "../support/browser.ts";
import { type Filled, fill } from "../support/studio-data.ts";
import { remember } from "../support/studio.ts";

setDefaultTimeout(120_000);

let browser: Browser;
let box: Appliance;
let ids: Filled;
beforeAll(async () => {
  box = await startAppliance();
  ids = await fill(box);
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await box?.stop();
});

const row = (page: Page, text: string) => page.locator("li.memory", { hasText: text });
const toast = (page: Page, text: string) => page.locator(".toast", { hasText: text });

describe("with script off", () => {
  let page: Page;
  let context: BrowserContext;
  beforeAll(async () => {
    ({ page, context } = await visit(browser, box.url, box.token, { ...desktop, script: false }));
  });
  afterAll(() => context.close());

  test("search, filter, paging", async () => {
    await page.goto(`${box.url}/dashboard/memory`);
    await page.getByLabel("Search text and key").fill("page 7 of");
    await page.getByLabel("Type").selectOption("factual");
    await page.getByRole("button", { name: "Filter" }).click();
    await row(page, "page 7 of").waitFor();
    expect(await page.locator("li.memory").count()).toBe(1);
    await page.goto(`${box.url}/dashboard/memory`);
    await page.getByRole("link", { name: "Older" }).click();
    await page.getByText(/^21–/).waitFor();
  });

  test("add, with a mistake first", async () => {
    await page.goto(`${box.url}/dashboard/memory`);
    await page.getByRole("link", { name: "Add memory" }).click();
    const dialog = page.getByRole("dialog", { name: "Add a memory" });
    await dialog.getByLabel("What to remember").fill("   ");
    await dialog.getByRole("button", { name: "Add memory" }).click();
    await dialog.locator("#add-content-e").waitFor();
    await dialog.getByLabel("What to remember").fill("Plain pages remember, too");
    await dialog.getByRole("button", { name: "Add memory" }).click();
    await toast(page, "Added.").waitFor();
    await row(page, "Plain pages remember, too").waitFor();
  });

  test("closing a dialog goes back to the list", async () => {
    await page.goto(`${box.url}/dashboard/memory/new`);
    await page.getByRole("dialog").getByRole("link", { name: "Cancel" }).click();
    await page.waitForURL("**/dashboard/memory");
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("edit, archive, undo, pin", async () => {
    await remember(box, "Edited without script");
    await page.goto(`${box.url}/dashboard/memory`);
    await row(page, "Edited without script")
      .getByRole("link", { name: /^Edit: / })
      .click();
    await page.getByLabel("What is remembered").fill("Changed without script");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { level: 1, name: "Changed without script" }).waitFor();
    await toast(page, "Saved.").waitFor();
    await page.goto(`${box.url}/dashboard/memory?q=without+script`);
    await row(page, "Changed without script")
      .getByRole("button", { name: /^Archive/ })
      .click();
    await page.waitForURL("**/dashboard/memory?q=without+script");
    expect(await page.locator("li.memory").count()).toBe(0);
    await toast(page, "Archived.").getByRole("button", { name: "Undo" }).click();
    await row(page, "Changed without script").waitFor();
    await row(page, "Changed without script").getByRole("button", { name: /^More/ }).click();
    await row(page, "Changed without script").getByRole("button", { name: "Pin", exact: true }).click();
    await page.locator("li.memory.is-pinned", { hasText: "Changed without script" }).waitFor();
  });

  test("delete for good, with its proof", async () => {
    await remember(box, "Gone without script");
    await page.goto(`${box.url}/dashboard/memory?q=Gone+without`);
    await row(page, "Gone without script").getByRole("button", { name: /^More/ }).click();
    await row(page, "Gone without script").getByRole("link", { name: "Delete for good…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete for good" }).click();
    await page.getByText("Nothing of it is left.").waitFor();
  });

  test("many at once: ask, then delete", async () => {
    await remember(box, "Plain one of two");
    await remember(box, "Plain two of two");
    await page.goto(`${box.url}/dashboard/memory?q=of+two`);
    for (const tick of await page.getByLabel(/^Select: Plain/).all()) await tick.check();
    await page.locator(".bulk-sticky").getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete 2 for good" }).click();
    await toast(page, "2 memories deleted for good.").waitFor();
  });

  test("review, playground, restore", async () => {
    await page.goto(`${box.url}/dashboard/memory/review`);
    await page
      .getByLabel(/^Select: /)
      .first()
      .check();
    await page.getByRole("button", { name: "Approve selected" }).click();
    await page.getByRole("heading", { name: "Nothing waits for review" }).first().waitFor();
    await page.goto(`${box.url}/dashboard/memory?tab=playground`);
    await page.getByLabel("Query").fill("Which database for Juniper?");
    await page.getByRole("button", { name: "Run" }).click();
    await page.locator(".result", { hasText: "Juniper project" }).first().waitFor();
    await page.goto(`${box.url}/dashboard/memory/${ids.memory}`);
    await page.getByRole("button", { name: "Restore version 1" }).click();
    await page.getByRole("heading", { level: 1, name: /MySQL/ }).waitFor();
  });

  test("settings, keys, providers, activity", async () => {
    await page.goto(`${box.url}/dashboard/settings/memory`);
    await page.locator("#s-inject-form").getByLabel("Token budget").fill("1500");
    await page.locator("#s-inject-form").getByRole("button", { name: "Save" }).click();
    await toast(page, "Saved.").waitFor();
    expect(await page.locator("#s-inject-form").getByLabel("Token budget").inputValue()).toBe("1500");
    await page.getByRole("link", { name: "API keys" }).click();
    await page.getByRole("link", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("plain");
    await page.getByRole("button", { name: "Make the key" }).click();
    expect(await page.locator("#new-key").textContent()).toStartWith("rk-");
    await page.goto(`${box.url}/dashboard/settings/providers`);
    await page.getByRole("button", { name: "Test demo" }).click();
    await page.locator("#test-demo", { hasText: "Answered in" }).waitFor();
    await page.goto(`${box.url}/dashboard/activity/sessions`);
    await page.getByLabel("Owner").selectOption("plain");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("No conversation is kept yet").waitFor();
  });

  test("every link of every page leads somewhere", async () => {
    const seen = new Set<string>(["/dashboard/memory"]);
    const queue = [...seen];
    const broken: string[] = [];
    for (let path = queue.shift(); path !== undefined && seen.size < 400; path = queue.shift()) {
      const response = await page.goto(box.url + path, { waitUntil: "commit" });
      const status = response?.status() ?? 0;
      if (status >= 400) broken.push(`${status} ${path}`);
      await page.waitForLoadState("domcontentloaded");
      const found = await page
        .locator("a[href]")
        .evaluateAll((links) =>
          links.filter((link) => !link.hasAttribute("download")).map((link) => link.getAttribute("href")!),
        );
      for (const href of found) {
        const target = href.split("#")[0]!;
        // One page of a kind is enough: ids differ, pages do not.
        const kind = target
          .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/g, "ID")
          .replace(/\?.*(?:q|owner|page|query)=.*/, "?…");
        if (!target.startsWith("/dashboard") || seen.has(kind)) continue;
        seen.add(kind);
        queue.push(target);
      }
    }
    expect(broken).toEqual([]);
    expect(seen.size).toBeGreaterThan(40);
  });
});

test("on a phone: menus rise, a row's menu pins, a dialog adds, list and detail are two pages", async () => {
  const { page, context, trouble } = await visit(browser, box.url, box.token, phone);
  await page.goto(`${box.url}/dashboard/memory?q=page+3+of`);
  await row(page, "page 3 of").getByRole("button", { name: /^More/ }).tap();
  await row(page, "page 3 of").getByRole("button", { name: "Pin", exact: true }).tap();
  await page.locator("li.memory.is-pinned", { hasText: "page 3 of" }).waitFor();
  await page.getByRole("link", { name: "Add" }).tap();
  await page.getByLabel("What to remember").fill("Said on a phone");
  await page.getByRole("dialog").getByRole("button", { name: "Add memory" }).tap();
  await toast(page, "Added.").waitFor();
  await page.getByRole("link", { name: "Activity" }).tap();
  await page.locator(".cols-side a").first().tap();
  await page.getByText("Added to the prompt").waitFor();
  expect(await page.locator(".cols-side").isVisible()).toBe(false);
  await page.getByRole("link", { name: "← All receipts" }).tap();
  await page.locator(".cols-side a").first().waitFor();
  expect(trouble).toEqual([]);
  await context.close();
});

test("by keyboard alone: skip link, a row's actions, a menu, a dialog", async () => {
  await remember(box, "Reached by keyboard");
  const { page, context } = await visit(browser, box.url, box.token);
  const press = async (key: string, times = 1) => {
    for (let i = 0; i < times; i++) await page.keyboard.press(key);
  };
  const at = () =>
    page.evaluate(() => {
      const element = document.activeElement!;
      return (element.getAttribute("aria-label") ?? element.textContent ?? "").trim();
    });
  await page.goto(`${box.url}/dashboard/memory?q=Reached+by`);
  await press("Tab");
  expect(await at()).toBe("Skip to content");
  await press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
  // From the start of the content to the row's menu, by Tab alone.
  await until("the row's menu button", async () => {
    await press("Tab");
    return (await at()).startsWith("More for: Reached");
  });
  const ring = await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle);
  expect(ring).toBe("solid");
  await press("Enter");
  await press("Tab");
  expect(await at()).toBe("Pin");
  await press("Enter");
  await page.locator("li.memory.is-pinned").waitFor();
  await until("focus stays in the row", async () => (await at()).startsWith("More for: Reached"));
  await press("Enter");
  await press("Tab", 2);
  expect(await at()).toBe("Delete for good…");
  await press("Enter");
  await page.getByRole("dialog").waitFor();
  expect(await at()).toBe("Keep it");
  await press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await context.close();
});
