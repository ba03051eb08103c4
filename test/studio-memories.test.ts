import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { type Appliance, startAppliance } from "./support/appliance.ts";
import { remember, signIn, type Visitor } from "./support/studio.ts";

setDefaultTimeout(30_000);

let box: Appliance;
let visitor: Visitor;
beforeAll(async () => {
  box = await startAppliance();
  visitor = await signIn(box);
});
afterAll(() => box.stop());

const memoryOf = async (id: string) => {
  const { status, body } = await box.call("GET", `/api/memory/${id}`);
  return status === 200 ? (body as { memory: Record<string, unknown> }).memory : null;
};

describe("one route, page or part", () => {
  test("a browser gets the document, htmx the list and the figures above it", async () => {
    await remember(box, "Prefers tea to coffee", { key: "preference:tea" });
    const page = await visitor.get("/dashboard/memory");
    expect(page.html).toStartWith("<!doctype html>");
    expect(page.html).toContain("Prefers tea to coffee");
    const part = await visitor.get("/dashboard/memory?q=TEA&type=", { part: true });
    expect(part.html).toStartWith('<section class="panel" id="memory-list"');
    expect(part.html).toContain('<hx-partial hx-target="#memory-stats">');
    expect(part.html).not.toContain("<html");
    expect(part.headers.get("HX-Push-Url")).toBe("/dashboard/memory?q=TEA");
    expect(JSON.parse(part.headers.get("HX-Trigger")!)).toEqual({ say: "1 memory." });
  });

  test("a search without a match says what to do, and its text is shown as text", async () => {
    const { html } = await visitor.get('/dashboard/memory?q=<img src=x onerror="alert(1)">');
    expect(html).toContain("Nothing matches");
    expect(html).not.toContain("<img");
    expect(html).toContain("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;");
  });

  test("unknown filters are as if they were not there", async () => {
    const page = await visitor.get("/dashboard/memory?type=opinion&status=lost&page=-3&owner=");
    expect(page.status).toBe(200);
    expect(page.html).toContain("Prefers tea to coffee");
  });
});

test("the list asks whether something newer came, and only then offers it", async () => {
  await remember(box, "Is there already");
  const { html } = await visitor.get("/dashboard/memory");
  const ask = /hx-get="(\/dashboard\/memory\/news[^"]+)"/.exec(html)![1]!.replaceAll("&amp;", "&");
  expect((await visitor.get(ask, { part: true })).html).toContain('hx-trigger="every 10s"');
  await remember(box, "Came just now");
  const news = await visitor.get(ask, { part: true });
  expect(news.html).toContain("Newer ones came.");
  expect(news.html).not.toContain("hx-trigger");
});

test("people behind a key and the shared pool can be chosen like keys", async () => {
  const made = await box.call("POST", "/api/keys", { name: "family", userField: "user" });
  const { secret, key } = made.body as { secret: string; key: { id: string } };
  await box.call("POST", "/api/memory?user=anna", { content: "Said by Anna" }, secret);
  await remember(box, "Known to all", { apiKeyId: "shared" });
  const { html } = await visitor.get(`/dashboard/memory?owner=${key.id}:anna`);
  expect(html).toContain("Said by Anna");
  expect(html).not.toContain("Known to all");
  expect(html).toContain(`<option value="${key.id}:anna" selected="">family, anna</option>`);
  expect(html).toContain('<option value="shared">shared pool</option>');
});

describe("adding", () => {
  test("without script: back to the list, which tells it once", async () => {
    const sent = await visitor.post("/dashboard/memory/new", {
      content: "Lives in Halden",
      key: "identity:home",
      type: "factual",
      apiKeyId: box.keyId,
      pinned: "true",
    });
    expect(sent.status).toBe(303);
    expect(sent.location).toBe("/dashboard/memory");
    const next = await visitor.get("/dashboard/memory");
    expect(next.html).toContain("Lives in Halden");
    expect(next.html).toContain("<p>Added.</p>");
    expect((await visitor.get("/dashboard/memory")).html).not.toContain("<p>Added.</p>");
  });

  test("with htmx: the list, a toast, and the dialog is gone", async () => {
    const sent = await visitor.post(
      "/dashboard/memory/new",
      { content: "Works at the mill", key: "", type: "factual", apiKeyId: box.keyId },
      { part: true },
    );
    expect(sent.status).toBe(200);
    expect(sent.html).toContain('<hx-partial hx-target="#memory-list">');
    expect(sent.html).toContain("Works at the mill");
    expect(sent.html).toContain('<hx-partial hx-target="#dialogs" hx-swap="innerHTML"></hx-partial>');
    expect(sent.html).toContain("Added.");
  });

  test("422 answers the form with what was typed and what is wrong, and stores nothing", async () => {
    const long = "k".repeat(201);
    const fields = { content: "  ", key: long, type: "opinion", apiKeyId: "nobody-here" };
    const part = await visitor.post("/dashboard/memory/new", fields, { part: true });
    expect(part.status).toBe(422);
    expect(part.html).toStartWith('<dialog class="dialog" id="add"');
    expect(part.html).toContain(`value="${long}"`);
    expect(part.html.match(/aria-invalid="true"/g)?.length).toBeGreaterThanOrEqual(2);
    expect(part.html).toContain('id="add-content-e"');
    expect(part.html).toContain('role="alert"');
    const page = await visitor.post("/dashboard/memory/new", fields);
    expect(page.status).toBe(422);
    expect(page.html).toStartWith("<!doctype html>");
    expect(page.html).toContain('<dialog class="dialog" id="add"');
    const unknown = await visitor.post("/dashboard/memory/new", {
      content: "x y z",
      type: "factual",
      apiKeyId: "nobody",
    });
    expect(unknown.status).toBe(422);
    expect(unknown.html).toContain("There is no such owner.");
  });
});

describe("editing in place", () => {
  test("the row becomes a form and comes back changed, the old text in its history", async () => {
    const id = await remember(box, "Decided to use MySQL", { type: "episodic", key: "decision:db" });
    const form = await visitor.get(`/dashboard/memory/${id}/edit`, { part: true });
    expect(form.html).toStartWith(`<li class="memory-edit" id="m-${id}"`);
    const saved = await visitor.post(
      `/dashboard/memory/${id}/edit`,
      { content: "Decided to use Postgres", key: "decision:db", type: "episodic", expiresAt: "" },
      { part: true },
    );
    expect(saved.status).toBe(200);
    expect(saved.html).toStartWith(`<li class="memory is-new" id="m-${id}"`);
    expect(JSON.parse(saved.headers.get("HX-Trigger")!)).toEqual({ say: "Saved." });
    const page = await visitor.get(`/dashboard/memory/${id}`);
    expect(page.html).toContain("<del>MySQL</del>");
    expect(page.html).toContain("<ins>Postgres</ins>");
    const restored = await visitor.post(`/dashboard/memory/${id}/restore`, { version: "1" });
    expect(restored.location).toBe(`/dashboard/memory/${id}`);
    expect((await memoryOf(id))?.["content"]).toBe("Decided to use MySQL");
  });

  test("a key that another memory holds is told at the field", async () => {
    await remember(box, "Holds the key", { key: "taken:key" });
    const id = await remember(box, "Wants the key", { key: "other:key" });
    const fields = { content: "Wants the key", key: "taken:key", type: "factual", expiresAt: "" };
    const part = await visitor.post(`/dashboard/memory/${id}/edit`, fields, { part: true });
    expect(part.status).toBe(409);
    expect(part.html).toContain(`id="edit-${id}-key-e"`);
    const page = await visitor.post(`/dashboard/memory/${id}/edit`, fields);
    expect(page.status).toBe(409);
    expect(page.html).toContain(`id="edit-${id}-key-e"`);
    expect((await memoryOf(id))?.["key"]).toBe("other:key");
  });

  test("saving the form untouched changes nothing, not even the hour of an expiry", async () => {
    const expiresAt = "2999-05-05T10:11:12.000Z";
    const id = await remember(box, "Goes away late", { key: "late:one", expiresAt });
    const fields = { content: "Goes away late", key: "late:one", type: "factual", expiresAt: "2999-05-05" };
    await visitor.post(`/dashboard/memory/${id}/edit`, fields);
    expect((await memoryOf(id))?.["expiresAt"]).toBe(expiresAt);
    await visitor.post(`/dashboard/memory/${id}/edit`, { ...fields, expiresAt: "" });
    expect((await memoryOf(id))?.["expiresAt"]).toBeNull();
  });
});

describe("archiving and deleting", () => {
  test("archive takes the row away at once and can be undone", async () => {
    const id = await remember(box, "Likes the old printer");
    const sent = await visitor.post("/dashboard/memory/act", { archive: id }, { part: true });
    expect(sent.html).toContain(`<hx-partial hx-target="#m-${id}" hx-swap="delete swap:180ms">`);
    expect(sent.html).toContain(`action="/dashboard/memory/${id}/unarchive"`);
    const { total } = (await box.call("GET", "/api/memory?status=active")).body as { total: number };
    expect(sent.html).toContain(`<span id="memory-count">${total} memories, newest first</span>`);
    expect((await memoryOf(id))?.["status"]).toBe("archived");
    const undone = await visitor.post(`/dashboard/memory/${id}/unarchive`, {}, { part: true });
    expect(undone.html).toContain("Likes the old printer");
    expect((await memoryOf(id))?.["status"]).toBe("active");
  });

  test("the last one of a list leaves the words of an empty list", async () => {
    const id = await remember(box, "Collects quaint thimbles");
    const from = "/dashboard/memory?q=thimbles";
    const sent = await visitor.post("/dashboard/memory/act", { archive: id }, { part: true, from });
    expect(sent.html).toContain("Nothing matches “thimbles”");
  });

  test("without script the undo stands on the page one comes back to", async () => {
    const id = await remember(box, "Likes the new printer");
    const sent = await visitor.post(
      "/dashboard/memory/act",
      { archive: id },
      { from: "/dashboard/memory?type=factual" },
    );
    expect(sent.location).toBe("/dashboard/memory?type=factual");
    const { html } = await visitor.get(sent.location!);
    expect(html).toContain("Archived.");
    expect(html).toContain(`action="/dashboard/memory/${id}/unarchive"`);
  });

  test("in a list of any status the row stays and says what it is", async () => {
    const id = await remember(box, "Stays in sight");
    const sent = await visitor.post(
      "/dashboard/memory/act",
      { archive: id },
      { part: true, from: "/dashboard/memory?status=any" },
    );
    expect(sent.html).toContain(`<hx-partial hx-target="#m-${id}" hx-swap="outerHTML">`);
    expect(sent.html).toContain("is-faded");
  });

  test("pin and unpin", async () => {
    const id = await remember(box, "Always counts");
    await visitor.post("/dashboard/memory/act", { pin: id }, { part: true });
    expect((await memoryOf(id))?.["pinned"]).toBe(true);
    await visitor.post(`/dashboard/memory/${id}/unpin`, {});
    expect((await memoryOf(id))?.["pinned"]).toBe(false);
  });

  test("many at once, and nothing when nothing was ticked", async () => {
    const ids = [await remember(box, "First of two"), await remember(box, "Second of two")];
    const sent = await visitor.post("/dashboard/memory/act", { id: ids, all: "archive" }, { part: true });
    expect(sent.html).toContain("2 memories archived.");
    for (const id of ids) expect((await memoryOf(id))?.["status"]).toBe("archived");
    const none = await visitor.post("/dashboard/memory/act", { all: "archive" }, { part: true });
    expect(none.html).toContain("Nothing was selected.");
    expect((await visitor.post("/dashboard/memory/act", { id: ids, all: "explode" })).status).toBe(400);
  });

  test("deleting for good asks first and shows the proof afterwards", async () => {
    const id = await remember(box, "Must not be kept");
    const asked = await visitor.get(`/dashboard/memory/${id}/delete`, { part: true });
    expect(asked.html).toContain("Delete this memory for good?");
    expect(asked.html).toContain("Must not be kept");
    expect(await memoryOf(id)).not.toBeNull();
    const sent = await visitor.post(`/dashboard/memory/${id}/delete`, {});
    expect(sent.status).toBe(303);
    expect(sent.location).not.toContain("Must");
    const proof = await visitor.get(sent.location!);
    expect(proof.html).toContain("Nothing of it is left.");
    expect(proof.html).toContain("nothing found");
    expect(await memoryOf(id)).toBeNull();
    const gone = await visitor.get(`/dashboard/memory/${id}`);
    expect(gone.status).toBe(404);
    expect(gone.html).toContain("There is no such memory");
    const twice = await visitor.post(`/dashboard/memory/${id}/delete`, {}, { part: true });
    expect(twice.status).toBe(404);
    expect(twice.headers.get("HX-Reswap")).toBe("none");
  });

  test("many for good: a dialog with the first of them, then they are gone", async () => {
    const ids = [await remember(box, "Goes with the other"), await remember(box, "Goes too")];
    const asked = await visitor.post("/dashboard/memory/act", { id: ids, all: "delete" }, { part: true });
    expect(asked.html).toContain("Delete 2 memories for good?");
    expect(asked.html).toContain("Goes with the other");
    const sent = await visitor.post("/dashboard/memory/bulk-delete", { id: ids }, { part: true });
    expect(sent.html).toContain("2 memories deleted for good.");
    for (const id of ids) expect(await memoryOf(id)).toBeNull();
  });
});

/** Elements and attributes in a document that the Studio itself never writes, as a parser sees them. */
function foreign(html: string): string[] {
  const found: string[] = [];
  const check = new HTMLRewriter().on("*", {
    element(element) {
      const name = element.tagName.toLowerCase();
      if (
        name === "img" ||
        name === "iframe" ||
        name === "object" ||
        name === "base" ||
        name === "hx-partial"
      ) {
        found.push(name);
      }
      if (name === "script" && !element.getAttribute("src")?.startsWith("/assets/")) found.push("script");
      for (const [attribute, value] of element.attributes) {
        if (/^on|^style$|^hx-on/.test(attribute)) found.push(`${name} ${attribute}`);
        if (/^(?:href|src|action|formaction)$/.test(attribute) && !/^[/#?]/.test(value))
          found.push(`${name} ${value}`);
      }
    },
  });
  check.transform(html);
  return found;
}

describe("compacting", () => {
  test("a look, then one summary whose page brings the originals back", async () => {
    const ids = [];
    for (const place of ["Oulu", "Turku", "Vaasa"])
      ids.push(await remember(box, `Once spent a summer in ${place}`));
    const db = new Database(join(box.dataDir, "recollect.db"));
    db.run("PRAGMA busy_timeout = 5000");
    db.run(
      "UPDATE memories SET confirmed_at = confirmed_at - 40 * 86400000 WHERE content LIKE 'Once spent%'",
    );
    db.close();
    const first = await visitor.get("/dashboard/memory/compact", { part: true });
    expect(first.html).toContain('hx-trigger="load"');
    const look = await visitor.get("/dashboard/memory/compact?look=1");
    expect(look.html).toContain("Once spent a summer in Vaasa");
    expect(look.html).toContain("Compact 3 memories");
    const wrong = await visitor.post("/dashboard/memory/compact", { olderThanDays: "0" }, { part: true });
    expect(wrong.status).toBe(422);
    const done = await visitor.post(
      "/dashboard/memory/compact",
      { olderThanDays: "30", apiKeyId: "" },
      { part: true },
    );
    expect(done.html).toContain("3 memories compacted.");
    const { body } = await box.call("GET", "/api/memory?origin=summary");
    const summary = (body as { data: { id: string }[] }).data[0]!.id;
    const page = await visitor.get(`/dashboard/memory/${summary}`);
    expect(page.html).toContain("Condensed from");
    await visitor.post(`/dashboard/memory/${summary}/restore-originals`, {});
    for (const id of ids) expect((await memoryOf(id))?.["status"]).toBe("active");
  });
});

describe("hostile contents", () => {
  const hostile = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</textarea><script>alert(1)</script>",
    "</title></head><body><script>alert(1)</script>",
    "javascript:alert(1)",
    '<hx-partial hx-target="body">gone</hx-partial>',
    "{{7*7}} ${7*7} <%= 7*7 %>",
    "\u202Eevil\u202C \u200Bhidden\u{E0041}",
    "<!--<svg/onload=alert(1)>",
  ];

  test("every one is shown as text, everywhere it is shown", async () => {
    expect(foreign("<p><img src=x onerror=alert(1)></p>")).toEqual(["img", "img x", "img onerror"]);
    for (const [i, content] of hostile.entries()) {
      const id = await remember(box, content, { key: `hostile:${i}:<b>"'` });
      for (const path of [
        "/dashboard/memory",
        `/dashboard/memory/${id}`,
        `/dashboard/memory/${id}/edit`,
        `/dashboard/memory/${id}/delete`,
        `/dashboard/memory?q=${encodeURIComponent(content)}`,
      ]) {
        const { html, status } = await visitor.get(path);
        expect(status).toBe(200);
        expect(foreign(html)).toEqual([]);
      }
    }
  });

  test("characters that cannot be seen, or turn text around, are named", async () => {
    const id = await remember(box, "Pay\u202E to \u200Bme");
    const { html } = await visitor.get(`/dashboard/memory/${id}`);
    expect(html).toContain("U+202E");
    expect(html).toContain("U+200B");
    expect(html).toMatch(/<h1[^>]*dir="auto"/);
  });
});

describe("files", () => {
  test("the page as JSON comes in again as what it was", async () => {
    const page = await visitor.get("/dashboard/memory/page.json?q=Halden");
    expect(page.headers.get("content-disposition")).toContain("attachment");
    const form = new FormData();
    form.set("file", new File([page.html], "page.json"));
    form.set("from", "recollect");
    form.set("apiKeyId", box.keyId);
    const response = await fetch(`${box.url}/dashboard/memory/import`, {
      method: "POST",
      headers: { cookie: visitor.cookie, "sec-fetch-site": "same-origin" },
      body: form,
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("0 new, 0 changed, 1 already here.");
  });

  test("another program's export, and what of it could not be taken", async () => {
    const form = new FormData();
    const items = [
      { id: "m1", memory: "Grows tomatoes on the balcony", created_at: "2026-01-05T10:00:00Z" },
      { id: "m2" },
    ];
    form.set("file", new File([JSON.stringify(items)], "mem0.json"));
    form.set("from", "mem0");
    form.set("apiKeyId", box.keyId);
    const response = await fetch(`${box.url}/dashboard/memory/import`, {
      method: "POST",
      headers: { cookie: visitor.cookie, "sec-fetch-site": "same-origin" },
      body: form,
    });
    const html = await response.text();
    expect(html).toContain("Imported 1 of 2 lines");
    expect((await visitor.get("/dashboard/memory?q=tomatoes")).html).toContain(
      "Grows tomatoes on the balcony",
    );
  });

  test("everything as JSON lines, and an import that names the lines it refused", async () => {
    const exported = await visitor.get("/dashboard/memory/export");
    expect(exported.html.split("\n")[0]).toBe('{"format":"recollect/1"}');
    const form = new FormData();
    form.set("file", new File(['{"kind":"memory","content":"From a file"}\nnot json\n'], "notes.jsonl"));
    form.set("apiKeyId", box.keyId);
    const response = await fetch(`${box.url}/dashboard/memory/import`, {
      method: "POST",
      headers: { cookie: visitor.cookie, "sec-fetch-site": "same-origin" },
      body: form,
    });
    const html = await response.text();
    expect(html).toContain("Imported 1 of 2 lines");
    expect(html).toContain("notes.jsonl");
    expect((await visitor.get("/dashboard/memory?q=From+a+file")).html).toContain("From a file");
  });
});

test("a session that nobody named is called by what was said first in it", async () => {
  const externalId = crypto.randomUUID();
  await box.call("POST", "/sessions", { externalId, apiKeyId: box.keyId });
  for (const userMessage of ["How tall is\nthe lighthouse?", "And how old?"])
    await box.call("POST", "/episodes", { externalId, userMessage, aiResponse: "", apiKeyId: box.keyId });
  const { html } = await visitor.get("/dashboard/activity/sessions");
  expect(html).toContain("How tall is the lighthouse?");
  expect(html).not.toContain(`${externalId.slice(0, 6)}…`);
  await box.call("POST", "/sessions", { externalId: "harbour-plans", apiKeyId: box.keyId });
  expect((await visitor.get("/dashboard/activity/sessions")).html).toContain("harbour-plans");
});
