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
      rows.push(row);
      timer ??= setTimeout(() => void flush(), FLUSH_MS);
    },
    flush,
  };
}

/** A row is in the database this long after its reply at the latest. */
const FLUSH_MS = 50;

/** Adds rows to what `/metrics` shows. */
export function countUsage(metrics: Metrics, rows: readonly UsageRow[]): void {
  const sums = { in: 0, out: 0, injected: 0, cached: 0 };
  for (const row of rows) {
    sums.in += row.tokensIn;
    sums.out += row.tokensOut;
    sums.injected += row.tokensInjected;
    sums.cached += row.tokensCached;
    if (row.ttftMs !== null) metrics.observe("recollect_ttft_seconds", row.ttftMs / 1000);
  }
  for (const [kind, tokens] of Object.entries(sums))
    if (tokens > 0) metrics.count("recollect_tokens_total", { kind }, tokens);
}
