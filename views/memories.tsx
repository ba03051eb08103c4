/** The list of memories: stats, filters, rows with their inline edit, bulk actions. */
import type { Child } from "hono/jsx";
import { type Memory, memoryTypes } from "../src/memory/types.ts";
import { DialogLink, Partial } from "./actions.tsx";
import { type Errors, Select } from "./fields.tsx";
import { count, cut, href } from "./format.ts";
import { Icon } from "./icons.tsx";
import { type Chrome, Page } from "./layout.tsx";
import { type MemoryDraft, MemoryEdit, MemoryRow } from "./memory-row.tsx";
import { type Health, type MemoryStats, StatsBoard } from "./memory-stats.tsx";
import { type Owner, ownerOptions } from "./owners.ts";
import { Disclosure, Empty, Head, Pager } from "./parts.tsx";

export interface MemoryFilters {
  q: string;
  type: string;
  status: string;
  owner: string;
  page: number;
}

export interface MemoryListProps {
  rows: readonly Memory[];
  total: number;
  from: number;
  filters: MemoryFilters;
  owners: readonly Owner[];
  /** A row that is open for editing. */
  editing?: { id: string; draft: MemoryDraft; errors: Errors } | undefined;
}

/** Fewer than the API gives: a page stays below 60 kB. */
export const PAGE_SIZE = 20;

const statuses: [string, string][] = [
  ["", "Active"],
  ["pending", "Pending"],
  ["superseded", "Superseded"],
  ["archived", "Archived"],
  ["any", "Any status"],
];

export const listHref = (filters: MemoryFilters, page: number): string =>
  href("/dashboard/memory", {
    q: filters.q,
    type: filters.type,
    status: filters.status,
    owner: filters.owner,
    page: page > 1 ? page : null,
  });

const Filters = ({ filters, owners }: { filters: MemoryFilters; owners: readonly Owner[] }) => (
  <form
    class="toolbar"
    role="search"
    aria-label="Memories"
    method="get"
    action="/dashboard/memory"
    hx-get="/dashboard/memory"
    hx-trigger="submit, input delay:300ms"
    hx-target="#memory-list"
    hx-push-url="true"
    hx-sync="this:replace"
  >
    <label class="search">
      <span class="visually-hidden">Search text and key</span>
      <Icon name="search" />
      <input
        class="input"
        id="memory-q"
        type="search"
        name="q"
        value={filters.q}
        placeholder="Search text and key"
        autocomplete="off"
        spellcheck={false}
        maxlength={500}
      />
      <span class="spinner" />
    </label>
    <Select
      form="f"
      name="type"
      value={filters.type}
      options={[{ value: "", text: "All types" }, ...memoryTypes]}
      more={{ "aria-label": "Type" }}
    />
    <Select
      form="f"
      name="status"
      value={filters.status}
      options={statuses.map(([value, text]) => ({ value, text }))}
      more={{ "aria-label": "Status" }}
    />
    <Select
      form="f"
      name="owner"
      value={filters.owner}
      options={[{ value: "", text: "All keys" }, ...ownerOptions(owners, filters.owner)]}
      more={{ "aria-label": "Owner" }}
    />
    <noscript>
      <button class="btn">Filter</button>
    </noscript>
  </form>
);

const narrowed = (filters: MemoryFilters) =>
  Boolean(filters.q || filters.type || filters.status || filters.owner);

const Nothing = ({ filters }: { filters: MemoryFilters }) =>
  filters.q ? (
    <Empty
      title={<>Nothing matches “{cut(filters.q, 60)}”</>}
      actions={
        <>
          <a class="btn" href={listHref({ ...filters, q: "" }, 1)}>
            Clear the search
          </a>
          <a
            class="btn"
            href={href("/dashboard/memory", { tab: "playground", query: filters.q, owner: filters.owner })}
          >
            <Icon name="playground" />
            Try it in the Playground
          </a>
        </>
      }
    >
      <p>Search here looks for these very letters in text and key. The Playground also finds by meaning.</p>
    </Empty>
  ) : narrowed(filters) ? (
    <Empty
      title="No memory is of this kind"
      actions={
        <a class="btn" href="/dashboard/memory">
          Show all active ones
        </a>
      }
    >
      <p>Other filters may show more.</p>
    </Empty>
  ) : (
    <Empty
      title="Nothing is remembered yet"
      actions={
        <>
          <DialogLink class="btn btn-primary" to="/dashboard/memory/new">
            <Icon name="plus" />
            Add memory
          </DialogLink>
          <a class="btn" href="/dashboard/connect">
            Connect a client
          </a>
        </>
      }
    >
      <p>Memories appear here after a client has said something lasting, or when you add one.</p>
    </Empty>
  );

/** Asks every ten seconds whether something newer came; then it offers to show it, and leaves the list as it is. */
export const News = ({
  filters,
  after,
  found,
}: {
  filters: MemoryFilters;
  after: string;
  found: boolean;
}) => {
  const { q, type, status, owner } = filters;
  return found ? (
    <a id="memory-news" class="chip chip-accent" href={listHref(filters, 1)}>
      Newer ones came. Show them
    </a>
  ) : (
    <span
      id="memory-news"
      hx-get={href("/dashboard/memory/news", { q, type, status, owner, after })}
      hx-trigger="every 10s"
    />
  );
};

/** Drawn again alone when a row leaves the list. */
export const MemoryCount = ({ total }: { total: number }) => (
  <span id="memory-count">{count(total, "memory", "memories")}, newest first</span>
);

export const MemoryList = ({ rows, total, from, filters, owners, editing }: MemoryListProps) => (
  <section class="panel" id="memory-list" aria-label="Memories">
    {rows.length === 0 ? (
      <Nothing filters={filters} />
    ) : (
      <>
        <div class="list-head">
          <input class="pick-all" type="checkbox" data-check-all aria-label="Select all on this page" />
          <MemoryCount total={total} />
          {from === 0 && rows[0] ? <News filters={filters} after={rows[0].createdAt} found={false} /> : null}
          <span class="push col-uses">Used</span>
          <span class="col-when">Learned</span>
          <span class="col-actions" />
        </div>
        <ul>
          {rows.map((memory) =>
            memory.id === editing?.id ? (
              <MemoryEdit
                id={memory.id}
                draft={editing.draft}
                errors={editing.errors}
                back={listHref(filters, filters.page)}
              />
            ) : (
              <MemoryRow memory={memory} owners={owners} />
            ),
          )}
        </ul>
        <div class="bulk bulk-sticky">
          <b class="bulk-count">selected</b>
          <span class="push" />
          <button class="btn btn-sm" form="act" name="all" value="pin">
            <Icon name="pin" />
            Pin
          </button>
          {filters.status === "archived" ? (
            <button class="btn btn-sm" form="act" name="all" value="unarchive">
              <Icon name="undo" />
              Bring back
            </button>
          ) : (
            <button class="btn btn-sm" form="act" name="all" value="archive">
              <Icon name="archive" />
              Archive
            </button>
          )}
          <button class="btn btn-sm btn-danger-quiet" form="act" name="all" value="delete">
            <Icon name="trash" />
            Delete…
          </button>
        </div>
        <Pager
          label="Pages"
          from={from}
          shown={rows.length}
          total={total}
          to={(by) => listHref(filters, filters.page + by)}
        />
      </>
    )}
  </section>
);

const HowItWorks = () => (
  <Disclosure title="How it works" class="disclosure-plain" id="how">
    <div class="disclosure-body">
      <ol class="how">
        <li>
          <b>Listen</b>A client sends a request through Recollect. The exchange is kept as an episode.
        </li>
        <li>
          <b>Learn</b>After the reply, statements about the person become memories.
        </li>
        <li>
          <b>Find</b>The next request is searched by words and by meaning.
        </li>
        <li>
          <b>Inject</b>What fits the budget goes into the prompt. A receipt says what and why.
        </li>
      </ol>
    </div>
  </Disclosure>
);

export interface MemoriesProps extends MemoryListProps {
  chrome: Chrome;
  stats: MemoryStats;
  health: Health | null;
  /** Parts that are down, as sentences. */
  banners?: Child;
  dialog?: Child;
}

export const MemoriesPage = ({ chrome, stats, health, banners, dialog, ...list }: MemoriesProps) => (
  <Page title="Memories" current="memories" chrome={chrome} dialog={dialog}>
    <Head title="Memories" sub="What Recollect knows and may put into a prompt.">
      {chrome.pending > 0 ? (
        <a class="btn btn-collapse" href="/dashboard/memory/review">
          <Icon name="inbox" />
          <span class="btn-label">Review</span>
          <span class="nav-count">
            {chrome.pending > 99 ? "99+" : chrome.pending}
            <span class="visually-hidden"> waiting</span>
          </span>
        </a>
      ) : null}
      <button class="btn btn-collapse" type="button" popovertarget="transfer">
        <Icon name="download" />
        <span class="btn-label">Import, export</span>
        <Icon name="down" />
      </button>
      <DialogLink class="btn btn-collapse" to="/dashboard/memory/compact">
        <Icon name="archive" />
        <span class="btn-label">Compact old…</span>
      </DialogLink>
      <DialogLink class="btn btn-primary" to="/dashboard/memory/new">
        <Icon name="plus" />
        <span>
          Add<span class="only-lg"> memory</span>
        </span>
      </DialogLink>
      <div class="menu" id="transfer" popover="auto">
        <DialogLink to="/dashboard/memory/import">
          <Icon name="upload" />
          Import a file…
        </DialogLink>
        <hr />
        <a
          href={href("/dashboard/memory/page.json", {
            q: list.filters.q,
            type: list.filters.type,
            status: list.filters.status,
            owner: list.filters.owner,
            page: list.filters.page,
          })}
          download
        >
          <Icon name="download" />
          This page as JSON
        </a>
        <a href="/dashboard/memory/export" download>
          <Icon name="download" />
          Everything as JSONL
        </a>
      </div>
    </Head>
    <HowItWorks />
    <StatsBoard stats={stats} health={health} />
    {banners}
    <Filters filters={list.filters} owners={list.owners} />
    <MemoryList {...list} />
    <form
      id="act"
      method="post"
      action="/dashboard/memory/act"
      hx-post="/dashboard/memory/act"
      hx-target="#memory-list"
      hx-swap="none"
    />
  </Page>
);

/** What searching, filtering and paging swap: the list, and the figures above it. */
export const MemoriesPart = ({ stats, health, ...list }: Omit<MemoriesProps, "chrome">) => (
  <>
    <MemoryList {...list} />
    <Partial target="#memory-stats">
      <StatsBoard stats={stats} health={health} />
    </Partial>
  </>
);

/** A sentence for a search that a screen reader says. */
export const found = (total: number): string => `${count(total, "memory", "memories")}.`;
