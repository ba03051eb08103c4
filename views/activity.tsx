/** The frame of the Activity pages: head, owner filter, tabs; and the list beside a detail. */
import type { Child, PropsWithChildren } from "hono/jsx";
import { Select } from "./fields.tsx";
import { href, num } from "./format.ts";
import { type Chrome, Page } from "./layout.tsx";
import { type Owner, ownerOptions } from "./owners.ts";
import { Head, Tabs } from "./parts.tsx";

export type ActivityTab = "receipts" | "sessions" | "entities" | "usage";

export interface ActivityFrame {
  chrome: Chrome;
  owners: readonly Owner[];
  /** The chosen owner, or "". */
  owner: string;
  counts: { receipts: number | null; sessions: number | null; entities: number | null };
}

const names: [ActivityTab, string][] = [
  ["receipts", "Receipts"],
  ["sessions", "Sessions"],
  ["entities", "Entities"],
  ["usage", "Usage"],
];

export const ActivityPage = ({
  frame,
  tab,
  title,
  dialog,
  children,
}: PropsWithChildren<{ frame: ActivityFrame; tab: ActivityTab; title: string; dialog?: Child }>) => (
  <Page title={title} current="activity" chrome={frame.chrome} dialog={dialog}>
    <Head title="Activity" sub="What went through, what was added to it, and what was learned.">
      <form method="get" action={`/dashboard/activity/${tab}`} class="inline-form">
        <Select
          form="activity"
          name="owner"
          value={frame.owner}
          options={[{ value: "", text: "All keys" }, ...ownerOptions(frame.owners, frame.owner)]}
          more={{ "aria-label": "Owner", "data-go": true }}
        />
        <noscript>
          <button class="btn">Show</button>
        </noscript>
      </form>
    </Head>
    <Tabs
      label="Activity"
      current={tab}
      items={names.map(([id, text]) => {
        const n = id === "usage" ? null : frame.counts[id];
        return {
          id,
          text,
          href: href(`/dashboard/activity/${id}`, { owner: frame.owner }),
          count: n ? num(n) : undefined,
        };
      })}
    />
    {children}
  </Page>
);

/** List on the left, detail on the right; on a narrow screen one of them, with a way back. */
export const ListAndDetail = ({
  side,
  detail,
  back,
  children,
}: PropsWithChildren<{ side: Child; detail: boolean; back: { href: string; text: string } }>) => (
  <div class={detail ? "cols-list is-detail" : "cols-list"}>
    {side}
    <div class="stack cols-main">
      <p class="only-narrow">
        <a href={back.href}>← {back.text}</a>
      </p>
      {children}
    </div>
  </div>
);
