/** The fields of a provider, the same for a new one and for a change. */
import {
  type Errors,
  FieldError,
  FormErrors,
  InputField,
  SecretField,
  SelectField,
  TextareaField,
} from "./fields.tsx";
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

/** With what is used where none is entered. */
const timings = [
  ["connectMs", "10000"],
  ["firstByteMs", "300000"],
  ["idleMs", "120000"],
] as const;

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
        <InputField
          {...field}
          name="id"
          label={labels.id}
          kind="mono"
          value={draft.id}
          more={known ? { readonly: true } : { required: true, autocomplete: "off", placeholder: "local" }}
        />
        <InputField
          {...field}
          name="baseUrl"
          label={labels.baseUrl}
          kind="mono"
          value={draft.baseUrl}
          more={{
            required: true,
            inputmode: "url",
            autocomplete: "off",
            placeholder: "http://127.0.0.1:11434/v1",
          }}
        />
        <SecretField
          {...field}
          name="apiKey"
          label={labels.apiKey}
          hint="Stored here, never shown again."
          stored={draft.apiKeyMasked}
          {...(draft.keyAgain ? { placeholder: "Enter it again" } : {})}
        />
        <SelectField
          {...field}
          name="systemRole"
          label={labels.systemRole}
          hint="Local servers often take only one."
          options={roles}
          value={draft.systemRole}
        />
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
            <InputField
              {...field}
              name="models"
              label={labels.models}
              optional="asked for when empty"
              kind="mono"
              value={draft.models}
              more={{ placeholder: "one, two" }}
            />
            <InputField
              {...field}
              name="fallbacks"
              label={labels.fallbacks}
              optional="optional"
              kind="mono"
              value={draft.fallbacks}
              more={{ placeholder: "other" }}
            />
          </div>
          <div class="fields fields-3">
            {timings.map(([name, usual]) => (
              <InputField
                {...field}
                name={name}
                label={labels[name]}
                optional="ms"
                value={draft[name]}
                more={{ inputmode: "numeric", placeholder: usual }}
              />
            ))}
          </div>
          <TextareaField
            {...field}
            name="headers"
            label={labels.headers}
            optional="one a line, name: value"
            {...(known ? { hint: "Stored values are hidden. What is entered here replaces them all." } : {})}
            value={draft.headers}
            rows={2}
            more={{ spellcheck: "false" }}
          />
          <TextareaField
            {...field}
            name="prices"
            label={labels.prices}
            optional="a million tokens, JSON by model"
            hint="With prices, usage shows what requests and memory cost."
            value={draft.prices}
            rows={2}
            more={{ spellcheck: "false", placeholder: '{"*": {"input": 0.5, "output": 1.5}}' }}
          />
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
