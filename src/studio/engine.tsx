/** `?tab=engine`: how memories are indexed and found, and every control of it. */
import type { Hono } from "hono";
import type { Child } from "hono/jsx";
import type { Env } from "../auth.ts";
import { AppError } from "../error.ts";
import { type MemorySettings } from "../memory/settings.ts";
import { memorySettingsPatch } from "../memory/settings-schema.ts";
import { check } from "../validate.ts";
import { JobsTable } from "../../views/engine-jobs.tsx";
import { ModelProgress, type ModelState, type SourceForm, SourceForms } from "../../views/engine-source.tsx";
import { EnginePage, ReindexPanel, type RerankForm, RerankRows, StatusBoard } from "../../views/engine.tsx";
import type { Errors } from "../../views/fields.tsx";
import { backendsCard } from "./backends.tsx";
import {
  chromeOf,
  errorsOf,
  type Fields,
  finish,
  isPart,
  readForm,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";
import { coverageOf, partsOf, readStatus, reindexOf } from "./engine-status.ts";
import { readHealth } from "./health.ts";
import { ENGINE, qdrantCard } from "./qdrant.tsx";
import { modelNames } from "./settings.tsx";

export interface EngineExtras {
  source?: { form: SourceForm; errors: Errors };
  rerank?: { form: RerankForm; errors: Errors };
  qdrant?: Child;
  dialog?: Child;
  status?: number;
}

const sourceOf = (settings: MemorySettings): SourceForm => ({
  embeddingSource: settings.embeddingSource,
  staticEnabled: settings.staticEnabled,
  transformersEnabled: settings.transformersEnabled,
  embeddingProviderModel: settings.embeddingProviderModel ?? "",
  customBaseUrl: settings.customBaseUrl ?? "",
  customModelId: settings.customModelId ?? "",
  customApiKey: settings.customApiKey ?? "",
});

const rerankOf = (settings: MemorySettings): RerankForm => ({
  rerankEnabled: settings.rerankEnabled,
  rerankProviderModel: settings.rerankProviderModel ?? "",
});

export async function enginePage(
  c: StudioContext,
  deps: StudioDeps,
  extras: EngineExtras = {},
): Promise<Response> {
  const settings = deps.admin.settings.read();
  const [chrome, status, models, jobs, qdrant, backends, remote] = await Promise.all([
    chromeOf(c, deps),
    readStatus(deps),
    deps.engine.models.list(),
    deps.engine.jobs.groups(),
    extras.qdrant ?? qdrantCard(deps),
    backendsCard(deps),
    remoteModels(deps),
  ]);
  return show(
    c,
    <EnginePage
      chrome={chrome}
      parts={partsOf(status)}
      coverage={coverageOf(status)}
      reindex={reindexOf(status)}
      models={models as ModelState[]}
      source={extras.source?.form ?? sourceOf(settings)}
      sourceErrors={extras.source?.errors ?? {}}
      remoteModels={remote}
      rerank={extras.rerank?.form ?? rerankOf(settings)}
      rerankErrors={extras.rerank?.errors ?? {}}
      jobs={jobs}
      quality={status.quality ? { week: status.quality.last7Days, ever: status.quality } : null}
      qdrant={qdrant}
      backends={backends}
      dialog={extras.dialog}
    />,
    { status: extras.status ?? 200 },
  );
}

const remoteModels = async (deps: StudioDeps) =>
  (await modelNames(deps)).map((model) => ({ value: model, text: model }));

/** Part of the embedding settings that a form sends, by its hidden field `part`. */
function sourcePatch(fields: Fields): Record<string, unknown> {
  const textOr = (name: string) => (fields[name] ?? "").trim() || null;
  if (fields["part"] === "custom") {
    if (fields["clear"] === "true") return { customBaseUrl: null, customModelId: null, customApiKey: null };
    return {
      customBaseUrl: textOr("customBaseUrl"),
      customModelId: textOr("customModelId"),
      ...(fields["customApiKey"] ? { customApiKey: fields["customApiKey"] } : {}),
    };
  }
  return {
    ...(fields["embeddingSource"] === undefined ? {} : { embeddingSource: fields["embeddingSource"] }),
    staticEnabled: fields["staticEnabled"] === "true",
    transformersEnabled: fields["transformersEnabled"] === "true",
    embeddingProviderModel: textOr("embeddingProviderModel"),
  };
}

export function engineRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { settings } = deps.admin;
  const { models, jobs } = deps.engine;
  const base = "/dashboard/memory/engine";

  app.get(`${base}/status`, async (c) => show(c, <StatusBoard parts={partsOf(await readStatus(deps))} />));

  const reindexPanel = async () => {
    const status = await readStatus(deps);
    return <ReindexPanel coverage={coverageOf(status)} reindex={reindexOf(status)} />;
  };
  app.get(`${base}/reindex`, async (c) => show(c, await reindexPanel()));
  app.post(`${base}/reindex`, async (c) => {
    const { fields } = await readForm(c);
    await deps.engine.index.start({ force: fields["force"] === "true" });
    return finish(
      c,
      { code: "reindexing" },
      { to: `${ENGINE}#coverage`, main: await reindexPanel(), quiet: true },
    );
  });

  app.post(`${base}/verify`, async (c) => {
    const health = await readHealth(deps);
    if (!health.working) throw new AppError("unavailable", health.error ?? "The round trip failed.");
    return finish(c, { code: "works", n: Math.round(health.latencyMs) }, { to: ENGINE });
  });

  const sourceForms = async (form: SourceForm, errors: Errors) => (
    <SourceForms
      source={form}
      errors={errors}
      models={(await models.list()) as ModelState[]}
      remoteModels={[]}
    />
  );

  app.post(`${base}/source`, async (c) => {
    const { fields } = await readForm(c);
    const before = settings.read();
    try {
      const after = settings.write(check(memorySettingsPatch, sourcePatch(fields)));
      // Switching a model on downloads it at once, not at the next request.
      for (const name of ["static", "transformers"] as const) {
        const wanted = after[`${name}Enabled`] || after.embeddingSource === name;
        const was = before[`${name}Enabled`] || before.embeddingSource === name;
        if (wanted && !was && (await models.status({ name })).state === "absent") await models.pull({ name });
      }
      return finish(
        c,
        { code: "saved" },
        { to: `${ENGINE}#source`, main: await sourceForms(sourceOf(after), {}) },
      );
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      const form = { ...sourceOf(before), ...typedSource(fields) };
      if (isPart(c)) return show(c, await sourceForms(form, errors), { status });
      return enginePage(c, deps, { source: { form, errors }, status });
    }
  });

  app.get(`${base}/models/:name`, async (c) => {
    const model = (await models.status({ name: c.req.param("name") })) as ModelState;
    return show(
      c,
      <ModelProgress model={model} />,
      model.state === "ready" ? { say: "The model is here." } : {},
    );
  });

  app.post(`${base}/models/:name`, async (c) => {
    const model = (await models.pull({ name: c.req.param("name") })) as ModelState;
    if (isPart(c)) return show(c, <ModelProgress model={model} />);
    return c.redirect(`${ENGINE}#source`, 303);
  });

  app.post(`${base}/rerank`, async (c) => {
    const { fields } = await readForm(c);
    const form: RerankForm = {
      rerankEnabled: fields["rerankEnabled"] === "true",
      rerankProviderModel: fields["rerankProviderModel"] ?? "",
    };
    try {
      const after = settings.write(
        check(memorySettingsPatch, {
          rerankEnabled: form.rerankEnabled,
          rerankProviderModel: form.rerankProviderModel.trim() || null,
        }),
      );
      const main = <RerankRows rerank={rerankOf(after)} errors={{}} />;
      return finish(c, { code: "saved" }, { to: `${ENGINE}#rerank`, main });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      if (isPart(c)) return show(c, <RerankRows rerank={form} errors={errors} />, { status });
      return enginePage(c, deps, { rerank: { form, errors }, status });
    }
  });

  app.post(`${base}/jobs/retry`, async (c) => {
    const { retried } = await jobs.retryFailed();
    const main = <JobsTable jobs={await jobs.groups()} />;
    return finish(c, { code: "retried", n: retried }, { to: `${ENGINE}#jobs`, main });
  });
}

/** What was typed into the endpoint's fields, to be shown again beside the errors. */
const typedSource = (fields: Fields): Partial<SourceForm> => ({
  ...(fields["embeddingProviderModel"] === undefined
    ? {}
    : { embeddingProviderModel: fields["embeddingProviderModel"] }),
  ...(fields["customBaseUrl"] === undefined ? {} : { customBaseUrl: fields["customBaseUrl"] }),
  ...(fields["customModelId"] === undefined ? {} : { customModelId: fields["customModelId"] }),
});
