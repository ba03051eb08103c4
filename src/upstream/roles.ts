/** Which upstreams take which system messages (2-proxy: Where it goes). Data and one matcher. */
import type { SystemRole } from "../memory/inject.ts";
import { isPrivateHost } from "./policy.ts";

/** Refuse system messages altogether. Matched against provider id, host and model name. */
const REJECTS = ["o1", "o1-mini", "o1-preview", "glm", "glmt", "glm-cn", "zai", "qianfan"];
/** Take one leading system message only. Matched like the above. */
const FIRST_ONLY = [
  "vllm",
  "llama.cpp",
  "llama-cpp",
  "llamacpp",
  "llama-server",
  "ollama",
  "lmstudio",
  "lm-studio",
  "sglang",
  "mlx",
  "xiaomi-mimo",
  "mimo",
];
/** Take them anywhere. Matched against provider id and host: a model's name says nothing about the server in front of it. */
const ANYWHERE = [
  "demo",
  "openai",
  "api.openai.com",
  "azure",
  "anthropic",
  "api.anthropic.com",
  "gemini",
  "google",
  "generativelanguage.googleapis.com",
  "openrouter",
  "openrouter.ai",
  "mistral",
  "api.mistral.ai",
  "groq",
  "api.groq.com",
  "deepseek",
  "api.deepseek.com",
  "together",
  "api.together.xyz",
  "fireworks",
  "api.fireworks.ai",
  "xai",
  "api.x.ai",
  "cerebras",
];
/** Known to take the role `developer` in chat completions. */
const DEVELOPER = ["openai", "api.openai.com", "azure", "openrouter", "openrouter.ai"];

/** What the rules look at. `systemRole` other than `auto` decides alone. */
export interface RoleSubject {
  id: string;
  host: string;
  systemRole: "auto" | SystemRole;
}

/** True when `name` is the entry or begins with it followed by a dash or a dot; case-folded. */
function matches(entries: readonly string[], name: string): boolean {
  const folded = name.toLowerCase();
  return entries.some(
    (entry) =>
      folded === entry ||
      (folded.startsWith(entry) && (folded[entry.length] === "-" || folded[entry.length] === ".")),
  );
}

const lastSegment = (model: string): string => model.slice(model.lastIndexOf("/") + 1);

/** The role policy for a provider and the model name it is sent. */
export function systemRoleOf(subject: RoleSubject, model: string): SystemRole {
  if (subject.systemRole !== "auto") return subject.systemRole;
  let roles = decided.get(subject);
  if (!roles) decided.set(subject, (roles = new Map()));
  let role = roles.get(model);
  if (role === undefined) {
    if (roles.size > 1000) roles.clear();
    roles.set(model, (role = decide(subject, model)));
  }
  return role;
}

/** Answers by provider and model; a provider that is edited is another object. */
const decided = new WeakMap<RoleSubject, Map<string, SystemRole>>();

function decide(subject: RoleSubject, model: string): SystemRole {
  const names = [subject.id, subject.host];
  const all = [...names, lastSegment(model)];
  if (all.some((name) => matches(REJECTS, name))) return "none";
  if (all.some((name) => matches(FIRST_ONLY, name))) return "first-only";
  if (names.some((name) => matches(ANYWHERE, name) || isAzure(name))) return "system";
  return isPrivateHost(subject.host) ? "first-only" : "system";
}

/** Whether `developer` messages may be sent as they are. */
export function takesDeveloper(subject: RoleSubject): boolean {
  let takes = takers.get(subject);
  if (takes === undefined) {
    takes = [subject.id, subject.host].some((name) => matches(DEVELOPER, name) || isAzure(name));
    takers.set(subject, takes);
  }
  return takes;
}

const takers = new WeakMap<RoleSubject, boolean>();

const isAzure = (host: string): boolean =>
  host.endsWith(".openai.azure.com") || host.endsWith(".services.ai.azure.com");
