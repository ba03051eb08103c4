/** A real headless Chromium for tests of the Studio. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { ensureChromium } from "../../scripts/ensure-chromium.ts";

/** Starts a browser. Without one a test fails in CI, and says why elsewhere. */
export async function launch(): Promise<Browser> {
  const executablePath = ensureChromium();
  if (executablePath === null) throw new Error("There is no Chromium. Install it, or set CHROMIUM_PATH.");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

export type Look = { width: number; height: number; dark?: boolean; script?: boolean; touch?: boolean };

export const desktop: Look = { width: 1440, height: 900 };
export const phone: Look = { width: 390, height: 844, touch: true };

/** What the page did that it must not: policy violations, script errors, requests to another host, failed loads. */
export type Trouble = string[];

/** A fresh context, signed in through the form, that notes everything that went wrong. */
export async function visit(
  browser: Browser,
  url: string,
  token: string | null,
  look: Look = desktop,
): Promise<{ page: Page; context: BrowserContext; trouble: Trouble }> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.height },
    colorScheme: look.dark ? "dark" : "light",
    javaScriptEnabled: look.script ?? true,
    hasTouch: look.touch ?? false,
    reducedMotion: "reduce",
  });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const trouble: Trouble = [];
  page.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // A refused form is an answer like any other; the browser logs its status all the same.
    if (message.type() === "error" && !/status of 4(09|22|01|04|29)/.test(message.text())) {
      trouble.push(`console: ${message.text()}`);
    }
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) trouble.push(`request: ${request.url()}`);
  });
  if (token !== null) {
    await page.goto(`${url}/sign-in`);
    await page.getByLabel("Management token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL("**/dashboard/**");
  }
  return { page, context, trouble };
}

/** Keeps a picture for people to look at, in the ignored folder `shots`. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = join(import.meta.dir, "..", "..", "shots");
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), animations: "disabled" });
}
