/** How memories are indexed and found: state of each part, coverage, embedding source, rerank, jobs. */
import type { Child } from "hono/jsx";
import { Post, Submit } from "./actions.tsx";
import { type JobGroup, JobsTable } from "./engine-jobs.tsx";
import { type Quality, QualityTable } from "./engine-quality.tsx";
import { type ModelState, type SourceForm, SourceForms } from "./engine-source.tsx";
import { type Errors, Input, Row, Switch } from "./fields.tsx";
import { Bar, Dot, type State } from "./figures.tsx";
import { count, num, percent } from "./format.ts";
import { Icon } from "./icons.tsx";
import { type Chrome, Page } from "./layout.tsx";
import { Head, Section } from "./parts.tsx";

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

export interface RerankForm {
  rerankEnabled: boolean;
  rerankProviderModel: string;
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
  quality: { week: Quality; ever: Quality } | null;
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
    {coverage.map(({ name, done, total }) => {
      // No rows: an empty bar, since nothing is covered.
      const share = total === 0 ? 0 : percent(done, total);
      return (
        <div>
          <dt>{name}</dt>
          <dd>
            <Bar parts={[[share, "fill-1"]]} tall label={`${share} percent`} />
          </dd>
          <dd class="figure">
            {num(done)} of {num(total)}
          </dd>
        </div>
      );
    })}
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
        <Switch {...field} name="rerankEnabled" hint on={rerank.rerankEnabled} />
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
          hint
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
    {props.quality ? (
      <Section id="quality" title="Quality" sub="Whether what is learned is worth keeping.">
        <QualityTable {...props.quality} />
      </Section>
    ) : null}
    <Section id="jobs" title="Jobs" sub="Work that goes on behind the requests. It survives a restart.">
      <JobsTable jobs={props.jobs} />
    </Section>
  </Page>
);
