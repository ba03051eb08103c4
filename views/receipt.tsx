/** One receipt: what was injected, what was left out and why, what it cost. */
import type { Child } from "hono/jsx";
import type { ActivityFrame } from "./activity.tsx";
import { Dot, Ledger } from "./figures.tsx";
import { count, cut, dayClock, ms, num } from "./format.ts";
import { ownerName } from "./owners.ts";
import { Text, When } from "./parts.tsx";

export interface ReceiptLine {
  id: string;
  ownerId: string;
  query: string | null;
  at: string;
  injected: number;
  tokens: number;
  reason: string | null;
}

export interface ReceiptCandidate {
  kind: string;
  id: string;
  /** Null once the memory was deleted for good. */
  text: string | null;
  href: string | null;
  score: number | null;
  ftsRank: number | null;
  vecRank: number | null;
  tokens: number;
  injected: boolean;
  reason: string | null;
}

export interface ReceiptDetail extends ReceiptLine {
  sessionId: string | null;
  sessionHref: string | null;
  provider: string | null;
  model: string | null;
  placement: string | null;
  latencyMs: number;
  fallbacks: string[];
  candidates: ReceiptCandidate[];
  /** The block as it was sent; null when a memory in it was deleted for good. */
  text: string | null;
  redacted: number;
  learned: { href: string | null; text: string; action: string }[];
  usage: {
    status: number;
    ttftMs: number | null;
    latencyMs: number;
    tokensIn: number;
    tokensOut: number;
    tokensCached: number;
    cost: number | null;
    estimated: boolean;
  } | null;
  /** Whether the question can be sent again, and to which model. */
  again: { model: string } | null;
}

const reasonWords: Record<string, string> = {
  off: "memory was off",
  "opt-out": "the client opted out",
  "no-owner": "no owner",
  "nothing-relevant": "nothing was relevant",
  housekeeping: "a housekeeping call",
  deadline: "the search was late",
  rejected: "the provider refused it",
};

export const reasonText = (reason: string | null): string =>
  reason ? (reasonWords[reason] ?? reason.replaceAll("-", " ")) : "nothing added";

const placementWords: Record<string, string> = {
  "before-user": "a message before the last user turn",
  "input-item": "an item before the last user item",
  "in-user": "inside the last user turn",
  "in-first-user": "inside the first user turn",
  "system-first": "first, as a system message",
  "merged-system": "inside the first system message",
  "top-level-system": "in the system text",
  instructions: "in the instructions",
  none: "nowhere",
};

export const RequestText = ({ query, length }: { query: string | null; length: number }) =>
  query ? (
    <Text text={cut(query.replaceAll(/\s+/g, " "), length)} />
  ) : (
    <em class="faint">a request without text</em>
  );

const ranks = (candidate: ReceiptCandidate): string =>
  [
    candidate.ftsRank === null ? null : `lexical ${candidate.ftsRank}`,
    candidate.vecRank === null ? null : `vector ${candidate.vecRank}`,
    candidate.score === null ? null : `score ${candidate.score.toFixed(3)}`,
  ]
    .filter(Boolean)
    .join(", ");

const Line = ({ n, candidate }: { n: number; candidate: ReceiptCandidate }) => {
  const body = candidate.text ? (
    <Text text={cut(candidate.text.replaceAll(/\s+/g, " "), 160)} />
  ) : (
    <em class="faint">{candidate.kind} that was deleted</em>
  );
  return (
    <li {...(candidate.injected ? {} : { class: "is-out" })}>
      <span class="rank">{n}</span>
      <span class="text" dir="auto">
        <span>{candidate.href && candidate.text ? <a href={candidate.href}>{body}</a> : body}</span>
      </span>
      <span class="tokens">{num(candidate.tokens)}</span>
      <small>
        {[
          candidate.kind === "memory" ? null : candidate.kind,
          candidate.injected ? null : candidate.reason?.replaceAll("-", " "),
          ranks(candidate) || null,
        ]
          .filter(Boolean)
          .join(", ") || "standing"}
      </small>
    </li>
  );
};

const status = (receipt: ReceiptDetail): Child => {
  const code = receipt.usage?.status;
  if (code === undefined) return null;
  const good = code < 400;
  return (
    <span class={good ? "chip chip-ok" : "chip chip-bad"}>
      <Dot state={good ? "ok" : "bad"} />
      {code}
    </span>
  );
};

export const Receipt = ({
  receipt,
  frame,
}: {
  receipt: ReceiptDetail;
  frame: Pick<ActivityFrame, "owners">;
}) => {
  const given = receipt.candidates.filter((candidate) => candidate.injected);
  const out = receipt.candidates.filter((candidate) => !candidate.injected);
  const sum = given.reduce((tokens, candidate) => tokens + candidate.tokens, 0);
  const { usage } = receipt;
  return (
    <article class="receipt" aria-labelledby="rc-h">
      <div class="receipt-head">
        <div>
          <h2 id="rc-h" dir="auto">
            <RequestText query={receipt.query} length={240} />
          </h2>
          <p class="note">
            {receipt.sessionId ? (
              receipt.sessionHref ? (
                <a href={receipt.sessionHref}>{cut(receipt.sessionId, 40)}</a>
              ) : (
                cut(receipt.sessionId, 40)
              )
            ) : (
              "no session"
            )}{" "}
            for key {ownerName(frame.owners, receipt.ownerId)},{" "}
            <When at={receipt.at}>{dayClock(receipt.at)}</When>
          </p>
        </div>
        {status(receipt)}
      </div>
      <hr class="cut" />
      <div>
        <h3>
          Injected <small>tokens</small>
        </h3>
        {given.length === 0 ? (
          <p class="note">Nothing: {reasonText(receipt.reason)}.</p>
        ) : (
          <ol class="receipt-lines">
            {given.map((candidate, i) => (
              <Line n={i + 1} candidate={candidate} />
            ))}
            {receipt.tokens > sum ? (
              <li>
                <span class="rank" />
                <span class="text">
                  <span>Opening line and dates</span>
                </span>
                <span class="tokens">{num(receipt.tokens - sum)}</span>
                <small>the same for every request</small>
              </li>
            ) : null}
          </ol>
        )}
      </div>
      <Ledger
        rows={[["Added to the prompt", <span class="mono">{num(receipt.tokens)}</span>, "ledger-total"]]}
      />
      {out.length > 0 ? (
        <>
          <hr class="cut" />
          <div>
            <h3>Left out</h3>
            <ol class="receipt-lines" start={given.length + 1}>
              {out.slice(0, 30).map((candidate, i) => (
                <Line n={given.length + i + 1} candidate={candidate} />
              ))}
            </ol>
            {out.length > 30 ? <p class="note">and {num(out.length - 30)} more</p> : null}
          </div>
        </>
      ) : null}
      <hr class="cut" />
      <Ledger
        rows={[
          ["Model", [receipt.provider, receipt.model].filter(Boolean).join("/") || "–"],
          [
            "Placed",
            receipt.placement ? (placementWords[receipt.placement] ?? receipt.placement) : "nowhere",
          ],
          ["Time added by memory", ms(receipt.latencyMs)],
          usage?.ttftMs == null ? null : ["First token", ms(usage.ttftMs)],
          usage
            ? [
                usage.estimated ? "Prompt, reply (estimated)" : "Prompt, reply",
                `${num(usage.tokensIn)} and ${count(usage.tokensOut, "token")}`,
              ]
            : null,
          usage ? ["From the provider's cache", count(usage.tokensCached, "token")] : null,
          usage?.cost == null ? null : ["Cost", usage.cost.toFixed(4)],
          ["Secrets hidden", num(receipt.redacted)],
        ]}
      />
      {receipt.fallbacks.length > 0 ? (
        <ul class="dropped">
          {receipt.fallbacks.map((fallback) => (
            <li>
              <span class="inline warn">
                <Dot state="warn" />
                {fallback}
              </span>
            </li>
          ))}
        </ul>
      ) : null}
      <hr class="cut" />
      <div>
        <h3>Learned afterwards</h3>
        {receipt.learned.length === 0 ? (
          <p class="note">Nothing new.</p>
        ) : (
          <ul class="dropped">
            {receipt.learned.map((learned) => (
              <li dir="auto">
                {learned.href ? (
                  <a href={learned.href}>
                    <Text text={cut(learned.text, 160)} />
                  </a>
                ) : (
                  <Text text={cut(learned.text, 160)} />
                )}
                <span class="reason">{learned.action}</span>
              </li>
            ))}
          </ul>
        )}
      </div>
    </article>
  );
};
