/** Every field of the memory settings that has no page of its own, in words. */
import type { MemorySettings } from "../src/memory/settings.ts";
import type { Option } from "./fields.tsx";

type Control =
  | { kind: "switch" }
  | { kind: "number"; unit: string; min: number; max: number; step?: number; empty?: string }
  | { kind: "select"; options: readonly Option[] }
  | { kind: "text"; placeholder: string; list?: string };

export interface Setting {
  name: keyof MemorySettings;
  label: string;
  hint?: string;
  control: Control;
}

export interface SettingsGroup {
  id: string;
  title: string;
  sub: string;
  fields: readonly Setting[];
}

export const one = (value: string, text: string): Option => ({ value, text });

/** Every field of the memory settings that has no page of its own (embedding, Qdrant, rerank and backends are on Engine). */
export const settingsGroups: readonly SettingsGroup[] = [
  {
    id: "s-inject",
    title: "Injection",
    sub: "What goes into a prompt, and where.",
    fields: [
      {
        name: "maxTokens",
        label: "Token budget",
        hint: "The most that is added to one request. 0 adds nothing.",
        control: { kind: "number", unit: "tokens", min: 0, max: 16_000 },
      },
      {
        name: "injectionPlacement",
        label: "Placement",
        hint: "Before the last user turn keeps the provider's prompt cache working.",
        control: {
          kind: "select",
          options: [
            one("auto", "Before the last user turn"),
            one("system-first", "First, as a system message"),
          ],
        },
      },
      {
        name: "injectEpisodes",
        label: "Recall exchanges too",
        hint: "Earlier exchanges compete with memories for at most half of the budget.",
        control: { kind: "switch" },
      },
      {
        name: "retrievalTimeoutMs",
        label: "Deadline of the search",
        hint: "Empty: 150 ms, more with a remote embedding or rerank. What is late is left out.",
        control: { kind: "number", unit: "ms", min: 50, max: 5000, empty: "auto" },
      },
    ],
  },
  {
    id: "s-find",
    title: "Finding",
    sub: "How memories are searched.",
    fields: [
      {
        name: "strategy",
        label: "Strategy",
        hint: "Hybrid fuses words and meaning, and is the best choice for nearly everyone.",
        control: {
          kind: "select",
          options: [one("hybrid", "Hybrid"), one("semantic", "Semantic"), one("recent", "Newest first")],
        },
      },
      {
        name: "fusion",
        label: "Fusion",
        hint: "How the two lists become one.",
        control: { kind: "select", options: [one("scored", "By scores"), one("rrf", "By ranks (RRF)")] },
      },
      {
        name: "scope",
        label: "Scope",
        hint: "Whose memories a request can see.",
        control: {
          kind: "select",
          options: [
            one("apiKey", "Its own API key"),
            one("session", "Its own session"),
            one("global", "Its key and the shared pool"),
          ],
        },
      },
      {
        name: "vectorStore",
        label: "Vector store",
        hint: "The Qdrant switch on Engine moves this too.",
        control: {
          kind: "select",
          options: [one("auto", "Automatic"), one("sqlite-vec", "sqlite-vec"), one("qdrant", "Qdrant")],
        },
      },
    ],
  },
  {
    id: "s-keep",
    title: "Keeping",
    sub: "How long a memory counts.",
    fields: [
      {
        name: "retentionDays",
        label: "Retention",
        hint: "Memories not confirmed for so long leave retrieval unless pinned; 0 keeps them for ever. Nothing is deleted for its age.",
        control: { kind: "number", unit: "days", min: 0, max: 365 },
      },
      {
        name: "deleteAfterDays",
        label: "Delete after",
        hint: "Empty: never. Otherwise deletes for good, never sooner than the retention.",
        control: { kind: "number", unit: "days", min: 1, max: 36_500, empty: "never" },
      },
      {
        name: "autoSummarize",
        label: "Compact every night",
        hint: "Condenses old memories into summaries. The originals can be restored.",
        control: { kind: "switch" },
      },
    ],
  },
  {
    id: "s-learn",
    title: "Learning",
    sub: "What becomes a memory.",
    fields: [
      {
        name: "extractFrom",
        label: "Learn from",
        control: {
          kind: "select",
          options: [
            one("both", "The person and the assistant"),
            one("user", "The person only"),
            one("off", "Nobody"),
          ],
        },
      },
      {
        name: "autoApprove",
        label: "Approve automatically",
        hint: "Off: new memories wait in the review inbox.",
        control: { kind: "switch" },
      },
      {
        name: "recordEpisodes",
        label: "Keep exchanges",
        hint: "The words as they were said, with secrets hidden.",
        control: { kind: "switch" },
      },
      {
        name: "extractEntities",
        label: "Learn who and what",
        hint: "People, projects and places, and how they are linked.",
        control: { kind: "switch" },
      },
      {
        name: "extractionModel",
        label: "Extraction model",
        hint: "Empty: patterns, which cost nothing.",
        control: { kind: "text", placeholder: "provider/model", list: "models" },
      },
      {
        name: "extractEveryTurns",
        label: "Ask it every",
        control: { kind: "number", unit: "turns", min: 1, max: 50 },
      },
      {
        name: "extractionDailyTokens",
        label: "Daily limit for it",
        control: { kind: "number", unit: "tokens", min: 0, max: 1_000_000_000 },
      },
    ],
  },
];
