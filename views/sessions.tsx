/** Sessions and their exchanges: what was said, what was used, what was learned. */
import type { Child } from "hono/jsx";
import type { Episode, Session, Summary } from "../src/memory/types.ts";
import { Cancel, Dialog, DialogLink, Post, Submit } from "./actions.tsx";
import { type ActivityFrame, ActivityPage, ListAndDetail } from "./activity.tsx";
import { Dot } from "./figures.tsx";
import { ago, count, cut, day, dayTime, href, memoryHref, num } from "./format.ts";
import { Icon } from "./icons.tsx";
import { ownerName } from "./owners.ts";
import { Disclosure, Empty, Pager, Text, voice, When } from "./parts.tsx";

export interface SessionLine extends Session {
  episodes: number | null;
}

export interface Turn extends Episode {
  learned: { id: string; content: string }[];
  receipt: { id: string; injected: number } | null;
}

export interface SessionDetail extends SessionLine {
  turns: readonly Turn[];
  turnsTotal: number;
  turnsFrom: number;
  learned: number | null;
  summaries: readonly Summary[];
}

const BASE = "/dashboard/activity/sessions";
export const sessionHref = (id: number, query: Record<string, string | number | null> = {}): string =>
  href(`${BASE}/${id}`, query);

const listHref = (frame: Pick<ActivityFrame, "owner">, page: number): string =>
  href(BASE, { owner: frame.owner, page: page > 1 ? page : null });

/** A client's title for the session, else its id; long random ids are cut in the middle. */
export function sessionTitle(session: Pick<Session, "externalId" | "metadata">): string {
  const title = session.metadata["title"];
  if (typeof title === "string" && title.trim()) return cut(title, 80);
  const { externalId } = session;
  return /^[0-9a-f-]{24,}$/i.test(externalId)
    ? `${externalId.slice(0, 6)}…${externalId.slice(-4)}`
    : cut(externalId, 60);
}

/** Secrets were taken out before the text was kept; what stands in their place is shown as such. */
const Said = ({ text }: { text: string }) => {
  const parts = text.split(/(\[redacted(?::[\w-]+)?\]|\[secret(?: hidden)?\]|\[REDACTED\])/);
  return (
    <>
      {parts.map((part, i) =>
        i % 2 === 1 ? <span class="redacted">secret hidden</span> : <Text text={part} />,
      )}
    </>
  );
};

export const TurnView = ({ turn }: { turn: Turn }) => (
  <li class="turn" id={`e-${turn.id}`}>
    <span class="who">Person</span>
    <p class="said" {...voice(turn.userMessage)}>
      {turn.userMessage ? (
        <Said text={cut(turn.userMessage, 1500)} />
      ) : (
        <em class="faint">nothing was said</em>
      )}
    </p>
    <span class="who">Assistant</span>
    {turn.aiResponse ? (
      <p class="said is-reply clamp-2" {...voice(turn.aiResponse)}>
        <Said text={cut(turn.aiResponse, 600)} />
      </p>
    ) : (
      <p class="said is-reply">
        <em class="faint">{turn.complete ? "No reply was kept." : "The reply was cut off."}</em>
      </p>
    )}
    <p class="turn-meta">
      <When at={turn.createdAt}>{dayTime(turn.createdAt)}</When>
      {turn.learned.map((memory) => (
        <a href={memoryHref(memory.id)} title={cut(memory.content, 120)}>
          learned: {cut(memory.content, 40)}
        </a>
      ))}
      {turn.receipt && turn.receipt.injected > 0 ? (
        <a href={`/dashboard/activity/receipts/${encodeURIComponent(turn.receipt.id)}`}>
          {count(turn.receipt.injected, "memory", "memories")} used
        </a>
      ) : null}
      {turn.complete ? null : (
        <span class="inline">
          <Dot state="warn" />
          incomplete{turn.learned.length === 0 ? ", taught nothing" : ""}
        </span>
      )}
      {turn.recall ? null : (
        <span class="inline">
          <Dot state="off" />
          not recalled any more
        </span>
      )}
      <DialogLink
        to={`/dashboard/activity/episodes/${turn.id}/delete`}
        label={`Delete the exchange of ${dayTime(turn.createdAt)}`}
      >
        Delete…
      </DialogLink>
    </p>
  </li>
);

const Detail = ({ session, frame }: { session: SessionDetail; frame: ActivityFrame }) => {
  const page = 20;
  return (
    <section class="stack" aria-labelledby="s-h">
      <div class="block-head block-head-lg">
        <div>
          <h2 id="s-h" dir="auto">
            <Text text={sessionTitle(session)} />
          </h2>
          <p class="note">
            {ownerName(frame.owners, session.apiKeyId)}, {count(session.turnsTotal, "exchange")} since{" "}
            {day(session.createdAt)}
            {session.learned === null ? "" : `, ${count(session.learned, "memory", "memories")} learned`}
          </p>
        </div>
        <div class="actions">
          <Post action={`${sessionHref(session.id)}/${session.pinned ? "unpin" : "pin"}`}>
            <button class="btn btn-sm" title="Pinned sessions stay in retrieval for ever">
              <Icon name="pin" />
              {session.pinned ? "Unpin" : "Pin"}
            </button>
          </Post>
          <Post action={`${sessionHref(session.id)}/summarise`}>
            <button class="btn btn-sm">
              <Icon name="archive" />
              Summarise
            </button>
          </Post>
          <DialogLink class="btn btn-sm btn-danger-quiet" to={`${sessionHref(session.id)}/delete`}>
            <Icon name="trash" />
            Delete…
          </DialogLink>
        </div>
      </div>
      {session.summaries.length > 0 ? (
        <Disclosure title={count(session.summaries.length, "summary", "summaries")}>
          <ul class="disclosure-body dropped">
            {session.summaries.map((summary) => (
              <li {...voice(summary.text)}>
                <Text text={cut(summary.text, 1200)} />
                <span class="reason">
                  {day(summary.createdAt)}, {count(summary.tokenCount, "token")}
                  {summary.stale ? ", stale: an exchange it covers is gone" : ""}
                </span>
              </li>
            ))}
          </ul>
        </Disclosure>
      ) : null}
      {session.turns.length === 0 ? (
        <div class="panel">
          <Empty title="No exchange is kept here" level={3}>
            <p>Keeping exchanges may be off in the settings.</p>
          </Empty>
        </div>
      ) : (
        <ol class="panel">
          {session.turns.map((turn) => (
            <TurnView turn={turn} />
          ))}
        </ol>
      )}
      {session.turnsTotal > session.turns.length ? (
        <Pager
          label="Exchanges"
          bare
          words={["Later", "Earlier"]}
          from={session.turnsFrom}
          shown={session.turns.length}
          total={session.turnsTotal}
          to={(by) =>
            sessionHref(session.id, {
              owner: frame.owner,
              from: Math.max(0, session.turnsFrom + by * page) || null,
            })
          }
        />
      ) : null}
    </section>
  );
};

export interface SessionsProps {
  frame: ActivityFrame;
  rows: readonly SessionLine[];
  total: number;
  from: number;
  page: number;
  chosen: SessionDetail | null;
  asked: boolean;
  dialog?: Child;
}

export const SessionsPage = ({ frame, rows, total, from, page, chosen, asked, dialog }: SessionsProps) => (
  <ActivityPage
    frame={frame}
    tab="sessions"
    title={chosen && asked ? sessionTitle(chosen) : "Sessions"}
    dialog={dialog}
  >
    {rows.length === 0 && !chosen ? (
      <section class="panel" aria-label="Sessions">
        <Empty title="No conversation is kept yet">
          <p>While memory is on, each exchange is kept word for word, with secrets hidden.</p>
        </Empty>
      </section>
    ) : (
      <ListAndDetail
        detail={asked}
        back={{
          href: listHref(frame, page),
          text: "All sessions",
        }}
        side={
          <nav class="panel cols-side" aria-label="Sessions">
            <ul class="pick">
              {rows.map((session) => (
                <li>
                  <a
                    href={sessionHref(session.id, { owner: frame.owner, page: page > 1 ? page : null })}
                    {...(session.id === chosen?.id ? { "aria-current": "true" } : {})}
                  >
                    <span class="truncate" dir="auto">
                      <Text text={sessionTitle(session)} />
                    </span>
                    <span class="table-sub">
                      <span>{ownerName(frame.owners, session.apiKeyId)}</span>
                      <span>{ago(session.updatedAt)}</span>
                      <span class="push">
                        {session.pinned
                          ? "pinned"
                          : session.episodes === null
                            ? ""
                            : `${num(session.episodes)} exchanges`}
                      </span>
                    </span>
                  </a>
                </li>
              ))}
            </ul>
            <Pager
              label="Pages of sessions"
              from={from}
              shown={rows.length}
              total={total}
              to={(by) => listHref(frame, page + by)}
            />
          </nav>
        }
      >
        {chosen ? <Detail session={chosen} frame={frame} /> : null}
      </ListAndDetail>
    )}
  </ActivityPage>
);

export const DeleteSessionDialog = ({ session, episodes }: { session: Session; episodes: number }) => (
  <Dialog
    id="delete"
    title="Delete this session?"
    small
    close={sessionHref(session.id)}
    form={{ action: `${sessionHref(session.id)}/delete` }}
    foot={
      <>
        <Cancel to={sessionHref(session.id)} focus>
          Keep it
        </Cancel>
        <Submit kind="danger">Delete</Submit>
      </>
    }
  >
    <p class="prose">
      {count(episodes, "exchange")} and the summaries of “{sessionTitle(session)}” are deleted for good. What
      was learned from them stays unless you take it along.
    </p>
    <label class="inline">
      <input type="checkbox" name="memories" value="true" /> Delete the memories learned from it, too
    </label>
  </Dialog>
);

export const DeleteEpisodeDialog = ({ episode }: { episode: Episode }) => (
  <Dialog
    id="delete"
    title="Delete this exchange?"
    small
    close={sessionHref(episode.sessionId)}
    form={{ action: `/dashboard/activity/episodes/${episode.id}/delete` }}
    foot={
      <>
        <Cancel to={sessionHref(episode.sessionId)} focus>
          Keep it
        </Cancel>
        <Submit kind="danger">Delete</Submit>
      </>
    }
  >
    <blockquote class="quote" {...voice(episode.userMessage)}>
      <Text text={cut(episode.userMessage || episode.aiResponse, 300)} />
    </blockquote>
    <p class="prose">Its words are deleted for good. Memories learned from it stay.</p>
  </Dialog>
);
