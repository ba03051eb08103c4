import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { type Appliance, startAppliance, until } from "../support/appliance.ts";
import { launch, type Trouble, visit } from "../support/browser.ts";
import { chat, type Filled, fill } from "../support/studio-data.ts";
import { remember } from "../support/studio.ts";

setDefaultTimeout(120_000);

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const focused = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement;
    return element === null || element === document.body
      ? null
      : (element.getAttribute("aria-label") ?? element.textContent ?? "").trim().replaceAll(/\s+/g, " ");
  });
const said = (page: Page, text: string) =>
  page.locator("#announce", { hasText: text }).waitFor({ state: "attached" });
const toast = (page: Page, text: string) => page.locator(".toast", { hasText: text });
const row = (page: Page, text: string) => page.locator("li.memory", { hasText: text });

describe("from zero to a first recall", () => {
  let box: Appliance;
  beforeAll(async () => {
    box = await startAppliance({ memory: false, demo: false });
  });
  afterAll(() => box.stop());

  test("turn memory on, add a provider, send a request, see it arrive", async () => {
    const { page, context, trouble } = await visit(browser, box.url, box.token);
    await page.getByRole("heading", { name: "Give your applications a memory" }).waitFor();
    await page.getByRole("button", { name: "Turn memory on" }).click();
    await page.getByRole("heading", { name: "Memory is on" }).waitFor();
    await page.locator("#nav-status", { hasText: "Memory is on" }).waitFor();
    expect((await box.call("GET", "/api/settings/memory")).body).toMatchObject({ enabled: true });

    await page.getByRole("link", { name: "Add a provider" }).click();
    // A provider as it stands on this very machine: the box's own demo behind another box.
    const upstream = await startAppliance();
    await page.getByLabel("Name", { exact: true }).fill("second");
    await page.getByLabel("Base URL").fill(`${upstream.url}/v1`);
    await page.locator("#p-apiKey").fill(upstream.key);
    await page.locator("#add-provider").getByRole("button", { name: "Test" }).click();
    await page.locator("#test-new", { hasText: "Answered in" }).waitFor();
    await page.getByRole("button", { name: "Add provider" }).click();
    await page.getByRole("heading", { name: "second" }).waitFor();

    await page.goto(`${box.url}/dashboard/connect`);
    await page.getByText("Waiting for the first request").waitFor();
    const response = await fetch(`${box.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${box.key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "second/demo/echo",
        messages: [{ role: "user", content: "I prefer tea to coffee." }],
      }),
    });
    expect(response.status).toBe(200);
    await response.text();
    await page.getByText("The first request came through.").first().waitFor();
    await said(page, "The first request came through.");
    await page.getByRole("link", { name: "Open the receipt" }).click();
    await page.getByRole("heading", { name: "I prefer tea to coffee." }).waitFor();
    await until("what it taught", async () => {
      await page.reload();
      return page.getByText("Prefers tea to coffee").first().isVisible();
    });
    expect(trouble).toEqual([]);
    await context.close();
    await upstream.stop();
  });
});

describe("a filled box", () => {
  let box: Appliance;
  let ids: Filled;
  let page: Page;
  let context: BrowserContext;
  let trouble: Trouble;
  beforeAll(async () => {
    box = await startAppliance();
    ids = await fill(box);
    ({ page, context, trouble } = await visit(browser, box.url, box.token));
  });
  afterAll(async () => {
    expect(trouble).toEqual([]);
    await context.close();
    await box.stop();
  });

  test("search as one types: list, address and announcement; the field keeps its focus", async () => {
    await page.goto(`${box.url}/dashboard/memory`);
    await page.getByLabel("Search text and key").pressSequentially("page 7 of", { delay: 20 });
    await said(page, "1 memory.");
    expect(await page.locator("li.memory").count()).toBe(1);
    expect(page.url()).toEndWith("?q=page+7+of");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("memory-q");
    await page.goBack();
    await page.locator("li.memory").nth(5).waitFor();
    await page.getByLabel("Type").selectOption("procedural");
    await row(page, "Always answer in Finnish").waitFor();
    await page.waitForURL("**type=procedural");
  });

  test("paging", async () => {
    await page.goto(`${box.url}/dashboard/memory`);
    await page.getByText("1–20 of").waitFor();
    await page.getByRole("link", { name: "Older" }).click();
    await page.getByText(/^21–/).waitFor();
    await page.getByRole("link", { name: "Newer" }).click();
    await page.getByText("1–20 of").waitFor();
  });

  test("add in a dialog: a mistake is told at its field, then it is there and focus goes back", async () => {
    await page.goto(`${box.url}/dashboard/memory`);
    await page.getByRole("link", { name: "Add memory" }).click();
    const dialog = page.getByRole("dialog", { name: "Add a memory" });
    await dialog.waitFor();
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("add-content");
    await dialog.getByLabel("What to remember").fill("   ");
    await dialog.getByRole("button", { name: "Add memory" }).click();
    await dialog.locator("#add-content-e").waitFor();
    expect(await dialog.getByLabel("What to remember").getAttribute("aria-invalid")).toBe("true");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("add-content");
    await dialog.getByLabel("What to remember").fill("Drinks coffee without milk");
    await page.keyboard.press("Control+Enter");
    await toast(page, "Added.").waitFor();
    await row(page, "Drinks coffee without milk").waitFor();
    expect(await page.locator("dialog").count()).toBe(0);
    expect(await focused(page)).toContain("Add memory");
  });

  test("Escape closes a dialog and focus goes back to what opened it", async () => {
    await page.goto(`${box.url}/dashboard/memory`);
    await page.getByRole("link", { name: "Compact old…" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await focused(page)).toContain("Compact old…");
  });

  test("edit in place, and its focus", async () => {
    await remember(box, "Has a cat called Mimi");
    await page.goto(`${box.url}/dashboard/memory`);
    await row(page, "Has a cat called Mimi").getByRole("link", { name: /^Edit/ }).click();
    const form = page.getByRole("form", { name: "Edit memory" });
    await form.waitFor();
    expect(await page.evaluate(() => document.activeElement?.tagName)).toBe("TEXTAREA");
    await form.getByLabel("What is remembered").fill("Has a cat called Minni");
    await form.getByRole("button", { name: "Save" }).click();
    await row(page, "Has a cat called Minni").waitFor();
    await said(page, "Saved.");
    expect(await focused(page)).toStartWith("Edit: Has a cat called Minni");
    await row(page, "Has a cat called Minni").getByRole("link", { name: /^Edit/ }).click();
    await form.waitFor();
    await form.getByRole("link", { name: "Cancel" }).click();
    await form.waitFor({ state: "detached" });
    await row(page, "Has a cat called Minni").waitFor();
  });

  test("archive leaves at once, the undo has the focus and brings it back", async () => {
    await remember(box, "Will be archived");
    await page.goto(`${box.url}/dashboard/memory`);
    await row(page, "Will be archived")
      .getByRole("button", { name: /^Archive/ })
      .click();
    await row(page, "Will be archived").waitFor({ state: "detached" });
    await toast(page, "Archived.").waitFor();
    await until("the undo has the focus", async () => (await focused(page)) === "Undo");
    await page.keyboard.press("Enter");
    await row(page, "Will be archived").waitFor();
    await toast(page, "Back again.").waitFor();
  });

  test("pin from the menu of a row", async () => {
    await remember(box, "Will be pinned");
    await page.goto(`${box.url}/dashboard/memory`);
    await row(page, "Will be pinned").getByRole("button", { name: /^More/ }).click();
    await row(page, "Will be pinned").getByRole("button", { name: "Pin", exact: true }).click();
    await page.locator("li.memory.is-pinned", { hasText: "Will be pinned" }).waitFor();
    await toast(page, "Pinned.").waitFor();
  });

  test("ticked rows: the bar counts them, archives them, asks before it deletes", async () => {
    await remember(box, "Ticked one");
    await remember(box, "Ticked two");
    await page.goto(`${box.url}/dashboard/memory?q=Ticked`);
    await page.getByLabel("Select all on this page").check();
    expect(await page.locator(".bulk-sticky").isVisible()).toBe(true);
    await page.locator(".bulk-sticky").getByRole("button", { name: "Delete…" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete 2 memories for good?" });
    await dialog.waitFor();
    expect(await focused(page)).toBe("Keep them");
    await dialog.getByRole("button", { name: "Delete 2 for good" }).click();
    await toast(page, "2 memories deleted for good.").waitFor();
    await page.getByText("Nothing matches “Ticked”").waitFor();
  });

  test("delete for good shows the proof", async () => {
    await remember(box, "Leaves no trace");
    await page.goto(`${box.url}/dashboard/memory`);
    await row(page, "Leaves no trace").getByRole("button", { name: /^More/ }).click();
    await row(page, "Leaves no trace").getByRole("link", { name: "Delete for good…" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete this memory for good?" });
    await dialog.getByText("Leaves no trace").waitFor();
    await dialog.getByRole("button", { name: "Delete for good" }).click();
    await page.getByText("Nothing of it is left.").waitFor();
  });

  test("compact: a dry run that follows the days, then one summary and its undo", async () => {
    await page.goto(`${box.url}/dashboard/memory`);
    await page.getByRole("link", { name: "Compact old…" }).click();
    const dialog = page.getByRole("dialog", { name: "Compact old memories" });
    await dialog.getByText("Memories to condense").waitFor();
    await dialog.getByLabel("Older than").fill("999");
    await dialog.getByLabel("Older than").blur();
    await dialog.locator("#compact-olderThanDays-e").waitFor();
    await dialog.getByLabel("Older than").fill("20");
    await dialog.getByText("Nothing is that old.").waitFor();
    await page.keyboard.press("Escape");
  });

  test("review: approve one, and the number beside Memories follows", async () => {
    await page.goto(`${box.url}/dashboard/memory/review`);
    await page.getByRole("heading", { name: "1 memory waits for review" }).waitFor();
    await page.locator("mark").first().waitFor();
    await page.getByRole("button", { name: /^Approve: / }).click();
    await page.getByRole("heading", { name: "Nothing waits for review" }).first().waitFor();
    expect(await page.locator("#pending-count .nav-count").count()).toBe(0);
    const { body } = await box.call("GET", `/api/memory/${ids.pending}`);
    expect((body as { memory: { status: string } }).memory.status).toBe("active");
  });

  test("a memory's page: history with restore, the exchange, the request it was used in", async () => {
    await page.goto(`${box.url}/dashboard/memory/${ids.memory}`);
    await page.locator(".exchange mark", { hasText: "use MySQL for the Juniper project" }).first().waitFor();
    await page.locator("ins", { hasText: "Postgres" }).waitFor();
    await page.getByRole("link", { name: "Which database do we use for the Juniper project?" }).click();
    await page.getByText("Added to the prompt").waitFor();
    await page.goBack();
    await page.getByRole("button", { name: "Restore version 1" }).click();
    await page
      .getByRole("heading", { name: "Decided to use MySQL for the Juniper project", level: 1 })
      .waitFor();
    await toast(page, "Restored.").waitFor();
  });

  test("playground: the answer, its reasons, and the text that would go out", async () => {
    await page.goto(`${box.url}/dashboard/memory?tab=playground`);
    await page.getByLabel("Query").fill("Which database for Juniper?");
    await page.getByRole("button", { name: "Run" }).click();
    await page.locator(".result", { hasText: "Juniper project" }).first().waitFor();
    await page.locator("#injected", { hasText: "Memory context:" }).waitFor();
    await page.getByText("Strategy used").waitFor();
    expect(page.url()).toContain("tab=playground");
    await page.getByLabel("Token budget").fill("0");
    await page.evaluate(() => document.querySelector("#ask")?.setAttribute("novalidate", ""));
    await page.getByRole("button", { name: "Run" }).click();
    await page.locator("#ask-maxTokens-e").waitFor();
  });

  test("a receipt: sent again with and without memory, side by side", async () => {
    const receipt = await chat(box, "What do I drink my coffee with, milk?", "kitchen");
    await until(
      "the receipt",
      async () => (await box.call("GET", `/api/memory/receipts/${receipt}`)).status === 200,
    );
    const requests = async () =>
      ((await box.call("GET", "/api/memory/receipts")).body as { total: number }).total;
    const before = await requests();
    await page.goto(`${box.url}/dashboard/activity/receipts/${receipt}`);
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByRole("heading", { name: "Sent again, side by side" }).waitFor();
    await page.locator(".compare-side", { hasText: "With memory" }).getByText("I remember:").waitFor();
    const without = page.locator(".compare-side", { hasText: "Without memory" });
    expect(await without.textContent()).not.toContain("I remember:");
    expect(await requests()).toBe(before);
  });

  test("sessions: pin, summarise, delete one exchange", async () => {
    await page.goto(`${box.url}/dashboard/activity/sessions/${ids.session}`);
    await page.getByRole("button", { name: "Pin" }).click();
    await toast(page, "Pinned.").waitFor();
    await page
      .getByRole("link", { name: /^Delete the exchange/ })
      .first()
      .click();
    await page
      .getByRole("dialog", { name: "Delete this exchange?" })
      .getByRole("button", { name: "Delete" })
      .click();
    await page.getByText(/, 1 exchange since/).waitFor();
  });

  test("entities: search, follow a link of the graph by keyboard, edit", async () => {
    await page.goto(`${box.url}/dashboard/activity/entities`);
    await page.getByLabel("Search entities").pressSequentially("juni", { delay: 20 });
    await said(page, "1 entity.");
    await page.locator("#entity-pick a").click();
    await page.getByRole("heading", { name: "Juniper", level: 2 }).waitFor();
    await page.locator("svg.graph a[aria-label='Postgres']").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Postgres", level: 2 }).waitFor();
    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByLabel("Notes").fill("The database");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The database").waitFor();
  });

  test("engine: switches save at once, a mistake is told, verify answers", async () => {
    await page.goto(`${box.url}/dashboard/memory?tab=engine`);
    await page.getByRole("button", { name: "Verify" }).click();
    await toast(page, "It works").waitFor();
    await page.getByLabel("Rerank results").check();
    await page.locator("#rerank-form").getByRole("button", { name: "Save" }).click();
    await page.locator("#rerank-rerankProviderModel-e").waitFor();
    await page.locator("#rerank-rerankProviderModel").fill("demo/rank");
    await page.locator("#rerank-form").getByRole("button", { name: "Save" }).click();
    await toast(page, "Saved.").waitFor();
    expect((await box.call("GET", "/api/settings/memory")).body).toMatchObject({
      rerankEnabled: true,
      rerankProviderModel: "demo/rank",
    });
    await box.call("PUT", "/api/settings/memory", { rerankEnabled: false, rerankProviderModel: null });
    await page.locator("#qdrant-form").getByLabel("Port").fill("99999999");
    await page.locator("#qdrant-form").getByRole("button", { name: "Save" }).click();
    await page.locator("#q-port-e").waitFor();
    await page.locator("#qdrant-form").getByRole("button", { name: "Test connection" }).click();
    await page.getByText("Enter a host and save it").waitFor();
  });

  test("settings: memory off and on, a group with a mistake, defaults", async () => {
    await page.goto(`${box.url}/dashboard/settings/memory`);
    await page.getByLabel("Memory is on").click();
    await page.locator("#nav-status", { hasText: "Memory is off" }).waitFor();
    await said(page, "Memory is off.");
    await page.getByLabel("Memory is off").click();
    await page.locator("#nav-status", { hasText: "Memory is on" }).waitFor();
    const keeping = page.locator("#s-keep-form");
    await keeping.getByLabel("Delete after").fill("3");
    await keeping.getByRole("button", { name: "Save" }).click();
    await keeping.locator("#s-keep-deleteAfterDays-e").waitFor();
    expect(await keeping.getByLabel("Delete after").inputValue()).toBe("3");
    await keeping.getByRole("button", { name: "Back to defaults" }).click();
    await keeping.locator("#s-keep-deleteAfterDays-e").waitFor({ state: "detached" });
    expect(await keeping.getByLabel("Delete after").inputValue()).toBe("");
  });

  test("keys: the secret is shown once, edit, rotate, revoke", async () => {
    await page.goto(`${box.url}/dashboard/settings/keys`);
    await page.getByRole("link", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("garden-notes");
    await page.getByRole("button", { name: "Make the key" }).click();
    const secret = await page.locator("#new-key").textContent();
    expect(secret).toStartWith("rk-");
    const models = await fetch(`${box.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
    expect(models.status).toBe(200);
    await page.goto(`${box.url}/dashboard/settings/keys`);
    expect(await page.locator("#new-key").count()).toBe(0);
    await page.getByRole("link", { name: "Revoke garden-notes" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await toast(page, "Revoked.").waitFor();
    const refused = await fetch(`${box.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
    expect(refused.status).toBe(401);
  });

  test("the theme follows the menu", async () => {
    await page.goto(`${box.url}/dashboard/memory`);
    await page.getByRole("button", { name: "Theme and account" }).click();
    await page.getByRole("button", { name: "Dark" }).click();
    await page.locator("html[data-theme=dark]").waitFor();
    await page.getByRole("button", { name: "Theme and account" }).click();
    await page.getByRole("button", { name: "Same as the system" }).click();
    await page.locator("html:not([data-theme])").waitFor();
  });

  test("a server that is gone is said once, and the page stays", async () => {
    await page.goto(`${box.url}/dashboard/memory`);
    await context.setOffline(true);
    await row(page, "Knows page")
      .first()
      .getByRole("button", { name: /^Archive/ })
      .click();
    await toast(page, "No answer from the server.").waitFor();
    expect(await page.locator("li.memory").count()).toBe(20);
    await context.setOffline(false);
    trouble.splice(
      0,
      trouble.length,
      ...trouble.filter((line) => !/ERR_INTERNET_DISCONNECTED|Failed to fetch/.test(line)),
    );
  });
});
