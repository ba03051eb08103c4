/** Receipts: which memories a request was given, what they cost, and why the others were left out. */
import { Post } from "./actions.tsx";
import { type ActivityFrame, ActivityPage, ListAndDetail } from "./activity.tsx";
import { type Comparison, ComparisonView } from "./comparison.tsx";
import { ago, count, cut, href } from "./format.ts";
import { Icon } from "./icons.tsx";
import { ownerName } from "./owners.ts";
import { Banner, Copy, Empty, Pager, Text } from "./parts.tsx";
import { Receipt, type ReceiptDetail, type ReceiptLine, RequestText } from "./receipt.tsx";

export interface ReceiptsProps {
  frame: ActivityFrame;
  rows: readonly ReceiptLine[];
  total: number;
  from: number;
  page: number;
  chosen: ReceiptDetail | null;
  /** False when the newest is only shown because none was asked for. */
  asked: boolean;
  comparison?: Comparison | null;
}

const BASE = "/dashboard/activity/receipts";

export const receiptHref = (id: string, query: Record<string, string | number | null> = {}): string =>
  href(`${BASE}/${encodeURIComponent(id)}`, query);

const listHref = (frame: Pick<ActivityFrame, "owner">, page: number): string =>
  href(BASE, { owner: frame.owner, page: page > 1 ? page : null });

export const ReceiptItem = ({
  line,
  frame,
  page,
  current,
}: {
  line: ReceiptLine;
  frame: Pick<ActivityFrame, "owner" | "owners">;
  page: number;
  current: boolean;
}) => (
  <li>
    <a
      href={receiptHref(line.id, { owner: frame.owner, page: page > 1 ? page : null })}
      {...(current ? { "aria-current": "true" } : {})}
    >
      <span class="truncate" dir="auto">
        <RequestText query={line.query} length={70} />
      </span>
      <span class="table-sub">
        <span>{ownerName(frame.owners, line.ownerId)}</span>
        <span>{ago(line.at)}</span>
        <span class="push num">
          {line.injected === 0 ? "nothing added" : `+${count(line.tokens, "token")}`}
        </span>
      </span>
    </a>
  </li>
);

const Detail = ({
  receipt,
  frame,
  comparison,
}: {
  receipt: ReceiptDetail;
  frame: ActivityFrame;
  comparison: Comparison | null;
}) => (
  <>
    <Receipt receipt={receipt} frame={frame} />
    {receipt.text ? (
      <details class="disclosure">
        <summary>
          <Icon name="right" />
          The text as it was sent
        </summary>
        <div class="disclosure-body">
          <pre class="injected" id="sent" tabindex={0} dir="auto">
            <Text text={receipt.text} />
          </pre>
        </div>
      </details>
    ) : receipt.injected > 0 ? (
      <p class="note">The text as it was sent is gone: a memory in it was deleted for good.</p>
    ) : null}
    <div class="form-foot">
      <span class="copy-line">
        <code id="rid">{receipt.id}</code>
        <Copy of="rid" label="Copy the receipt id" />
      </span>
      {receipt.query ? (
        <a
          class="btn btn-sm"
          href={href("/dashboard/memory", {
            tab: "playground",
            query: cut(receipt.query, 500),
            apiKeyId: receipt.ownerId,
          })}
        >
          <Icon name="playground" />
          Open in the Playground
        </a>
      ) : null}
    </div>
    {receipt.again ? (
      <div id="again" class="stack">
        <Banner icon="info">
          <p>
            <b>Would it have answered the same without memory?</b> Sends this question twice to{" "}
            <span class="mono">{receipt.again.model}</span>: with what was injected, and without. Nothing is
            recorded or learned; your provider may bill both.
          </p>
          <Post action={`${receiptHref(receipt.id)}/again`} target="#comparison">
            <button class="btn btn-sm">
              <span class="spinner" />
              Compare
            </button>
          </Post>
        </Banner>
        {comparison ? <ComparisonView comparison={comparison} /> : <div id="comparison" />}
      </div>
    ) : null}
  </>
);

export const ReceiptsPage = ({
  frame,
  rows,
  total,
  from,
  page,
  chosen,
  asked,
  comparison,
}: ReceiptsProps) => (
  <ActivityPage frame={frame} tab="receipts" title={chosen && asked ? "Receipt" : "Receipts"}>
    {rows.length === 0 && !chosen ? (
      <section class="panel" aria-label="Receipts">
        <Empty
          title="No request came through yet"
          actions={
            <a class="btn btn-primary" href="/dashboard/connect">
              Connect a client
            </a>
          }
        >
          <p>Each request leaves a receipt here: what was added to it, and why.</p>
        </Empty>
      </section>
    ) : (
      <ListAndDetail
        detail={asked}
        back={{
          href: listHref(frame, page),
          text: "All receipts",
        }}
        side={
          <nav class="panel cols-side" aria-label="Requests">
            <ul class="pick">
              {rows.map((line) => (
                <ReceiptItem line={line} frame={frame} page={page} current={line.id === chosen?.id} />
              ))}
            </ul>
            <Pager
              label="Pages of requests"
              from={from}
              shown={rows.length}
              total={total}
              to={(by) => listHref(frame, page + by)}
            />
          </nav>
        }
      >
        {chosen ? <Detail receipt={chosen} frame={frame} comparison={comparison ?? null} /> : null}
      </ListAndDetail>
    )}
  </ActivityPage>
);
