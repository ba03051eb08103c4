/** The Qdrant card of the engine page: settings, tests, cleanup. */
import { Cancel, Dialog, DialogLink, Submit } from "./actions.tsx";
import { type Errors, FormErrors, InputField, Row, SecretField, SelectField, Switch } from "./fields.tsx";
import { cut, ms, num } from "./format.ts";
import { Icon } from "./icons.tsx";
import { Banner, Text, voice } from "./parts.tsx";

export interface QdrantForm {
  enabled: boolean;
  host: string;
  port: string;
  collection: string;
  embeddingModel: string;
  quantization: string;
  /** Masked, or "" where none is stored. */
  apiKeyMasked: string;
}

/** What the last look at the server said; null when it was not asked. */
export interface QdrantHealth {
  ok: boolean;
  latencyMs: number;
  error?: string | undefined;
  collection?: string | undefined;
  dimension?: number | undefined;
}

const labels = {
  host: "Host",
  port: "Port",
  collection: "Collection",
  apiKey: "API key",
  quantization: "Quantisation",
  embeddingModel: "Embedding model",
};

export const QdrantState = ({ form, health }: { form: QdrantForm; health: QdrantHealth | null }) => {
  const where = form.host ? `${form.host}${/^https?:/.test(form.host) ? "" : `:${form.port}`}` : "";
  return (
    <div id="qdrant-state" role="status">
      {!health ? null : health.ok ? (
        <Banner icon="check">
          <p>
            <b>{where} answers</b> in {ms(health.latencyMs)}
            {health.collection ? `, collection ${health.collection}` : ""}
            {health.dimension ? `, ${num(health.dimension)} dimensions` : ""}.
          </p>
        </Banner>
      ) : health.error === "not_configured" ? (
        <Banner icon="info">
          <p>Enter a host and save it: the test asks what is saved.</p>
        </Banner>
      ) : (
        <Banner kind="bad">
          <p>
            <b>No good answer from {where || "Qdrant"}.</b>{" "}
            {health.error ?? "Is it running, and can this machine reach it?"}
          </p>
        </Banner>
      )}
    </div>
  );
};

export const QdrantCard = ({
  form,
  errors,
  health,
}: {
  form: QdrantForm;
  errors: Errors;
  health: QdrantHealth | null;
}) => {
  const field = { form: "q", errors };
  return (
    <form
      class="rows"
      id="qdrant-form"
      method="post"
      action="/dashboard/settings/qdrant"
      hx-post="/dashboard/settings/qdrant"
      hx-target="this"
      hx-disable="find .btn-primary"
      aria-label="Qdrant"
    >
      <Row {...field} name="enabled" label="Use Qdrant" hint="Moves the vector store setting too.">
        <Switch {...field} name="enabled" hint on={form.enabled} />
      </Row>
      <div class="row row-wide">
        <QdrantState form={form} health={health} />
        <FormErrors form="q" errors={errors} labels={labels} />
        <div class="fields fields-3">
          <InputField
            {...field}
            name="host"
            label={labels.host}
            kind="mono"
            value={form.host}
            more={{ placeholder: "127.0.0.1" }}
          />
          <InputField
            {...field}
            name="port"
            label={labels.port}
            kind="mono"
            value={form.port}
            more={{ inputmode: "numeric" }}
          />
          <InputField
            {...field}
            name="collection"
            label={labels.collection}
            kind="mono"
            value={form.collection}
          />
          <SecretField {...field} name="apiKey" label={labels.apiKey} stored={form.apiKeyMasked} />
          <SelectField
            {...field}
            name="quantization"
            label={labels.quantization}
            options={["none", "int8", "binary"]}
            value={form.quantization}
          />
          <InputField
            {...field}
            name="embeddingModel"
            label={labels.embeddingModel}
            optional="optional"
            kind="mono"
            value={form.embeddingModel}
            more={{ placeholder: "the engine's own" }}
          />
        </div>
        {form.apiKeyMasked ? (
          <label class="inline note">
            <input type="checkbox" name="removeKey" value="true" /> Remove the stored key
          </label>
        ) : null}
      </div>
      <div class="row-foot">
        <DialogLink class="btn btn-quiet start" to="/dashboard/settings/qdrant/cleanup">
          Clean up expired points…
        </DialogLink>
        <button
          class="btn"
          formaction="/dashboard/settings/qdrant/test"
          hx-post="/dashboard/settings/qdrant/test"
          hx-target="#qdrant-state"
        >
          <span class="spinner" />
          Test connection
        </button>
        <Submit>Save</Submit>
      </div>
    </form>
  );
};

export interface QdrantHit {
  id: string;
  score: number;
  text: string;
}

export const QdrantSearch = ({
  query = "",
  result,
}: {
  query?: string;
  result?: { ok: boolean; latencyMs: number; error?: string | undefined; hits: QdrantHit[] } | null;
}) => (
  <div class="stack" id="qdrant-search">
    <form
      class="inline-form"
      method="post"
      action="/dashboard/settings/qdrant/search"
      hx-post="/dashboard/settings/qdrant/search"
      hx-target="#qdrant-search"
      aria-label="Search test"
    >
      <label class="search">
        <span class="visually-hidden">Search test</span>
        <Icon name="search" />
        <input
          class="input"
          id="q-search"
          name="query"
          value={query}
          required
          maxlength={2000}
          placeholder="Try a search in Qdrant"
        />
        <span class="spinner" />
      </label>
      <button class="btn">Search</button>
    </form>
    {!result ? null : !result.ok ? (
      <Banner kind="bad" more={{ role: "status" }}>
        <p>{result.error ?? "The search failed."}</p>
      </Banner>
    ) : (
      <div role="status">
        <p class="note">
          {result.hits.length === 0 ? "Nothing found" : `${result.hits.length} found`} in{" "}
          {ms(result.latencyMs)}
        </p>
        {result.hits.length > 0 ? (
          <ol class="panel panel-pad dropped">
            {result.hits.map((hit) => (
              <li {...voice(hit.text)}>
                <Text text={cut(hit.text, 200)} />
                <span class="reason">cosine {hit.score.toFixed(3)}</span>
              </li>
            ))}
          </ol>
        ) : null}
      </div>
    )}
  </div>
);

export const CleanupDialog = ({ retentionDays }: { retentionDays: number }) => (
  <Dialog
    id="cleanup"
    title="Clean up Qdrant?"
    small
    close="/dashboard/memory?tab=engine"
    form={{ action: "/dashboard/settings/qdrant/cleanup" }}
    foot={
      <>
        <Cancel to="/dashboard/memory?tab=engine" focus />
        <Submit kind="danger">Clean up</Submit>
      </>
    }
  >
    <p class="prose">
      Points that expired{retentionDays > 0 ? ` or were not confirmed for ${retentionDays} days` : ""} are
      deleted from the collection. The memories themselves stay on this machine.
    </p>
  </Dialog>
);
