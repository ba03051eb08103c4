/** Whether the box lives, whether it works, and what it counts. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { renderMetrics, type Metrics } from "../metrics.ts";
import { operation, type Operation } from "./operation.ts";

export type BoxDeps = { engine: Engine; metrics: Metrics; version: string };

export function boxOperations({ engine, metrics, version }: BoxDeps): Operation[] {
  return [
    operation({
      method: "get",
      path: "/health",
      tag: "Box",
      summary: "The process answers",
      access: "public",
      answer: z.strictObject({ status: z.literal("ok"), version: z.string(), uptimeSeconds: z.int() }),
      handle: () => ({ status: "ok" as const, version, uptimeSeconds: Math.floor(performance.now() / 1000) }),
    }),
    operation({
      method: "get",
      path: "/ready",
      tag: "Box",
      summary: "The engine and its database answer; 503 with the reason when they do not",
      access: "local",
      answer: z.strictObject({ status: z.literal("ready") }),
      handle: async () => {
        await engine.jobs.counts({ owner: null });
        return { status: "ready" as const };
      },
    }),
    operation({
      method: "get",
      path: "/metrics",
      tag: "Box",
      summary: "Counters and histograms for Prometheus",
      access: "local",
      answer: { type: "text/plain", description: "text format 0.0.4" },
      handle: async () =>
        new Response(renderMetrics([metrics.snapshot(), await engine.metrics.snapshot()]), {
          headers: {
            "Content-Type": "text/plain; version=0.0.4; charset=utf-8",
            "Cache-Control": "no-store",
          },
        }),
    }),
  ];
}
