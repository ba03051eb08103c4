/** The engine's status in words: one chip a part, coverage, what is being built. */
import type { Memory } from "../memory/types.ts";
import type { Coverage, PartState, Reindex } from "../../views/engine.tsx";
import type { State } from "../../views/figures.tsx";
import { count, ms, num } from "../../views/format.ts";
import type { StudioDeps } from "./context.tsx";

export type Status = Awaited<ReturnType<StudioDeps["engine"]["status"]["engine"]>>;

/** Every part of the whole box, asked anew. */
export const readStatus = (deps: StudioDeps): Promise<Status> =>
  deps.engine.status.engine({ owner: null, brief: false });

const shortModel = (model: string | null): string => model?.split("/").at(-1) ?? "";

export function partsOf(status: Status): PartState[] {
  const { keyword, embedding, vectorStore, qdrant, rerank, jobs } = status;
  const { migration } = vectorStore;
  return [
    {
      name: "Keyword",
      state: keyword.available ? (keyword.backend === "FTS5" ? "ok" : "warn") : "bad",
      word: keyword.backend,
      note: keyword.reason ?? "every word of every memory",
    },
    {
      name: "Embedding",
      state: embedding.source === null ? "off" : embedding.available ? "ok" : "warn",
      word: embedding.source ?? "none",
      note:
        embedding.source === null
          ? "search by words alone"
          : embedding.available
            ? `${shortModel(embedding.model)}${embedding.dimensions ? `, ${num(embedding.dimensions)}` : ""}`
            : (embedding.reason ?? "").trim() || "not opened yet",
    },
    {
      name: "Vector store",
      state: migration
        ? "busy"
        : vectorStore.available
          ? "ok"
          : vectorStore.backend === "none"
            ? "off"
            : "warn",
      word: vectorStore.backend,
      note: migration
        ? "a new index is being built"
        : (vectorStore.reason ??
          (vectorStore.available ? count(vectorStore.rowCount, "vector") : "no vectors")),
    },
    {
      name: "Qdrant",
      state: !qdrant.enabled ? "off" : qdrant.healthy ? "ok" : "bad",
      word: !qdrant.enabled ? "off" : qdrant.healthy ? "connected" : "unreachable",
      note: !qdrant.enabled
        ? "not used"
        : qdrant.pending > 0
          ? `${count(qdrant.pending, "write")} wait`
          : qdrant.healthy
            ? qdrant.latencyMs === null
              ? "in step"
              : `in step, ${ms(qdrant.latencyMs)}`
            : (qdrant.error ?? "no answer"),
    },
    {
      name: "Rerank",
      state: !rerank.enabled ? "off" : rerank.available ? "ok" : "warn",
      word: rerank.enabled ? "on" : "off",
      note: rerank.enabled
        ? (rerank.reason ?? rerank.model ?? "")
        : rerank.model === null
          ? "no model chosen"
          : rerank.model,
    },
    {
      name: "Jobs",
      state: jobs.failed > 0 ? "warn" : jobs.running + jobs.queued > 0 ? "busy" : "ok",
      word:
        jobs.failed > 0
          ? `${num(jobs.failed)} failed`
          : jobs.queued + jobs.running > 0
            ? "at work"
            : "none wait",
      note: `${num(jobs.queued)} queued, ${num(jobs.running)} running`,
    },
  ];
}

export function coverageOf(status: Status): Coverage[] {
  const { rowCount, needsReindex } = status.vectorStore;
  return [{ name: "Rows", done: Math.max(0, rowCount - needsReindex), total: rowCount }];
}

export function reindexOf(status: Status): Reindex {
  const { vectorStore, embedding } = status;
  const { migration } = vectorStore;
  return {
    running:
      migration !== null ||
      (vectorStore.needsReindex > 0 && vectorStore.reason === null && embedding.available),
    done: migration?.done ?? Math.max(0, vectorStore.rowCount - vectorStore.needsReindex),
    total: migration?.total ?? vectorStore.rowCount,
    signature: migration?.signature ?? vectorStore.signature,
    pending: vectorStore.needsReindex,
    blocked:
      embedding.source === null
        ? "No embedding source is on, so there is nothing to build. Choose one below."
        : vectorStore.backend === "none"
          ? (embedding.reason ?? vectorStore.reason ?? "There is no vector store.")
          : null,
  };
}

/** Where a memory can be found, in words. A row that is not active is in no index. */
export function indexesOf(
  status: Status,
  memory: Pick<Memory, "status">,
): { name: string; state: State; word: string }[] {
  const { keyword, vectorStore, qdrant } = status;
  if (memory.status !== "active")
    return [{ name: "Searchable", state: "off", word: `no, it is ${memory.status}` }];
  const waits = vectorStore.needsReindex > 0;
  return [
    keyword.available
      ? { name: "Lexical", state: "ok", word: "in step" }
      : { name: "Lexical", state: "warn", word: "by scan" },
    vectorStore.backend === "none" || status.embedding.source === null
      ? { name: "Vectors", state: "off", word: "not used" }
      : { name: vectorStore.backend, state: waits ? "busy" : "ok", word: waits ? "being filled" : "in step" },
    ...(qdrant.enabled
      ? [
          qdrant.pending > 0
            ? { name: "Qdrant", state: "busy" as const, word: `waiting, ${count(qdrant.pending, "job")}` }
            : { name: "Qdrant", state: "ok" as const, word: "in step" },
        ]
      : []),
  ];
}
