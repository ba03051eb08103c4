/**
 * Counters and histograms in Prometheus' text format. Each thread has its own `createMetrics()`; a snapshot crosses
 * threads as plain data, and `renderMetrics` adds snapshots up.
 */

import type { MiddlewareHandler } from "hono";
import { routePath } from "hono/route";

const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

const counters = {
  recollect_requests_total: "Requests by route and status.",
  recollect_tokens_total: "Tokens by kind: in, out, injected, cached.",
  recollect_retrieval_dropped_total: "Channels left out of a retrieval, by channel and reason.",
  recollect_embedding_cache_hits_total: "Embeddings answered from the cache.",
  recollect_extraction_total: "Exchanges read for memories, by result.",
} as const;

const histograms = {
  recollect_request_seconds: "Time to answer, by route.",
  recollect_added_seconds: "Time that the proxy itself added to a request.",
  recollect_ttft_seconds: "Time to the first token of a stream.",
  recollect_retrieval_seconds: "Time of a retrieval by channel.",
} as const;

const gauges = {
  recollect_memories: "Memories by status.",
  recollect_jobs: "Jobs by state.",
  recollect_qdrant_up: "1 when the last real call to Qdrant worked.",
} as const;

export type CounterName = keyof typeof counters;
export type HistogramName = keyof typeof histograms;
export type GaugeName = keyof typeof gauges;
export type Labels = Readonly<Record<string, string | number>>;

/** One series: its labels as they are printed, and its value (histograms: count by bucket, then the sum). */
export type MetricsSnapshot = {
  counters: [name: CounterName, labels: string, value: number][];
  histograms: [name: HistogramName, labels: string, buckets: number[], sum: number][];
  gauges: [name: GaugeName, labels: string, value: number][];
};

export type Metrics = {
  count(name: CounterName, labels?: Labels, by?: number): void;
  /** `value` in seconds. */
  observe(name: HistogramName, value: number, labels?: Labels): void;
  set(name: GaugeName, value: number, labels?: Labels): void;
  /** One series of a counter, for who counts in it on every request: its labels are put into text once. */
  counter(name: CounterName, labels?: Labels): (by?: number) => void;
  histogram(name: HistogramName, labels?: Labels): (value: number) => void;
  snapshot(): MetricsSnapshot;
};

export function createMetrics(): Metrics {
  const counted = new Map<string, MetricsSnapshot["counters"][number]>();
  const observed = new Map<string, MetricsSnapshot["histograms"][number]>();
  const levels = new Map<string, MetricsSnapshot["gauges"][number]>();
  const countedRow = (name: CounterName, labels?: Labels) => {
    const text = labels ? labelText(labels) : "";
    let row = counted.get(name + text);
    if (!row) counted.set(name + text, (row = [name, text, 0]));
    return row;
  };
  const observedRow = (name: HistogramName, labels?: Labels) => {
    const text = labels ? labelText(labels) : "";
    let row = observed.get(name + text);
    if (!row) observed.set(name + text, (row = [name, text, seconds.map(() => 0).concat(0), 0]));
    return row;
  };
  return {
    counter(name, labels) {
      const row = countedRow(name, labels);
      return (by = 1) => void (row[2] += by);
    },
    histogram(name, labels) {
      const row = observedRow(name, labels);
      return (value) => put(row, value);
    },
    count: (name, labels, by = 1) => void (countedRow(name, labels)[2] += by),
    observe: (name, value, labels) => put(observedRow(name, labels), value),
    set(name, value, labels = {}) {
      const text = labelText(labels);
      levels.set(name + text, [name, text, value]);
    },
    snapshot: () =>
      structuredClone({
        counters: [...counted.values()],
        histograms: [...observed.values()],
        gauges: [...levels.values()],
      }),
  };
}

function put(row: MetricsSnapshot["histograms"][number], value: number): void {
  let at = 0;
  while (at < seconds.length && !(value <= seconds[at]!)) at++;
  row[2][at] = row[2][at]! + 1;
  row[3] += value;
}

/** Counts requests and their time to answer by route pattern, which must be the innermost one: mount it per app. */
export function countRequests(metrics: Metrics): MiddlewareHandler {
  return async (c, next) => {
    const started = performance.now();
    await next();
    const route = routePath(c);
    metrics.count("recollect_requests_total", { route, status: c.res.status });
    metrics.observe("recollect_request_seconds", (performance.now() - started) / 1000, { route });
  };
}

/** The snapshots of all threads as one exposition (text format 0.0.4); series of the same name and labels are added. */
export function renderMetrics(snapshots: MetricsSnapshot[]): string {
  const lines: string[] = [];
  for (const [name, help] of Object.entries(counters)) {
    const rows = sum(snapshots.flatMap((part) => part.counters).filter((row) => row[0] === name));
    head(lines, name, help, "counter");
    for (const [labels, value] of rows) lines.push(`${name}${braces(labels)} ${value}`);
  }
  for (const [name, help] of Object.entries(gauges)) {
    const rows = sum(snapshots.flatMap((part) => part.gauges).filter((row) => row[0] === name));
    head(lines, name, help, "gauge");
    for (const [labels, value] of rows) lines.push(`${name}${braces(labels)} ${value}`);
  }
  for (const [name, help] of Object.entries(histograms)) {
    head(lines, name, help, "histogram");
    const rows = snapshots.flatMap((part) => part.histograms).filter((row) => row[0] === name);
    for (const [labels, same] of Map.groupBy(rows, (row) => row[1])) {
      let total = 0;
      for (const [at, bound] of [...seconds, "+Inf"].entries()) {
        total += same.reduce((all, row) => all + (row[2][at] ?? 0), 0);
        lines.push(`${name}_bucket${braces(labels, `le="${bound}"`)} ${total}`);
      }
      const all = same.reduce((value, row) => value + row[3], 0);
      lines.push(`${name}_sum${braces(labels)} ${all}`, `${name}_count${braces(labels)} ${total}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function head(lines: string[], name: string, help: string, type: string): void {
  lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
}

function sum(rows: [name: string, labels: string, value: number][]): Map<string, number> {
  const totals = new Map<string, number>();
  for (const [, labels, value] of rows) totals.set(labels, (totals.get(labels) ?? 0) + value);
  return totals;
}

function braces(labels: string, more = ""): string {
  const all = [labels, more].filter(Boolean).join(",");
  return all ? `{${all}}` : "";
}

function labelText(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escape(String(value))}"`)
    .join(",");
}

/** Label values escape backslash, quote and line feed. */
function escape(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
