/** One real call to a provider, and what came of it in words. */
import { hostOf, resolveBaseUrl } from "../upstream/policy.ts";
import { probe } from "../upstream/probe.ts";
import { DEFAULT_TIMEOUTS, type NewProvider, type Upstream } from "../upstream/providers.ts";
import type { TestResult } from "../../views/providers.tsx";
import type { StudioDeps } from "./context.tsx";

export function tryProvider(deps: StudioDeps, id: string, signal: AbortSignal): Promise<TestResult> {
  return probe(deps.transport, deps.providers.upstream(id), signal);
}

/** Tries what is in the form, without keeping any of it. 400 for what the URL policy refuses. */
export async function tryNew(
  deps: StudioDeps,
  values: NewProvider,
  signal: AbortSignal,
): Promise<TestResult> {
  const base = resolveBaseUrl(values.baseUrl);
  const upstream: Upstream = {
    id: values.id,
    base,
    host: hostOf(base),
    apiKey: values.apiKey ?? null,
    headers: values.headers ?? {},
    wire: new Set(values.wire ?? ["chat"]),
    systemRole: values.systemRole ?? "auto",
    models: values.models ?? null,
    timeouts: DEFAULT_TIMEOUTS,
    fallbacks: [],
    prices: null,
    passthroughAuth: false,
    isDefault: false,
    learned: {},
    updatedAt: 0,
    builtin: false,
  };
  return probe(deps.transport, upstream, signal);
}
