/** The Qdrant card: settings, connection test, search test, cleanup. */
import type { Hono } from "hono";
import type { Child } from "hono/jsx";
import type { Env } from "../auth.ts";
import { type QdrantSettings, qdrantSettingsPatch } from "../schemas/qdrant.ts";
import { check } from "../validate.ts";
import {
  CleanupDialog,
  QdrantCard,
  type QdrantForm,
  type QdrantHealth,
  QdrantSearch,
  QdrantState,
} from "../../views/qdrant.tsx";
import {
  errorsOf,
  type Fields,
  finish,
  isPart,
  numberOr,
  readForm,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";

export const ENGINE = "/dashboard/memory?tab=engine";

const formOf = (settings: QdrantSettings): QdrantForm => ({
  enabled: settings.enabled,
  host: settings.host,
  port: String(settings.port),
  collection: settings.collection,
  embeddingModel: settings.embeddingModel ?? "",
  quantization: settings.quantization,
  apiKeyMasked: settings.apiKeyMasked ?? "",
});

/** The card with what was last heard of the server; it is asked only while Qdrant is on. */
export async function qdrantCard(deps: StudioDeps): Promise<Child> {
  const settings = await deps.engine.qdrant.read();
  const health = settings.enabled ? await deps.engine.qdrant.status() : null;
  const known: QdrantHealth | null = health
    ? {
        ok: health.healthy,
        latencyMs: health.latencyMs ?? 0,
        ...(health.error === null ? {} : { error: health.error }),
      }
    : null;
  return (
    <>
      <QdrantCard form={formOf(settings)} errors={{}} health={known} />
      <QdrantSearch />
    </>
  );
}

/** What was typed, as the schema checks it. An empty key keeps the stored one. */
const patchOf = (fields: Fields) => ({
  enabled: fields["enabled"] === "true",
  host: (fields["host"] ?? "").trim(),
  port: numberOr(fields["port"]) ?? 6333,
  collection: (fields["collection"] ?? "").trim(),
  embeddingModel: (fields["embeddingModel"] ?? "").trim() || null,
  quantization: fields["quantization"] ?? "none",
  ...(fields["removeKey"] === "true" ? { apiKey: "" } : fields["apiKey"] ? { apiKey: fields["apiKey"] } : {}),
});

const typed = (fields: Fields, before: QdrantSettings): QdrantForm => ({
  enabled: fields["enabled"] === "true",
  host: fields["host"] ?? "",
  port: fields["port"] ?? "",
  collection: fields["collection"] ?? "",
  embeddingModel: fields["embeddingModel"] ?? "",
  quantization: fields["quantization"] ?? "none",
  apiKeyMasked: before.apiKeyMasked ?? "",
});

export function qdrantRoutes(
  app: Hono<Env>,
  deps: StudioDeps,
  enginePage: (
    c: StudioContext,
    extras: { qdrant?: Child; dialog?: Child; status?: number },
  ) => Promise<Response>,
): void {
  const { qdrant } = deps.engine;

  app.post("/dashboard/settings/qdrant", async (c) => {
    const { fields } = await readForm(c);
    const before = await qdrant.read();
    try {
      const patch = check(qdrantSettingsPatch, patchOf(fields));
      const settings = await qdrant.write({ patch });
      const main = <QdrantCard form={formOf(settings)} errors={{}} health={null} />;
      return finish(c, { code: "saved" }, { to: `${ENGINE}#qdrant`, main });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      const card = <QdrantCard form={typed(fields, before)} errors={errors} health={null} />;
      if (isPart(c)) return show(c, card, { status });
      return enginePage(c, { qdrant: card, status });
    }
  });

  app.post("/dashboard/settings/qdrant/test", async (c) => {
    const [settings, health] = await Promise.all([qdrant.read(), qdrant.health()]);
    const form = formOf(settings);
    if (isPart(c)) return show(c, <QdrantState form={form} health={health} />);
    return enginePage(c, { qdrant: <QdrantCard form={form} errors={{}} health={health} /> });
  });

  app.post("/dashboard/settings/qdrant/search", async (c) => {
    const query = ((await readForm(c)).fields["query"] ?? "").trim();
    const found =
      query === ""
        ? { ok: false, latencyMs: 0, results: [], error: "Enter something to search for." }
        : await qdrant.search({ query, topK: 5 });
    const result = {
      ok: found.ok,
      latencyMs: found.latencyMs,
      error: found.error === "not_configured" ? "Enter a host and save it first." : found.error,
      hits: found.results.map((hit) => ({ id: hit.id, score: hit.score, text: textOf(hit.payload) })),
    };
    const main = <QdrantSearch query={query} result={result} />;
    if (isPart(c)) return show(c, main);
    const card = <QdrantCard form={formOf(await qdrant.read())} errors={{}} health={null} />;
    return enginePage(c, {
      qdrant: (
        <>
          {card}
          {main}
        </>
      ),
    });
  });

  app.get("/dashboard/settings/qdrant/cleanup", (c) => {
    const dialog = <CleanupDialog retentionDays={deps.admin.settings.read().retentionDays} />;
    return isPart(c) ? show(c, dialog) : enginePage(c, { dialog });
  });

  app.post("/dashboard/settings/qdrant/cleanup", async (c) => {
    const { deletedCount } = await qdrant.cleanup();
    return finish(c, { code: "cleaned", n: deletedCount }, { to: `${ENGINE}#qdrant` });
  });
}

const textOf = (payload: Record<string, unknown>): string => {
  const content = payload["content"];
  return typeof content === "string" ? content : JSON.stringify(payload);
};
