/** Where vectors come from: the choice, the local models with their downloads, an endpoint of one's own. */
import { Submit } from "./actions.tsx";
import {
  type Errors,
  FieldError,
  FormErrors,
  Input,
  InputField,
  SaveWithoutScript,
  SecretField,
  Switch,
} from "./fields.tsx";
import { Chip, Dot, Word } from "./figures.tsx";
import { bytes, num } from "./format.ts";
import { Icon } from "./icons.tsx";
import { Disclosure } from "./parts.tsx";

export interface ModelState {
  name: "static" | "transformers";
  repo: string;
  dimensions: number | null;
  state: "absent" | "downloading" | "ready" | "failed";
  bytes: number;
  totalBytes: number | null;
  error?: string | undefined;
}

export interface SourceForm {
  embeddingSource: string;
  staticEnabled: boolean;
  transformersEnabled: boolean;
  embeddingProviderModel: string;
  customBaseUrl: string;
  customModelId: string;
  /** "••••" or prefix and last four, when a key is stored. */
  customApiKey: string;
}

const repoName = (repo: string) => repo.split("/").at(-1) ?? repo;

/** A model's chip, or its download, which replaces itself every second until it is over. */
export const ModelProgress = ({ model }: { model: ModelState }) => {
  if (model.state === "downloading") {
    return (
      <div
        class="choice-more progress-line"
        id={`model-${model.name}`}
        hx-get={`/dashboard/memory/engine/models/${model.name}`}
        hx-trigger="every 1s"
        hx-swap="outerMorph"
      >
        <Word state="busy">Downloading</Word>
        <span class="figure">
          {model.totalBytes ? `${bytes(model.bytes)} of ${bytes(model.totalBytes)}` : bytes(model.bytes)}
        </span>
        <progress
          {...(model.totalBytes ? { max: String(model.totalBytes), value: String(model.bytes) } : {})}
          aria-label={`Downloading the ${model.name} model`}
        />
      </div>
    );
  }
  return (
    <div class="choice-more" id={`model-${model.name}`}>
      {model.state === "ready" ? (
        <Chip kind="ok">
          <Dot state="ok" />
          ready{model.dimensions ? `, ${num(model.dimensions)} dimensions` : ""}
        </Chip>
      ) : model.state === "failed" ? (
        <div class="stack">
          <Word state="bad">{model.error ?? "The download failed."}</Word>
          <div>
            <button
              class="btn btn-sm"
              formaction={`/dashboard/memory/engine/models/${model.name}`}
              hx-post={`/dashboard/memory/engine/models/${model.name}`}
              hx-target={`#model-${model.name}`}
            >
              <Icon name="refresh" />
              Try again
            </button>
          </div>
        </div>
      ) : (
        <div class="inline">
          <Chip>not on this machine</Chip>
          <button
            class="btn btn-sm"
            formaction={`/dashboard/memory/engine/models/${model.name}`}
            hx-post={`/dashboard/memory/engine/models/${model.name}`}
            hx-target={`#model-${model.name}`}
            aria-label={`Download the ${model.name} model`}
          >
            <Icon name="download" />
            Download
          </button>
        </div>
      )}
    </div>
  );
};

const sourceHints = {
  static: "On this machine, below 0.2 ms a sentence, about 30 MB",
  transformers: "On this machine, better on long text, about 23 MB",
} as const;

export const SourceForms = ({
  source,
  errors,
  models,
  remoteModels,
}: {
  source: SourceForm;
  errors: Errors;
  models: ModelState[];
  remoteModels: { value: string; text: string }[];
}) => {
  const field = { form: "source", errors };
  const radio = (value: string) => ({
    type: "radio",
    name: "embeddingSource",
    value,
    id: `src-${value}`,
    ...(source.embeddingSource === value ? { checked: true } : {}),
  });
  const remote = remoteModels.some((model) => model.value === source.embeddingProviderModel)
    ? remoteModels
    : source.embeddingProviderModel
      ? [{ value: source.embeddingProviderModel, text: source.embeddingProviderModel }, ...remoteModels]
      : remoteModels;
  return (
    <div class="stack" id="source-forms">
      <FormErrors
        {...field}
        labels={{ embeddingProviderModel: "Remote model", customBaseUrl: "Base URL", customModelId: "Model" }}
      />
      <form
        class="choices"
        method="post"
        action="/dashboard/memory/engine/source"
        hx-post="/dashboard/memory/engine/source"
        hx-trigger="change"
        hx-target="#source-forms"
        aria-label="Embedding source"
      >
        <input type="hidden" name="part" value="source" />
        <div class="choice">
          <input {...radio("auto")} />
          <label for="src-auto">
            <span class="label">Automatic</span>
            <span class="hint">
              A remote model if one is set, else static, else transformers, if switched on
            </span>
          </label>
        </div>
        {models.map((model) => (
          <div class="choice">
            <input {...radio(model.name)} />
            <label for={`src-${model.name}`}>
              <span class="label">
                {model.name === "static" ? "Static" : "Transformers"} <code>{repoName(model.repo)}</code>
              </span>
              <span class="hint">{sourceHints[model.name]}</span>
            </label>
            <span class="choice-side">
              <Switch
                form={field.form}
                name={`${model.name}Enabled`}
                on={model.name === "static" ? source.staticEnabled : source.transformersEnabled}
                label={`${model.name === "static" ? "Static" : "Transformers"} model`}
              />
            </span>
            <ModelProgress model={model} />
          </div>
        ))}
        <div class="choice">
          <input {...radio("remote")} />
          <label for="src-remote">
            <span class="label">Remote</span>
            <span class="hint">A provider's model. Sends the text of every memory to that server.</span>
          </label>
          <div class="choice-more">
            <Input
              {...field}
              name="embeddingProviderModel"
              kind="mono"
              value={source.embeddingProviderModel}
              more={{
                list: "remote-models",
                placeholder: "provider/model",
                autocomplete: "off",
                "aria-label": "Remote model, as provider/model",
              }}
            />
            <datalist id="remote-models">
              {remote.map((model) => (
                <option value={model.value}>{model.text}</option>
              ))}
            </datalist>
            <FieldError {...field} name="embeddingProviderModel" />
          </div>
        </div>
        <SaveWithoutScript />
      </form>
      <Disclosure
        title="Use your own endpoint"
        note={source.customBaseUrl ? "in use" : "base URL and model, both or neither"}
        open={Boolean(errors["customBaseUrl"] || errors["customModelId"])}
      >
        <form
          class="disclosure-body stack"
          method="post"
          action="/dashboard/memory/engine/source"
          hx-post="/dashboard/memory/engine/source"
          hx-target="#source-forms"
          hx-disable="find .btn-primary"
        >
          <input type="hidden" name="part" value="custom" />
          <div class="fields fields-3">
            <InputField
              {...field}
              name="customBaseUrl"
              label="Base URL"
              kind="mono"
              value={source.customBaseUrl}
              more={{ placeholder: "http://127.0.0.1:11434/v1", inputmode: "url" }}
            />
            <InputField
              {...field}
              name="customModelId"
              label="Model"
              kind="mono"
              value={source.customModelId}
              more={{ placeholder: "nomic-embed-text" }}
            />
            <SecretField {...field} name="customApiKey" label="Key" stored={source.customApiKey} />
          </div>
          <div class="form-foot">
            <Submit>Save the endpoint</Submit>
            {source.customBaseUrl ? (
              <button class="btn" name="clear" value="true" formnovalidate>
                Use none
              </button>
            ) : null}
          </div>
        </form>
      </Disclosure>
    </div>
  );
};
