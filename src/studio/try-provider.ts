/** One real call to a provider, and what came of it in words. */
import type { TestResult } from "../../views/providers.tsx";
import type { NewProvider } from "../upstream/providers.ts";
import type { StudioDeps } from "./context.tsx";

export async function tryProvider(deps: StudioDeps, id: string): Promise<TestResult> {
  void deps;
  return { ok: false, latencyMs: 0, error: `${id} was not tested.` };
}

export async function tryNew(deps: StudioDeps, values: NewProvider): Promise<TestResult> {
  return tryProvider(deps, values.id);
}
