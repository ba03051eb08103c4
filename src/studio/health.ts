/** The round trip that proves that learning, storing and recalling work; its last result is shown at once. */
import type { Health } from "../../views/memory-stats.tsx";
import type { StudioDeps } from "./context.tsx";

export type HealthMemo = { last: Health | null };

/** What the last round trip said; null before the first. */
export const lastHealth = (deps: Pick<StudioDeps, "health">): Health | null => deps.health.last;

/** Runs the round trip, or takes the result of one in the last seconds. */
export async function readHealth(deps: StudioDeps): Promise<Health> {
  const { working, latencyMs, error } = await deps.engine.status.health();
  deps.health.last = { working, latencyMs, ...(error === undefined ? {} : { error }) };
  return deps.health.last;
}
