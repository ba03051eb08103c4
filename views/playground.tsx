/** Ask as a client would: what would be found, why, and the text that would be injected. */
import { Submit } from "./actions.tsx";
import { type Errors, FieldError, FormErrors, InputField, SelectField, TextareaField } from "./fields.tsx";
import { memoryHref } from "./format.ts";
import { Icon } from "./icons.tsx";
import { type Chrome, Page } from "./layout.tsx";
import { type Owner, ownerOptions } from "./owners.ts";
import { Banner, Head } from "./parts.tsx";
import { Answer, type PlayAnswer, type PlayResult } from "./playground-answer.tsx";

export interface PlayForm {
  query: string;
  strategy: string;
  maxTokens: string;
  apiKeyId: string;
  asOf: string;
  /** Whether the memories' own backend knows what was valid then. */
  lookBack: boolean;
}

const strategies: [string, string][] = [
  ["exact", "Exact"],
  ["semantic", "Semantic"],
  ["hybrid", "Hybrid"],
];

const labels = {
  query: "Query",
  strategy: "Strategy",
  maxTokens: "Token budget",
  apiKeyId: "Owner",
  asOf: "As of",
};

export const AskForm = ({
  form,
  errors,
  owners,
}: {
  form: PlayForm;
  errors: Errors;
  owners: readonly Owner[];
}) => {
  const field = { form: "ask", errors };
  return (
    <form
      class="panel ask"
      id="ask"
      method="get"
      action="/dashboard/memory"
      hx-get="/dashboard/memory"
      hx-target="#answer"
      hx-push-url="true"
      hx-disable="find .btn-primary"
    >
      <input type="hidden" name="tab" value="playground" />
      <FormErrors form="ask" errors={errors} labels={labels} />
      <TextareaField
        {...field}
        name="query"
        label={labels.query}
        value={form.query}
        rows={2}
        more={{ required: true, dir: "auto", maxlength: 20_000, placeholder: "What would the client ask?" }}
      />
      <div class="ask-controls">
        <fieldset class="field field-full">
          <legend>{labels.strategy}</legend>
          <div class="segmented">
            {strategies.map(([value, text]) => (
              <label>
                <input
                  type="radio"
                  name="strategy"
                  value={value}
                  {...(value === form.strategy ? { checked: true } : {})}
                />
                {text}
              </label>
            ))}
          </div>
          <FieldError {...field} name="strategy" />
        </fieldset>
        <InputField
          {...field}
          name="maxTokens"
          label={labels.maxTokens}
          kind="num"
          value={form.maxTokens}
          more={{ type: "number", min: 1, max: 16_000 }}
        />
        <SelectField
          {...field}
          name="apiKeyId"
          label={labels.apiKeyId}
          options={ownerOptions(owners, form.apiKeyId)}
          value={form.apiKeyId}
        />
        {form.lookBack ? (
          <InputField {...field} name="asOf" label={labels.asOf} value={form.asOf} more={{ type: "date" }} />
        ) : null}
        <div class="push">
          <Submit>
            <Icon name="play" />
            Run
          </Submit>
        </div>
      </div>
    </form>
  );
};

export interface PlaygroundProps {
  chrome: Chrome;
  form: PlayForm;
  errors: Errors;
  owners: readonly Owner[];
  answer: PlayAnswer | null;
}

export const PlaygroundPage = ({ chrome, form, errors, owners, answer }: PlaygroundProps) => (
  <Page title="Playground" current="playground" chrome={chrome}>
    <Head
      title="Playground"
      sub="Ask as a client would, and see what would be remembered. Nothing is sent or changed."
    />
    {owners.every((owner) => owner.id === "shared" || owner.revoked) ? (
      <Banner kind="warn">
        <p>
          <b>There is no API key yet.</b> Memories belong to a key.
        </p>
        <a class="btn btn-sm" href="/dashboard/settings/keys">
          Make one
        </a>
      </Banner>
    ) : null}
    <AskForm form={form} errors={errors} owners={owners} />
    <Answer answer={answer} />
  </Page>
);

export const resultHref = (kind: PlayResult["kind"], id: string, sessionId?: number): string | null => {
  if (kind === "memory") return memoryHref(id);
  if (kind === "entity") return `/dashboard/activity/entities/${encodeURIComponent(id)}`;
  return sessionId === undefined
    ? null
    : `/dashboard/activity/sessions/${sessionId}${kind === "episode" ? `#e-${encodeURIComponent(id)}` : ""}`;
};
