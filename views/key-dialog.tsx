/** The form of an API key. */
import { Cancel, Dialog, Submit } from "./actions.tsx";
import { type Errors, FieldError, FormErrors, InputField, SelectField } from "./fields.tsx";
import { cut } from "./format.ts";
import { BASE, keyHref, type KeyView } from "./keys.tsx";
import { Disclosure } from "./parts.tsx";

export interface KeyDraft {
  name: string;
  scopes: readonly string[];
  expiresAt: string;
  memory: string;
  maxTokens: string;
  models: string;
  requestsPerMinute: string;
  tokensPerDay: string;
  sharedPool: boolean;
  userHeader: string;
  userField: string;
}

export const newKeyDraft: KeyDraft = {
  name: "",
  scopes: ["proxy", "read:memory", "write:memory"],
  expiresAt: "",
  memory: "inherit",
  maxTokens: "",
  models: "",
  requestsPerMinute: "",
  tokensPerDay: "",
  sharedPool: false,
  userHeader: "",
  userField: "",
};

export const draftOfKey = (item: KeyView): KeyDraft => ({
  name: item.name,
  scopes: item.scopes,
  expiresAt: item.expiresAt?.slice(0, 10) ?? "",
  memory: item.memory,
  maxTokens: item.maxTokens === null ? "" : String(item.maxTokens),
  models: item.models?.join(", ") ?? "",
  requestsPerMinute: item.requestsPerMinute === null ? "" : String(item.requestsPerMinute),
  tokensPerDay: item.tokensPerDay === null ? "" : String(item.tokensPerDay),
  sharedPool: item.sharedPool,
  userHeader: item.userHeader ?? "",
  userField: item.userField ?? "",
});

export const scopes: [string, string, string][] = [
  ["proxy", "Use models", "Send requests through"],
  ["read:memory", "Recall", "Get memories in its requests and read them"],
  ["write:memory", "Learn", "Add, change and delete its memories"],
];

const labels = {
  name: "Name",
  scopes: "May",
  expiresAt: "Expires",
  memory: "Memory",
  maxTokens: "Token budget",
  models: "Models",
  requestsPerMinute: "Requests a minute",
  tokensPerDay: "Tokens a day",
  userHeader: "Person by header",
  userField: "Person by field",
};

export const KeyDialog = ({ draft, errors, id }: { draft: KeyDraft; errors: Errors; id: string | null }) => {
  const form = "key";
  const field = { form, errors };
  const detailed = [
    "maxTokens",
    "models",
    "requestsPerMinute",
    "tokensPerDay",
    "userHeader",
    "userField",
    "memory",
  ];
  const narrowed =
    draft.memory !== "inherit" ||
    draft.sharedPool ||
    Boolean(draft.maxTokens || draft.models || draft.requestsPerMinute || draft.tokensPerDay) ||
    Boolean(draft.userHeader || draft.userField);
  return (
    <Dialog
      id="key"
      title={id ? `Edit ${cut(draft.name, 40)}` : "New key"}
      close={BASE}
      form={{ action: id ? keyHref(id, "edit") : `${BASE}/new` }}
      foot={
        <>
          <Cancel to={BASE} />
          <Submit>{id ? "Save" : "Make the key"}</Submit>
        </>
      }
    >
      <FormErrors form={form} errors={errors} labels={labels} />
      <div class="fields">
        <InputField
          {...field}
          name="name"
          label={labels.name}
          hint="The client it is for."
          value={draft.name}
          more={{ required: true, maxlength: 100, autofocus: true, autocomplete: "off" }}
        />
        <InputField
          {...field}
          name="expiresAt"
          label={labels.expiresAt}
          optional="optional"
          value={draft.expiresAt}
          more={{ type: "date" }}
        />
      </div>
      <fieldset class="field">
        <legend>May</legend>
        <div class="choices">
          {scopes.map(([value, text, hint]) => (
            <label class="choice">
              <input
                type="checkbox"
                name="scopes"
                value={value}
                {...(draft.scopes.includes(value) ? { checked: true } : {})}
              />
              <span>
                <span class="label">
                  {text} <code>{value}</code>
                </span>
                <span class="hint">{hint}</span>
              </span>
            </label>
          ))}
        </div>
        <FieldError form={form} name="scopes" errors={errors} />
      </fieldset>
      <Disclosure title="Limits and people" open={narrowed || detailed.some((name) => errors[name])}>
        <div class="disclosure-body stack">
          <div class="fields">
            <SelectField
              {...field}
              name="memory"
              label={labels.memory}
              value={draft.memory}
              options={[
                { value: "inherit", text: "As the box" },
                { value: "on", text: "Always on" },
                { value: "off", text: "Always off" },
              ]}
            />
            {(["maxTokens", "requestsPerMinute", "tokensPerDay"] as const).map((name) => (
              <InputField
                {...field}
                name={name}
                label={labels[name]}
                optional="optional"
                value={draft[name]}
                more={{ inputmode: "numeric" }}
              />
            ))}
            <InputField
              {...field}
              name="models"
              label={labels.models}
              optional="all when empty"
              wide
              kind="mono"
              value={draft.models}
              more={{ placeholder: "provider/model, provider/model" }}
            />
            <InputField
              {...field}
              name="userHeader"
              label={labels.userHeader}
              optional="optional"
              kind="mono"
              value={draft.userHeader}
              more={{ placeholder: "x-openwebui-user-id" }}
            />
            <InputField
              {...field}
              name="userField"
              label={labels.userField}
              optional="optional"
              kind="mono"
              value={draft.userField}
              more={{ placeholder: "user" }}
            />
          </div>
          <p class="note">
            With a header or field each person behind this key has memories of their own; a request without it
            has none.
          </p>
          <label class="inline">
            <input
              type="checkbox"
              name="sharedPool"
              value="true"
              {...(draft.sharedPool ? { checked: true } : {})}
            />{" "}
            Reads the shared pool while the scope is “Its key and the shared pool”
          </label>
        </div>
      </Disclosure>
    </Dialog>
  );
};
