/** How memories are indexed and found: state of each part, coverage, embedding source, rerank, jobs. */
import type { Child } from "hono/jsx";
import { bytes, count, num, percent } from "./format.ts";
import { Icon } from "./icons.tsx";
import { type Chrome, Page } from "./layout.tsx";
import { Disclosure, Head, Section } from "./parts.tsx";
import { Post, Submit } from "./actions.tsx";
import { Bar, Chip, Dot, type State, Word } from "./figures.tsx";
import { type Errors, Field, FormErrors, Input, Row, SaveWithoutScript, Switch } from "./fields.tsx";

/** One chip: a part of the engine and how it is. */
export interface PartState {
  name: string;
  state: State;
  word: string;
  note: string;
}

export interface Coverage {
  name: string;
  done: number;
  total: number;
}

export interface Reindex {
  running: boolean;
  done: number;
  total: number;
  signature: string | null;
  /** Rows that still have no current vector. */
  pending: number;
  /** Why nothing can be built, as a sentence. */
  blocked: string | null;
}

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

export interface RerankForm {
  rerankEnabled: boolean;
  rerankProviderModel: string;
}

export interface JobGroup {
  type: string;
  queued: number;
  running: number;
  failed: number;
  oldestSeconds: number | null;
  lastError: string | null;
}

export interface EngineProps {
  chrome: Chrome;
  parts: PartState[];
  coverage: Coverage[];
  reindex: Reindex;
  models: ModelState[];
  source: SourceForm;
  sourceErrors: Errors;
  /** Remote models that can be chosen: `provider/model`. */
  remoteModels: { value: string; text: string }[];
  rerank: RerankForm;
  rerankErrors: Errors;
  jobs: JobGroup[];
  qdrant: Child;
  backends: Child;
  dialog?: Child;
}

/** Polls itself every five seconds, morphing, so that focus and reading position stay. */
export const StatusBoard = ({ parts }: { parts: PartState[] }) => (
  <dl
    class="board board-6"
    id="engine-status"
    hx-get="/dashboard/memory/engine/status"
    hx-trigger="every 5s"
    hx-swap="outerMorph"
  >
    {parts.map((part) => (
      <div class="cell">
        <dt>
          <Dot state={part.state} />
          {part.name}
        </dt>
        <dd class="cell-word">{part.word}</dd>
        <dd class="cell-note">{part.note}</dd>
      </div>
    ))}
  </dl>
);

const CoverageBars = ({ coverage }: { coverage: Coverage[] }) => (
  <dl class="panel-pad coverage">
    {coverage.map(({ name, done, total }) => (
      <div>
        <dt>{name}</dt>
        <dd>
          <Bar parts={[[percent(done, total), "fill-1"]]} tall label={`${percent(done, total)} percent`} />
        </dd>
        <dd class="figure">
          {num(done)} of {num(total)}
        </dd>
      </div>
    ))}
  </dl>
);

/** Coverage and what is being built. While something runs it replaces itself every second. */
export const ReindexPanel = ({ coverage, reindex }: { coverage: Coverage[]; reindex: Reindex }) => (
  <div
    class="panel"
    id="reindex"
    {...(reindex.running
      ? { "hx-get": "/dashboard/memory/engine/reindex", "hx-trigger": "every 1s", "hx-swap": "outerMorph" }
      : {})}
  >
    <CoverageBars coverage={coverage} />
    <div class="panel-foot">
      {reindex.running ? (
        <div class="progress-line progress-line-wide">
          <span class="inline">
            <Dot state="busy" />
            <span>
              Building the index{reindex.signature ? " for " : ""}
              {reindex.signature ? <code>{reindex.signature}</code> : null}
            </span>
          </span>
          <span class="figure">
            {num(reindex.done)} of {num(reindex.total)}
          </span>
          <progress
            max={String(Math.max(1, reindex.total))}
            value={String(reindex.done)}
            aria-label="Building the index"
          >
            {Math.floor(percent(reindex.done, reindex.total))}%
          </progress>
        </div>
      ) : (
        <>
          <p class="note">
            {reindex.blocked ??
              (reindex.pending > 0
                ? `${count(reindex.pending, "row")} without a current vector.`
                : "Every row has a current vector.")}
          </p>
          <span class="push" />
          {reindex.blocked ? null : (
            <>
              <Post action="/dashboard/memory/engine/reindex" target="#reindex" fields={{ force: "true" }}>
                <button class="btn btn-sm btn-quiet">Rebuild everything</button>
              </Post>
              <Post action="/dashboard/memory/engine/reindex" target="#reindex">
                <button class="btn btn-sm">
                  <Icon name="refresh" />
                  Reindex now
                </button>
              </Post>
            </>
          )}
        </>
      )}
    </div>
  </div>
);

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
  const form = "source";
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
        form={form}
        errors={errors}
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
                form={form}
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
            <input
              class="input input-mono"
              id="source-embeddingProviderModel"
              name="embeddingProviderModel"
              list="remote-models"
              value={source.embeddingProviderModel}
              placeholder="provider/model"
              autocomplete="off"
              aria-label="Remote model, as provider/model"
              {...(errors["embeddingProviderModel"] ? { "aria-invalid": "true" } : {})}
            />
            <datalist id="remote-models">
              {remote.map((model) => (
                <option value={model.value}>{model.text}</option>
              ))}
            </datalist>
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
            <Field form={form} errors={errors} name="customBaseUrl" label="Base URL">
              <Input
                form={form}
                errors={errors}
                name="customBaseUrl"
                kind="mono"
                value={source.customBaseUrl}
                more={{ placeholder: "http://127.0.0.1:11434/v1", inputmode: "url" }}
              />
            </Field>
            <Field form={form} errors={errors} name="customModelId" label="Model">
              <Input
                form={form}
                errors={errors}
                name="customModelId"
                kind="mono"
                value={source.customModelId}
                more={{ placeholder: "nomic-embed-text" }}
              />
            </Field>
            <Field
              form={form}
              errors={errors}
              name="customApiKey"
              label="Key"
              optional={source.customApiKey ? `set, ${source.customApiKey}` : "optional"}
            >
              <Input
                form={form}
                errors={errors}
                name="customApiKey"
                kind="mono"
                value=""
                more={{
                  type: "password",
                  autocomplete: "off",
                  placeholder: source.customApiKey ? "Leave empty to keep" : "",
                }}
              />
            </Field>
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

export const RerankRows = ({ rerank, errors }: { rerank: RerankForm; errors: Errors }) => {
  const field = { form: "rerank", errors };
  return (
    <form
      class="rows"
      id="rerank-form"
      method="post"
      action="/dashboard/memory/engine/rerank"
      hx-post="/dashboard/memory/engine/rerank"
      hx-target="this"
      hx-disable="find .btn-primary"
      aria-label="Rerank"
    >
      <Row
        {...field}
        name="rerankEnabled"
        label="Rerank results"
        hint="If it fails or takes longer than 500 ms, the order stays as it was."
      >
        <Switch {...field} name="rerankEnabled" on={rerank.rerankEnabled} />
      </Row>
      <Row
        {...field}
        name="rerankProviderModel"
        label="Model"
        hint="A provider's model that has a rerank route."
      >
        <Input
          {...field}
          name="rerankProviderModel"
          kind="mono"
          value={rerank.rerankProviderModel}
          more={{ placeholder: "provider/model", autocomplete: "off" }}
        />
      </Row>
      <div class="row-foot">
        <span class="push" />
        <Submit>Save</Submit>
      </div>
    </form>
  );
};

const jobWords: Record<string, string> = {
  extract: "Learn from exchanges",
  embed: "Embed",
  index: "Index",
  qdrant: "Write to Qdrant",
  summarise: "Summarise",
  summarize: "Summarise",
  cleanup: "Clean up",
};
const jobName = (type: string): string => jobWords[type] ?? type.replaceAll(/[-_.:]/g, " ");

const seconds = (n: number): string =>
  n < 120 ? `${num(n)} s` : n < 7200 ? `${num(n / 60)} min` : `${num(n / 3600)} h`;

export const JobsTable = ({ jobs }: { jobs: JobGroup[] }) => (
  <div id="jobs-table" class="stack">
    {jobs.length === 0 ? (
      <p class="panel panel-pad note">Nothing waits. Everything that was asked for is done.</p>
    ) : (
      <div class="table-wrap">
        <table class="table table-stack">
          <thead>
            <tr>
              <th>Job</th>
              <th class="num">Queued</th>
              <th class="num">Running</th>
              <th class="num">Failed</th>
              <th class="num">Oldest</th>
            </tr>
          </thead>
          <tbody>
            {jobs.map((job) => (
              <tr>
                <td>
                  <b class="table-title">{jobName(job.type)}</b>
                  {job.lastError ? <span class="table-sub bad">{job.lastError}</span> : null}
                </td>
                <td class="num" data-label="Queued">
                  {num(job.queued)}
                </td>
                <td class="num" data-label="Running">
                  {num(job.running)}
                </td>
                <td class="num" data-label="Failed">
                  {num(job.failed)}
                </td>
                <td class="num" data-label="Oldest">
                  {job.oldestSeconds === null ? "–" : seconds(job.oldestSeconds)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
    {jobs.some((job) => job.failed > 0) ? (
      <div class="form-foot">
        <Post action="/dashboard/memory/engine/jobs/retry" target="#jobs-table">
          <button class="btn">
            <Icon name="refresh" />
            Try the failed ones again
          </button>
        </Post>
      </div>
    ) : null}
  </div>
);

export const EnginePage = (props: EngineProps) => (
  <Page title="Engine" current="engine" chrome={props.chrome} dialog={props.dialog}>
    <Head
      title="Engine"
      sub="How memories are indexed and found. A part that is missing weakens search, it never stops a request."
    >
      <Post action="/dashboard/memory/engine/verify" target="#toasts" swap="beforeend">
        <button class="btn">
          <Icon name="check" />
          Verify
        </button>
      </Post>
    </Head>
    <StatusBoard parts={props.parts} />
    <Section
      id="coverage"
      title="Coverage"
      sub="Rows that have a current vector. Search uses the old index until the new one is complete."
    >
      <ReindexPanel coverage={props.coverage} reindex={props.reindex} />
    </Section>
    <Section
      id="source"
      title="Embedding source"
      sub="Turns text into vectors. A change builds a new index beside the old one, so search never stops. Switching a model on downloads it."
    >
      <SourceForms
        source={props.source}
        errors={props.sourceErrors}
        models={props.models}
        remoteModels={props.remoteModels}
      />
    </Section>
    <Section
      id="qdrant"
      title="Qdrant"
      sub="An external vector store, for many boxes that share one memory. While it is down, search goes on with sqlite-vec."
    >
      {props.qdrant}
    </Section>
    <Section
      id="rerank"
      title="Rerank"
      sub="Asks a model to sort the results once more. Adds 200 to 500 ms to a request."
    >
      <RerankRows rerank={props.rerank} errors={props.rerankErrors} />
    </Section>
    <Section
      id="backends"
      title="Backends"
      sub="Where memories live. The first one decides; the others follow and help out when reading."
    >
      {props.backends}
    </Section>
    <Section id="jobs" title="Jobs" sub="Work that goes on behind the requests. It survives a restart.">
      <JobsTable jobs={props.jobs} />
    </Section>
  </Page>
);
