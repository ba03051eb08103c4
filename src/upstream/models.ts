/** What models each provider has, asked from its `/models` and kept: for routing, for `/v1/models`, for context lengths. */
import { AppError } from "../error.ts";
import type { Wire } from "../memory/conversation.ts";
import { isObject } from "../memory/conversation.ts";
import { call } from "./answer.ts";
import { upstreamHeaders } from "./headers.ts";
import { noProvider } from "./providers.ts";
import type { Providers, Upstream } from "./providers.ts";
import { targetOf } from "./target.ts";
import type { Transport } from "./transport.ts";

export interface ListedModel {
  id: string;
  created: number;
  ownedBy: string;
  /** Tokens of context, where the provider says so. */
  context: number | null;
  /** The entry as the provider gave it. */
  raw: Record<string, unknown>;
}

interface Known {
  models: Map<string, ListedModel>;
  /** When it was last asked, and whether that worked. */
  at: number;
  fresh: boolean;
  updatedAt: number;
  asking: Promise<void> | null;
}

interface Routed {
  upstream: Upstream;
  /** The name as the provider knows it. */
  model: string;
}

/** A list is asked for again after this, a failed one sooner. */
const FRESH_MS = 5 * 60_000;
const FAILED_MS = 30_000;
const LIST_LIMIT = 16 << 20;
const ASK_TIMEOUTS = { connectMs: 3000, firstByteMs: 5000, idleMs: 5000 };
/** How long a request waits for lists that were never read. */
const WAIT_MS = 1500;

export type Models = ReturnType<typeof createModels>;

export function createModels(deps: { providers: Providers; transport: Transport; now?: () => number }) {
  const now = deps.now ?? Date.now;
  const lists = new Map<string, Known>();

  function known(upstream: Upstream): Known {
    let entry = lists.get(upstream.id);
    if (!entry || entry.updatedAt !== upstream.updatedAt) {
      entry = { models: new Map(), at: 0, fresh: false, updatedAt: upstream.updatedAt, asking: null };
      lists.set(upstream.id, entry);
    }
    if (upstream.models) {
      entry.models = new Map(upstream.models.map((id) => [id, entry.models.get(id) ?? manual(upstream, id)]));
    }
    return entry;
  }

  /** Asks a provider when its list is old; resolves when it is known or cannot be. */
  function refresh(upstream: Upstream): Promise<void> {
    const entry = known(upstream);
    if (upstream.builtin || upstream.models) return Promise.resolve();
    if (entry.at > 0 && now() - entry.at < (entry.fresh ? FRESH_MS : FAILED_MS)) return Promise.resolve();
    entry.asking ??= ask(deps.transport, upstream)
      .then(
        (models) => {
          entry.models = models;
          entry.fresh = true;
        },
        () => {
          // The old list stays: an upstream that is down has the models it had.
          entry.fresh = false;
        },
      )
      .then(() => {
        entry.at = now();
        entry.asking = null;
      });
    return entry.asking;
  }

  /** Refreshes in the background; waits only for lists that were never read. */
  async function ready(upstreams: Upstream[]): Promise<void> {
    const first = upstreams.filter((one) => known(one).at === 0 && !one.models && !one.builtin);
    const all = upstreams.map(refresh);
    if (first.length > 0) await within(Promise.all(all), WAIT_MS);
  }

  return {
    /** Lists of all enabled providers. `wait` for at most this long where a list is not known yet. */
    async all(wait = 5000): Promise<{ upstream: Upstream; models: ListedModel[] }[]> {
      const active = deps.providers.active();
      await within(Promise.all(active.map(refresh)), wait);
      return active.map((upstream) => ({ upstream, models: [...known(upstream).models.values()] }));
    },
    /** Context length of a model where it is known; asks at most once before it answers. */
    async context(upstream: Upstream, model: string): Promise<number | null> {
      if (known(upstream).at === 0) await ready([upstream]);
      else void refresh(upstream);
      return known(upstream).models.get(model)?.context ?? null;
    },
    /**
     * The provider of a model name, and the name as the provider knows it. `provider/model` where the first part is a
     * provider's id; a bare name goes to who lists it, else to the default.
     */
    route(name: string, wire: Wire | null): Routed | Promise<Routed> {
      const active = deps.providers.active();
      if (active.length === 0) throw noProvider();
      const slash = name.indexOf("/");
      const named = slash > 0 ? active.find((one) => one.id === name.slice(0, slash)) : undefined;
      if (named) return { upstream: checkWire(named, wire), model: name.slice(slash + 1) };
      const fallback = active.find((one) => one.isDefault) ?? active[0]!;
      if (active.length === 1) return { upstream: checkWire(fallback, wire), model: name };
      return routeByLists(active, fallback, name, wire);
    },
  };

  async function routeByLists(
    active: Upstream[],
    fallback: Upstream,
    name: string,
    wire: Wire | null,
  ): Promise<Routed> {
    await ready(active);
    const listing = active.filter((one) => known(one).models.has(name));
    const speaking = wire === null ? listing : listing.filter((one) => one.wire.has(wire));
    const candidates = speaking.length > 0 ? speaking : listing;
    const chosen = candidates.find((one) => one.isDefault) ?? candidates[0] ?? fallback;
    return { upstream: checkWire(chosen, wire), model: name };
  }
}

function checkWire(upstream: Upstream, wire: Wire | null): Upstream {
  if (wire === null || upstream.wire.has(wire)) return upstream;
  throw new AppError(
    "wire_not_supported",
    `The provider ${upstream.id} is not set up for the format ${wire}. If it speaks it, add "${wire}" to its field wire; else name a model of a provider that does.`,
    { param: "model", details: [{ field: "model", message: `its provider does not speak ${wire}` }] },
  );
}

const manual = (upstream: Upstream, id: string): ListedModel => ({
  id,
  created: 0,
  ownedBy: upstream.id,
  context: null,
  raw: {},
});

async function ask(transport: Transport, upstream: Upstream): Promise<Map<string, ListedModel>> {
  const answer = await call(transport, {
    target: targetOf(`${upstream.base}/models`),
    method: "GET",
    headers: upstreamHeaders({ accept: "application/json" }, upstream, {
      messages: upstream.wire.has("messages") && !upstream.wire.has("chat"),
      ownAuthorization: false,
      json: false,
    }),
    body: null,
    timeouts: ASK_TIMEOUTS,
    signal: AbortSignal.timeout(15_000),
  });
  const { bytes, whole } = await answer.read(LIST_LIMIT);
  if (!whole) answer.abort();
  if (answer.status === 404 || answer.status === 405) return new Map();
  if (answer.status >= 400 || !whole) throw new Error(`status ${answer.status}`);
  const body: unknown = JSON.parse(bytes.toString());
  const list = Array.isArray(body) ? body : isObject(body) ? (body["data"] ?? body["models"]) : null;
  const models = new Map<string, ListedModel>();
  for (const raw of Array.isArray(list) ? (list as unknown[]) : []) {
    if (!isObject(raw)) continue;
    const id = raw["id"] ?? raw["name"];
    if (typeof id !== "string" || id === "") continue;
    models.set(id, {
      id,
      created: typeof raw["created"] === "number" ? raw["created"] : 0,
      ownedBy: typeof raw["owned_by"] === "string" ? raw["owned_by"] : upstream.id,
      context: contextOf(raw),
      raw,
    });
  }
  return models;
}

/** Servers name it differently: OpenRouter, vLLM, llama.cpp, LM Studio, Mistral. */
function contextOf(raw: Record<string, unknown>): number | null {
  const meta = isObject(raw["meta"]) ? raw["meta"] : {};
  for (const value of [
    raw["context_length"],
    raw["context_window"],
    raw["max_model_len"],
    raw["max_context_length"],
    meta["n_ctx"],
    meta["n_ctx_train"],
  ]) {
    if (typeof value === "number" && value > 0) return value;
  }
  return null;
}

async function within(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await Promise.race([
    work,
    new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    }),
  ]);
  clearTimeout(timer);
}
