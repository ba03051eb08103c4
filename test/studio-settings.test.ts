import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Appliance, startAppliance, until } from "./support/appliance.ts";
import { startHttpBackend } from "./support/http-backend.ts";
import { chat } from "./support/studio-data.ts";
import { remember, signIn, type Visitor } from "./support/studio.ts";

setDefaultTimeout(30_000);

let box: Appliance;
let visitor: Visitor;
beforeAll(async () => {
  box = await startAppliance();
  visitor = await signIn(box);
});
afterAll(() => box.stop());

const settings = async () => (await box.call("GET", "/api/settings/memory")).body as Record<string, unknown>;

describe("memory settings", () => {
  const group = {
    group: "s-keep",
    retentionDays: "90",
    deleteAfterDays: "",
    autoSummarize: "true",
  };

  test("a group saves its own fields, switches that are not sent are off", async () => {
    expect((await visitor.post("/dashboard/settings/memory", group)).location).toBe(
      "/dashboard/settings/memory#s-keep",
    );
    expect(await settings()).toMatchObject({ retentionDays: 90, deleteAfterDays: null, autoSummarize: true });
    const { autoSummarize: _, ...without } = group;
    await visitor.post("/dashboard/settings/memory", without);
    expect(await settings()).toMatchObject({ autoSummarize: false, injectEpisodes: true });
  });

  test("422 keeps what was typed and stores nothing", async () => {
    const bad = { ...group, retentionDays: "many", deleteAfterDays: "1" };
    const part = await visitor.post("/dashboard/settings/memory", bad, { part: true });
    expect(part.status).toBe(422);
    expect(part.html).toStartWith('<form class="rows" id="s-keep-form"');
    expect(part.html).toContain('value="many"');
    expect(part.html).toContain('id="s-keep-retentionDays-e"');
    const page = await visitor.post("/dashboard/settings/memory", bad);
    expect(page.status).toBe(422);
    expect(page.html).toStartWith("<!doctype html>");
    expect(await settings()).toMatchObject({ retentionDays: 90 });
  });

  test("a rule between fields is told at its field", async () => {
    const bad = await visitor.post(
      "/dashboard/settings/memory",
      { ...group, deleteAfterDays: "10" },
      { part: true },
    );
    expect(bad.status).toBe(422);
    expect(bad.html).toContain("Must be at least the retention (90).");
  });

  test("back to defaults", async () => {
    await visitor.post("/dashboard/settings/memory", { ...group, defaults: "true" });
    expect(await settings()).toMatchObject({ retentionDays: 30 });
  });

  test("the switch turns memory off and on, and the shell follows", async () => {
    const off = await visitor.post("/dashboard/settings/memory/enabled", {}, { part: true });
    expect(off.html).toContain("Memory is off");
    expect(off.html).toContain('<hx-partial hx-target="#nav-status">');
    expect((await settings())["enabled"]).toBe(false);
    await visitor.post("/dashboard/settings/memory/enabled", { enabled: "true" });
    expect((await settings())["enabled"]).toBe(true);
  });

  test("every setting of the API has a control somewhere, but the one without effect", async () => {
    const pages = [
      await visitor.get("/dashboard/settings/memory"),
      await visitor.get("/dashboard/memory?tab=engine"),
    ];
    const html = pages.map((page) => page.html).join("");
    // Backends have dialogs of their own, the role of each among them.
    const elsewhere = ["skillsEnabled", "primaryBackend", "fallbackBackends", "backendConfigs"];
    for (const name of Object.keys(await settings())) {
      if (!elsewhere.includes(name)) expect(html).toContain(`name="${name}"`);
    }
    expect(html).toContain("/dashboard/settings/backends/new");
  });
});

test("values that flag or environment fix are shown locked, secrets hidden", async () => {
  const { html } = await visitor.get("/dashboard/settings/memory");
  const row = (name: string) => html.slice(html.indexOf(`<code>${name}</code>`)).split("</tr>")[0]!;
  expect(row("PORT")).toContain("locked by a flag");
  expect(row("RECOLLECT_MANAGEMENT_TOKEN")).toContain("locked by the environment");
  expect(row("MEMORY_RRF_K")).toContain("default");
  expect(html).not.toContain(box.token);
});

describe("API keys", () => {
  test("the secret is in the answer to making it and nowhere else", async () => {
    const made = await visitor.post("/dashboard/settings/keys/new", {
      name: "garden",
      scopes: ["proxy", "read:memory"],
      memory: "on",
      maxTokens: "500",
      models: "demo/echo, other/model",
    });
    expect(made.status).toBe(200);
    const secret = /rk-[A-Za-z0-9_-]{43}/.exec(made.html)![0];
    expect(made.headers.get("cache-control")).toBe("no-store");
    for (const path of ["/dashboard/settings/keys", "/dashboard/memory"]) {
      expect((await visitor.get(path)).html).not.toContain(secret);
    }
    const { data } = (await box.call("GET", "/api/keys")).body as { data: Record<string, unknown>[] };
    const key = data.find((one) => one["name"] === "garden")!;
    expect(key).toMatchObject({
      scopes: ["proxy", "read:memory"],
      memory: "on",
      maxTokens: 500,
      models: ["demo/echo", "other/model"],
    });
    const edit = await visitor.get(`/dashboard/settings/keys/${String(key["id"])}/edit`, { part: true });
    expect(edit.html).toContain('value="demo/echo, other/model"');
    const wrong = await visitor.post(
      `/dashboard/settings/keys/${String(key["id"])}/edit`,
      { name: "", scopes: ["proxy"], maxTokens: "-3" },
      { part: true },
    );
    expect(wrong.status).toBe(422);
    expect(wrong.html).toContain('id="key-name-e"');
    expect(wrong.html).toContain('id="key-maxTokens-e"');
    const rotated = await visitor.post(`/dashboard/settings/keys/${String(key["id"])}/rotate`, {});
    expect(rotated.html).toContain("Copy the new key");
    expect(rotated.html).not.toContain(secret);
  });

  test("revoking may take the memories along", async () => {
    const made = (await box.call("POST", "/api/keys", { name: "leaving" })).body as { key: { id: string } };
    const id = await remember(box, "Goes with its key", { apiKeyId: made.key.id });
    await visitor.post(`/dashboard/settings/keys/${made.key.id}/revoke`, { memories: "true" });
    expect((await box.call("GET", `/api/memory/${id}`)).status).toBe(404);
    expect((await visitor.get("/dashboard/settings/keys")).html).toContain("1 revoked key");
  });
});

describe("providers", () => {
  test("metadata addresses are refused at the field, with what was typed, without the key", async () => {
    const fields = {
      id: "bad name",
      baseUrl: "http://169.254.169.254/v1",
      apiKey: "sk-secret-value",
      wire: "chat",
    };
    const answer = await visitor.post("/dashboard/settings/providers/new", fields, { part: true });
    expect(answer.status).toBe(422);
    expect(answer.html).toContain('value="bad name"');
    expect(answer.html).not.toContain("sk-secret-value");
    expect(answer.html).toContain("Enter it again");
  });

  test("add, test what is down, make default, edit without losing the key, remove", async () => {
    const base = "/dashboard/settings/providers";
    await visitor.post(`${base}/new`, {
      id: "lan",
      baseUrl: "http://127.0.0.1:9/v1",
      apiKey: "sk-0123456789abcdef",
      wire: "chat",
    });
    const tested = await visitor.post(`${base}/lan/test`, {}, { part: true });
    expect(tested.html).toContain('id="test-lan"');
    expect(tested.html).toContain("dot-bad");
    await visitor.post(`${base}/lan/edit`, {
      baseUrl: "http://127.0.0.1:9/v1",
      wire: ["chat", "messages"],
      systemRole: "first-only",
      enabled: "true",
      connectMs: "500",
    });
    const { data } = (await box.call("GET", "/api/providers")).body as { data: Record<string, unknown>[] };
    expect(data.find((one) => one["id"] === "lan")).toMatchObject({
      wire: ["chat", "messages"],
      systemRole: "first-only",
      apiKeyMasked: "sk-…cdef",
      timeouts: { connectMs: 500 },
    });
    expect((await visitor.get(base)).html).not.toContain("sk-0123456789abcdef");
    expect((await visitor.post(`${base}/lan/remove`, {})).location).toBe(base);
    expect((await visitor.post(`${base}/lan/remove`, {})).status).toBe(404);
  });
});

test("every hint of a control is what describes it", async () => {
  const hints: string[] = [];
  for (const path of [
    "/dashboard/settings/memory",
    "/dashboard/settings/keys/new",
    "/dashboard/settings/providers/demo/edit",
    "/dashboard/settings/backends/new",
    "/dashboard/memory?tab=engine",
    "/dashboard/memory/new",
  ]) {
    const { html } = await visitor.get(path);
    const described = [...html.matchAll(/<(?:input|select|textarea)[^>]* aria-describedby="([^"]*)"/g)];
    const of = [...html.matchAll(/<p class="hint" id="([^"]*)"/g)].map(([, id]) => id!);
    expect(
      described.map(([, ids]) => ids!),
      path,
    ).toEqual(of);
    hints.push(...of);
  }
  expect(hints).toEqual(
    expect.arrayContaining([
      "key-name-h",
      "q-enabled-h",
      "rerank-rerankProviderModel-h",
      "add-content-h",
      "pe-apiKey-h",
    ]),
  );
});

describe("engine", () => {
  test("a source is saved on change; the endpoint needs both fields", async () => {
    const half = await visitor.post(
      "/dashboard/memory/engine/source",
      { part: "custom", customBaseUrl: "http://127.0.0.1:9/v1", customModelId: "" },
      { part: true },
    );
    expect(half.status).toBe(422);
    expect(half.html).toContain('value="http://127.0.0.1:9/v1"');
    expect(half.html).toContain("The base URL and the model are set together or not at all.");
    await visitor.post("/dashboard/memory/engine/source", {
      part: "custom",
      customBaseUrl: "http://127.0.0.1:9/v1",
      customModelId: "some-model",
      customApiKey: "sk-0123456789abcdef",
    });
    expect(await settings()).toMatchObject({ customModelId: "some-model" });
    const page = await visitor.get("/dashboard/memory?tab=engine");
    expect(page.html).toContain("set, sk-…cdef");
    expect(page.html).not.toContain("sk-0123456789abcdef");
    await visitor.post("/dashboard/memory/engine/source", { part: "custom", clear: "true" });
    expect(await settings()).toMatchObject({ customBaseUrl: null, customModelId: null });
  });

  test("what is wrong with a remote model is said beside it", async () => {
    const { status, html } = await visitor.post(
      "/dashboard/memory/engine/source",
      { part: "source", embeddingSource: "remote", embeddingProviderModel: "nonsense" },
      { part: true },
    );
    expect(status).toBe(422);
    expect(html).toMatch(
      /<input[^>]*value="nonsense"[^>]*aria-describedby="source-embeddingProviderModel-e"/,
    );
    expect(html).toMatch(/<p class="field-error" id="source-embeddingProviderModel-e">.*provider\/model/s);
  });

  test("the quality of what was learned is shown", async () => {
    const { html } = await visitor.get("/dashboard/memory?tab=engine");
    expect(html).toContain("Said again");
    expect(html).toContain("must stay at 0");
  });

  test("status and reindex are parts that poll themselves, or stop", async () => {
    const status = await visitor.get("/dashboard/memory/engine/status", { part: true });
    expect(status.html).toContain('hx-trigger="every 5s"');
    const reindex = await visitor.get("/dashboard/memory/engine/reindex", { part: true });
    expect(reindex.html).not.toContain("hx-trigger");
    expect((await visitor.get("/dashboard/memory/engine/models/static", { part: true })).html).not.toContain(
      "every",
    );
    expect((await visitor.get("/dashboard/memory/engine/models/other")).status).toBe(404);
  });

  test("a backend is added, given a role, edited and removed; JSON that is none is told", async () => {
    const bad = await visitor.post(
      "/dashboard/settings/backends/new",
      { id: "brain", type: "http", baseUrl: "http://127.0.0.1:9", more: "{" },
      { part: true },
    );
    expect(bad.status).toBe(422);
    expect(bad.html).toContain('id="backend-more-e"');
    const fields = {
      id: "brain",
      type: "http",
      baseUrl: "http://127.0.0.1:9",
      apiKey: "sk-0123456789abcdef",
      more: "",
    };
    await visitor.post("/dashboard/settings/backends/new", fields);
    expect((await visitor.get("/dashboard/memory?tab=engine")).html).toContain("http://127.0.0.1:9");
    await visitor.post("/dashboard/settings/backends/brain/role", { role: "fallback" });
    expect(await settings()).toMatchObject({ fallbackBackends: ["brain"] });
    const edit = await visitor.get("/dashboard/settings/backends/brain", { part: true });
    expect(edit.html).not.toContain("sk-0123456789abcdef");
    await visitor.post("/dashboard/settings/backends/brain", {
      ...fields,
      apiKey: "",
      displayName: "The brain",
    });
    await visitor.post("/dashboard/settings/backends/brain", { ...fields, remove: "true" });
    expect(await settings()).toMatchObject({ fallbackBackends: [], backendConfigs: {} });
  });
});

test("a backend that is down takes its memories along, never the settings that mend it", async () => {
  const backend = startHttpBackend({ apiKey: "backend-secret-0123456789" });
  const brain = { type: "http", baseUrl: backend.url, apiKey: "backend-secret-0123456789" };
  await box.call("PUT", "/api/settings/memory", { backendConfigs: { brain }, primaryBackend: "brain" });
  await remember(box, "Lives elsewhere");
  expect((await visitor.get("/dashboard/memory")).html).toContain("Lives elsewhere");
  const play = await visitor.get("/dashboard/memory?tab=playground&query=Who+lives+elsewhere");
  expect(play.status).toBe(200);
  expect(play.html).not.toContain('name="asOf"');
  await backend.stop();
  const down = await visitor.get("/dashboard/memory");
  expect(down.status).toBe(503);
  expect(down.html).toContain("The memory backend brain cannot be used now");
  for (const path of [
    "/dashboard/memory?tab=engine",
    "/dashboard/settings/memory",
    "/dashboard/settings/keys",
  ]) {
    expect((await visitor.get(path)).status).toBe(200);
  }
  await visitor.post("/dashboard/settings/backends/sqlite/role", { role: "primary" });
  expect((await visitor.get("/dashboard/memory")).status).toBe(200);
  await box.call("PUT", "/api/settings/memory", { backendConfigs: {}, fallbackBackends: [] });
});

describe("the first request", () => {
  test("the light asks again until a request came", async () => {
    const since = Date.now();
    const waiting = await visitor.get(`/dashboard/welcome/first-request?since=${since}`, { part: true });
    expect(waiting.html).toContain('hx-trigger="every 2s"');
    await chat(box, "Hello <b>there</b>", "light");
    const arrived = await until("the receipt", async () => {
      const answer = await visitor.get(`/dashboard/welcome/first-request?since=${since}`, { part: true });
      return answer.html.includes("every 2s") ? null : answer;
    });
    expect(arrived.html).toContain("Hello &lt;b&gt;there&lt;/b&gt;");
    expect(arrived.headers.get("HX-Trigger")).toContain("The first request came through.");
  });
});

describe("backup", () => {
  test("a download comes back as what it was, and everybody signs in again", async () => {
    const id = await remember(box, "Kept in the backup");
    const response = await fetch(`${box.url}/dashboard/settings/backup/download`, {
      method: "POST",
      headers: { cookie: visitor.cookie, "sec-fetch-site": "same-origin" },
    });
    expect(response.headers.get("content-disposition")).toContain("attachment");
    const file = await response.blob();
    await box.call("DELETE", `/api/memory/${id}`);
    const send = (blob: Blob, sure: boolean) => {
      const form = new FormData();
      form.set("file", new File([blob], "recollect.tar"));
      if (sure) form.set("sure", "true");
      return fetch(`${box.url}/dashboard/settings/backup/restore`, {
        method: "POST",
        redirect: "manual",
        headers: { cookie: visitor.cookie, "sec-fetch-site": "same-origin" },
        body: form,
      });
    };
    const unsure = await send(file, false);
    expect(unsure.status).toBe(422);
    const broken = await send(new Blob(["not a backup at all"]), true);
    expect(broken.status).toBe(422);
    const html = await broken.text();
    expect(html).toContain('id="restore-file-e"');
    expect(html).not.toContain("upload-");
    const done = await send(file, true);
    expect(done.status).toBe(303);
    expect(done.headers.get("location")).toMatch(/^\/sign-in\?restored=\d+$/);
    expect(await (await fetch(box.url + done.headers.get("location"))).text()).toContain("Restored, with");
    visitor = await signIn(box);
    expect((await visitor.get(`/dashboard/memory/${id}`)).status).toBe(200);
  });
});
