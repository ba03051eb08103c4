/** What the Studio says after an action. Codes travel, words stay here. */
import { count, memoryHref } from "../../views/format.ts";

export interface Done {
  code: string;
  /** What it was done to: a memory, for undo. */
  id?: string;
  n?: number;
}

interface Toast {
  text: string;
  undo?: { action: string; fields?: Record<string, string> } | undefined;
  link?: { href: string; text: string } | undefined;
}

const memories = (n: number | undefined) => count(n ?? 1, "memory", "memories");

const texts: Record<string, (done: Done) => Toast> = {
  saved: () => ({ text: "Saved." }),
  added: ({ id }) => ({ text: "Added.", link: id ? { href: memoryHref(id), text: "Open" } : undefined }),
  updated: ({ id }) => ({
    text: "A memory had this key. It was updated; its old text is in the history.",
    link: id ? { href: memoryHref(id), text: "Open" } : undefined,
  }),
  archived: ({ id }) => ({
    text: "Archived.",
    undo: id ? { action: memoryHref(id, "unarchive") } : undefined,
  }),
  unarchived: () => ({ text: "Back again." }),
  "archived-many": ({ n }) => ({
    text: `${memories(n)} archived.`,
    link: { href: "/dashboard/memory?status=archived", text: "Show" },
  }),
  "unarchived-many": ({ n }) => ({ text: `${memories(n)} back again.` }),
  pinned: () => ({ text: "Pinned. It is part of every request now." }),
  "pinned-many": ({ n }) => ({ text: `${memories(n)} pinned.` }),
  unpinned: () => ({ text: "Unpinned." }),
  restored: () => ({ text: "Restored. What was current is in the history." }),
  originals: ({ n }) => ({ text: `${memories(n)} restored.` }),
  "deleted-many": ({ n }) => ({ text: `${memories(n)} deleted for good.` }),
  approved: ({ n }) => ({ text: n === undefined ? "Approved." : `${memories(n)} approved.` }),
  rejected: ({ n }) => ({ text: n === undefined ? "Rejected." : `${memories(n)} rejected.` }),
  compacted: ({ n }) => ({
    text: `${memories(n)} compacted. The originals are archived.`,
    link: { href: "/dashboard/memory?type=semantic", text: "Show the summaries" },
  }),
  "nothing-selected": () => ({ text: "Nothing was selected." }),
  "memory-on": () => ({ text: "Memory is on." }),
  "memory-off": () => ({ text: "Memory is off." }),
  deleted: () => ({ text: "Deleted for good." }),
  "session-pinned": () => ({ text: "Pinned. Its exchanges stay in retrieval." }),
  summarised: () => ({ text: "Summarised." }),
  "nothing-to-summarise": () => ({ text: "There is too little to summarise." }),
  "key-revoked": () => ({ text: "Revoked." }),
  "provider-added": () => ({ text: "Added. Press Test to see whether it answers." }),
  "provider-removed": () => ({ text: "Removed." }),
  default: () => ({ text: "It is the default now." }),
  retried: ({ n }) => ({ text: `${count(n ?? 0, "job")} will be tried again.` }),
  cleaned: ({ n }) => ({ text: `${count(n ?? 0, "point")} deleted from Qdrant.` }),
  reindexing: () => ({ text: "Building the index." }),
  works: ({ n }) => ({
    text: `It works: learned, stored, recalled and deleted a test statement in ${n ?? 0} ms.`,
  }),
  theme: () => ({ text: "Theme changed." }),
};

/** The toast of an action; undefined for a code nobody knows (a cookie can hold anything). */
export function words(done: Done): Toast | undefined {
  const id = done.id !== undefined && /^[\w.:@-]{1,400}$/.test(done.id) ? done.id : undefined;
  const n = done.n !== undefined && Number.isFinite(done.n) ? done.n : undefined;
  const text = Object.hasOwn(texts, done.code) ? texts[done.code] : undefined;
  return text?.({ code: done.code, ...(id === undefined ? {} : { id }), ...(n === undefined ? {} : { n }) });
}
