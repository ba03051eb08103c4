/** Usage rows: what a request cost, by the provider's word or, where it has none, by estimate. */
import type { UsageRow } from "../db/usage.ts";
import type { Metrics } from "../metrics.ts";
import { estimateTokens } from "../memory/budget.ts";
import type { TokenUsage } from "../upstream/capture.ts";
import type { Upstream } from "../upstream/providers.ts";

/** Cost of a request in the currency of the provider's prices (for a million tokens), or null without prices. */
export function costOf(upstream: Upstream, model: string, usage: TokenUsage): number | null {
  const price = upstream.prices?.[model] ?? upstream.prices?.["*"];
  if (!price) return null;
  const plain = Math.max(0, usage.input - usage.cached);
  return (
    (plain * price.input + usage.cached * (price.cached ?? price.input) + usage.output * price.output) /
    1_000_000
  );
}

/** The provider's numbers, else estimated ones. */
export function tokensOf(
  usage: TokenUsage | null,
  sent: string | number,
  reply: string,
): { usage: TokenUsage; estimated: boolean } {
  if (usage && (usage.input > 0 || usage.output > 0)) return { usage, estimated: false };
  const input = typeof sent === "number" ? sent : estimateTokens(sent);
  return { usage: { input, output: estimateTokens(reply), cached: 0 }, estimated: true };
}

/** Collects rows and writes them together, so that a busy box does not write one by one. */
export function createUsageBuffer(
  write: (rows: UsageRow[]) => Promise<void>,
  onError: (error: unknown) => void,
  metrics: Pick<Metrics, "count" | "observe">,
) {
  let rows: UsageRow[] = [];
  let timer: ReturnType<typeof setTimeout> | null = null;
  const flush = async (): Promise<void> => {
    if (timer) clearTimeout(timer);
    timer = null;
    const batch = rows;
    rows = [];
    if (batch.length > 0) await write(batch).catch(onError);
  };
  return {
    add(row: UsageRow): void {
      countUsage(metrics, row);
      rows.push(row);
      timer ??= setTimeout(() => void flush(), FLUSH_MS);
    },
    flush,
  };
}

/** Counts what a row says: tokens by kind, and the time to the first one. */
export function countUsage(metrics: Pick<Metrics, "count" | "observe">, row: UsageRow): void {
  const kinds = {
    in: row.tokensIn,
    out: row.tokensOut,
    injected: row.tokensInjected,
    cached: row.tokensCached,
  };
  for (const [kind, tokens] of Object.entries(kinds)) {
    if (tokens > 0) metrics.count("recollect_tokens_total", { kind }, tokens);
  }
  if (row.ttftMs !== null) metrics.observe("recollect_ttft_seconds", row.ttftMs / 1000);
}

/** A row is in the database this long after its reply at the latest. */
const FLUSH_MS = 50;
