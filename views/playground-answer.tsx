/** What a question would find, why, and the text that would be injected. */
import type { memoryTypes, Resolution } from "../src/memory/types.ts";
import { Bar, type Fill, Ledger, Swatch } from "./figures.tsx";
import { count, cut, ms, num } from "./format.ts";
import { Icon, TypeWord } from "./icons.tsx";
import { Empty, Text, voice } from "./parts.tsx";

export interface PlayResult {
  kind: "memory" | "episode" | "entity" | "summary";
  id: string;
  /** The type of a memory; null for the other kinds. */
  type: (typeof memoryTypes)[number] | null;
  text: string;
  href: string | null;
  score: number | null;
  tier: string;
  tokens: number;
  ftsRank: number | null;
  ftsScore: number | null;
  vecRank: number | null;
  vecScore: number | null;
}

export interface PlayAnswer {
  results: PlayResult[];
  dropped: { id: string; text: string | null; href: string | null; reason: string }[];
  resolution: Resolution;
  totalTokensUsed: number;
  budgetMaxTokens: number;
  text: string;
  tookMs: number;
}

const Channel = ({
  name,
  rank,
  score,
  share,
  fill,
}: {
  name: string;
  rank: number | null;
  score: number | null;
  share: number;
  fill: Fill;
}) =>
  rank === null && score === null ? (
    <span class="channel is-none">
      <span>{name}</span>
      <b>–</b>
      <Bar parts={[]} />
      <span class="figure">none</span>
    </span>
  ) : (
    <span class="channel">
      <span>{name}</span>
      <b>{rank === null ? "–" : `#${rank}`}</b>
      <Bar
        parts={[[Math.max(2, Math.min(100, share * 100)), fill]]}
        label={`${name}: ${rank === null ? "no rank" : `rank ${rank}`}, score ${(score ?? 0).toFixed(2)}`}
      />
      <span class="figure">{(score ?? 0).toFixed(2)}</span>
    </span>
  );

const kindWords = { memory: "memory", episode: "exchange", entity: "entity", summary: "summary" } as const;

const Result = ({ result, n, best }: { result: PlayResult; n: number; best: number }) => (
  <li class="result">
    <span class="result-rank">{n}</span>
    <div>
      <p class="memory-text" {...voice(result.text)}>
        {result.href ? (
          <a href={result.href}>
            <Text text={cut(result.text, 400)} />
          </a>
        ) : (
          <Text text={cut(result.text, 400)} />
        )}
      </p>
      <p class="memory-meta">
        {result.type ? <TypeWord type={result.type} /> : <span>{kindWords[result.kind]}</span>}
        <span>{count(result.tokens, "token")}</span>
        <code>{result.tier}</code>
      </p>
    </div>
    <p class="result-score">
      <span class="visually-hidden">score </span>
      {result.score === null ? "–" : result.score.toFixed(3)}
    </p>
    <div class="channels">
      <Channel
        name="lexical"
        rank={result.ftsRank}
        score={result.ftsScore}
        share={best > 0 ? (result.ftsScore ?? 0) / best : 0}
        fill="hatch"
      />
      <Channel
        name="vector"
        rank={result.vecRank}
        score={result.vecScore}
        share={result.vecScore ?? 0}
        fill="fill-1"
      />
    </div>
  </li>
);

export const Answer = ({ answer }: { answer: PlayAnswer | null }) => {
  if (!answer) {
    return (
      <div id="answer">
        <section class="panel" aria-label="Answer">
          <Empty title="Nothing asked yet">
            <p>Type a question and press Run. The same search serves every client.</p>
          </Empty>
        </section>
      </div>
    );
  }
  const { results, dropped, resolution } = answer;
  const best = Math.max(...results.map((result) => result.ftsScore ?? 0), 0);
  return (
    <div class="split" id="answer">
      <div class="stack stack-lg">
        <section aria-labelledby="results-h">
          <div class="block-head">
            <h2 id="results-h" tabindex={-1}>
              {count(results.length, "result")}
            </h2>
            <ul class="legend">
              <li>
                <Swatch fill="hatch" />
                lexical, BM25
              </li>
              <li>
                <Swatch fill="fill-1" />
                vector, cosine
              </li>
            </ul>
          </div>
          {results.length > 0 ? (
            <ol class="panel">
              {results.map((result, i) => (
                <Result result={result} n={i + 1} best={best} />
              ))}
            </ol>
          ) : (
            <div class="panel">
              <Empty title="Nothing relevant" level={3}>
                <p>A client would get its request through unchanged.</p>
              </Empty>
            </div>
          )}
        </section>
        <section aria-labelledby="text-h">
          <div class="block-head">
            <h2 id="text-h">Text that would be injected</h2>
            {answer.text ? (
              <button class="btn btn-quiet btn-sm" type="button" data-copy="#injected">
                <Icon name="copy" />
                <Icon name="check" />
                Copy
              </button>
            ) : null}
          </div>
          {answer.text ? (
            <pre class="injected" id="injected" tabindex={0} dir="auto">
              <Text text={answer.text} />
            </pre>
          ) : (
            <p class="panel panel-pad note">Nothing would be added to the prompt.</p>
          )}
        </section>
      </div>
      <aside class="split-aside stack stack-lg" aria-label="How the answer was made">
        <section aria-labelledby="res-h">
          <div class="block-head">
            <h2 id="res-h">Resolution</h2>
            <p class="note num">{ms(answer.tookMs)}</p>
          </div>
          <div class="panel panel-pad stack">
            <Ledger
              rows={[
                ["Strategy used", resolution.strategyUsed],
                ["Embedding", resolution.embeddingSource ?? "none"],
                ["Model", resolution.embeddingModel ? <code>{resolution.embeddingModel}</code> : "none"],
                ["Vector store", resolution.vectorStore],
                ["Rerank", resolution.rerankApplied ? "applied" : "off"],
                ["Fallback", resolution.fallbackReason ? "yes" : "none"],
              ]}
            />
            {resolution.fallbackReason ? <p class="note">{resolution.fallbackReason}</p> : null}
            <div>
              <div class="progress-line">
                <span>Budget</span>
                <span class="figure">
                  {num(answer.totalTokensUsed)} of {count(answer.budgetMaxTokens, "token")}
                </span>
              </div>
              <Bar
                parts={[
                  [
                    Math.min(100, (answer.totalTokensUsed / Math.max(1, answer.budgetMaxTokens)) * 100),
                    "fill-1",
                  ],
                ]}
                label={`${num(answer.totalTokensUsed)} of ${num(answer.budgetMaxTokens)} tokens used`}
              />
            </div>
          </div>
        </section>
        <section aria-labelledby="drop-h">
          <div class="block-head">
            <h2 id="drop-h">Dropped</h2>
            <p class="note num">
              {num(dropped.length)} of {count(dropped.length + results.length, "candidate")}
            </p>
          </div>
          {dropped.length > 0 ? (
            <ul class="panel panel-pad dropped">
              {dropped.slice(0, 30).map((item) => (
                <li dir="auto">
                  {item.href ? (
                    <a href={item.href}>
                      <Text text={cut(item.text ?? item.id, 120)} />
                    </a>
                  ) : (
                    <Text text={cut(item.text ?? item.id, 120)} />
                  )}
                  <span class="reason">{item.reason}</span>
                </li>
              ))}
            </ul>
          ) : (
            <p class="panel panel-pad note">Nothing was dropped.</p>
          )}
        </section>
      </aside>
    </div>
  );
};
