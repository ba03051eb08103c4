/** The frame of the settings pages, and the memory settings. */
import type { Child, PropsWithChildren } from "hono/jsx";
import { Partial, Submit } from "./actions.tsx";
import { type Errors, FormErrors, Input, Row, SaveWithoutScript, Select, Switch } from "./fields.tsx";
import { count, num } from "./format.ts";
import { type Chrome, MemoryChip, MemoryState, Page } from "./layout.tsx";
import { Head, Section, Tabs } from "./parts.tsx";
import { type FixedValue, FixedValues } from "./settings-fixed.tsx";
import { type Setting, type SettingsGroup, settingsGroups } from "./settings-groups.ts";

export type SettingsTab = "memory" | "keys" | "providers" | "backup";

export const SettingsPage = ({
  chrome,
  tab,
  title,
  counts,
  dialog,
  children,
}: PropsWithChildren<{
  chrome: Chrome;
  tab: SettingsTab;
  title: string;
  counts: { keys: number; providers: number };
  dialog?: Child;
}>) => (
  <Page title={title} current="settings" chrome={chrome} dialog={dialog}>
    <Head title="Settings" sub="Changes take effect on the next request." />
    <Tabs
      label="Settings"
      current={tab}
      items={[
        { id: "memory", text: "Memory", href: "/dashboard/settings/memory" },
        { id: "keys", text: "API keys", href: "/dashboard/settings/keys", count: num(counts.keys) },
        {
          id: "providers",
          text: "Providers",
          href: "/dashboard/settings/providers",
          count: num(counts.providers),
        },
        { id: "backup", text: "Backup", href: "/dashboard/settings/backup" },
      ]}
    />
    {children}
  </Page>
);

/** What memory cost lately, for the switch that turns it on. */
export interface MemoryCost {
  requests: number;
  withMemory: number;
  tokensInjected: number;
  tokensIn: number;
}

export const OnOff = ({ on, cost, maxTokens }: { on: boolean; cost: MemoryCost; maxTokens: number }) => (
  <form
    class="panel on-off"
    id="on-off"
    method="post"
    action="/dashboard/settings/memory/enabled"
    hx-post="/dashboard/settings/memory/enabled"
    hx-trigger="change"
    hx-target="this"
    aria-label="Memory"
  >
    <div class="on-off-main">
      <div>
        <label class="label label-lg" for="onoff-enabled">
          Memory is {on ? "on" : "off"}
        </label>
        <p class="hint">
          {on ? (
            <>
              Requests get what is relevant, and new statements are learned. Clients can opt out of a single
              request with <code>x-omniroute-no-memory: 1</code>.
            </>
          ) : (
            "Requests pass through unchanged. No word of any chat is stored."
          )}
        </p>
      </div>
      <Switch form="onoff" name="enabled" on={on} />
    </div>
    <dl class="board board-3 board-flush">
      <div class="cell">
        <dt>Last 7 days</dt>
        <dd class="cell-word num">{count(cost.tokensInjected, "token")} added</dd>
        <dd class="cell-note">to {count(cost.withMemory, "request")}</dd>
      </div>
      <div class="cell">
        <dt>A request</dt>
        <dd class="cell-word num">
          {cost.withMemory > 0 ? `${num(cost.tokensInjected / cost.withMemory)} on average` : "nothing yet"}
        </dd>
        <dd class="cell-note">
          {count(Math.max(0, cost.requests - cost.withMemory), "request")} needed nothing
        </dd>
      </div>
      <div class="cell">
        <dt>Share of your prompts</dt>
        <dd class="cell-word num">
          {cost.tokensIn > 0 ? ((cost.tokensInjected / cost.tokensIn) * 100).toFixed(1) : "0"}%
        </dd>
        <dd class="cell-note">at most {count(maxTokens, "token")} each</dd>
      </div>
    </dl>
    <SaveWithoutScript />
  </form>
);

/** A settings form holds texts as they were typed until they are good. */
export type Texts = Readonly<Record<string, string | boolean | null>>;

const ControlOf = ({
  setting,
  form,
  errors,
  value,
  models,
}: {
  setting: Setting;
  form: string;
  errors: Errors;
  value: string | boolean | null;
  models: readonly string[];
}) => {
  const { control, name } = setting;
  const common = { form, name, errors, hint: setting.hint };
  switch (control.kind) {
    case "switch":
      return <Switch {...common} on={value === true} />;
    case "number":
      return (
        <>
          <Input
            {...common}
            kind="num"
            value={String(value ?? "")}
            more={{
              type: "number",
              min: control.min,
              max: control.max,
              ...(control.empty ? { placeholder: control.empty } : { required: true }),
            }}
          />
          <span class="unit">{control.unit}</span>
        </>
      );
    case "select":
      return <Select {...common} options={control.options} value={String(value)} />;
    case "text":
      return (
        <>
          <Input
            {...common}
            kind="mono"
            value={String(value ?? "")}
            more={{ placeholder: control.placeholder, list: `${form}-models`, autocomplete: "off" }}
          />
          <datalist id={`${form}-models`}>
            {models.map((model) => (
              <option value={model} />
            ))}
          </datalist>
        </>
      );
  }
};

/** One group as a form of its own, so that a mistake in one does not hold up the others. */
export const SettingsForm = ({
  group,
  values,
  errors,
  models,
}: {
  group: SettingsGroup;
  values: Texts;
  errors: Errors;
  models: readonly string[];
}) => {
  const labels = Object.fromEntries(group.fields.map((setting) => [setting.name, setting.label]));
  return (
    <form
      class="rows"
      id={`${group.id}-form`}
      method="post"
      action="/dashboard/settings/memory"
      hx-post="/dashboard/settings/memory"
      hx-target="this"
      hx-disable="find .btn-primary"
      aria-labelledby={`${group.id}-h`}
    >
      <input type="hidden" name="group" value={group.id} />
      {Object.keys(errors).length > 1 || Object.keys(errors).some((name) => !labels[name]) ? (
        <div class="row row-wide">
          <FormErrors form={group.id} errors={errors} labels={labels} />
        </div>
      ) : null}
      {group.fields.map((setting) => (
        <Row
          form={group.id}
          name={setting.name}
          label={setting.label}
          errors={errors}
          {...(setting.hint ? { hint: setting.hint } : {})}
        >
          <ControlOf
            setting={setting}
            form={group.id}
            errors={errors}
            value={values[setting.name] ?? null}
            models={models}
          />
        </Row>
      ))}
      <div class="row-foot">
        <button class="btn btn-quiet start" name="defaults" value="true" formnovalidate>
          Back to defaults
        </button>
        <button class="btn" type="reset">
          Undo changes
        </button>
        <Submit>Save</Submit>
      </div>
    </form>
  );
};

export interface MemorySettingsProps {
  chrome: Chrome;
  counts: { keys: number; providers: number };
  cost: MemoryCost;
  values: Texts;
  /** Errors of one group, after a save that did not work. */
  failed: { group: string; errors: Errors; values: Texts } | null;
  /** Models that can be chosen, as provider/model. */
  models: readonly string[];
  fixed: readonly FixedValue[];
}

export const MemorySettingsPage = ({
  chrome,
  counts,
  cost,
  values,
  failed,
  models,
  fixed,
}: MemorySettingsProps) => (
  <SettingsPage chrome={chrome} tab="memory" title="Memory settings" counts={counts}>
    <OnOff on={chrome.memoryOn} cost={cost} maxTokens={Number(values["maxTokens"])} />
    {settingsGroups.map((group) => (
      <Section id={group.id} title={group.title} sub={group.sub}>
        <SettingsForm
          group={group}
          values={failed?.group === group.id ? failed.values : values}
          errors={failed?.group === group.id ? failed.errors : {}}
          models={models}
        />
      </Section>
    ))}
    <Section
      id="s-box"
      title="This box"
      sub="Read when the server starts. Change them by flag, environment or recollect config set, and start again."
    >
      <FixedValues values={fixed} />
    </Section>
  </SettingsPage>
);

/** What else changes on a page when memory is turned on or off. */
export const MemoryStatePartials = ({ chrome }: { chrome: Chrome }) => (
  <>
    <Partial target="#nav-status">
      <MemoryState chrome={chrome} />
    </Partial>
    <Partial target="#top-status">
      <MemoryChip on={chrome.memoryOn} />
    </Partial>
  </>
);
