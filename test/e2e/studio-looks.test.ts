import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { type Appliance, startAppliance } from "../support/appliance.ts";
import { desktop, launch, type Look, phone, picture, visit } from "../support/browser.ts";
import { type Filled, fill, pagesOf } from "../support/studio-data.ts";

setDefaultTimeout(180_000);

let box: Appliance;
let fresh: Appliance;
let browser: Browser;
let ids: Filled;
beforeAll(async () => {
  box = await startAppliance();
  fresh = await startAppliance({ memory: false, demo: false });
  ids = await fill(box);
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await box?.stop();
  await fresh?.stop();
});

/** What axe finds wrong, one line a violation, with the first element. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const run = (globalThis as unknown as { axe: { run(): Promise<{ violations: Found[] }> } }).axe;
    type Found = { id: string; nodes: { html: string; target: unknown[] }[] };
    const { violations: found } = await run.run();
    return found.map(({ id, nodes }) => `${id}: ${nodes.length} × ${nodes[0]?.html.slice(0, 160)}`);
  });
}

/** How far the page is wider than the window, in pixels. */
const overflow = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

const looks: [name: string, look: Look][] = [
  ["light", desktop],
  ["dark", { ...desktop, dark: true }],
  ["phone", phone],
];

test("axe is at work", async () => {
  const { page, context } = await visit(browser, box.url, null);
  await page.setContent("<html><body><img src='x'><button></button></body></html>");
  expect((await violations(page)).length).toBeGreaterThan(2);
  await context.close();
});

for (const [name, look] of looks) {
  test(`every page in ${name}: axe finds nothing, nothing overflows, nothing is loaded from elsewhere`, async () => {
    const { page, context, trouble } = await visit(browser, box.url, box.token, look);
    const found: string[] = [];
    for (const [title, path] of pagesOf(ids)) {
      await page.goto(box.url + path);
      await picture(page, `${title}-${name}`);
      for (const violation of await violations(page)) found.push(`${title}: ${violation}`);
      const wide = await overflow(page);
      if (wide > 0) found.push(`${title}: ${wide} px too wide`);
    }
    expect(found).toEqual([]);
    expect(trouble).toEqual([]);
    await context.close();
  });

  test(`the first page and sign-in in ${name}`, async () => {
    const { page, context, trouble } = await visit(browser, fresh.url, null, look);
    await page.goto(`${fresh.url}/sign-in`);
    await picture(page, `sign-in-${name}`);
    expect(await violations(page)).toEqual([]);
    await page.getByLabel("Management token").fill(fresh.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Give your applications a memory" }).waitFor();
    await picture(page, `welcome-${name}`);
    expect(await violations(page)).toEqual([]);
    expect(await overflow(page)).toBe(0);
    expect(trouble).toEqual([]);
    await context.close();
  });
}

test("nothing overflows at 320 px, at 2,560 px, or at 200 % zoom", async () => {
  const found: string[] = [];
  for (const [name, look] of [
    ["320", { width: 320, height: 700, touch: true }],
    ["2560", { width: 2560, height: 1300 }],
    // Zoom to 200 % is half the width in CSS pixels.
    ["zoom", { width: 640, height: 450 }],
  ] as [string, Look][]) {
    const { page, context } = await visit(browser, box.url, box.token, look);
    for (const [title, path] of pagesOf(ids)) {
      await page.goto(box.url + path);
      const wide = await overflow(page);
      if (wide > 0) found.push(`${title} at ${name}: ${wide} px too wide`);
      if (name === "2560" && title === "memories") await picture(page, "memories-2560");
    }
    await context.close();
  }
  expect(found).toEqual([]);
});

test("beside long names no button is cut off and no word is broken", async () => {
  await box.call("POST", "/api/keys", { name: "the key of somebody with a rather long name" });
  for (const id of ["first", "second"])
    await box.call("POST", "/api/providers", { id, baseUrl: "http://127.0.0.1:9/some/long/path/to/v1" });
  const found: string[] = [];
  for (const look of [{ width: 1280, height: 800 }, phone]) {
    const { page, context } = await visit(browser, box.url, box.token, look);
    for (const path of ["keys", "providers"]) {
      await page.goto(`${box.url}/dashboard/settings/${path}`);
      const faults = await page.evaluate(() => {
        const cut = [...document.querySelectorAll("main .btn")].filter((button) => {
          const frame = button.closest(".panel, .table-wrap")?.getBoundingClientRect();
          return frame !== undefined && button.getBoundingClientRect().right > frame.right;
        });
        const broken = [...document.querySelectorAll("td[data-label=May], td[data-label=Key]")].filter(
          (cell) => {
            const range = document.createRange();
            range.selectNodeContents(cell.querySelector("code") ?? cell);
            return range.getClientRects().length > 1;
          },
        );
        return [...cut, ...broken].map((one) => one.textContent);
      });
      found.push(...faults.map((text) => `${path} at ${look.width}: ${text}`));
    }
    await context.close();
  }
  expect(found).toEqual([]);
});

test("figures do not contradict themselves", async () => {
  const { page, context } = await visit(browser, box.url, box.token);
  await page.goto(`${box.url}/dashboard/activity/usage`);
  const first = page.locator(".cell", { hasText: "First token" });
  expect(await first.textContent()).toMatch(/\d ms.*on average$/);
  await context.close();
  const other = await visit(browser, fresh.url, fresh.token);
  await other.page.goto(`${fresh.url}/dashboard/memory?tab=engine`);
  expect(await other.page.locator("#coverage .bar rect").getAttribute("width")).toBe("0%");
  await other.context.close();
});
