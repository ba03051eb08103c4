/** `/dashboard/settings/providers`: where requests go, with a real test call. */
import type { Hono } from "hono";
import type { Child } from "hono/jsx";
import type { Env } from "../auth.ts";
import { AppError, invalid, notFound } from "../error.ts";
import { newProvider, providerChanges } from "../schemas/providers.ts";
import type { Provider } from "../upstream/providers.ts";
import { check } from "../validate.ts";
import { newProviderDraft, type ProviderDraft } from "../../views/provider-fields.tsx";
import {
  AddProvider,
  EditProviderDialog,
  ProviderResult,
  ProvidersPage,
  type ProvidersProps,
  type ProviderView,
  RemoveProviderDialog,
} from "../../views/providers.tsx";
import {
  chromeOf,
  errorsOf,
  type Fields,
  finish,
  isPart,
  leave,
  numberOr,
  readForm,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";
import { listOr } from "./keys.tsx";
import { settingsCounts } from "./settings.tsx";
import { tryNew, tryProvider } from "./try-provider.ts";

const BASE = "/dashboard/settings/providers";

const viewOf = (provider: Provider): ProviderView => ({
  ...provider,
  builtIn: provider.baseUrl.startsWith("builtin:"),
});

const draftOf = (provider: Provider): ProviderDraft => ({
  id: provider.id,
  baseUrl: provider.baseUrl,
  apiKeyMasked: provider.apiKeyMasked ?? "",
  wire: provider.wire,
  systemRole: provider.systemRole,
  models: provider.models?.join(", ") ?? "",
  fallbacks: provider.fallbacks.join(", "),
  headers: Object.entries(provider.headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n"),
  prices: provider.prices === null ? "" : JSON.stringify(provider.prices, null, 2),
  connectMs: String(provider.timeouts.connectMs),
  firstByteMs: String(provider.timeouts.firstByteMs),
  idleMs: String(provider.timeouts.idleMs),
  passthroughAuth: provider.passthroughAuth,
  enabled: provider.enabled,
  default: provider.default,
});

const typed = (fields: Fields, wire: readonly string[], apiKeyMasked: string): ProviderDraft => ({
  keyAgain: Boolean(fields["apiKey"]),
  id: fields["id"] ?? "",
  baseUrl: fields["baseUrl"] ?? "",
  apiKeyMasked,
  wire,
  systemRole: fields["systemRole"] ?? "auto",
  models: fields["models"] ?? "",
  fallbacks: fields["fallbacks"] ?? "",
  headers: fields["headers"] ?? "",
  prices: fields["prices"] ?? "",
  connectMs: fields["connectMs"] ?? "",
  firstByteMs: fields["firstByteMs"] ?? "",
  idleMs: fields["idleMs"] ?? "",
  passthroughAuth: fields["passthroughAuth"] === "true",
  enabled: fields["enabled"] !== undefined ? fields["enabled"] === "true" : true,
  default: fields["default"] === "true",
});

/** `name: value` a line. */
function headersOf(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const colon = line.indexOf(":");
    if (colon < 1) throw invalid("headers", "is one header a line, as in name: value");
    headers[line.slice(0, colon).trim()] = line.slice(colon + 1).trim();
  }
  return headers;
}

function pricesOf(text: string): unknown {
  if (!text.trim()) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw invalid("prices", "this is not valid JSON");
  }
}

/** What the schema checks. An empty key keeps the stored one. */
function valuesOf(draft: ProviderDraft, apiKey: string | null | undefined): Record<string, unknown> {
  const timeouts = Object.fromEntries(
    (["connectMs", "firstByteMs", "idleMs"] as const)
      .map((name) => [name, numberOr(draft[name])] as const)
      .filter(([, value]) => value !== null),
  );
  return {
    baseUrl: draft.baseUrl.trim(),
    ...(apiKey === undefined ? {} : { apiKey }),
    headers: headersOf(draft.headers),
    wire: draft.wire,
    systemRole: draft.systemRole,
    models: listOr(draft.models),
    timeouts,
    fallbacks: listOr(draft.fallbacks) ?? [],
    prices: pricesOf(draft.prices),
    passthroughAuth: draft.passthroughAuth,
  };
}

/** Errors of `timeouts.connectMs` or `headers.x-y` belong to the field of the form. */
const toForm = (errors: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(errors).map(([name, message]) => {
      const [group = "", field = ""] = name.split(".");
      if (group === "timeouts" && field) return [field, message];
      return [group.replace(/\[\d+\]$/, ""), message];
    }),
  );

export function providersRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { providers } = deps;

  const page = async (
    c: StudioContext,
    options: {
      add?: ProvidersProps["add"];
      results?: ProvidersProps["results"];
      dialog?: Child;
      status?: number;
    } = {},
  ): Promise<Response> =>
    show(
      c,
      <ProvidersPage
        chrome={await chromeOf(c, deps)}
        counts={settingsCounts(deps)}
        providers={providers.list().map(viewOf)}
        results={options.results ?? {}}
        add={options.add ?? { draft: newProviderDraft, errors: {}, result: null }}
        dialog={options.dialog}
      />,
      { status: options.status ?? 200 },
    );

  const dialog = (c: StudioContext, body: Child, status = 200) =>
    isPart(c) ? show(c, body, { status }) : page(c, { dialog: body, status });

  const find = (id: string): Provider => {
    const provider = providers.find(id);
    if (!provider) throw notFound("provider");
    return provider;
  };

  app.get(BASE, (c) => page(c));

  app.post(`${BASE}/new`, async (c) => {
    const { fields, all } = await readForm(c);
    const draft = typed(fields, all("wire"), "");
    const again = (
      errors: Record<string, string>,
      result: ProvidersProps["add"]["result"],
      status: number,
    ) => {
      const add = { draft, errors, result };
      return isPart(c) ? show(c, <AddProvider {...add} />, { status }) : page(c, { add, status });
    };
    try {
      const values = check(newProvider, {
        id: draft.id.trim(),
        ...valuesOf(draft, fields["apiKey"] || null),
        ...(draft.default ? { default: true } : {}),
      });
      if (fields["test"] === "true") {
        const result = await tryNew(deps, values, c.req.raw.signal);
        if (!isPart(c)) return await again({}, result, 200);
        // Only the result is swapped: the form keeps the key that was typed, which is never sent back.
        return show(c, <ProviderResult id="new" result={result} />, {
          headers: { "HX-Retarget": "#test-new" },
        });
      }
      providers.create(values);
      return leave(c, BASE, { code: "provider-added" });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      return again(toForm(errors), null, status);
    }
  });

  app.post(`${BASE}/:id/test`, async (c) => {
    const { id } = find(c.req.param("id"));
    const result = await tryProvider(deps, id, c.req.raw.signal);
    return isPart(c)
      ? show(c, <ProviderResult id={id} result={result} />)
      : page(c, { results: { [id]: result } });
  });

  app.post(`${BASE}/:id/default`, (c) => {
    providers.change(c.req.param("id"), { default: true });
    return leave(c, BASE, { code: "default" });
  });

  app.get(`${BASE}/:id/edit`, (c) =>
    dialog(c, <EditProviderDialog draft={draftOf(find(c.req.param("id")))} errors={{}} />),
  );

  app.post(`${BASE}/:id/edit`, async (c) => {
    const provider = find(c.req.param("id"));
    const { fields, all } = await readForm(c);
    const draft = {
      ...typed(fields, all("wire"), provider.apiKeyMasked ?? ""),
      id: provider.id,
      enabled: fields["enabled"] === "true",
    };
    try {
      const key = fields["removeKey"] === "true" ? null : fields["apiKey"] || undefined;
      providers.change(
        provider.id,
        check(providerChanges, { ...valuesOf(draft, key), enabled: draft.enabled }),
      );
      return leave(c, BASE, { code: "saved" });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      return dialog(c, <EditProviderDialog draft={draft} errors={toForm(errors)} />, status);
    }
  });

  app.get(`${BASE}/:id/remove`, (c) =>
    dialog(c, <RemoveProviderDialog id={find(c.req.param("id")).id} error={null} />),
  );

  app.post(`${BASE}/:id/remove`, (c) => {
    const { id } = find(c.req.param("id"));
    try {
      providers.remove(id);
      return leave(c, BASE, { code: "provider-removed" });
    } catch (thrown) {
      if (!(thrown instanceof AppError) || thrown.code !== "conflict") throw thrown;
      return dialog(c, <RemoveProviderDialog id={id} error={thrown.message} />, 409);
    }
  });

  app.get(`${BASE}/new`, (c) => finish(c, { code: "" }, { to: BASE }));
}
