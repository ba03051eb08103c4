/** The fields of a provider, the same for a new one and for a change. */
import { type Errors, Field, FieldError, FormErrors, Input, Select, Textarea } from "./fields.tsx";
import { Disclosure } from "./parts.tsx";

export interface ProviderDraft {
  id: string;
  baseUrl: string;
  apiKeyMasked: string;
  /** A key was typed, and is not sent back with the form. */
  keyAgain?: boolean;
  wire: readonly string[];
  systemRole: string;
  models: string;
  fallbacks: string;
  headers: string;
  prices: string;
  connectMs: string;
  firstByteMs: string;
  idleMs: string;
  passthroughAuth: boolean;
  enabled: boolean;
  default: boolean;
}

export const newProviderDraft: ProviderDraft = {
  id: "",
  baseUrl: "",
  apiKeyMasked: "",
  wire: ["chat"],
  systemRole: "auto",
  models: "",
  fallbacks: "",
  headers: "",
  prices: "",
  connectMs: "",
  firstByteMs: "",
  idleMs: "",
  passthroughAuth: false,
  enabled: true,
  default: false,
};

const labels = {
  id: "Name",
  baseUrl: "Base URL",
  apiKey: "Key",
  systemRole: "System messages",
  wire: "Speaks",
  models: "Models",
  fallbacks: "Falls back to",
  headers: "Headers",
  prices: "Prices",
  connectMs: "Connect",
  firstByteMs: "First byte",
  idleMs: "Silence",
};

const roles = [
  { value: "auto", text: "Find out by itself" },
  { value: "system", text: "Anywhere" },
  { value: "first-only", text: "Only as the first message" },
  { value: "none", text: "Not accepted" },
];

const wires: [string, string][] = [
  ["chat", "Chat completions"],
  ["responses", "Responses"],
  ["messages", "Messages (Anthropic)"],
];

export const ProviderFields = ({
  form,
  draft,
  errors,
  known,
}: {
  form: string;
  draft: ProviderDraft;
  errors: Errors;
  known: boolean;
}) => {
  const field = { form, errors };
  const detailed = ["wire", "models", "fallbacks", "headers", "prices", "connectMs", "firstByteMs", "idleMs"];
  return (
    <>
      <FormErrors form={form} errors={errors} labels={labels} />
      <div class="fields">
        <Field {...field} name="id" label={labels.id}>
          <Input
            {...field}
            name="id"
            kind="mono"
            value={draft.id}
            more={known ? { readonly: true } : { required: true, autocomplete: "off", placeholder: "local" }}
          />
        </Field>
        <Field {...field} name="baseUrl" label={labels.baseUrl}>
          <Input
            {...field}
            name="baseUrl"
            kind="mono"
            value={draft.baseUrl}
            more={{
              required: true,
              inputmode: "url",
              autocomplete: "off",
              placeholder: "http://127.0.0.1:11434/v1",
            }}
          />
        </Field>
        <Field
          {...field}
          name="apiKey"
          label={labels.apiKey}
          optional={draft.apiKeyMasked ? `set, ${draft.apiKeyMasked}` : "optional"}
          hint="Stored here, never shown again."
        >
          <Input
            {...field}
            name="apiKey"
            kind="mono"
            value=""
            more={{
              type: "password",
              autocomplete: "off",
              placeholder: draft.keyAgain
                ? "Enter it again"
                : draft.apiKeyMasked
                  ? "Leave empty to keep"
                  : "",
            }}
          />
        </Field>
        <Field
          {...field}
          name="systemRole"
          label={labels.systemRole}
          hint="Local servers often take only one."
        >
          <Select {...field} name="systemRole" options={roles} value={draft.systemRole} />
        </Field>
      </div>
      <Disclosure title="More" open={known || detailed.some((name) => errors[name])}>
        <div class="disclosure-body stack">
          <fieldset class="field">
            <legend>{labels.wire}</legend>
            <div class="actions">
              {wires.map(([value, text]) => (
                <label class="inline">
                  <input
                    type="checkbox"
                    name="wire"
                    value={value}
                    {...(draft.wire.includes(value) ? { checked: true } : {})}
                  />{" "}
                  {text}
                </label>
              ))}
            </div>
            <FieldError form={form} name="wire" errors={errors} />
          </fieldset>
          <div class="fields">
            <Field {...field} name="models" label={labels.models} optional="asked for when empty">
              <Input
                {...field}
                name="models"
                kind="mono"
                value={draft.models}
                more={{ placeholder: "one, two" }}
              />
            </Field>
            <Field {...field} name="fallbacks" label={labels.fallbacks} optional="optional">
              <Input
                {...field}
                name="fallbacks"
                kind="mono"
                value={draft.fallbacks}
                more={{ placeholder: "other" }}
              />
            </Field>
          </div>
          <div class="fields fields-3">
            <Field {...field} name="connectMs" label={labels.connectMs} optional="ms">
              <Input
                {...field}
                name="connectMs"
                value={draft.connectMs}
                more={{ inputmode: "numeric", placeholder: "10000" }}
              />
            </Field>
            <Field {...field} name="firstByteMs" label={labels.firstByteMs} optional="ms">
              <Input
                {...field}
                name="firstByteMs"
                value={draft.firstByteMs}
                more={{ inputmode: "numeric", placeholder: "300000" }}
              />
            </Field>
            <Field {...field} name="idleMs" label={labels.idleMs} optional="ms">
              <Input
                {...field}
                name="idleMs"
                value={draft.idleMs}
                more={{ inputmode: "numeric", placeholder: "120000" }}
              />
            </Field>
          </div>
          <Field
            {...field}
            name="headers"
            label={labels.headers}
            optional="one a line, name: value"
            {...(known ? { hint: "Stored values are hidden. What is entered here replaces them all." } : {})}
          >
            <Textarea
              {...field}
              name="headers"
              value={draft.headers}
              rows={2}
              more={{ spellcheck: "false" }}
            />
          </Field>
          <Field
            {...field}
            name="prices"
            label={labels.prices}
            optional="a million tokens, JSON by model"
            hint="With prices, usage shows what requests and memory cost."
          >
            <Textarea
              {...field}
              name="prices"
              value={draft.prices}
              rows={2}
              more={{ spellcheck: "false", placeholder: '{"*": {"input": 0.5, "output": 1.5}}' }}
            />
          </Field>
          <label class="inline">
            <input
              type="checkbox"
              name="passthroughAuth"
              value="true"
              {...(draft.passthroughAuth ? { checked: true } : {})}
            />{" "}
            Pass the client's own Authorization on
          </label>
          {known ? (
            <label class="inline">
              <input
                type="checkbox"
                name="enabled"
                value="true"
                {...(draft.enabled ? { checked: true } : {})}
              />{" "}
              Use it for requests
            </label>
          ) : null}
        </div>
      </Disclosure>
    </>
  );
};
