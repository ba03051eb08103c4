/** Usage by day as a chart drawn on the server, with a table that says the same, and by key and model. */
import { type ActivityFrame, ActivityPage } from "./activity.tsx";
import { Swatch } from "./figures.tsx";
import { day, href, large, ms, num } from "./format.ts";
import { type Owner, ownerName } from "./owners.ts";
import { Disclosure, Empty, Tabs } from "./parts.tsx";

export interface UsageDay {
  /** ISO date. */
  day: string;
  requests: number;
  tokensIn: number;
  tokensInjected: number;
  cost: number | null;
}

export interface UsageGroup {
  keyId: string | null;
  model: string | null;
  requests: number;
  tokensIn: number;
  tokensOut: number;
  tokensInjected: number;
  tokensCached: number;
  cost: number | null;
  errors: number;
}

export interface UsageProps {
  frame: ActivityFrame;
  days: readonly UsageDay[];
  byOwner: readonly UsageGroup[];
  byModel: readonly UsageGroup[];
  /** Length of the period in days: 7, 30 or 90. */
  span: number;
  ttftMs: number | null;
}

/** The next round number at or above the highest day, of the form 1, 2, 2.5, 4, 5 or 8 times a power of ten. */
export function ceiling(highest: number): number {
  if (highest <= 0) return 100;
  const power = 10 ** Math.floor(Math.log10(highest));
  return ([1, 2, 2.5, 4, 5, 8, 10].find((step) => step * power >= highest) ?? 10) * power;
}

const short = (n: number): string =>
  n >= 1_000_000 ? `${+(n / 1_000_000).toFixed(1)}M` : n >= 1000 ? `${+(n / 1000).toFixed(1)}k` : num(n);

const Chart = ({ days }: { days: readonly UsageDay[] }) => {
  const top = ceiling(Math.max(...days.map((one) => one.tokensIn), 0));
  const step = 100 / Math.max(1, days.length);
  const every = days.length > 45 ? 14 : days.length > 10 ? 7 : 1;
  const highest = Math.max(...days.map((one) => one.tokensIn), 0);
  const injected = Math.max(...days.map((one) => one.tokensInjected), 0);
  return (
    <figure class="chart">
      <ol class="chart-y" aria-hidden="true">
        {[1, 0.75, 0.5, 0.25, 0].map((share) => (
          <li>{short(top * share)}</li>
        ))}
      </ol>
      <svg class="chart-plot" width="100%" height="184" role="img" aria-labelledby="u-t u-d">
        <title id="u-t">{`Prompt tokens by day, ${day(days[0]?.day ?? "")} to ${day(days.at(-1)?.day ?? "")}`}</title>
        <desc id="u-d">{`At most ${num(highest)} a day, of which at most ${num(injected)} were added by memory.`}</desc>
        {[0, 25, 50, 75].map((y) => (
          <line class="grid" x1="0" x2="100%" y1={`${y}%`} y2={`${y}%`} />
        ))}
        {days.map((one, i) => {
          const all = (one.tokensIn / top) * 100;
          const part = Math.min(all, (one.tokensInjected / top) * 100);
          const x = `${(i * step + step * 0.14).toFixed(2)}%`;
          const width = `${(step * 0.72).toFixed(2)}%`;
          return (
            <g class="col">
              <title>{`${day(one.day)}: ${num(one.tokensIn)} tokens, ${num(one.tokensInjected)} of them added by memory`}</title>
              <rect class="hit" x={`${(i * step).toFixed(2)}%`} width={`${step.toFixed(2)}%`} height="100%" />
              {one.tokensIn > 0 ? (
                <>
                  <rect
                    class="fill-4"
                    x={x}
                    y={`${(100 - all).toFixed(2)}%`}
                    width={width}
                    height={`${(all - part).toFixed(2)}%`}
                  />
                  <rect class="cap" x={x} y={`${(100 - all).toFixed(2)}%`} width={width} height="2" />
                  <rect
                    class="fill-1"
                    x={x}
                    y={`${(100 - part).toFixed(2)}%`}
                    width={width}
                    height={`${part.toFixed(2)}%`}
                  />
                </>
              ) : null}
            </g>
          );
        })}
        <line class="base" x1="0" x2="100%" y1="100%" y2="100%" />
      </svg>
      <svg class="chart-x" width="100%" height="16" aria-hidden="true">
        {days.map((one, i) =>
          i % every === 0 ? (
            <text x={`${((i + 0.5) * step).toFixed(2)}%`} y="11">
              {day(one.day)}
            </text>
          ) : null,
        )}
      </svg>
    </figure>
  );
};

/** What memory added is billed like the rest of the prompt. */
const memoryShare = (one: UsageDay): string =>
  one.cost === null || one.tokensIn === 0 ? "–" : ((one.cost * one.tokensInjected) / one.tokensIn).toFixed(4);

const sum = <T,>(rows: readonly T[], of: (row: T) => number): number =>
  rows.reduce((n, row) => n + of(row), 0);
const costSum = (rows: readonly { cost: number | null }[]): number | null =>
  rows.some((row) => row.cost !== null) ? sum(rows, (row) => row.cost ?? 0) : null;

const Figure = ({
  name,
  value,
  note,
}: {
  name: string;
  value: string | { value: string; unit: string };
  note: string;
}) => {
  const figure = typeof value === "string" ? { value, unit: "" } : value;
  return (
    <div class="cell">
      <dt>{name}</dt>
      <dd class="cell-value">
        {figure.value}
        {figure.unit ? <small> {figure.unit}</small> : null}
      </dd>
      <dd class="cell-note">{note}</dd>
    </div>
  );
};

const Groups = ({
  title,
  id,
  rows,
  nameOf,
  column,
}: {
  title: string;
  id: string;
  rows: readonly UsageGroup[];
  nameOf: (row: UsageGroup) => string;
  column: string;
}) => {
  const priced = rows.some((row) => row.cost !== null);
  return (
    <section class="below" aria-labelledby={id}>
      <div class="block-head">
        <h2 id={id}>{title}</h2>
      </div>
      <div class="table-wrap">
        <table class="table table-stack">
          <thead>
            <tr>
              <th>{column}</th>
              <th class="num">Requests</th>
              <th class="num">Failed</th>
              <th class="num">Prompt</th>
              <th class="num">Reply</th>
              <th class="num">Added</th>
              <th class="num">From cache</th>
              {priced ? <th class="num">Cost</th> : null}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr>
                <td>
                  <b class="table-title">{nameOf(row)}</b>
                </td>
                <td class="num" data-label="Requests">
                  {num(row.requests)}
                </td>
                <td class="num" data-label="Failed">
                  {num(row.errors)}
                </td>
                <td class="num" data-label="Prompt">
                  {num(row.tokensIn)}
                </td>
                <td class="num" data-label="Reply">
                  {num(row.tokensOut)}
                </td>
                <td class="num" data-label="Added">
                  {num(row.tokensInjected)}
                </td>
                <td class="num" data-label="From cache">
                  {num(row.tokensCached)}
                </td>
                {priced ? (
                  <td class="num" data-label="Cost">
                    {row.cost === null ? "–" : row.cost.toFixed(4)}
                  </td>
                ) : null}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
};

const keyName = (owners: readonly Owner[]) => (row: UsageGroup) =>
  row.keyId === null ? "without a key" : ownerName(owners, row.keyId);

export const UsagePage = ({ frame, days, byOwner, byModel, span, ttftMs }: UsageProps) => {
  const requests = sum(days, (one) => one.requests);
  const tokensIn = sum(days, (one) => one.tokensIn);
  const injected = sum(days, (one) => one.tokensInjected);
  const cached = sum(byModel, (row) => row.tokensCached);
  const cost = costSum(days);
  // What memory added is billed like the rest of the prompt.
  const memoryCost = cost !== null && tokensIn > 0 ? (cost * injected) / tokensIn : null;
  return (
    <ActivityPage frame={frame} tab="usage" title="Usage">
      <Tabs
        label="Period"
        small
        current={String(span)}
        items={[7, 30, 90].map((n) => ({
          id: String(n),
          text: `${n} days`,
          href: href("/dashboard/activity/usage", { owner: frame.owner, days: n === 30 ? null : n }),
        }))}
      />
      <div class="below">
        {requests === 0 ? (
          <section class="panel" aria-label="Usage">
            <Empty title="No request in this period">
              <p>Tokens, cost and what memory added appear here by day.</p>
            </Empty>
          </section>
        ) : (
          <>
            <dl class="board">
              <Figure
                name="Requests"
                value={num(requests)}
                note={
                  requests >= days.length ? `${num(requests / days.length)} a day` : `in ${days.length} days`
                }
              />
              <Figure
                name="Prompt tokens"
                value={large(tokensIn)}
                note={
                  cost === null
                    ? `${num(tokensIn > 0 ? (cached / tokensIn) * 100 : 0)}% from the provider's cache`
                    : `cost ${cost.toFixed(2)} with replies`
                }
              />
              <Figure
                name="Added by memory"
                value={large(injected)}
                note={`${tokensIn > 0 ? ((injected / tokensIn) * 100).toFixed(1) : "0"}% of the prompt, ${num(injected / requests)} a request${memoryCost === null ? "" : `, about ${memoryCost.toFixed(2)}`}`}
              />
              <Figure
                name="First token"
                value={
                  ttftMs === null
                    ? "–"
                    : { value: ms(ttftMs).split(" ")[0]!, unit: ms(ttftMs).split(" ")[1]! }
                }
                note={ttftMs === null ? "no reply yet" : "on average"}
              />
            </dl>
            <section class="panel" aria-labelledby="uc-h">
              <div class="panel-head">
                <h2 id="uc-h">Prompt tokens by day</h2>
                <ul class="legend">
                  <li>
                    <Swatch fill="fill-4" />
                    from clients
                  </li>
                  <li>
                    <Swatch fill="fill-1" />
                    added by memory
                  </li>
                </ul>
              </div>
              <div class="panel-pad">
                <Chart days={days} />
              </div>
              <Disclosure title="Show as a table" class="disclosure-foot">
                <div class="disclosure-body scroll-list" tabindex={0} role="region" aria-label="Usage by day">
                  <table class="table">
                    <thead>
                      <tr>
                        <th>Day</th>
                        <th class="num">Requests</th>
                        <th class="num">Prompt</th>
                        <th class="num">Added</th>
                        {cost === null ? null : <th class="num">Cost</th>}
                        {cost === null ? null : <th class="num">Of it memory</th>}
                      </tr>
                    </thead>
                    <tbody>
                      {[...days].reverse().map((one) => (
                        <tr>
                          <td>{day(one.day)}</td>
                          <td class="num">{num(one.requests)}</td>
                          <td class="num">{num(one.tokensIn)}</td>
                          <td class="num">{num(one.tokensInjected)}</td>
                          {cost === null ? null : (
                            <>
                              <td class="num">{one.cost === null ? "–" : one.cost.toFixed(4)}</td>
                              <td class="num">{memoryShare(one)}</td>
                            </>
                          )}
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              </Disclosure>
            </section>
            <Groups title="By key" id="uk-h" rows={byOwner} nameOf={keyName(frame.owners)} column="Key" />
            <Groups
              title="By model"
              id="um-h"
              rows={byModel}
              nameOf={(row) => row.model ?? "–"}
              column="Model"
            />
          </>
        )}
      </div>
    </ActivityPage>
  );
};
