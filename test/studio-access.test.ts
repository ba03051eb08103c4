import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Appliance, startAppliance } from "./support/appliance.ts";
import { cookieOf, signIn } from "./support/studio.ts";

setDefaultTimeout(30_000);

let box: Appliance;
beforeAll(async () => {
  box = await startAppliance();
});
afterAll(() => box.stop());

const post = (path: string, body: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(box.url + path, { method: "POST", redirect: "manual", headers, body: new URLSearchParams(body) });
const ours = { "sec-fetch-site": "same-origin" };

describe("coming in", () => {
  test("the token opens a session: HttpOnly, Strict, 30 days, not Secure without TLS", async () => {
    const response = await post("/sign-in", { token: box.token }, ours);
    expect(response.status).toBe(303);
    expect(response.headers.get("location")).toBe("/dashboard/memory");
    const cookie = response.headers.getSetCookie().find((line) => line.startsWith("recollect_session="))!;
    expect(cookie).toContain("HttpOnly");
    expect(cookie).toContain("SameSite=Strict");
    expect(cookie).toContain("Max-Age=2592000");
    expect(cookie).toContain("Path=/");
    expect(cookie).not.toContain("Secure");
  });

  test("over TLS the cookie is Secure", async () => {
    const other = await startAppliance({ env: { TRUST_PROXY: "127.0.0.1" } });
    const response = await fetch(`${other.url}/sign-in`, {
      method: "POST",
      redirect: "manual",
      headers: { ...ours, "x-forwarded-proto": "https" },
      body: new URLSearchParams({ token: other.token }),
    });
    expect(response.headers.getSetCookie()[0]).toContain("Secure");
    await other.stop();
  });

  test("a wrong token gets the form again with a sentence, and no cookie", async () => {
    const response = await post("/sign-in", { token: "not-the-token-at-all" }, ours);
    expect(response.status).toBe(401);
    expect(response.headers.getSetCookie()).toEqual([]);
    const html = await response.text();
    expect(html).toContain("This is not the management token.");
    expect(html).not.toContain("not-the-token-at-all");
  });

  test("a one-time link works once and goes to the first page", async () => {
    // A preview that only looks at the address leaves it to the person.
    const looked = await fetch(box.server.signIn, { method: "HEAD", redirect: "manual" });
    expect([looked.status, looked.headers.get("set-cookie")]).toEqual([204, null]);
    const first = await fetch(box.server.signIn, { redirect: "manual" });
    expect(first.status).toBe(303);
    expect(first.headers.get("location")).toBe("/dashboard/memory");
    expect(cookieOf(first.headers, "recollect_session")).toBeDefined();
    const second = await fetch(box.server.signIn, { redirect: "manual" });
    expect(second.status).toBe(401);
    expect(cookieOf(second.headers, "recollect_session")).toBeUndefined();
    expect(await second.text()).toContain("Management token");
  });

  test("without a session a page shows the way in and comes back to itself", async () => {
    const response = await fetch(`${box.url}/dashboard/settings/keys?x=1`, { redirect: "manual" });
    expect(response.status).toBe(303);
    expect(response.headers.get("location")).toBe("/sign-in?next=%2Fdashboard%2Fsettings%2Fkeys%3Fx%3D1");
    const entered = await post("/sign-in", { token: box.token, next: "/dashboard/settings/keys?x=1" }, ours);
    expect(entered.headers.get("location")).toBe("/dashboard/settings/keys?x=1");
  });

  test("nobody is sent to another site after signing in", async () => {
    for (const next of [
      "//evil.example",
      "https://evil.example/dashboard",
      "/dashboard\\@evil",
      "/dashboardx",
      "/api",
    ]) {
      const response = await post("/sign-in", { token: box.token, next }, ours);
      expect(response.headers.get("location")).toBe("/dashboard/memory");
    }
  });

  test("htmx is told to leave for the sign-in page instead of getting it into a list", async () => {
    const response = await fetch(`${box.url}/dashboard/memory`, {
      headers: { "HX-Request": "true", "HX-Request-Type": "partial" },
    });
    expect(response.status).toBe(401);
    expect(response.headers.get("HX-Redirect")).toBe("/sign-in");
    expect(await response.text()).toBe("");
  });

  test("an API key does not open the Studio", async () => {
    const response = await fetch(`${box.url}/dashboard/memory`, {
      headers: { authorization: `Bearer ${box.key}` },
      redirect: "manual",
    });
    expect(response.status).toBe(403);
  });

  test("signing out ends the session itself, not only the cookie", async () => {
    const visitor = await signIn(box);
    const cookie = visitor.cookie;
    expect((await visitor.get("/dashboard/memory")).status).toBe(200);
    expect((await visitor.post("/dashboard/sign-out", {})).location).toBe("/sign-in?out");
    const after = await fetch(`${box.url}/dashboard/memory`, { headers: { cookie }, redirect: "manual" });
    expect(after.status).toBe(303);
  });

  test("another token in the configuration ends the sessions and links of the one before", async () => {
    const first = await startAppliance();
    const { dataDir, server } = first;
    const { cookie } = await signIn(first);
    const link = new URL(server.signIn);
    await first.stop({ keep: true });
    const enter = async (token: string) => {
      const again = await startAppliance({ dataDir, env: { RECOLLECT_MANAGEMENT_TOKEN: token } });
      const page = await fetch(`${again.url}/dashboard/memory`, { headers: { cookie }, redirect: "manual" });
      return { again, status: page.status };
    };
    const same = await enter(first.token);
    expect(same.status).toBe(200);
    await same.again.stop({ keep: true });
    const other = await enter("another-management-token-456");
    expect(other.status).toBe(303);
    const used = await fetch(`${other.again.url}${link.pathname}${link.search}`, { redirect: "manual" });
    expect(used.status).toBe(401);
    await other.again.stop();
  });

  test("ten wrong tokens a minute: further wrong ones wait, the right one never", async () => {
    const other = await startAppliance();
    const wrong = () =>
      fetch(`${other.url}/sign-in`, {
        method: "POST",
        headers: ours,
        redirect: "manual",
        body: new URLSearchParams({ token: "wrong-wrong-wrong-wrong" }),
      });
    for (let i = 0; i < 10; i++) expect((await wrong()).status).toBe(401);
    const limited = await wrong();
    expect(limited.status).toBe(429);
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await limited.text()).toContain("Too many wrong tries");
    const right = await signIn(other);
    expect((await right.get("/dashboard/memory")).status).toBe(200);
    await other.stop();
  });
});

describe("what a browser is told", () => {
  test("the policy allows nothing inline and nothing from elsewhere, on pages, parts and errors", async () => {
    const visitor = await signIn(box);
    for (const page of [
      await visitor.get("/dashboard/memory"),
      await visitor.get("/dashboard/memory", { part: true }),
      await visitor.get("/dashboard/nothing-here"),
      await visitor.get("/sign-in"),
    ]) {
      const policy = page.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain("unsafe");
      expect(policy).not.toContain("*");
      expect(page.headers.get("cache-control")).toBe("no-store");
      expect(page.headers.get("vary")).toContain("HX-Request-Type");
    }
  });

  test("no page has inline script, style, handler, or an address on another host", async () => {
    const visitor = await signIn(box);
    for (const path of [
      "/sign-in?out",
      "/dashboard/memory",
      "/dashboard/memory?tab=engine",
      "/dashboard/memory/new",
      "/dashboard/connect",
      "/dashboard/settings/memory",
      "/dashboard/settings/keys/new",
      "/dashboard/activity/sessions",
    ]) {
      const { html } = await visitor.get(path);
      expect(html).not.toMatch(/<script(?![^>]*\bsrc=)/);
      expect(html).not.toMatch(/<style|\sstyle=|\son[a-z]+=|javascript:|hx-on/);
      expect(html).not.toMatch(/(?:src|href|action)="(?:https?:)?\/\//);
    }
  });
});

describe("changes come from our own pages", () => {
  const cases: [string, Record<string, string>, number][] = [
    ["same origin by Sec-Fetch-Site", { "sec-fetch-site": "same-origin" }, 303],
    ["same origin by Origin alone", { origin: "self" }, 303],
    ["another site", { "sec-fetch-site": "cross-site" }, 403],
    ["a neighbour", { "sec-fetch-site": "same-site" }, 403],
    ["typed into the address bar", { "sec-fetch-site": "none" }, 403],
    ["another origin", { origin: "https://evil.example" }, 403],
    ["an opaque origin", { origin: "null" }, 403],
    ["nothing said", {}, 403],
  ];
  for (const [name, headers, status] of cases) {
    test(`${name} → ${status}`, async () => {
      const visitor = await signIn(box);
      const before = await visitor.get("/dashboard/settings/memory");
      const given = headers["origin"] === "self" ? { origin: box.url } : headers;
      const response = await fetch(`${box.url}/dashboard/theme`, {
        method: "POST",
        redirect: "manual",
        headers: { cookie: visitor.cookie, ...given },
        body: new URLSearchParams({ theme: "dark" }),
      });
      expect(response.status).toBe(status);
      expect(response.headers.getSetCookie().some((line) => line.includes("recollect_theme"))).toBe(
        status === 303,
      );
      expect(before.status).toBe(200);
    });
  }

  test("signing in from another site is refused, too", async () => {
    const response = await post("/sign-in", { token: box.token }, { "sec-fetch-site": "cross-site" });
    expect(response.status).toBe(403);
    expect(response.headers.getSetCookie()).toEqual([]);
  });
});

describe("theme", () => {
  test("is written by the server from a cookie", async () => {
    const visitor = await signIn(box);
    expect((await visitor.get("/dashboard/memory")).html).not.toContain("data-theme");
    await visitor.post("/dashboard/theme", { theme: "dark" });
    expect((await visitor.get("/dashboard/memory")).html).toContain('<html lang="en" data-theme="dark">');
    await visitor.post("/dashboard/theme", { theme: "auto" });
    expect((await visitor.get("/dashboard/memory")).html).not.toContain("data-theme");
    expect((await visitor.post("/dashboard/theme", { theme: "pink" })).status).toBe(400);
  });
});

test("/ and /dashboard go to the first page", async () => {
  const visitor = await signIn(box);
  expect((await visitor.get("/")).location).toBe("/dashboard/memory");
  expect((await visitor.get("/dashboard")).location).toBe("/dashboard/memory");
});
