/** The providers of this box: kept in the database, checked and sealed here, read through a cache by the proxy. */
import type { Database } from "bun:sqlite";
import type { z } from "zod";
import {
  deleteProviderRow,
  listProviderRows,
  providerRow,
  providersStamp,
  putProviderRow,
  writeLearned,
} from "../db/providers.ts";
import type { ProviderRow } from "../db/providers.ts";
import { transact } from "../db/open.ts";
import { iso } from "../db/time.ts";
import { createWatch } from "../db/watch.ts";
import type { Watch } from "../db/watch.ts";
import { AppError, conflict, invalid, notFound } from "../error.ts";
import type { Wire } from "../memory/conversation.ts";
import type { Form, SystemRole } from "../memory/inject.ts";
import type { newProvider, prices, provider, providerChanges } from "../schemas/providers.ts";
import { maskSecret } from "../seal.ts";
import type { Seal } from "../seal.ts";
import { hostOf, resolveBaseUrl } from "./policy.ts";
import type { Timeouts } from "./roundtrip.ts";

export type Provider = z.infer<typeof provider>;
export type NewProvider = z.infer<typeof newProvider>;
export type ProviderChanges = z.infer<typeof providerChanges>;
export type Prices = z.infer<typeof prices>;

/** What was learned from a server's refusals; forgotten when the provider is edited. */
export interface Learned {
  noStreamOptions?: boolean;
  /** The form that worked, by model, where it is not the one the policy starts from. */
  forms?: Record<string, Form>;
}

/** A provider as requests use it, secrets open. */
export interface Upstream {
  id: string;
  /** Without a trailing slash: `https://api.openai.com/v1`. */
  base: string;
  host: string;
  apiKey: string | null;
  headers: Record<string, string>;
  wire: ReadonlySet<Wire>;
  systemRole: "auto" | SystemRole;
  models: string[] | null;
  timeouts: Timeouts;
  fallbacks: string[];
  prices: Prices | null;
  passthroughAuth: boolean;
  isDefault: boolean;
  learned: Learned;
  updatedAt: number;
  /** Answered in this process (`demo`). */
  builtin: boolean;
}

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 10_000, firstByteMs: 300_000, idleMs: 120_000 };
export const DEMO_ID = "demo";
const DEMO_URL = "builtin:demo";

/** Characters of masks, which no real secret holds. */
const MASK = /[…•]/;

export type Providers = ReturnType<typeof createProviders>;

export function createProviders(deps: {
  db: Database;
  seal: Seal;
  watch?: Watch;
  now?: () => number;
  /** Adds the built-in provider `demo`. */
  demo?: boolean;
}) {
  const { db, seal } = deps;
  const now = deps.now ?? Date.now;
  const watch = deps.watch ?? createWatch(db);
  const demo = deps.demo ? demoUpstream() : null;
  let seen = -1;
  let stamp = "";
  let cached: Upstream[] | null = null;

  /** Enabled providers, oldest first; another process's writes are noticed. */
  function active(): Upstream[] {
    const current = watch();
    if (cached && current === seen) return cached;
    seen = current;
    const now = providersStamp(db);
    if (!cached || now !== stamp) {
      stamp = now;
      cached = listProviderRows(db)
        .filter((row) => row.enabled === 1)
        .map((row) => open(row, seal));
      if (demo) {
        cached.push(demo);
        demo.isDefault = !cached.some((one) => one !== demo && one.isDefault);
      }
    }
    return cached;
  }

  function write(row: ProviderRow): Provider {
    cached = null;
    return transact(db, () => {
      for (const id of JSON.parse(row.fallbacks) as string[]) {
        if (id === row.id) throw invalid("fallbacks", "a provider cannot be its own fallback");
        if (!providerRow(db, id)) throw invalid("fallbacks", `there is no provider ${id}`);
      }
      putProviderRow(db, row);
      return show(row);
    });
  }

  function show(row: ProviderRow): Provider {
    const { apiKey, headers, timeouts } = open(row, seal);
    return {
      id: row.id,
      baseUrl: row.base_url,
      resolvedUrl: resolveBaseUrl(row.base_url),
      apiKeyMasked: apiKey === null ? null : maskSecret(apiKey),
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, maskSecret(value)])),
      wire: JSON.parse(row.wire) as Wire[],
      systemRole: row.system_role as Provider["systemRole"],
      models: row.models === null ? null : (JSON.parse(row.models) as string[]),
      timeouts,
      fallbacks: JSON.parse(row.fallbacks) as string[],
      prices: row.prices === null ? null : (JSON.parse(row.prices) as Prices),
      passthroughAuth: row.passthrough_auth === 1,
      enabled: row.enabled === 1,
      default: row.is_default === 1,
      createdAt: iso(row.created_at),
      updatedAt: iso(row.updated_at),
    };
  }

  function apply(row: ProviderRow, given: ProviderChanges): ProviderRow {
    const next = { ...row, learned: "{}", updated_at: Math.max(now(), row.updated_at + 1) };
    if (given.baseUrl !== undefined) {
      resolveBaseUrl(given.baseUrl);
      next.base_url = given.baseUrl.trim();
    }
    if (given.apiKey !== undefined && !isMasked(given.apiKey, row.api_key, seal)) {
      if (given.apiKey !== null && MASK.test(given.apiKey))
        throw invalid("apiKey", "is a masked key, not a key");
      next.api_key = given.apiKey ? seal.seal(given.apiKey) : null;
    }
    if (given.headers !== undefined) {
      const before = openHeaders(row.headers, seal);
      // A masked value that comes back as it was shown changes nothing.
      const headers = Object.fromEntries(
        Object.entries(given.headers).map(([name, value]) => {
          const old = before[name];
          if (old !== undefined && value === maskSecret(old)) return [name, old];
          if (MASK.test(value)) throw invalid(`headers.${name}`, "is a masked value, not a value");
          return [name, value];
        }),
      );
      next.headers = Object.keys(headers).length > 0 ? seal.seal(JSON.stringify(headers)) : null;
    }
    if (given.wire !== undefined) next.wire = JSON.stringify([...new Set(given.wire)]);
    if (given.systemRole !== undefined) next.system_role = given.systemRole;
    if (given.models !== undefined) next.models = given.models === null ? null : JSON.stringify(given.models);
    if (given.timeouts !== undefined) {
      const known = row.timeouts === null ? {} : (JSON.parse(row.timeouts) as Partial<Timeouts>);
      next.timeouts = JSON.stringify({ ...known, ...given.timeouts });
    }
    if (given.fallbacks !== undefined) next.fallbacks = JSON.stringify([...new Set(given.fallbacks)]);
    if (given.prices !== undefined) next.prices = given.prices === null ? null : JSON.stringify(given.prices);
    if (given.passthroughAuth !== undefined) next.passthrough_auth = Number(given.passthroughAuth);
    if (given.enabled !== undefined) next.enabled = Number(given.enabled);
    if (given.default !== undefined) next.is_default = Number(given.default);
    return next;
  }

  function refuseDemo(id: string): void {
    if (id === DEMO_ID && demo)
      throw conflict("The provider demo is built in; start without --demo to be rid of it.", "id");
  }

  return {
    active,
    list(): Provider[] {
      active();
      return [...listProviderRows(db).map(show), ...(demo ? [showDemo(demo)] : [])];
    },
    find(id: string): Provider | null {
      if (id === DEMO_ID && demo) return showDemo(demo);
      const row = providerRow(db, id);
      return row ? show(row) : null;
    },
    /** 409 when the id is taken, 400 for what the URL policy refuses. The first provider becomes the default. */
    create(given: NewProvider): Provider {
      const { id, ...fields } = given;
      refuseDemo(id);
      if (providerRow(db, id)) throw conflict(`There is a provider ${id} already.`, "id");
      const at = now();
      const row = apply(
        {
          id,
          base_url: "",
          api_key: null,
          headers: null,
          wire: '["chat"]',
          system_role: "auto",
          models: null,
          timeouts: null,
          fallbacks: "[]",
          prices: null,
          passthrough_auth: 0,
          enabled: 1,
          is_default: Number(listProviderRows(db).length === 0),
          learned: "{}",
          created_at: at,
          updated_at: at,
        },
        fields,
      );
      return write({ ...row, updated_at: at });
    },
    /** Changes what is given; also forgets what was learned about the server. */
    change(id: string, given: ProviderChanges): Provider {
      refuseDemo(id);
      const row = providerRow(db, id);
      if (!row) throw notFound("provider");
      return write(apply(row, given));
    },
    /** 409 while another provider falls back to it. */
    remove(id: string): void {
      refuseDemo(id);
      transact(db, () => {
        const user = listProviderRows(db).find((row) => (JSON.parse(row.fallbacks) as string[]).includes(id));
        if (user) throw conflict(`The provider ${user.id} falls back to ${id}; change that first.`);
        if (!deleteProviderRow(db, id)) throw notFound("provider");
      });
      cached = null;
    },
    /** The provider of `serve --upstream`: the same one next time, and the default. */
    ensure(url: string): Provider {
      const base = resolveBaseUrl(url);
      const known = listProviderRows(db).find((row) => resolveBaseUrl(row.base_url) === base);
      const { host } = new URL(base);
      const id =
        known?.id ??
        (host
          .replace(/[^a-z0-9._-]+/g, "-")
          .replace(/^[^a-z0-9]+/, "")
          .slice(0, 64) ||
          "upstream");
      const row = known ?? providerRow(db, id);
      if (!row) return this.create({ id, baseUrl: url, default: true });
      return row.is_default === 1 && row.enabled === 1 && known
        ? show(row)
        : this.change(id, { baseUrl: url, default: true, enabled: true });
    },
    /** Remembers what a refusal taught, until the provider is edited. */
    learn(upstream: Upstream, add: Learned): void {
      const { learned } = upstream;
      if (add.noStreamOptions) learned.noStreamOptions = true;
      if (add.forms) learned.forms = { ...learned.forms, ...add.forms };
      if (!upstream.builtin) writeLearned(db, upstream.id, upstream.updatedAt, JSON.stringify(learned));
    },
    /** The provider of an id, enabled or not, with its secrets, for a test call. */
    upstream(id: string): Upstream {
      if (id === DEMO_ID && demo) return demo;
      const row = providerRow(db, id);
      if (!row) throw notFound("provider");
      return open(row, seal);
    },
  };
}

function open(row: ProviderRow, seal: Seal): Upstream {
  const base = resolveBaseUrl(row.base_url);
  return {
    id: row.id,
    base,
    host: hostOf(base),
    apiKey: row.api_key === null ? null : seal.open(row.api_key),
    headers: openHeaders(row.headers, seal),
    wire: new Set(JSON.parse(row.wire) as Wire[]),
    systemRole: row.system_role as Upstream["systemRole"],
    models: row.models === null ? null : (JSON.parse(row.models) as string[]),
    timeouts: {
      ...DEFAULT_TIMEOUTS,
      ...(row.timeouts === null ? {} : (JSON.parse(row.timeouts) as Partial<Timeouts>)),
    },
    fallbacks: JSON.parse(row.fallbacks) as string[],
    prices: row.prices === null ? null : (JSON.parse(row.prices) as Prices),
    passthroughAuth: row.passthrough_auth === 1,
    isDefault: row.is_default === 1,
    learned: JSON.parse(row.learned) as Learned,
    updatedAt: row.updated_at,
    builtin: false,
  };
}

function openHeaders(sealed: Uint8Array | null, seal: Seal): Record<string, string> {
  const text = sealed === null ? null : seal.open(sealed);
  return text === null ? {} : (JSON.parse(text) as Record<string, string>);
}

function isMasked(given: string | null, sealed: Uint8Array | null, seal: Seal): boolean {
  const known = sealed === null ? null : seal.open(sealed);
  return given !== null && known !== null && given === maskSecret(known);
}

function demoUpstream(): Upstream {
  return {
    id: DEMO_ID,
    base: DEMO_URL,
    host: DEMO_ID,
    apiKey: null,
    headers: {},
    wire: new Set<Wire>(["chat", "responses", "messages"]),
    systemRole: "system",
    models: ["echo"],
    timeouts: DEFAULT_TIMEOUTS,
    fallbacks: [],
    prices: null,
    passthroughAuth: false,
    isDefault: false,
    learned: {},
    updatedAt: 0,
    builtin: true,
  };
}

function showDemo(demo: Upstream): Provider {
  return {
    id: DEMO_ID,
    baseUrl: DEMO_URL,
    resolvedUrl: DEMO_URL,
    apiKeyMasked: null,
    headers: {},
    wire: [...demo.wire],
    systemRole: "system",
    models: demo.models,
    timeouts: demo.timeouts,
    fallbacks: [],
    prices: null,
    passthroughAuth: false,
    enabled: true,
    default: demo.isDefault,
    createdAt: iso(0),
    updatedAt: iso(0),
  };
}

/** 503 when nothing is set up to answer. */
export function noProvider(): AppError {
  return new AppError(
    "no_provider",
    "No provider is set up and enabled. Add one with `recollect provider add ID URL --default`, turn one on in the Studio, or start with --demo.",
  );
}
