/** The backends card: which there are, which role each has, their settings. */
import type { Hono } from "hono";
import type { Child } from "hono/jsx";
import type { Env } from "../auth.ts";
import { invalid, notFound } from "../error.ts";
import { type MemorySettings } from "../memory/settings.ts";
import { memorySettingsPatch } from "../memory/settings-schema.ts";
import { maskSecret } from "../seal.ts";
import { check } from "../validate.ts";
import {
  BackendDialog,
  type BackendDraft,
  BackendRoleDialog,
  BackendsCard,
  type BackendView,
} from "../../views/backends.tsx";
import {
  errorsOf,
  type Fields,
  isPart,
  leave,
  readForm,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";

const BASE = "/dashboard/settings/backends";
const ENGINE = "/dashboard/memory?tab=engine";

type Config = MemorySettings["backendConfigs"][string];
const word = (config: Config, name: string): string => {
  const value = config[name];
  return typeof value === "string" ? value : "";
};

/** Fields of the form that have an input of their own; the rest is JSON. */
const own = ["type", "displayName", "baseUrl", "apiKey", "databaseId"];

export async function backendsCard(deps: StudioDeps): Promise<Child> {
  const settings = deps.admin.settings.read();
  const { health: found } = await deps.engine.backends.status();
  const health = new Map(found.map((one) => [one.id, one]));
  const view = (id: string, name: string, where: string, editable: boolean): BackendView => {
    const place = settings.fallbackBackends.indexOf(id);
    const primary = settings.primaryBackend === id;
    const state = health.get(id);
    const used = primary || place >= 0;
    return {
      id,
      name,
      where,
      role: primary ? "primary" : place >= 0 ? "fallback" : "not used",
      place: place >= 0 ? place + 1 : null,
      state: !used ? "off" : !state ? "ok" : state.ok ? "ok" : "bad",
      word: !used ? "not used" : !state ? "in use" : state.ok ? "well" : (state.error ?? "no answer"),
      latencyMs: state?.latencyMs ?? null,
      editable,
    };
  };
  const qdrant = await deps.engine.qdrant.read();
  const rows = [
    view("sqlite", "SQLite", "recollect.db", false),
    ...(qdrant.host || settings.primaryBackend === "qdrant"
      ? [view("qdrant", "Qdrant", qdrant.host, false)]
      : []),
    ...Object.entries(settings.backendConfigs).map(([id, config]) =>
      view(id, word(config, "displayName") || id, word(config, "baseUrl") || word(config, "type"), true),
    ),
  ];
  return <BackendsCard backends={rows} />;
}

const draftOf = (id: string, config: Config): BackendDraft => {
  const more = Object.fromEntries(Object.entries(config).filter(([name]) => !own.includes(name)));
  const key = word(config, "apiKey");
  return {
    id,
    type: word(config, "type") || "http",
    displayName: word(config, "displayName"),
    baseUrl: word(config, "baseUrl"),
    apiKeyMasked: key ? maskSecret(key) : "",
    databaseId: word(config, "databaseId"),
    more: Object.keys(more).length > 0 ? JSON.stringify(more, null, 2) : "",
  };
};

const empty: BackendDraft = {
  id: "",
  type: "http",
  displayName: "",
  baseUrl: "",
  apiKeyMasked: "",
  databaseId: "",
  more: "",
};

function configOf(fields: Fields, before: Config | undefined): Config {
  const config: Config = { type: fields["type"] ?? "http" };
  for (const name of ["displayName", "baseUrl", "databaseId"]) {
    const text = (fields[name] ?? "").trim();
    if (text) config[name] = text;
  }
  const key = fields["apiKey"] || (before ? word(before, "apiKey") : "");
  if (key) config["apiKey"] = key;
  const more = (fields["more"] ?? "").trim();
  if (!more) return config;
  let parsed: unknown;
  try {
    parsed = JSON.parse(more);
  } catch {
    throw invalid("more", "this is not valid JSON");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw invalid("more", "must be a JSON object");
  }
  return { ...(parsed as Config), ...config };
}

/** Errors of `backendConfigs.<id>.<field>` belong to the field of the form. */
const toForm = (errors: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(errors).map(([name, message]) => {
      const field = name.split(".").at(-1) ?? name;
      return [
        own.includes(field) || field === "id" || field === "more"
          ? field
          : name === "backendConfigs"
            ? ""
            : name,
        message,
      ];
    }),
  );

export function backendsRoutes(
  app: Hono<Env>,
  deps: StudioDeps,
  enginePage: (c: StudioContext, extras: { dialog?: Child; status?: number }) => Promise<Response>,
): void {
  const { settings } = deps.admin;
  const dialog = (c: StudioContext, body: Child, status = 200) =>
    isPart(c) ? show(c, body, { status }) : enginePage(c, { dialog: body, status });
  const configs = () => settings.read().backendConfigs;
  const find = (id: string): Config => {
    const config = Object.hasOwn(configs(), id) ? configs()[id] : undefined;
    if (!config) throw notFound("backend");
    return config;
  };
  const write = (patch: Record<string, unknown>) => settings.write(check(memorySettingsPatch, patch));

  app.get(`${BASE}/new`, (c) => dialog(c, <BackendDialog draft={empty} errors={{}} known={false} />));

  app.post(`${BASE}/new`, async (c) => {
    const { fields } = await readForm(c);
    const id = (fields["id"] ?? "").trim();
    try {
      if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(id))
        throw invalid("id", "is made of a-z, 0-9, dot, dash, underscore");
      if (Object.hasOwn(configs(), id) || id === "sqlite" || id === "qdrant") {
        throw invalid("id", `“${id}” is taken. Choose another name`);
      }
      write({ backendConfigs: { ...configs(), [id]: configOf(fields, undefined) } });
      return leave(c, `${ENGINE}#backends`, { code: "saved" });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      const draft = { ...empty, ...typed(fields), id };
      return dialog(c, <BackendDialog draft={draft} errors={toForm(errors)} known={false} />, status);
    }
  });

  app.get(`${BASE}/:id`, (c) => {
    const id = c.req.param("id");
    return dialog(c, <BackendDialog draft={draftOf(id, find(id))} errors={{}} known />);
  });

  app.post(`${BASE}/:id`, async (c) => {
    const id = c.req.param("id");
    const before = find(id);
    const { fields } = await readForm(c);
    try {
      if (fields["remove"] === "true") {
        const current = settings.read();
        if (current.primaryBackend === id)
          throw invalid("", "It is the primary backend. Choose another one first");
        const { [id]: _, ...rest } = current.backendConfigs;
        write({
          backendConfigs: rest,
          fallbackBackends: current.fallbackBackends.filter((one) => one !== id),
        });
      } else {
        write({ backendConfigs: { ...configs(), [id]: configOf(fields, before) } });
      }
      return leave(c, `${ENGINE}#backends`, { code: "saved" });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      const draft = { ...draftOf(id, before), ...typed(fields) };
      return dialog(c, <BackendDialog draft={draft} errors={toForm(errors)} known />, status);
    }
  });

  const nameOf = (id: string): string => {
    if (id === "sqlite") return "SQLite";
    if (id === "qdrant") return "Qdrant";
    return word(find(id), "displayName") || id;
  };

  app.get(`${BASE}/:id/role`, (c) => {
    const id = c.req.param("id");
    const { primaryBackend, fallbackBackends } = settings.read();
    const role = primaryBackend === id ? "primary" : fallbackBackends.includes(id) ? "fallback" : "not used";
    return dialog(c, <BackendRoleDialog id={id} name={nameOf(id)} role={role} canBePrimary />);
  });

  app.post(`${BASE}/:id/role`, async (c) => {
    const id = c.req.param("id");
    nameOf(id);
    const role = (await readForm(c)).fields["role"];
    const { primaryBackend, fallbackBackends } = settings.read();
    const others = fallbackBackends.filter((one) => one !== id);
    if (role === "primary") write({ primaryBackend: id, fallbackBackends: others });
    else if (primaryBackend === id)
      throw invalid("role", "the primary backend changes when another becomes it");
    else write({ fallbackBackends: role === "fallback" ? [...others, id] : others });
    return leave(c, `${ENGINE}#backends`, { code: "saved" });
  });
}

const typed = (fields: Fields): Partial<BackendDraft> => ({
  type: fields["type"] ?? "http",
  displayName: fields["displayName"] ?? "",
  baseUrl: fields["baseUrl"] ?? "",
  databaseId: fields["databaseId"] ?? "",
  more: fields["more"] ?? "",
});
