/** What every Studio route shares: who asks, page or part, where to go back to, what was just done. */
import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { Child } from "hono/jsx";
import type { HtmlEscapedString } from "hono/utils/html";
import type { Admin } from "../admin.ts";
import type { Assets } from "../assets.ts";
import type { Auth, Env } from "../auth.ts";
import type { BackupControl } from "../backup-file.ts";
import type { Config } from "../config.ts";
import type { Engine } from "../engine.ts";
import { AppError, toAppError } from "../error.ts";
import type { Log } from "../log.ts";
import type { Models } from "../upstream/models.ts";
import type { Providers } from "../upstream/providers.ts";
import type { Transport } from "../upstream/transport.ts";
import { Partial, Toast } from "../../views/actions.tsx";
import type { Errors } from "../../views/fields.tsx";
import type { Chrome, Theme } from "../../views/layout.tsx";
import { type Owner, ownerName } from "../../views/owners.ts";
import type { HealthMemo } from "./health.ts";
import { type Done, words } from "./words.ts";

export type StudioDeps = {
  engine: Engine;
  admin: Admin;
  auth: Auth;
  config: Config;
  log: Log;
  version: string;
  assets: Assets;
  health: HealthMemo;
  memo: WeekMemo;
  providers: Providers;
  models: Models;
  transport: Transport;
  /** What only the server itself can do: back itself up, and become another box. */
  control: BackupControl;
};

export type StudioContext = Context<Env>;

export const THEME_COOKIE = "recollect_theme";
const FLASH_COOKIE = "recollect_flash";

/** htmx asks for a part of a page; a browser asks for the whole. */
export const isPart = (c: StudioContext): boolean => c.req.header("HX-Request-Type") === "partial";

export const themeOf = (c: StudioContext): Theme => {
  const theme = getCookie(c, THEME_COOKIE);
  return theme === "light" || theme === "dark" ? theme : "auto";
};

/** The page the caller looks at: with htmx its address bar, else where the form or link stood. */
export function currentUrl(c: StudioContext): URL {
  const here = new URL(c.req.url);
  for (const text of [c.req.header("HX-Current-URL"), c.req.header("Referer")]) {
    if (text && URL.canParse(text)) {
      const url = new URL(text);
      if (url.host === here.host && url.pathname.startsWith("/dashboard")) return url;
    }
  }
  return new URL("/dashboard/memory", here);
}

/** Path and query of the page the caller came from. */
export function back(c: StudioContext): string {
  const url = currentUrl(c);
  return url.pathname + url.search;
}

const cookieOptions = (c: StudioContext) =>
  ({ path: "/", httpOnly: true, sameSite: "Strict", secure: c.env.secure }) as const;

/** Writes and forgets small cookies with the rules of the session's. */
export const cookies = {
  set: (c: StudioContext, name: string, value: string, maxAge: number) =>
    setCookie(c, name, value, { ...cookieOptions(c), maxAge }),
  drop: (c: StudioContext, name: string) => deleteCookie(c, name, cookieOptions(c)),
};

/** What was done, told on the next whole page. Only codes and ids travel in the cookie, never words. */
function flash(c: StudioContext, done: Done): void {
  cookies.set(c, FLASH_COOKIE, [done.code, done.id ?? "", String(done.n ?? "")].join("~"), 30);
}

function takeFlash(c: StudioContext): Chrome["toast"] {
  const value = getCookie(c, FLASH_COOKIE);
  if (value === undefined) return undefined;
  cookies.drop(c, FLASH_COOKIE);
  const [code = "", id = "", n = ""] = value.split("~");
  return words({ code, ...(id ? { id } : {}), ...(n ? { n: Number(n) } : {}) });
}

/** The shell's own facts. Two small calls, made beside those of the page. */
export async function chromeOf(c: StudioContext, deps: StudioDeps): Promise<Chrome> {
  const [waiting, tokensARequest] = await Promise.all([
    // A memory backend that is down must not take the settings with it that could mend that.
    deps.engine.memories
      .list({ owner: null, status: "pending", limit: 1, offset: 0 })
      .catch(() => ({ total: 0 })),
    tokensAdded(deps),
  ]);
  return {
    assets: deps.assets.urls,
    version: deps.version,
    theme: themeOf(c),
    memoryOn: deps.admin.settings.read().enabled,
    pending: waiting.total,
    tokensARequest,
    toast: takeFlash(c),
  };
}

const WEEK_MS = 7 * 86_400_000;

/** Every page shows these figures, so they are summed at most twice a minute. */
const WEEK_FRESH_MS = 30_000;

export type WeekMemo = { at: number; week: ReturnType<Engine["usage"]["means"]> | null };

/** Requests and tokens of the last week. */
export function lastWeek(deps: StudioDeps): ReturnType<Engine["usage"]["means"]> {
  const now = Date.now();
  const { memo } = deps;
  if (memo.week === null || now - memo.at > WEEK_FRESH_MS) {
    memo.at = now;
    memo.week = deps.engine.usage.means({ owner: null, from: now - WEEK_MS, to: now });
    memo.week.catch(() => (memo.week = null));
  }
  return memo.week;
}

/** Mean over requests that got something. */
async function tokensAdded(deps: StudioDeps): Promise<number | null> {
  const { withMemory, tokensInjected } = await lastWeek(deps);
  return withMemory === 0 ? null : tokensInjected / withMemory;
}

/** Owners that a select offers at most. */
const OWNERS = 200;

/** Keys first, revoked ones too, since their memories stay; then the people behind them, and the shared pool. */
export function ownersOf(deps: StudioDeps): Owner[] {
  const keys = deps.admin.keys
    .list()
    .map((key) => ({ id: key.id, name: key.name, revoked: key.revokedAt !== null }));
  const known = new Set(keys.map((key) => key.id));
  const people = deps.admin
    .ownerNames(OWNERS)
    .filter((id) => id.includes(":") && !known.has(id))
    .map((id) => ({ id, name: ownerName(keys, id), revoked: false }));
  return [...keys, ...people, { id: "shared", name: "shared pool", revoked: false }];
}

const type = { "content-type": "text/html; charset=utf-8" };

/** Views have no promises in them, so that a fragment is text at once. */
const html = (body: Child): string => `${(<>{body}</>) as HtmlEscapedString}`;

/** Renders a page or a part. `say` is read out by a screen reader. */
export function show(
  c: StudioContext,
  body: Child,
  options: { status?: number; say?: string; headers?: Record<string, string> } = {},
): Response {
  const response = c.body(html(body), (options.status ?? 200) as 200, type);
  if (options.say) response.headers.set("HX-Trigger", JSON.stringify({ say: options.say }));
  for (const [name, value] of Object.entries(options.headers ?? {})) response.headers.set(name, value);
  return response;
}

/**
 * After something was done: with htmx the parts that changed, a toast, and no dialog any more; without it, back to a
 * whole page that tells it.
 */
export function finish(
  c: StudioContext,
  done: Done,
  options: { to?: string; parts?: Child; main?: Child; quiet?: boolean } = {},
): Response {
  if (!isPart(c)) {
    flash(c, done);
    return c.redirect(options.to ?? back(c), 303);
  }
  const toast = words(done);
  return show(
    c,
    <>
      {options.main}
      {options.parts}
      <Partial target="#dialogs" swap="innerHTML" />
      {toast && !options.quiet ? (
        <Partial target="#toasts" swap="beforeend">
          <Toast {...toast} />
        </Partial>
      ) : null}
    </>,
    options.quiet && toast ? { say: toast.text } : {},
  );
}

/** With htmx, leave for another page; the browser loads it whole. Without it, a redirect. */
export function leave(c: StudioContext, to: string, done?: Done): Response {
  if (done) flash(c, done);
  if (isPart(c)) {
    c.header("HX-Redirect", to);
    return c.body(null, 200);
  }
  return c.redirect(to, 303);
}

/** What the API calls by the names of its fields, in the words of the forms. */
const WORDS: [name: RegExp, word: string][] = [
  [/\bcustomBaseUrl and customModelId\b/, "the base URL and the model"],
  [/\bmust be null\b/, "must be empty"],
  [/\bretentionDays\b/, "the retention"],
  [/\brerankEnabled is true\b/, "results are reranked"],
];

/** "must have at most 200 characters" → "Must have at most 200 characters." */
const sentence = (text: string): string => {
  const trimmed = WORDS.reduce((said, [name, word]) => said.replace(name, word), text.trim());
  const start = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
};

/** An error a person can mend, by field; anything else is thrown on. */
export function errorsOf(thrown: unknown): { errors: Errors; status: number } {
  const error = toAppError(thrown);
  if (error.status >= 500 && error.code !== "not_supported" && error.code !== "unavailable") throw thrown;
  if (error.code === "not_found" || error.code === "internal") throw thrown;
  const errors: Record<string, string> = {};
  for (const { field, message } of error.details) errors[field] ??= sentence(message);
  if (error.details.length === 0) errors[error.param ?? ""] = sentence(error.message);
  return { errors, status: error.status === 409 ? 409 : 422 };
}

/** Form fields as text; a field sent twice keeps its last value, files are left out. */
export type Fields = Readonly<Record<string, string>>;

const FORM_LIMIT = 1024 * 1024;

/** The body of a form. 413 above 1 MB, 415 for anything that is no form. */
export async function readForm(
  c: StudioContext,
): Promise<{ fields: Fields; all: (name: string) => string[] }> {
  const type = c.req.header("content-type") ?? "";
  if (Number(c.req.header("content-length") ?? 0) > FORM_LIMIT) {
    throw new AppError("body_too_large", "This form is too large.");
  }
  if (type && !/^(application\/x-www-form-urlencoded|multipart\/form-data)\b/i.test(type)) {
    throw new AppError("unsupported_media_type", "Send a form.");
  }
  let data: FormData;
  try {
    data = type ? await c.req.formData() : new FormData();
  } catch {
    throw new AppError("invalid_request", "The form could not be read.");
  }
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of data) if (typeof value === "string") fields[name] = value;
  return {
    fields,
    all: (name) => data.getAll(name).filter((value) => typeof value === "string"),
  };
}

/** A number as typed, or the text itself for the schema to refuse; empty is null. */
export const numberOr = (text: string | undefined): unknown => {
  const trimmed = (text ?? "").trim();
  if (trimmed === "") return null;
  return /^-?\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
};

/** A positive whole number from a query, else the default. */
export const pageOf = (text: string | undefined): number => {
  const page = Number(text ?? 1);
  return Number.isSafeInteger(page) && page >= 1 && page <= 1_000_000 ? page : 1;
};
