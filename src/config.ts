/**
 * Configuration: flag, environment, stored setting, default, in that order. A value that does not parse stops the start
 * with its name, what was found and what is allowed; all problems are listed at once. Nothing here reads `process`.
 */
import { isIP } from "node:net";
import { homedir, platform } from "node:os";
import { join } from "node:path";
import type { Level } from "./log.ts";

type Parsed<T> = { value: T } | { allowed: string };
type Variable<T> = { parse: (text: string) => Parsed<T>; default: T; secret?: true; help: string };

const integer =
  (min: number, max: number) =>
  (text: string): Parsed<number> => {
    const value = /^-?\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? { value } : { allowed: `a whole number from ${min} to ${max}` };
  };
const flag = (text: string): Parsed<boolean> => {
  const word = text.trim().toLowerCase();
  if (["true", "1", "yes", "on"].includes(word)) return { value: true };
  if (["false", "0", "no", "off"].includes(word)) return { value: false };
  return { allowed: "true or false" };
};
const oneOf =
  <T extends string>(...words: T[]) =>
  (text: string): Parsed<T> => {
    const value = words.find((word) => word === text.trim());
    return value === undefined ? { allowed: words.join(", ") } : { value };
  };
const anyText = (text: string): Parsed<string> => ({ value: text });
const nullableText = (text: string): Parsed<string | null> => ({ value: text === "" ? null : text });
const list = (text: string): Parsed<string[]> => ({
  value: text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== ""),
});
const addresses = (text: string): Parsed<string[]> => {
  const parsed = list(text);
  return "value" in parsed && parsed.value.some((one) => isIP(one) === 0)
    ? { allowed: "IP addresses, separated by commas; no ranges and no names" }
    : parsed;
};
const matching =
  (pattern: RegExp, allowed: string) =>
  (text: string): Parsed<string | null> =>
    text === "" ? { value: null } : pattern.test(text) ? { value: text } : { allowed };
const optionalInteger =
  (min: number, max: number) =>
  (text: string): Parsed<number | null> =>
    text === "" ? { value: null } : integer(min, max)(text);

const define = <T>(variable: Variable<T>): Variable<T> => variable;

/** Every variable but DATA_DIR, which must be known before a stored setting can be read. */
export const variables = {
  HOST: define({ parse: anyText, default: "127.0.0.1", help: "address to listen on" }),
  PORT: define({ parse: integer(0, 65_535), default: 20_128, help: "port to listen on; 0 takes a free one" }),
  ALLOWED_HOSTS: define({
    parse: list,
    default: [] as string[],
    help: "further names accepted in Host, comma-separated",
  }),
  TLS_CERT: define({
    parse: nullableText,
    default: null,
    help: "certificate file (PEM); with TLS_KEY serves TLS",
  }),
  TLS_KEY: define({ parse: nullableText, default: null, help: "private key file (PEM)" }),
  TRUST_PROXY: define({
    parse: addresses,
    default: [] as string[],
    help: "addresses whose X-Forwarded-* count",
  }),
  RECOLLECT_MANAGEMENT_TOKEN: define({
    parse: matching(/^[\x21-\x7e]{16,256}$/, "16 to 256 printable characters without blanks"),
    default: null,
    secret: true,
    help: "management token; generated when not given",
  }),
  REQUIRE_API_KEY: define({
    parse: flag,
    default: true,
    help: "false lets requests without a key through, without memory",
  }),
  HF_ENDPOINT: define({
    parse: (text): Parsed<string> =>
      /^https?:\/\/\S+$/.test(text) ? { value: text } : { allowed: "an http or https URL" },
    default: "https://huggingface.co",
    help: "hub that models are downloaded from",
  }),
  HF_TOKEN: define({ parse: nullableText, default: null, secret: true, help: "token for the model hub" }),
  LOG_LEVEL: define<Level | "silent">({
    parse: oneOf("debug", "info", "warn", "error", "silent"),
    default: "info",
    help: "debug, info, warn, error, silent",
  }),
  MEMORY_EMBEDDING_CACHE_TTL_MS: define({
    parse: integer(0, 86_400_000),
    default: 300_000,
    help: "age of a cached embedding; 0 is off",
  }),
  MEMORY_EMBEDDING_CACHE_MAX: define({
    parse: integer(0, 1_000_000),
    default: 1000,
    help: "cached embeddings; 0 is off",
  }),
  MEMORY_TRANSFORMERS_MODEL: define({
    parse: anyText,
    default: "Xenova/all-MiniLM-L6-v2",
    help: "model of the source transformers",
  }),
  MEMORY_STATIC_MODEL: define({
    parse: anyText,
    default: "minishlab/potion-base-8M",
    help: "model of the source static",
  }),
  MEMORY_STATIC_CACHE_DIR: define({
    parse: nullableText,
    default: null,
    help: "folder of the models; DATA_DIR/embeddings when not given",
  }),
  MEMORY_VEC_TOP_K: define({
    parse: integer(1, 1000),
    default: 20,
    help: "candidates of the vector channel",
  }),
  MEMORY_RRF_K: define({ parse: integer(0, 10_000), default: 60, help: "k of reciprocal rank fusion" }),
  MEMORY_VEC_QUANTIZATION: define<"none" | "int8">({
    parse: oneOf("none", "int8"),
    default: "none",
    help: "none or int8",
  }),
  QDRANT_URL: define({ parse: nullableText, default: null, help: "first value of the Qdrant settings" }),
  QDRANT_HOST: define({ parse: nullableText, default: null, help: "first value of the Qdrant settings" }),
  QDRANT_PORT: define({
    parse: optionalInteger(1, 65_535),
    default: null,
    help: "first value of the Qdrant settings",
  }),
  QDRANT_API_KEY: define({
    parse: nullableText,
    default: null,
    secret: true,
    help: "first value of the Qdrant settings",
  }),
  QDRANT_COLLECTION: define({
    parse: matching(/^[A-Za-z0-9_-]{1,255}$/, "1 to 255 of A-Z, a-z, 0-9, dash, underscore"),
    default: null,
    help: "first value of the Qdrant settings",
  }),
  QDRANT_EMBEDDING_MODEL: define({
    parse: nullableText,
    default: null,
    help: "first value of the Qdrant settings",
  }),
  QDRANT_HNSW_EF_CONSTRUCT: define({
    parse: optionalInteger(4, 10_000),
    default: null,
    help: "passed when a collection is created",
  }),
};

export type VariableName = keyof typeof variables;
export type Values = { [Name in VariableName]: (typeof variables)[Name]["default"] };
export type Source = "flag" | "environment" | "stored" | "default";
export type Config = Values & { dataDir: string; sources: Record<VariableName, Source> };

/** Bad configuration: every problem, one a line; exit code 78. */
export class ConfigError extends Error {
  readonly problems: string[];
  constructor(problems: string[]) {
    super(problems.join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

export type Inputs = {
  flags: Partial<Record<VariableName | "DATA_DIR", string>>;
  env: Record<string, string | undefined>;
};

/** The data folder: flag, DATA_DIR, else the platform's place for application data. */
export function dataDirOf({ flags, env }: Inputs): string {
  const given = flags.DATA_DIR ?? (env["DATA_DIR"] || undefined);
  if (given !== undefined) return given;
  switch (platform()) {
    case "darwin":
      return join(homedir(), "Library", "Application Support", "recollect");
    case "win32":
      return join(env["LOCALAPPDATA"] ?? join(homedir(), "AppData", "Local"), "recollect");
    default:
      return join(env["XDG_DATA_HOME"] || join(homedir(), ".local", "share"), "recollect");
  }
}

/** Resolves every variable. Throws a ConfigError that lists all problems. */
export function resolveConfig(inputs: Inputs, stored: Record<string, string>): Config {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  const sources = {} as Record<VariableName, Source>;
  for (const name of Object.keys(variables) as VariableName[]) {
    const variable: Variable<unknown> = variables[name];
    const places: [Source, string | undefined][] = [
      ["flag", inputs.flags[name]],
      ["environment", inputs.env[name] || undefined],
      ["stored", stored[name]],
    ];
    const [source, text] = places.find(([, value]) => value !== undefined) ?? ["default" as const, undefined];
    sources[name] = source;
    values[name] = variable.default;
    if (text === undefined) continue;
    const parsed = variable.parse(text);
    if ("value" in parsed) values[name] = parsed.value;
    else
      problems.push(
        `${name} is ${variable.secret ? "not valid" : JSON.stringify(text)}; allowed: ${parsed.allowed}.`,
      );
  }
  const config = { ...(values as Values), dataDir: dataDirOf(inputs), sources };
  if ((config.TLS_CERT === null) !== (config.TLS_KEY === null)) {
    problems.push("TLS_CERT and TLS_KEY are set together or not at all.");
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** Parses one value for `config set`; throws a ConfigError with the sentence of `resolveConfig`. */
export function checkValue(name: string, text: string): VariableName {
  if (!(name in variables)) {
    throw new ConfigError([`There is no variable ${name}. Known: ${Object.keys(variables).join(", ")}.`]);
  }
  const known = name as VariableName;
  const parsed = variables[known].parse(text);
  if (!("value" in parsed))
    throw new ConfigError([`${name} is ${JSON.stringify(text)}; allowed: ${parsed.allowed}.`]);
  return known;
}

/** True for addresses that only this machine reaches. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}
