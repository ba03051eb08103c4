/** The frame of the settings pages, and the memory settings. */
import type { Child, PropsWithChildren } from "hono/jsx";
import type { MemorySettings } from "../src/memory/settings.ts";
import { count, num } from "./format.ts";
import { type Chrome, MemoryChip, MemoryState, Page } from "./layout.tsx";
import { Disclosure, Head, Section, Tabs } from "./parts.tsx";
import { Partial, Submit } from "./actions.tsx";
import {
  type Errors,
  FormErrors,
  Input,
  type Option,
  Row,
  SaveWithoutScript,
  Select,
  Switch,
} from "./fields.tsx";

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

type Control =
  | { kind: "switch" }
  | { kind: "number"; unit: string; min: number; max: number; step?: number; empty?: string }
  | { kind: "select"; options: readonly Option[] }
  | { kind: "text"; placeholder: string; list?: string };

interface Setting {
  name: keyof MemorySettings;
  label: string;
  hint?: string;
  control: Control;
}

export interface SettingsGroup {
  id: string;
  title: string;
  sub: string;
  fields: readonly Setting[];
}

const one = (value: string, text: string): Option => ({ value, text });

/** Every field of the memory settings that has no page of its own (embedding, Qdrant, rerank and backends are on Engine). */
export const settingsGroups: readonly SettingsGroup[] = [
  {
    id: "s-inject",
    title: "Injection",
    sub: "What goes into a prompt, and where.",
    fields: [
      {
        name: "maxTokens",
        label: "Token budget",
        hint: "The most that is added to one request. 0 adds nothing.",
        control: { kind: "number", unit: "tokens", min: 0, max: 16_000 },
      },
      {
        name: "injectionPlacement",
        label: "Placement",
        hint: "Before the last user turn keeps the provider's prompt cache working.",
        control: {
          kind: "select",
          options: [
            one("auto", "Before the last user turn"),
            one("system-first", "First, as a system message"),
          ],
        },
      },
      {
        name: "injectEpisodes",
        label: "Recall exchanges too",
        hint: "Earlier exchanges compete with memories for at most half of the budget.",
        control: { kind: "switch" },
      },
      {
        name: "retrievalTimeoutMs",
        label: "Deadline of the search",
        hint: "Empty: 150 ms, more with a remote embedding or rerank. What is late is left out.",
        control: { kind: "number", unit: "ms", min: 50, max: 5000, empty: "automatic" },
      },
    ],
  },
  {
    id: "s-find",
    title: "Finding",
    sub: "How memories are searched.",
    fields: [
      {
        name: "strategy",
        label: "Strategy",
        hint: "Hybrid fuses words and meaning, and is the best choice for nearly everyone.",
        control: {
          kind: "select",
          options: [one("hybrid", "Hybrid"), one("semantic", "Semantic"), one("recent", "Newest first")],
        },
      },
      {
        name: "fusion",
        label: "Fusion",
        hint: "How the two lists become one.",
        control: { kind: "select", options: [one("scored", "By scores"), one("rrf", "By ranks (RRF)")] },
      },
      {
        name: "scope",
        label: "Scope",
        hint: "Whose memories a request can see.",
        control: {
          kind: "select",
          options: [
            one("apiKey", "Its own API key"),
            one("session", "Its own session"),
            one("global", "Its key and the shared pool"),
          ],
        },
      },
      {
        name: "vectorStore",
        label: "Vector store",
        hint: "The Qdrant switch on Engine moves this too.",
        control: {
          kind: "select",
          options: [one("auto", "Automatic"), one("sqlite-vec", "sqlite-vec"), one("qdrant", "Qdrant")],
        },
      },
    ],
  },
  {
    id: "s-keep",
    title: "Keeping",
    sub: "How long a memory counts.",
    fields: [
      {
        name: "retentionDays",
        label: "Retention",
        hint: "Memories not confirmed for so long leave retrieval unless pinned; 0 keeps them for ever. Nothing is deleted for its age.",
        control: { kind: "number", unit: "days", min: 0, max: 365 },
      },
      {
        name: "deleteAfterDays",
        label: "Delete after",
        hint: "Empty: never. Otherwise deletes for good, never sooner than the retention.",
        control: { kind: "number", unit: "days", min: 1, max: 36_500, empty: "never" },
      },
      {
        name: "autoSummarize",
        label: "Compact every night",
        hint: "Condenses old memories into summaries. The originals can be restored.",
        control: { kind: "switch" },
      },
    ],
  },
  {
    id: "s-learn",
    title: "Learning",
    sub: "What becomes a memory.",
    fields: [
      {
        name: "extractFrom",
        label: "Learn from",
        control: {
          kind: "select",
          options: [
            one("both", "The person and the assistant"),
            one("user", "The person only"),
            one("off", "Nobody"),
          ],
        },
      },
      {
        name: "autoApprove",
        label: "Approve automatically",
        hint: "Off: new memories wait in the review inbox.",
        control: { kind: "switch" },
      },
      {
        name: "recordEpisodes",
        label: "Keep exchanges",
        hint: "The words as they were said, with secrets hidden.",
        control: { kind: "switch" },
      },
      {
        name: "extractEntities",
        label: "Learn who and what",
        hint: "People, projects and places, and how they are linked.",
        control: { kind: "switch" },
      },
      {
        name: "extractionModel",
        label: "Extraction model",
        hint: "Empty: patterns, which cost nothing.",
        control: { kind: "text", placeholder: "provider/model", list: "models" },
      },
      {
        name: "extractEveryTurns",
        label: "Ask it every",
        control: { kind: "number", unit: "turns", min: 1, max: 50 },
      },
      {
        name: "extractionDailyTokens",
        label: "Daily limit for it",
        control: { kind: "number", unit: "tokens", min: 0, max: 1_000_000_000 },
      },
    ],
  },
];

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
  const common = { form, name, errors };
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

/** A value that is fixed while the server runs. */
export interface FixedValue {
  name: string;
  /** Hidden for secrets. */
  value: string;
  from: "flag" | "environment" | "stored" | "default";
  help: string;
}

const fixedWords: Record<FixedValue["from"], string> = {
  flag: "locked by a flag",
  environment: "locked by the environment",
  stored: "recollect config set",
  default: "default",
};

const FixedValues = ({ values }: { values: readonly FixedValue[] }) => (
  <Disclosure title={count(values.length, "value")} note={`${num(values.filter(locked).length)} locked`}>
    <div
      class="disclosure-body scroll-list"
      tabindex={0}
      role="region"
      aria-label="Values fixed at the start"
    >
      <table class="table">
        <thead>
          <tr>
            <th>Name</th>
            <th>Value</th>
            <th class="hide-sm">From</th>
          </tr>
        </thead>
        <tbody>
          {values.map((value) => (
            <tr>
              <td>
                <code>{value.name}</code>
                <span class="table-sub">{value.help}</span>
              </td>
              <td>
                <code>{value.value || "–"}</code>
              </td>
              <td class="hide-sm">
                {locked(value) ? <span class="chip">{fixedWords[value.from]}</span> : fixedWords[value.from]}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </Disclosure>
);

const locked = (value: FixedValue): boolean => value.from === "flag" || value.from === "environment";

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
