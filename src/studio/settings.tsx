/** `/dashboard/settings/memory`: the switch, and every field in groups that are saved by themselves. */
import type { Hono } from "hono";
import type { Env } from "../auth.ts";
import { type Config, type VariableName, variables } from "../config.ts";
import { AppError } from "../error.ts";
import { defaultSettings, type MemorySettings } from "../memory/settings.ts";
import { memorySettingsPatch } from "../memory/settings-schema.ts";
import { check } from "../validate.ts";
import type { Errors } from "../../views/fields.tsx";
import type { FixedValue } from "../../views/settings-fixed.tsx";
import { type SettingsGroup, settingsGroups } from "../../views/settings-groups.ts";
import {
  MemorySettingsPage,
  type MemorySettingsProps,
  MemoryStatePartials,
  OnOff,
  SettingsForm,
  type Texts,
} from "../../views/settings.tsx";
import { stepsPart } from "./connect.tsx";
import {
  chromeOf,
  errorsOf,
  type Fields,
  finish,
  isPart,
  lastWeek,
  numberOr,
  readForm,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";

/** Figures beside the tabs of the settings. */
export const settingsCounts = (deps: StudioDeps): { keys: number; providers: number } => ({
  keys: deps.admin.keys.list().filter((key) => !key.revokedAt).length,
  providers: deps.providers.list().length,
});

const textsOf = (settings: MemorySettings): Texts =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [
      name,
      typeof value === "boolean" ? value : value === null || typeof value === "object" ? null : String(value),
    ]),
  );

/** What was typed, by the kind of each control: a switch that is not sent is off, an empty number is null. */
function valuesOf(group: SettingsGroup, fields: Fields): { texts: Texts; patch: Record<string, unknown> } {
  const texts: Record<string, string | boolean | null> = {};
  const patch: Record<string, unknown> = {};
  for (const { name, control } of group.fields) {
    const text = fields[name] ?? "";
    if (control.kind === "switch") {
      texts[name] = text === "true";
      patch[name] = text === "true";
    } else {
      texts[name] = text;
      patch[name] = control.kind === "number" ? numberOr(text) : text.trim() || null;
    }
  }
  return { texts, patch };
}

/** The configuration as it is in force; secrets are named, never shown. */
function fixedValues(config: Config): FixedValue[] {
  return Object.entries(variables).map(([key, { help, ...variable }]) => {
    const name = key as VariableName;
    const value = config[name];
    const text = Array.isArray(value) ? value.join(", ") : value === null ? "" : String(value);
    const secret = "secret" in variable && text !== "";
    return { name, value: secret ? "••••" : text, from: config.sources[name], help };
  });
}

export function settingsRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { settings } = deps.admin;

  const page = async (c: StudioContext, failed: MemorySettingsProps["failed"], status = 200) => {
    const [chrome, cost, models] = await Promise.all([chromeOf(c, deps), lastWeek(deps), modelNames(deps)]);
    return show(
      c,
      <MemorySettingsPage
        chrome={chrome}
        counts={settingsCounts(deps)}
        cost={cost}
        values={textsOf(settings.read())}
        failed={failed}
        models={models}
        fixed={fixedValues(deps.config)}
      />,
      { status },
    );
  };

  app.get("/dashboard/settings", (c) => page(c, null));
  app.get("/dashboard/settings/memory", (c) => page(c, null));

  app.post("/dashboard/settings/memory/enabled", async (c) => {
    const { fields } = await readForm(c);
    const on = fields["enabled"] === "true";
    settings.write({ enabled: on });
    const done = { code: on ? "memory-on" : "memory-off" };
    if (!isPart(c)) return finish(c, done);
    const chrome = await chromeOf(c, deps);
    const main =
      fields["from"] === "welcome" ? (
        await stepsPart(c, deps, chrome)
      ) : (
        <OnOff on={on} cost={await lastWeek(deps)} maxTokens={settings.read().maxTokens} />
      );
    return finish(c, done, { main, parts: <MemoryStatePartials chrome={chrome} />, quiet: true });
  });

  app.post("/dashboard/settings/memory", async (c) => {
    const { fields } = await readForm(c);
    const group = settingsGroups.find((one) => one.id === fields["group"]);
    if (!group) throw new AppError("invalid_request", "There is no such group of settings.");
    const { texts, patch } = valuesOf(group, fields);
    const wanted = fields["defaults"] === "true" ? defaultsOf(group) : patch;
    const models = await modelNames(deps);
    const form = (values: Texts, errors: Errors) => (
      <SettingsForm group={group} values={values} errors={errors} models={models} />
    );
    try {
      const whole = settings.write(check(memorySettingsPatch, wanted));
      return finish(
        c,
        { code: "saved" },
        { to: `/dashboard/settings/memory#${group.id}`, main: form(textsOf(whole), {}) },
      );
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      if (isPart(c)) return show(c, form(texts, errors), { status });
      return page(c, { group: group.id, errors, values: texts }, status);
    }
  });
}

const defaultsOf = (group: SettingsGroup): Record<string, unknown> =>
  Object.fromEntries(group.fields.map(({ name }) => [name, defaultSettings[name]]));

/** Models that can be chosen, as provider/model; what providers have not said yet is left out, since nobody waits here. */
export async function modelNames(deps: StudioDeps): Promise<string[]> {
  const lists = await deps.models.all(0).catch(() => []);
  return lists
    .flatMap(({ upstream, models }) => models.map((model) => `${upstream.id}/${model.id}`))
    .slice(0, 200);
}
