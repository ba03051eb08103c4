/** `/dashboard/memory`: the list with its filters, adding, editing in place, archiving and deleting for good. */
import { listInput } from "./memory-list.tsx";
import type { Hono } from "hono";
import type { Child } from "hono/jsx";
import type { Env } from "../auth.ts";
import { AppError, notFound } from "../error.ts";
import type { Memory } from "../memory/types.ts";
import { memoryChanges, newMemory } from "../schemas/memory.ts";
import { check } from "../validate.ts";
import { Partial } from "../../views/actions.tsx";
import { memoryHref } from "../../views/format.ts";
import { MemoryCount, News, PAGE_SIZE } from "../../views/memories.tsx";
import {
  AddDialog,
  BulkDeleteDialog,
  DeleteDialog,
  type NewMemoryDraft,
} from "../../views/memory-dialogs.tsx";
import { ProofPage } from "../../views/memory-proof.tsx";
import { draftOf, MemoryEdit, MemoryRow } from "../../views/memory-row.tsx";
import { HealthCell, StatsBoard } from "../../views/memory-stats.tsx";
import {
  back,
  chromeOf,
  errorsOf,
  finish,
  isPart,
  leave,
  ownersOf,
  readForm,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";
import { dayEnd } from "./days.ts";
import { lastHealth } from "./health.ts";
import { filtersHere, filtersOf, listParts, readList, showDialog, showList } from "./memory-list.tsx";

const blank = (text: string | undefined): string | null => (text?.trim() ? text.trim() : null);

/** Single changes of one memory, by the name of the button. */
const verbs = {
  pin: { patch: { pinned: true }, done: "pinned" },
  unpin: { patch: { pinned: false }, done: "unpinned" },
  archive: { patch: { status: "archived" }, done: "archived" },
  unarchive: { patch: { status: "active" }, done: "unarchived" },
} as const;

type Verb = keyof typeof verbs;

const isVerb = (text: string): text is Verb => Object.hasOwn(verbs, text);

export function memoriesRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { memories } = deps.engine;
  const row = (memory: Memory, focus: "edit" | "more") => (
    <MemoryRow memory={memory} owners={ownersOf(deps)} isNew focus={focus} />
  );

  app.get("/dashboard/memory/health", async (c) => {
    const { readHealth } = await import("./health.ts");
    return show(c, <HealthCell health={await readHealth(deps)} />);
  });

  app.get("/dashboard/memory/news", async (c) => {
    const query = new URL(c.req.url).searchParams;
    const filters = filtersOf(query);
    const after = query.get("after") ?? "";
    const { data } = await memories.list({ ...listInput(filters), limit: 1, offset: 0 });
    return show(c, <News filters={filters} after={after} found={(data[0]?.createdAt ?? "") > after} />);
  });

  app.get("/dashboard/memory/new", (c) => {
    const owners = ownersOf(deps);
    const draft: NewMemoryDraft = {
      content: "",
      key: "",
      type: "factual",
      apiKeyId: filtersHere(c).owner || owners.find((owner) => !owner.revoked)?.id || "",
      pinned: false,
    };
    return showDialog(c, deps, <AddDialog draft={draft} errors={{}} owners={owners} />);
  });

  app.post("/dashboard/memory/new", async (c) => {
    const { fields } = await readForm(c);
    const draft: NewMemoryDraft = {
      content: fields["content"] ?? "",
      key: fields["key"] ?? "",
      type: fields["type"] ?? "factual",
      apiKeyId: fields["apiKeyId"] ?? "",
      pinned: fields["pinned"] === "true",
    };
    try {
      const input = check(newMemory, {
        content: draft.content.trim(),
        key: blank(draft.key),
        type: draft.type,
      });
      if (!deps.admin.ownerExists(draft.apiKeyId)) {
        throw new AppError("invalid_request", "There is no such owner.", {
          details: [{ field: "apiKeyId", message: "There is no such owner." }],
        });
      }
      const { memory, created } = await memories.create({
        content: input.content,
        key: input.key ?? null,
        ...(input.type === undefined ? {} : { type: input.type }),
        ...(draft.pinned ? { pinned: true } : {}),
        owner: draft.apiKeyId,
        origin: "api",
      });
      const done = { code: created ? "added" : "updated", id: memory.id };
      return finish(c, done, { to: "/dashboard/memory", parts: isPart(c) ? await listParts(c, deps) : null });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      return showDialog(c, deps, <AddDialog draft={draft} errors={errors} owners={ownersOf(deps)} />, status);
    }
  });

  app.get("/dashboard/memory/:id/edit", async (c) => {
    const memory = await memories.get({ owner: null, id: c.req.param("id") });
    const editing = { id: memory.id, draft: draftOf(memory), errors: {} };
    if (isPart(c)) return show(c, <MemoryEdit {...editing} back={back(c)} />);
    return showList(c, deps, filtersHere(c), { editing, ensure: memory });
  });

  app.get("/dashboard/memory/:id/row", async (c) => {
    return show(c, row(await memories.get({ owner: null, id: c.req.param("id") }), "edit"));
  });

  app.post("/dashboard/memory/:id/edit", async (c) => {
    const id = c.req.param("id");
    const before = await memories.get({ owner: null, id });
    const { fields } = await readForm(c);
    const draft = {
      content: fields["content"] ?? "",
      key: fields["key"] ?? "",
      type: fields["type"] ?? "",
      expiresAt: fields["expiresAt"] ?? "",
    };
    try {
      const changes = check(memoryChanges, {
        content: draft.content.trim(),
        key: blank(draft.key),
        type: draft.type,
        // The form knows days only: an untouched day keeps the hour it had.
        ...(draft.expiresAt === (before.expiresAt?.slice(0, 10) ?? "")
          ? {}
          : { expiresAt: dayEnd(draft.expiresAt) }),
      });
      const { memory } = await memories.update({
        owner: null,
        id,
        patch: {
          ...(changes.content === undefined ? {} : { content: changes.content }),
          ...(changes.key === undefined ? {} : { key: changes.key }),
          ...(changes.type === undefined ? {} : { type: changes.type }),
          ...(changes.expiresAt === undefined ? {} : { expiresAt: changes.expiresAt }),
        },
      });
      if (isPart(c)) return show(c, row(memory, "edit"), { say: "Saved." });
      return finish(c, { code: "saved" }, { to: memoryHref(id) });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      if (isPart(c))
        return show(c, <MemoryEdit id={id} draft={draft} errors={errors} back={back(c)} />, { status });
      return showList(c, deps, filtersHere(c), { editing: { id, draft, errors }, ensure: before, status });
    }
  });

  /**
   * One row after a change, and the numbers that change with it: gone from the list it does not belong to any more, else
   * drawn again. The last one of a list leaves what an empty list says.
   */
  const rowParts = async (c: StudioContext, memory: Memory): Promise<Child> => {
    const filters = filtersHere(c);
    const stays = filters.status === "any" || memory.status === (filters.status || "active");
    const { list, stats } = await readList(deps, { ...filters, page: 1 });
    if (!stays && list.total === 0) return listParts(c, deps);
    return (
      <>
        <Partial target={`#m-${memory.id}`} swap={stays ? "outerHTML" : "delete swap:180ms"}>
          {stays ? row(memory, "more") : null}
        </Partial>
        <Partial target="#memory-count">
          <MemoryCount total={list.total} />
        </Partial>
        <Partial target="#memory-stats">
          <StatsBoard stats={stats} health={lastHealth(deps)} />
        </Partial>
      </>
    );
  };

  const change = async (c: StudioContext, verb: Verb, id: string): Promise<Response> => {
    const { patch, done } = verbs[verb];
    const { memory } = await memories.update({ owner: null, id, patch });
    if (!isPart(c)) return finish(c, { code: done, id });
    // An undone archiving comes from a toast: its row is not there to be drawn again.
    const parts = verb === "unarchive" ? await listParts(c, deps) : await rowParts(c, memory);
    return finish(c, { code: done, id }, { parts });
  };

  app.post("/dashboard/memory/act", async (c) => {
    const { fields, all } = await readForm(c);
    const single = Object.keys(fields).find(isVerb);
    if (single) return change(c, single, fields[single]!);
    const ids = [...new Set(all("id"))].slice(0, 500);
    const verb = fields["all"] ?? "";
    if (ids.length === 0) return finish(c, { code: "nothing-selected" });
    if (verb === "delete") {
      const rows = await Promise.all(ids.slice(0, 8).map((id) => memories.get({ owner: null, id })));
      const dialog = <BulkDeleteDialog ids={ids} samples={rows.map((memory) => memory.content)} />;
      if (!isPart(c)) return showList(c, deps, filtersHere(c), { dialog });
      return show(
        c,
        <Partial target="#dialogs" swap="innerHTML">
          {dialog}
        </Partial>,
      );
    }
    if (!isVerb(verb)) throw new AppError("invalid_request", "There is no such action.");
    for (const id of ids) await memories.update({ owner: null, id, patch: verbs[verb].patch });
    return finish(
      c,
      { code: `${verbs[verb].done}-many`, n: ids.length },
      { parts: isPart(c) ? await listParts(c, deps) : null },
    );
  });

  for (const verb of Object.keys(verbs) as Verb[]) {
    app.post(`/dashboard/memory/:id/${verb}`, (c) => change(c, verb, c.req.param("id")));
  }

  app.post("/dashboard/memory/bulk-delete", async (c) => {
    const { all } = await readForm(c);
    const ids = [...new Set(all("id"))].slice(0, 500);
    const { deleted } = await memories.bulkDelete({ owner: null, selection: { ids }, dryRun: false });
    return finish(
      c,
      { code: "deleted-many", n: deleted },
      { to: "/dashboard/memory", parts: isPart(c) ? await listParts(c, deps) : null },
    );
  });

  app.get("/dashboard/memory/:id/delete", async (c) => {
    const memory = await memories.get({ owner: null, id: c.req.param("id") });
    const receipts = await deps.engine.receipts.countUsing({ kind: "memory", id: memory.id });
    const dialog = (
      <DeleteDialog memory={memory} owners={ownersOf(deps)} receipts={receipts} back={back(c)} />
    );
    return showDialog(c, deps, dialog);
  });

  /** The proof is a page: what was searched and found. Its numbers are in the address, since the memory is gone. */
  app.post("/dashboard/memory/:id/delete", async (c) => {
    const { fields } = await readForm(c);
    const id = c.req.param("id");
    const source = fields["source"] === "true";
    const { proof } = await memories.remove({ owner: null, id, proof: true, source });
    if (!proof) throw notFound("memory");
    const numbers = [
      proof.row,
      proof.history,
      proof.fts,
      proof.vectors,
      proof.receipts,
      proof.blocks,
      proof.episodes,
    ];
    return leave(c, `/dashboard/memory/deleted?found=${numbers.join("-")}&qdrant=${proof.qdrant}`);
  });

  app.get("/dashboard/memory/deleted", async (c) => {
    const numbers = (c.req.query("found") ?? "").split("-").map(Number);
    const qdrant = c.req.query("qdrant");
    if (numbers.length !== 7 || !numbers.every((n) => Number.isSafeInteger(n) && n >= 0))
      throw notFound("page");
    const [row = 0, history = 0, fts = 0, vectors = 0, receipts = 0, blocks = 0, episodes = 0] = numbers;
    const proof = {
      row,
      history,
      fts,
      vectors,
      receipts,
      blocks,
      episodes,
      qdrant: qdrant === "confirmed" || qdrant === "pending" ? qdrant : "off",
    } as const;
    return show(c, <ProofPage chrome={await chromeOf(c, deps)} proof={proof} />);
  });

  app.get("/dashboard/memory/page.json", async (c) => {
    const filters = filtersOf(new URL(c.req.url).searchParams);
    const { list } = await readList(deps, filters);
    const body = { data: list.rows, total: list.total, page: filters.page, limit: PAGE_SIZE };
    c.header("Content-Disposition", `attachment; filename="memories-page-${filters.page}.json"`);
    return c.json(body);
  });
}
