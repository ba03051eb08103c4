/** One memory: its statement, where it comes from, its history, the requests it was used in. */
import type { Child } from "hono/jsx";
import type { Episode, Memory, MemoryVersion } from "../src/memory/types.ts";
import { DialogLink, Post } from "./actions.tsx";
import { Dot, Ledger, type State, Word } from "./figures.tsx";
import { ago, count, cut, dayTime, dayYear, href, iso, memoryHref, num, until } from "./format.ts";
import { Icon, TypeWord } from "./icons.tsx";
import { type Chrome, Page } from "./layout.tsx";
import { History } from "./memory-history.tsx";
import { type Owner, ownerName } from "./owners.ts";
import { Block, Code, CopyLine, Crumbs, Disclosure, Text, voice, When } from "./parts.tsx";

/** A request in which the memory was a candidate. */
export interface MemoryUse {
  receiptId: string;
  query: string | null;
  model: string | null;
  rank: number | null;
  of: number;
  score: number | null;
  injected: boolean;
  at: string;
}

export interface MemoryPageProps {
  chrome: Chrome;
  memory: Memory;
  owners: readonly Owner[];
  versions: readonly MemoryVersion[];
  episode: Episode | null;
  uses: readonly MemoryUse[];
  usesTotal: number;
  /** What this memory replaced, and what replaced it. */
  replaced: readonly Memory[];
  replacedBy: Memory | null;
  tokens: number;
  retentionDays: number;
  indexes: { name: string; state: State; word: string }[];
  signature: string | null;
  dialog?: Child;
}

/** Marks the words of a message that a memory was read from, where they can be found. */
export const Marked = ({ text, value }: { text: string; value: string | null }) => {
  const at = value && value.length > 2 ? text.toLowerCase().indexOf(value.toLowerCase()) : -1;
  // Folding may change the length of a text (İ), and then positions do not carry over.
  if (at < 0 || text.toLowerCase().length !== text.length) return <Text text={text} />;
  return (
    <>
      <Text text={text.slice(0, at)} />
      <mark>
        <Text text={text.slice(at, at + value!.length)} />
      </mark>
      <Text text={text.slice(at + value!.length)} />
    </>
  );
};

export const Exchange = ({ episode, value }: { episode: Episode; value: string | null }) => (
  <dl class="panel exchange">
    <dt>Person</dt>
    <dd {...voice(episode.userMessage)}>
      {episode.userMessage ? (
        <Marked text={cut(episode.userMessage, 2000)} value={value} />
      ) : (
        <em class="faint">nothing was said</em>
      )}
    </dd>
    <dt>Assistant</dt>
    <dd class="is-reply" {...voice(episode.aiResponse)}>
      {episode.aiResponse ? (
        <Marked text={cut(episode.aiResponse, 1200)} value={value} />
      ) : (
        <em class="faint">no reply was kept</em>
      )}
    </dd>
  </dl>
);

const origins: Record<Memory["origin"], string> = {
  user: "learned from what the person said",
  assistant: "learned from what the assistant said",
  api: "written through the API or the Studio",
  mcp: "written by a client through MCP",
  import: "imported",
  summary: "a summary of older memories",
};

const states: Record<Memory["status"], State> = {
  active: "ok",
  pending: "busy",
  superseded: "off",
  archived: "off",
};

const UsesTable = ({ uses }: { uses: readonly MemoryUse[] }) => (
  <div class="table-wrap">
    <table class="table table-stack">
      <thead>
        <tr>
          <th>Request</th>
          <th>Model</th>
          <th class="num">Rank</th>
          <th class="num">Score</th>
          <th class="num">When</th>
        </tr>
      </thead>
      <tbody>
        {uses.map((use) => (
          <tr>
            <td dir="auto">
              <a
                class="table-title"
                href={`/dashboard/activity/receipts/${encodeURIComponent(use.receiptId)}`}
              >
                <Text text={cut(use.query ?? "A request without text", 90)} />
              </a>
            </td>
            <td class="nowrap" data-label="Model">
              {use.model ?? "–"}
            </td>
            <td class="num" data-label="Rank">
              {use.rank === null ? "–" : `${use.rank} of ${use.of}`}
            </td>
            <td class="num" data-label="Score">
              {use.score === null ? "–" : use.score.toFixed(3)}
            </td>
            <td class="num" data-label="When">
              <When at={use.at}>{ago(use.at)}</When>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

export const text = (value: unknown): string | null =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : null;

export const MemoryPage = (props: MemoryPageProps) => {
  const { chrome, memory, owners, versions, episode, uses, usesTotal, replaced, replacedBy, dialog } = props;
  const leaves =
    memory.pinned || props.retentionDays === 0
      ? null
      : new Date(Date.parse(memory.confirmedAt) + props.retentionDays * 86_400_000).toISOString();
  const left = leaves !== null && Date.parse(leaves) < Date.now();
  const title = cut(memory.content.replaceAll(/\s+/g, " "), 200);
  return (
    <Page title={cut(title, 80)} current="memories" chrome={chrome} dialog={dialog}>
      <Crumbs
        items={[
          { text: "Memories", href: "/dashboard/memory" },
          memory.key ? { text: cut(memory.key, 60), mono: true } : { text: cut(title, 60) },
        ]}
      />
      <header class="page-head page-head-wrap">
        <h1 tabindex={-1} {...voice(title)}>
          <Text text={title} />
        </h1>
        <p class="memory-meta memory-meta-lg">
          <TypeWord type={memory.type} />
          <span class="inline">
            <Dot state={states[memory.status]} />
            {memory.status}
          </span>
          {memory.pinned ? <span class="chip">pinned</span> : null}
          <span>
            owner{" "}
            <a href={href("/dashboard/memory", { owner: memory.apiKeyId })}>
              {ownerName(owners, memory.apiKeyId)}
            </a>
          </span>
          <span>{origins[memory.origin]}</span>
        </p>
        <div class="actions">
          <a class="btn" href={memoryHref(memory.id, "edit")}>
            <Icon name="edit" />
            Edit
          </a>
          {memory.status === "pending" ? (
            <>
              <Post action={memoryHref(memory.id, "reject")}>
                <button class="btn">Reject</button>
              </Post>
              <Post action={memoryHref(memory.id, "approve")}>
                <button class="btn btn-primary">Approve</button>
              </Post>
            </>
          ) : (
            <>
              <Post action={memoryHref(memory.id, memory.pinned ? "unpin" : "pin")}>
                <button class="btn">
                  <Icon name="pin" />
                  {memory.pinned ? "Unpin" : "Pin"}
                </button>
              </Post>
              {memory.status === "archived" ? (
                <Post action={memoryHref(memory.id, "unarchive")}>
                  <button class="btn">
                    <Icon name="undo" />
                    Bring back
                  </button>
                </Post>
              ) : memory.status === "active" ? (
                <Post action={memoryHref(memory.id, "archive")}>
                  <button class="btn">
                    <Icon name="archive" />
                    Archive
                  </button>
                </Post>
              ) : null}
            </>
          )}
          <DialogLink class="btn btn-danger-quiet" to={memoryHref(memory.id, "delete")}>
            <Icon name="trash" />
            Delete for good…
          </DialogLink>
        </div>
      </header>
      <div class="split">
        <div class="stack stack-lg">
          {memory.content.length > 200 ? (
            <Block id="whole-h" title="The whole text">
              <p class="panel panel-pad whole-text" {...voice(memory.content)}>
                <Text text={memory.content} />
              </p>
            </Block>
          ) : null}
          {replacedBy || replaced.length > 0 ? (
            <Block id="chain-h" title="Chain">
              <ul class="panel panel-pad dropped">
                {replacedBy ? (
                  <li {...voice(replacedBy.content)}>
                    <span class="reason">Replaced by</span>
                    <a href={memoryHref(replacedBy.id)}>
                      <Text text={cut(replacedBy.content, 160)} />
                    </a>
                  </li>
                ) : null}
                {replaced.map((old) => (
                  <li {...voice(old.content)}>
                    <span class="reason">
                      {memory.origin === "summary" ? "Condensed from" : "Replaces"}, {ago(old.updatedAt)}
                    </span>
                    <a href={memoryHref(old.id)}>
                      <Text text={cut(old.content, 160)} />
                    </a>
                  </li>
                ))}
              </ul>
              {memory.origin === "summary" && replaced.length > 0 ? (
                <div class="form-foot gap-top">
                  <Post action={memoryHref(memory.id, "restore-originals")}>
                    <button class="btn btn-sm">
                      <Icon name="undo" />
                      Restore the originals
                    </button>
                  </Post>
                </div>
              ) : null}
            </Block>
          ) : null}
          <Block
            id="from-h"
            title="Where it comes from"
            note={
              episode ? (
                <>
                  <a
                    href={`${href(`/dashboard/activity/sessions/${episode.sessionId}`)}#e-${episode.id}`}
                  >{`Session “${cut(episode.externalId, 40)}”`}</a>
                  , <When at={episode.createdAt}>{dayTime(episode.createdAt)}</When>
                </>
              ) : null
            }
          >
            {episode ? (
              <Exchange episode={episode} value={text(memory.metadata["value"])} />
            ) : (
              <p class="panel panel-pad note">
                {memory.origin === "user" || memory.origin === "assistant"
                  ? "The exchange it was learned from is no longer kept."
                  : `It was ${origins[memory.origin]}, not learned from an exchange.`}
              </p>
            )}
          </Block>
          <Block id="history-h" title="History" note={count(versions.length, "version")}>
            <History memory={memory} versions={versions} />
          </Block>
          <Block id="used-h" title="Used in requests" note={`${num(usesTotal)} in the last 30 days`}>
            {uses.length > 0 ? (
              <UsesTable uses={uses} />
            ) : (
              <p class="panel panel-pad note">No request was given this memory yet.</p>
            )}
          </Block>
        </div>
        <aside class="split-aside stack stack-lg" aria-label="Details">
          <div class="panel panel-pad">
            <Ledger
              rows={[
                text(memory.metadata["confidence"])
                  ? ["Confidence", text(memory.metadata["confidence"])]
                  : null,
                text(memory.metadata["patternId"])
                  ? ["Pattern", <code>{cut(text(memory.metadata["patternId"])!, 40)}</code>]
                  : null,
                ["Tokens", num(props.tokens)],
                ["Used", count(memory.accessCount, "time")],
                ["Last used", memory.lastAccessedAt ? ago(memory.lastAccessedAt) : "never"],
                ["Learned", <time datetime={iso(memory.createdAt)}>{dayYear(memory.createdAt)}</time>],
                ["Changed", <time datetime={iso(memory.updatedAt)}>{dayYear(memory.updatedAt)}</time>],
                ["Confirmed", <time datetime={iso(memory.confirmedAt)}>{dayYear(memory.confirmedAt)}</time>],
                memory.expiresAt ? ["Expires", until(memory.expiresAt)] : null,
                [
                  left ? "Left retrieval" : "Leaves retrieval",
                  leaves ? dayYear(leaves) : memory.pinned ? "never, it is pinned" : "never",
                ],
              ]}
            />
          </div>
          <div>
            <div class="block-head">
              <h2>Indexes</h2>
            </div>
            <div class="panel panel-pad">
              <Ledger
                rows={[
                  ...props.indexes.map((index): [string, Child] => [
                    index.name,
                    <Word state={index.state}>{index.word}</Word>,
                  ]),
                  props.signature ? ["Signature", <code>{props.signature}</code>] : null,
                ]}
              />
            </div>
          </div>
          <Disclosure title="Identifiers and metadata">
            <div class="disclosure-body stack">
              <CopyLine id="mem-id" text={memory.id} label="Copy the id" />
              {memory.sessionId ? (
                <CopyLine id="mem-session" text={memory.sessionId} label="Copy the session id" />
              ) : null}
              <Code id="mem-meta">{JSON.stringify(memory.metadata, null, 2)}</Code>
            </div>
          </Disclosure>
        </aside>
      </div>
    </Page>
  );
};
