/** The round trip that proves that learning, storing and recalling work; its last result is shown at once. */
import type { Health } from "../../views/memories.tsx";
import type { StudioDeps } from "./context.tsx";

export type HealthMemo = { last: Health | null };

/** What the last round trip said; null before the first. */
export const lastHealth = (deps: Pick<StudioDeps, "health">): Health | null => deps.health.last;

/** Runs the round trip, or takes the result of one in the last seconds. Never throws: a failure is a result. */
export async function readHealth(deps: StudioDeps): Promise<Health> {
  deps.health.last = await deps.engine.status.health();
  return deps.health.last;
}
