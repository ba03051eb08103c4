/** The figures above the list of memories. */
import { memoryTypes } from "../src/memory/types.ts";
import { Bar, Dot, type Fill, type State, Swatch } from "./figures.tsx";
import { num } from "./format.ts";

export interface MemoryStats {
  total: number;
  byType: Readonly<Record<string, number>>;
  tokensUsed: number;
  hitRate: number | null;
  hits: number;
  misses: number;
}

export interface Health {
  working: boolean;
  latencyMs: number;
  error?: string | undefined;
}

const typeFill: Record<string, Fill> = {
  factual: "fill-1",
  episodic: "fill-3",
  procedural: "fill-2",
  semantic: "fill-4",
};

export const HealthCell = ({ health }: { health: Health | null }) => {
  const [state, note]: [State, string] = !health
    ? ["busy", "being checked"]
    : health.working
      ? ["ok", "learn, store and recall work"]
      : ["bad", health.error ?? "the round trip failed"];
  return (
    <div
      class="cell"
      id="memory-health"
      hx-get="/dashboard/memory/health"
      hx-trigger={health ? "every 30s" : "load, every 30s"}
    >
      <dt>
        <Dot state={state} />
        Health
      </dt>
      <dd class="cell-value">
        {health?.working ? (
          <>
            {num(Math.max(1, health.latencyMs))}
            <small> ms</small>
          </>
        ) : health ? (
          "Down"
        ) : (
          "…"
        )}
      </dd>
      <dd class="cell-note">{note}</dd>
    </div>
  );
};

export const StatsBoard = ({ stats, health }: { stats: MemoryStats; health: Health | null }) => {
  const parts = memoryTypes.map((type) => [type, stats.byType[type] ?? 0] as const);
  return (
    <dl class="board board-stats" id="memory-stats" aria-label="In this list">
      <div class="cell">
        <dt>Total entries</dt>
        <dd class="cell-value">{num(stats.total)}</dd>
        <dd>
          <Bar
            parts={parts.map(([type, n]) => [
              stats.total ? (n / stats.total) * 100 : 0,
              typeFill[type] ?? "fill-4",
            ])}
          />
          <ul class="legend">
            {parts.map(([type, n]) => (
              <li>
                <Swatch fill={typeFill[type] ?? "fill-4"} />
                {type} {num(n)}
              </li>
            ))}
          </ul>
        </dd>
      </div>
      <div class="cell">
        <dt>Tokens used</dt>
        <dd class="cell-value">{num(stats.tokensUsed)}</dd>
        <dd class="cell-note">
          {stats.total ? `${num(stats.tokensUsed / stats.total)} an entry` : "nothing stored yet"}
        </dd>
      </div>
      <div class="cell">
        <dt>Hit rate</dt>
        {stats.hitRate === null ? (
          <>
            <dd class="cell-value">–</dd>
            <dd class="cell-note">no reads yet</dd>
          </>
        ) : (
          <>
            <dd class="cell-value">
              {Math.round(stats.hitRate * 100)}
              <small>%</small>
            </dd>
            <dd class="cell-note">
              {num(stats.hits)} of {num(stats.hits + stats.misses)} reads from the cache
            </dd>
          </>
        )}
      </div>
      <HealthCell health={health} />
    </dl>
  );
};
