/**
 * The engine as every face sees it: groups of calls, each with one plain argument and a promise of a plain result, so
 * that it makes no difference whether it runs in this thread (`memory/engine.ts`) or in its own (`worker/`).
 */
import type { LocalEngine } from "./memory/engine.ts";

type Call<F> = F extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never;
type Group<G> = { readonly [Name in keyof G]: Call<G[Name]> };

export type Engine = { readonly [Name in keyof LocalEngine]: Group<LocalEngine[Name]> };
