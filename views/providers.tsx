/** Providers: the model servers that requests are forwarded to. */
import type { Child } from "hono/jsx";
import { Cancel, Dialog, DialogLink, Post, Submit } from "./actions.tsx";
import type { Errors } from "./fields.tsx";
import { Word } from "./figures.tsx";
import { count, ms } from "./format.ts";
import { Icon } from "./icons.tsx";
import type { Chrome } from "./layout.tsx";
import { Empty } from "./parts.tsx";
import { type ProviderDraft, ProviderFields } from "./provider-fields.tsx";
import { SettingsPage } from "./settings.tsx";

export interface ProviderView {
  id: string;
  baseUrl: string;
  resolvedUrl: string;
  apiKeyMasked: string | null;
  wire: readonly string[];
  systemRole: string;
  models: readonly string[] | null;
  fallbacks: readonly string[];
  enabled: boolean;
  default: boolean;
  passthroughAuth: boolean;
  /** Built in: can be neither edited nor removed. */
  builtIn: boolean;
}

export interface TestResult {
  ok: boolean;
  latencyMs: number;
  model?: string | undefined;
  error?: string | undefined;
}

const BASE = "/dashboard/settings/providers";

const providerHref = (id: string, verb: string) => `${BASE}/${encodeURIComponent(id)}/${verb}`;

export const ProviderResult = ({ id, result }: { id: string; result: TestResult | null }) => (
  <p class="provider-result" id={`test-${id}`} role="status">
    {!result ? null : result.ok ? (
      <Word state="ok">
        Answered in {ms(result.latencyMs)}
        {result.model ? `, with ${result.model}` : ""}.
      </Word>
    ) : (
      <Word state="bad">{result.error ?? "It did not answer."}</Word>
    )}
  </p>
);

const Provider = ({ provider, result }: { provider: ProviderView; result: TestResult | null }) => (
  <li class="provider">
    <div class="provider-head">
      <div>
        <h3>
          {provider.id} {provider.default ? <span class="chip">default</span> : null}
          {provider.enabled ? null : <span class="chip chip-warn">off</span>}
          {provider.builtIn ? <span class="chip">built in</span> : null}
        </h3>
        <p class="note mono">
          {provider.resolvedUrl}
          {provider.apiKeyMasked ? ` · key ${provider.apiKeyMasked}` : ""}
        </p>
        <p class="note">
          speaks {provider.wire.join(", ")}
          {provider.models && !provider.builtIn
            ? `, ${count(provider.models.length, "model")} listed by hand`
            : ""}
          {provider.fallbacks.length > 0 ? `, falls back to ${provider.fallbacks.join(", ")}` : ""}
        </p>
      </div>
      <div class="actions">
        <Post action={providerHref(provider.id, "test")} target={`[id="test-${provider.id}"]`}>
          <button class="btn btn-sm" aria-label={`Test ${provider.id}`}>
            <Icon name="refresh" />
            <span class="spinner" />
            Test
          </button>
        </Post>
        {provider.default || !provider.enabled ? null : (
          <Post action={providerHref(provider.id, "default")}>
            <button class="btn btn-sm" aria-label={`Make ${provider.id} the default`}>
              Make default
            </button>
          </Post>
        )}
        {provider.builtIn ? null : (
          <>
            <DialogLink
              class="btn btn-sm"
              to={providerHref(provider.id, "edit")}
              label={`Edit ${provider.id}`}
            >
              Edit
            </DialogLink>
            <DialogLink
              class="btn btn-sm btn-danger-quiet"
              to={providerHref(provider.id, "remove")}
              label={`Remove ${provider.id}`}
            >
              Remove…
            </DialogLink>
          </>
        )}
      </div>
    </div>
    <ProviderResult id={provider.id} result={result} />
  </li>
);

/** The form below the list. Its button "Test" tries the address without keeping anything. */
export const AddProvider = ({
  draft,
  errors,
  result,
}: {
  draft: ProviderDraft;
  errors: Errors;
  result: TestResult | null;
}) => (
  <form
    class="rows"
    id="add-provider"
    method="post"
    action={`${BASE}/new`}
    hx-post={`${BASE}/new`}
    hx-target="this"
    hx-disable="find .btn-primary"
    aria-labelledby="add-p"
  >
    <div class="row row-wide">
      <h2 id="add-p" class="h-sm">
        Add a provider
      </h2>
      <ProviderFields form="p" draft={draft} errors={errors} known={false} />
      <ProviderResult id="new" result={result} />
    </div>
    <div class="row-foot">
      <label class="inline note start">
        <input type="checkbox" name="default" value="true" {...(draft.default ? { checked: true } : {})} />{" "}
        Use it for models without a prefix
      </label>
      <button class="btn" name="test" value="true">
        <span class="spinner" />
        Test
      </button>
      <Submit>Add provider</Submit>
    </div>
  </form>
);

export interface ProvidersProps {
  chrome: Chrome;
  counts: { keys: number; providers: number };
  providers: readonly ProviderView[];
  results: Readonly<Record<string, TestResult>>;
  add: { draft: ProviderDraft; errors: Errors; result: TestResult | null };
  dialog?: Child;
}

export const ProvidersPage = ({ chrome, counts, providers, results, add, dialog }: ProvidersProps) => (
  <SettingsPage chrome={chrome} tab="providers" title="Providers" counts={counts} dialog={dialog}>
    <div class="stack stack-lg">
      <section aria-labelledby="prov-h">
        <div class="block-head">
          <h2 id="prov-h">Providers</h2>
          <p class="note">Where requests are forwarded to</p>
        </div>
        {providers.length === 0 ? (
          <div class="panel">
            <Empty title="There is no provider" level={3}>
              <p>Requests have nowhere to go until you add one below.</p>
            </Empty>
          </div>
        ) : (
          <ul class="panel">
            {providers.map((provider) => (
              <Provider provider={provider} result={results[provider.id] ?? null} />
            ))}
          </ul>
        )}
      </section>
      <AddProvider {...add} />
    </div>
  </SettingsPage>
);

export const EditProviderDialog = ({ draft, errors }: { draft: ProviderDraft; errors: Errors }) => (
  <Dialog
    id="provider"
    title={`Edit ${draft.id}`}
    close={BASE}
    form={{ action: providerHref(draft.id, "edit") }}
    foot={
      <>
        <Cancel to={BASE} />
        <Submit>Save</Submit>
      </>
    }
  >
    <ProviderFields form="pe" draft={draft} errors={errors} known />
    {draft.apiKeyMasked ? (
      <label class="inline note">
        <input type="checkbox" name="removeKey" value="true" /> Remove the stored key
      </label>
    ) : null}
  </Dialog>
);

export const RemoveProviderDialog = ({ id, error }: { id: string; error: string | null }) => (
  <Dialog
    id="remove"
    title={`Remove ${id}?`}
    small
    close={BASE}
    form={{ action: providerHref(id, "remove") }}
    foot={
      <>
        <Cancel to={BASE} focus />
        <Submit kind="danger">Remove</Submit>
      </>
    }
  >
    {error ? (
      <p class="field-error" role="alert">
        <Icon name="alert" />
        <span>{error}</span>
      </p>
    ) : null}
    <p class="prose">Requests for its models are answered with an error from now on. Its key is deleted.</p>
  </Dialog>
);
