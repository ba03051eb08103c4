/** The list of memories as pages and parts need it: filters, one page of rows, dialogs over it. */
import type { Child } from "hono/jsx";
import { type Memory, memoryStatuses, memoryTypes } from "../memory/types.ts";
import { Partial } from "../../views/actions.tsx";
import {
  found,
  listHref,
  MemoriesPage,
  MemoriesPart,
  type MemoryFilters,
  MemoryList,
  type MemoryListProps,
  PAGE_SIZE,
} from "../../views/memories.tsx";
import { type MemoryStats, StatsBoard } from "../../views/memory-stats.tsx";
import {
  chromeOf,
  currentUrl,
  isPart,
  ownersOf,
  pageOf,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";
import { lastHealth } from "./health.ts";

/** Filters as they stand in a query; anything unknown is as if it were not there. */
export function filtersOf(query: URLSearchParams): MemoryFilters {
  const among = (value: string | null, words: readonly string[]) =>
    value && words.includes(value) ? value : "";
  return {
    q: (query.get("q") ?? "").slice(0, 500),
    type: among(query.get("type"), memoryTypes),
    status: among(query.get("status"), [...memoryStatuses.filter((status) => status !== "active"), "any"]),
    owner: (query.get("owner") ?? "").slice(0, 400),
    page: pageOf(query.get("page") ?? undefined),
  };
}

export const listInput = (filters: MemoryFilters) => ({
  owner: filters.owner || null,
  ...(filters.q ? { q: filters.q } : {}),
  ...(filters.type ? { type: filters.type as Memory["type"] } : {}),
  ...(filters.status === "any" ? {} : { status: (filters.status || "active") as Memory["status"] }),
});

/** One page of the list with the figures above it. */
export async function readList(
  deps: StudioDeps,
  filters: MemoryFilters,
): Promise<{ list: MemoryListProps; stats: MemoryStats }> {
  const from = (filters.page - 1) * PAGE_SIZE;
  const [result, cache] = await Promise.all([
    deps.engine.memories.list({ ...listInput(filters), limit: PAGE_SIZE, offset: from }),
    deps.engine.memories.cacheStats(),
  ]);
  return {
    list: { rows: result.data, total: result.total, from, filters, owners: ownersOf(deps) },
    stats: { ...result.stats, hits: cache.hits, misses: cache.misses },
  };
}

export interface ListExtras {
  editing?: MemoryListProps["editing"];
  /** A row that must be on the page, whatever the filters say. */
  ensure?: Memory;
  dialog?: Child;
  status?: number;
}

/** The whole list page, with a dialog or an open row on it. The filters are those of the page one came from. */
export async function showList(
  c: StudioContext,
  deps: StudioDeps,
  filters: MemoryFilters,
  extras: ListExtras = {},
) {
  const [chrome, { list, stats }] = await Promise.all([chromeOf(c, deps), readList(deps, filters)]);
  const { ensure } = extras;
  const rows =
    ensure && !list.rows.some((row) => row.id === ensure.id)
      ? [ensure, ...list.rows.slice(0, -1)]
      : list.rows;
  return show(
    c,
    <MemoriesPage
      chrome={chrome}
      {...list}
      rows={rows}
      stats={stats}
      health={lastHealth(deps)}
      editing={extras.editing}
      dialog={extras.dialog}
    />,
    { status: extras.status ?? 200 },
  );
}

/** The dialog alone with htmx; without it, the list page with the dialog open. */
export async function showDialog(c: StudioContext, deps: StudioDeps, dialog: Child, status = 200) {
  if (isPart(c)) return show(c, dialog, { status });
  return showList(c, deps, filtersHere(c), { dialog, status });
}

/** Filters of the list the caller looks at. */
export function filtersHere(c: StudioContext): MemoryFilters {
  const url = currentUrl(c);
  return filtersOf(url.pathname === "/dashboard/memory" ? url.searchParams : new URLSearchParams());
}

/** The list again, as the page behind a dialog or toast shows it. Nothing where the page is another one. */
export async function listParts(c: StudioContext, deps: StudioDeps): Promise<Child> {
  if (currentUrl(c).pathname !== "/dashboard/memory") return null;
  const { list, stats } = await readList(deps, filtersHere(c));
  return (
    <>
      <Partial target="#memory-list">
        <MemoryList {...list} />
      </Partial>
      <Partial target="#memory-stats">
        <StatsBoard stats={stats} health={lastHealth(deps)} />
      </Partial>
    </>
  );
}

/** The list itself: page, or the part that searching, filtering and paging swap. */
export async function memoryList(c: StudioContext, deps: StudioDeps): Promise<Response> {
  const filters = filtersOf(new URL(c.req.url).searchParams);
  if (!isPart(c)) return showList(c, deps, filters);
  const { list, stats } = await readList(deps, filters);
  return show(c, <MemoriesPart {...list} stats={stats} health={lastHealth(deps)} />, {
    say: found(list.total),
    // Empty fields of the form have no place in the address bar.
    headers: { "HX-Push-Url": listHref(filters, filters.page) },
  });
}
