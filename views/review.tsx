/** The inbox: statements that wait until a person approves or rejects them. */
import type { Episode, Memory } from "../src/memory/types.ts";
import { Partial } from "./actions.tsx";
import { ago, count, cut, memoryHref } from "./format.ts";
import { Icon, TypeWord } from "./icons.tsx";
import { type Chrome, Page, PendingCount } from "./layout.tsx";
import { Marked } from "./memory.tsx";
import { type Owner, ownerName } from "./owners.ts";
import { Crumbs, Empty, Head, Text, voice } from "./parts.tsx";

export interface ReviewItem {
  memory: Memory;
  /** The exchange it was read from, where it is kept. */
  episode: Episode | null;
  /** What approving it would replace: the active memory with the same key. */
  replaces: Memory | null;
}

export interface ReviewProps {
  items: readonly ReviewItem[];
  total: number;
  owners: readonly Owner[];
}

const valueOf = (memory: Memory): string | null =>
  typeof memory.metadata["value"] === "string" ? memory.metadata["value"] : null;

/** The part of a message around what was understood, so that one line tells why. */
function around(text: string, value: string | null): string {
  const at = value ? text.toLowerCase().indexOf(value.toLowerCase()) : -1;
  if (at < 0 || text.length <= 220) return cut(text, 220);
  const from = Math.max(0, at - 90);
  return `${from > 0 ? "…" : ""}${cut(text.slice(from), 220)}`;
}

const Item = ({ item, owners }: { item: ReviewItem; owners: readonly Owner[] }) => {
  const { memory, episode, replaces } = item;
  const said = episode ? (memory.origin === "assistant" ? episode.aiResponse : episode.userMessage) : "";
  const label = cut(memory.content, 60);
  const { confidence, matches } = memory.metadata;
  return (
    <li class="review" id={`r-${memory.id}`}>
      <input type="checkbox" name="id" value={memory.id} aria-label={`Select: ${label}`} />
      <div>
        <p class="memory-text" {...voice(memory.content)}>
          <a href={memoryHref(memory.id)}>
            <Text text={cut(memory.content, 300)} />
          </a>
        </p>
        <p class="memory-meta">
          <TypeWord type={memory.type} />
          {memory.key ? <code dir="auto">{cut(memory.key, 60)}</code> : null}
          <span>{ownerName(owners, memory.apiKeyId)}</span>
          <span>{ago(memory.createdAt)}</span>
          {typeof confidence === "number" ? <span>confidence {confidence.toFixed(2)}</span> : null}
        </p>
        {memory.metadata["forget"] === true ? (
          <p class="replaces">
            A request to forget: approving it archives{" "}
            {count(Array.isArray(matches) ? matches.length : 0, "memory", "memories")}.
          </p>
        ) : null}
        {replaces ? (
          <p class="replaces" {...voice(replaces.content)}>
            Replaces{" "}
            <del>
              <Text text={cut(replaces.content, 160)} />
            </del>
          </p>
        ) : null}
        {said ? (
          <blockquote class="quote" {...voice(said)}>
            <b>{memory.origin === "assistant" ? "Assistant" : "Person"}</b>
            <Marked text={around(said, valueOf(memory))} value={valueOf(memory)} />
          </blockquote>
        ) : null}
      </div>
      <div class="actions">
        <button class="btn btn-sm" name="reject" value={memory.id} aria-label={`Reject: ${label}`}>
          Reject
        </button>
        <button class="btn btn-sm" name="approve" value={memory.id} aria-label={`Approve: ${label}`}>
          Approve
        </button>
      </div>
    </li>
  );
};

/** The form itself: approving or rejecting answers with it again, shorter. */
export const ReviewForm = ({ items, total, owners }: ReviewProps) => (
  <form
    class="panel"
    id="review"
    method="post"
    action="/dashboard/memory/review"
    hx-post="/dashboard/memory/review"
    hx-target="this"
    aria-label="Memories that wait"
  >
    {items.length === 0 ? (
      <Empty
        title="Nothing waits for review"
        actions={
          <a class="btn" href="/dashboard/memory">
            All memories
          </a>
        }
      >
        <p>New statements appear here while “Approve automatically” is off in the settings.</p>
      </Empty>
    ) : (
      <>
        <div class="bulk">
          <label class="inline">
            <input type="checkbox" data-check-all aria-label="Select all" />
            <b class="num review-count">selected</b>
          </label>
          <span class="push" />
          <button class="btn btn-sm" name="action" value="reject">
            <Icon name="x" />
            Reject selected
          </button>
          <button class="btn btn-sm btn-primary" name="action" value="approve">
            <Icon name="check" />
            Approve selected
          </button>
        </div>
        <ul>
          {items.map((item) => (
            <Item item={item} owners={owners} />
          ))}
        </ul>
        {total > items.length ? (
          <p class="pager">
            The newest {items.length} of {count(total, "memory", "memories")}. More appear as these are
            decided.
          </p>
        ) : null}
      </>
    )}
  </form>
);

const title = (total: number): string =>
  total === 0
    ? "Nothing waits for review"
    : `${count(total, "memory", "memories")} ${total === 1 ? "waits" : "wait"} for review`;

const ReviewHead = ({ total }: { total: number }) => (
  <div id="review-head">
    <Head
      title={title(total)}
      sub="Nothing here is used until you approve it. Rejected statements are not learned again."
      wrap
    >
      <a class="btn" href="/dashboard/settings/memory#s-learn">
        <Icon name="settings" />
        <span>Approve automatically</span>
      </a>
    </Head>
  </div>
);

export const ReviewPage = ({ chrome, ...props }: ReviewProps & { chrome: Chrome }) => (
  <Page title="Review" current="memories" chrome={chrome}>
    <Crumbs items={[{ text: "Memories", href: "/dashboard/memory" }, { text: "Review" }]} />
    <ReviewHead total={props.total} />
    <ReviewForm {...props} />
  </Page>
);

export const ReviewPart = (props: ReviewProps) => (
  <>
    <ReviewForm {...props} />
    <Partial target="#review-head">
      <ReviewHead total={props.total} />
    </Partial>
    <Partial target="#pending-count">
      <PendingCount pending={props.total} />
    </Partial>
  </>
);
