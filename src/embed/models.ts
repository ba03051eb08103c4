/**
 * The embedding models on this box: `{folder}/{repo}` in the layout of the hub. A model is there when its folder is,
 * with every file in it: files gather in a folder of their own and are moved in one step.
 */
import { copyFileSync, existsSync, renameSync, rmSync, statfsSync } from "node:fs";
import { basename, join } from "node:path";
import {
  describeFile,
  downloadFile,
  DownloadError,
  megabytes,
  sizeOf,
  type HubOptions,
  type RemoteFile,
} from "./download.ts";
import {
  dimensionsOf,
  dropOthers,
  halfBytes,
  lock,
  otherProcess,
  place,
  presentFiles,
  stagedName,
  STATIC_FILES,
  swapIn,
  TRANSFORMERS_FILES,
  TRANSFORMERS_WEIGHTS,
  type ModelName,
} from "./model-files.ts";

export const modelNames: readonly ModelName[] = ["static", "transformers"];
export type ModelState = "absent" | "downloading" | "ready" | "failed";

export interface ModelStatus {
  readonly name: ModelName;
  readonly repo: string;
  /** Null until it is there. */
  readonly dimensions: number | null;
  readonly state: ModelState;
  readonly bytes: number;
  /** 0 while nobody has said. */
  readonly totalBytes: number;
  readonly error?: string;
}

export interface ModelsOptions {
  /** MEMORY_STATIC_CACHE_DIR, or DATA_DIR/embeddings. */
  readonly modelsDir: string;
  readonly dataDir: string;
  readonly repos: Readonly<Record<ModelName, string>>;
  readonly hub: HubOptions;
  /** Bytes free in a folder; null: unknown. */
  readonly freeBytes?: (folder: string) => number | null;
}

export interface Models {
  list(): ModelStatus[];
  status(name: ModelName): ModelStatus;
  /** Downloads what is missing; joins a download that runs. Rejects with a DownloadError. */
  pull(
    name: ModelName,
    onProgress?: (status: ModelStatus) => void,
    signal?: AbortSignal,
  ): Promise<ModelStatus>;
  /** Takes a model from a folder, or from `{folder}/{repo}`; tried with one real embedding first. */
  importFrom(folder: string, name?: ModelName): Promise<ModelStatus>;
  /** False when it was not there. */
  remove(name: ModelName): boolean;
}

/** Between two reports of progress. */
const PROGRESS_MS = 100;

interface Running {
  readonly done: Promise<ModelStatus>;
  readonly watchers: Set<(status: ModelStatus) => void>;
  bytes: number;
  total: number;
}

export function createModels(options: ModelsOptions): Models {
  const { modelsDir, repos, hub } = options;
  const running = new Map<ModelName, Running>();
  const failed = new Map<ModelName, string>();
  const folderOf = (name: ModelName): string => join(modelsDir, repos[name]);
  const stageOf = (name: ModelName): string => join(modelsDir, ".pull", repos[name].replaceAll("/", "--"));

  const status = (name: ModelName): ModelStatus => {
    const folder = folderOf(name);
    const repo = repos[name];
    const files = presentFiles(name, folder);
    if (files !== null) {
      const bytes = files.reduce((sum, file) => sum + sizeOf(join(folder, file)), 0);
      return { name, repo, dimensions: dimensionsOf(name, folder), state: "ready", bytes, totalBytes: bytes };
    }
    const run = running.get(name);
    if (run !== undefined) {
      return { name, repo, dimensions: null, state: "downloading", bytes: run.bytes, totalBytes: run.total };
    }
    const bytes = halfBytes(stageOf(name));
    const state =
      otherProcess(stageOf(name)) !== null
        ? "downloading"
        : failed.has(name) || bytes > 0
          ? "failed"
          : "absent";
    const error = failed.get(name) ?? "The download was interrupted. Pull it again: it continues.";
    return {
      name,
      repo,
      dimensions: null,
      state,
      bytes,
      totalBytes: 0,
      ...(state === "failed" ? { error } : {}),
    };
  };

  const download = async (name: ModelName, run: Running, signal?: AbortSignal): Promise<ModelStatus> => {
    const stage = stageOf(name);
    const repo = repos[name];
    const unlock = lock(stage);
    try {
      const files = await describeModel(hub, name, repo, signal);
      run.total = files.reduce((sum, file) => sum + (file.size ?? 0), 0);
      dropOthers(stage, files);
      checkSpace(options, run.total - halfBytes(stage));
      let before = 0;
      let told = 0;
      for (const file of files) {
        const path = join(stage, stagedName(file));
        const report = (bytes: number): void => {
          run.bytes = before + bytes;
          if (run.bytes < run.total && performance.now() - told < PROGRESS_MS) return;
          told = performance.now();
          for (const watcher of run.watchers) watcher(status(name));
        };
        if (!existsSync(path)) await downloadFile(hub, file, path, report, signal);
        before += sizeOf(path);
        run.bytes = before;
      }
      const ready = join(stage, "ready");
      rmSync(ready, { recursive: true, force: true });
      for (const file of files) place(join(stage, stagedName(file)), join(ready, file.file), renameSync);
      swapIn(ready, folderOf(name));
      rmSync(stage, { recursive: true, force: true });
      failed.delete(name);
      return status(name);
    } catch (error) {
      if (signal?.aborted !== true) failed.set(name, error instanceof Error ? error.message : String(error));
      throw error;
    } finally {
      unlock();
    }
  };

  return {
    list: () => modelNames.map(status),
    status,
    async pull(name, onProgress, signal) {
      if (presentFiles(name, folderOf(name)) !== null) return status(name);
      let run = running.get(name);
      if (run === undefined) {
        const gate = Promise.withResolvers<ModelStatus>();
        run = { done: gate.promise, watchers: new Set(), bytes: 0, total: 0 };
        running.set(name, run);
        failed.delete(name);
        const started = run;
        const end = (): unknown => running.delete(name);
        Promise.try(() => download(name, started, signal))
          .finally(end)
          .then(() => gate.resolve(status(name)), gate.reject);
      }
      if (onProgress !== undefined) run.watchers.add(onProgress);
      try {
        return await run.done;
      } finally {
        if (onProgress !== undefined) run.watchers.delete(onProgress);
      }
    },
    async importFrom(folder, wanted) {
      const found = findModel(folder, wanted, repos);
      const stage = join(stageOf(found.name), "import");
      rmSync(stage, { recursive: true, force: true });
      try {
        for (const file of found.files)
          place(join(found.folder, file), join(stage, repos[found.name], file), copyFileSync);
        await tryOut(found.name, stage, repos[found.name], options.dataDir);
        swapIn(join(stage, repos[found.name]), folderOf(found.name));
      } finally {
        rmSync(stage, { recursive: true, force: true });
      }
      failed.delete(found.name);
      return status(found.name);
    },
    remove(name) {
      const folder = folderOf(name);
      const there = existsSync(folder);
      if (there) {
        const trash = join(modelsDir, `.trash-${crypto.randomUUID()}`);
        renameSync(folder, trash);
        rmSync(trash, { recursive: true, force: true });
      }
      if (otherProcess(stageOf(name)) === null && !running.has(name)) {
        rmSync(stageOf(name), { recursive: true, force: true });
      }
      failed.delete(name);
      return there;
    },
  };
}

async function describeModel(
  hub: HubOptions,
  name: ModelName,
  repo: string,
  signal?: AbortSignal,
): Promise<RemoteFile[]> {
  const files: RemoteFile[] = [];
  for (const file of name === "static" ? STATIC_FILES : TRANSFORMERS_FILES) {
    const found = await describeFile(hub, repo, file, signal);
    if (found === null) throw missing(hub, repo, file);
    files.push(found);
  }
  if (name === "static") return files;
  for (const [file] of TRANSFORMERS_WEIGHTS) {
    const found = await describeFile(hub, repo, file, signal);
    if (found !== null) return [...files, found];
  }
  throw missing(hub, repo, TRANSFORMERS_WEIGHTS[0][0]);
}

function missing(hub: HubOptions, repo: string, file: string): DownloadError {
  const host = URL.parse(hub.endpoint)?.host ?? hub.endpoint;
  return new DownloadError(`${host} has no file ${file} in ${repo} (404).`, { again: false, status: 404 });
}

function checkSpace({ modelsDir, freeBytes }: ModelsOptions, needed: number): void {
  const free = (freeBytes ?? diskFree)(modelsDir);
  if (free === null || needed <= free) return;
  throw new DownloadError(
    `The model needs ${megabytes(needed)} MB and ${megabytes(free)} MB are free in ${modelsDir}. Free some space and try again.`,
    { again: false },
  );
}

function diskFree(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return null;
  }
}

function findModel(
  folder: string,
  wanted: ModelName | undefined,
  repos: Readonly<Record<ModelName, string>>,
) {
  for (const name of wanted === undefined ? modelNames : [wanted]) {
    for (const place of [folder, join(folder, repos[name]), join(folder, basename(repos[name]))]) {
      const files = presentFiles(name, place);
      if (files !== null) return { name, folder: place, files };
    }
  }
  const needed = `${STATIC_FILES.join(", ")}, or ${[...TRANSFORMERS_FILES, TRANSFORMERS_WEIGHTS[0][0]].join(", ")}`;
  throw new DownloadError(`There is no model in ${folder}. One has the files ${needed}.`, { again: false });
}

/** One real embedding. The models' own code is loaded for it alone. */
async function tryOut(name: ModelName, modelsDir: string, repo: string, dataDir: string): Promise<void> {
  const embedder =
    name === "static"
      ? await (await import("./static.ts")).openStatic(join(modelsDir, repo), repo)
      : await (await import("./transformers.ts")).openTransformers({ modelsDir, model: repo, dataDir });
  await embedder.embed(["one real embedding"]);
  await embedder.close();
}
