/** What the settings ask for: embedding models, Qdrant, providers. */
import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readQdrant } from "../backends/mirror/settings.ts";
import type { Config } from "../config.ts";
import { readMemorySettings } from "../db/settings.ts";
import type { ModelName } from "../embed/model-files.ts";
import { createModels } from "../embed/models.ts";
import { loadOnnx } from "../native.ts";
import { openSeal } from "../seal.ts";
import { bad, off, ok, warn, why, type Finding } from "./types.ts";

const ANSWER_MS = 5000;

/** Each local model: there and able to embed, or why not. `db` is null while there is no database. */
export async function models(config: Config, db: Database | null): Promise<Finding[]> {
  const modelsDir = config.MEMORY_STATIC_CACHE_DIR ?? join(config.dataDir, "embeddings");
  const all = createModels({
    modelsDir,
    dataDir: config.dataDir,
    repos: { static: config.MEMORY_STATIC_MODEL, transformers: config.MEMORY_TRANSFORMERS_MODEL },
    hub: { endpoint: config.HF_ENDPOINT, token: config.HF_TOKEN },
  });
  const settings = db === null ? null : readMemorySettings(db);
  const wanted: Record<ModelName, boolean> = {
    static: settings?.staticEnabled === true || settings?.embeddingSource === "static",
    transformers: settings?.transformersEnabled === true || settings?.embeddingSource === "transformers",
  };
  const findings: Finding[] = [];
  for (const { name, repo, state, error } of all.list()) {
    const check = `model ${name}`;
    if (state === "ready") findings.push(await tried(name, repo, modelsDir, config.dataDir));
    else if (!wanted[name]) findings.push(off(check, "Not enabled and not on this machine."));
    else if (state === "downloading")
      findings.push(
        warn(check, "It is being downloaded.", "Wait; recollect model list shows how far it is."),
      );
    else
      findings.push(
        bad(
          check,
          `It is enabled and not on this machine.${error ? ` ${error}` : ""}`,
          `recollect model pull ${name}, or recollect model import DIR`,
        ),
      );
  }
  return findings;
}

async function tried(name: ModelName, repo: string, modelsDir: string, dataDir: string): Promise<Finding> {
  const check = `model ${name}`;
  try {
    const started = performance.now();
    if (name === "transformers") {
      const missing = loadOnnx(dataDir);
      if (missing !== null)
        return warn(
          check,
          missing.reason,
          "Use the static model or a provider's embeddings on this machine.",
        );
    }
    const embedder =
      name === "static"
        ? await (await import("../embed/static.ts")).openStatic(join(modelsDir, repo), repo)
        : await (
            await import("../embed/transformers.ts")
          ).openTransformers({ modelsDir, model: repo, dataDir });
    await embedder.embed(["one real embedding"]);
    await embedder.close();
    return ok(
      check,
      `${repo} gives ${embedder.dimensions} dimensions; loaded in ${Math.round(performance.now() - started)} ms.`,
    );
  } catch (error) {
    return bad(check, `${why(error)}.`, `recollect model remove ${name}, then recollect model pull ${name}`);
  }
}

export async function qdrant(config: Config, db: Database | null): Promise<Finding> {
  if (db === null) return off("qdrant", "Not used.");
  const settings = readMemorySettings(db);
  const used = settings.vectorStore === "qdrant" || settings.primaryBackend === "qdrant";
  if (!used || !existsSync(join(config.dataDir, "secret.key"))) return off("qdrant", "Not used.");
  const { url, apiKey } = readQdrant(db, config, openSeal(config.dataDir));
  if (url === null)
    return bad(
      "qdrant",
      "It is chosen and no host is set.",
      "Set its host in the Studio, or choose another vector store.",
    );
  const { connectQdrant } = await import("../search/qdrant/client.ts");
  const client = await connectQdrant({ url, apiKey });
  try {
    const ms = await client.ready();
    await client.call("search", (api, init) => api.getCollections({}, init));
    return ok("qdrant", `${url} answers in ${Math.round(ms)} ms.`);
  } catch (error) {
    return warn(
      "qdrant",
      `${url}: ${why(error)}.`,
      "Start it or correct host and key; until then search uses sqlite-vec, and what is written is brought over later.",
    );
  } finally {
    client.close();
  }
}

/** Whether each enabled provider answers at all. Keys are not sent. */
export async function upstreams(db: Database | null): Promise<Finding[]> {
  const rows =
    db === null
      ? []
      : db
          .query<{ id: string; base_url: string }, []>(
            "SELECT id, base_url FROM providers WHERE enabled = 1 ORDER BY id",
          )
          .all();
  if (rows.length === 0)
    return [off("upstream", "No provider yet. Add one with: recollect provider add ID URL")];
  return await Promise.all(rows.map(({ id, base_url }) => reach(id, base_url)));
}

async function reach(id: string, baseUrl: string): Promise<Finding> {
  const check = `upstream ${id}`;
  if (!/^https?:/.test(baseUrl)) return ok(check, "Built in.");
  const started = performance.now();
  try {
    const response = await fetch(`${baseUrl}/models`, {
      signal: AbortSignal.timeout(ANSWER_MS),
      redirect: "manual",
    });
    await response.body?.cancel();
    const ms = Math.round(performance.now() - started);
    return response.status >= 500
      ? warn(check, `${baseUrl} answers ${response.status}.`, "See that server's own log.")
      : ok(check, `${baseUrl} answers in ${ms} ms.`);
  } catch (error) {
    const late = error instanceof Error && error.name === "TimeoutError";
    return warn(
      check,
      `${baseUrl} ${late ? `did not answer within ${ANSWER_MS / 1000} s` : "could not be reached"}.`,
      "Start that server, or correct its address.",
    );
  }
}
