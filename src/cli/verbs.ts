/** The verbs. Each is loaded when it is called, so that `serve` starts without the others. */
import type { Verb } from "./verb.ts";

export type VerbEntry = { summary: string; load: () => Promise<{ verb: Verb }> };

/** In the order in which `help` lists them. */
export const verbs: Record<string, VerbEntry> = {
  serve: { summary: "run the appliance (what happens without a verb)", load: () => import("./serve.ts") },
  key: { summary: "create, list, rotate, revoke, merge API keys", load: () => import("./key.ts") },
  provider: { summary: "add, list, test, remove model servers", load: () => import("./provider.ts") },
  memory: {
    summary: "list, search, add, export, import, delete memories",
    load: () => import("./memory.ts"),
  },
  mcp: { summary: "speak MCP on stdin and stdout for one API key", load: () => import("./mcp.ts") },
  summarize: { summary: "compact old memories, for cron", load: () => import("./summarize.ts") },
  reindex: { summary: "embed what has no vector yet, with progress", load: () => import("./reindex.ts") },
  qdrant: { summary: "reconcile: compare both sides and repair", load: () => import("./qdrant.ts") },
  model: {
    summary: "download, import, list, remove embedding models",
    load: () => import("./model.ts"),
  },
  backup: { summary: "write a verified copy of everything to a file", load: () => import("./backup.ts") },
  restore: { summary: "bring a backup back; what is there is kept", load: () => import("./restore.ts") },
  bench: { summary: "measure retrieval quality and speed on this box", load: () => import("./bench.ts") },
  doctor: { summary: "what works on this box, what does not, what to do", load: () => import("./doctor.ts") },
  service: { summary: "install: a hardened systemd unit", load: () => import("./service.ts") },
  config: {
    summary: "show each setting and where it comes from, or set one",
    load: () => import("./config.ts"),
  },
  "sign-in": { summary: "print a fresh one-time link to the Studio", load: () => import("./sign-in.ts") },
  token: { summary: "rotate: a new management token, shown once", load: () => import("./token.ts") },
  version: { summary: "print the version", load: () => import("./version.ts") },
  help: { summary: "this page, or the help of one verb", load: () => import("./help.ts") },
  completion: {
    summary: "print a completion script for bash, zsh or fish",
    load: () => import("./completion.ts"),
  },
};
