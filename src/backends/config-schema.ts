/** Setting `backendConfigs`: what each type takes, and what is wrong with it. */
import { z } from "zod";
import type { ErrorDetail } from "../error.ts";
import { collect } from "../validate.ts";
import { urlProblem } from "./allowed.ts";

/** Made when the first backend is configured: schemas cost milliseconds at every start, and most boxes have none. */
function makeSchema() {
  const url = z
    .string()
    .max(2000)
    .superRefine((value, context) => {
      const problem = urlProblem(value);
      if (problem !== null) context.addIssue({ code: "custom", message: problem });
    });
  const displayName = z.string().min(1).max(100).optional();
  const timeout = z.int().min(1).max(300_000).optional();
  const secret = z.string().min(1).max(2000);
  const path = z.string().max(500).regex(/^\//, "must begin with /");
  const names = z.string().regex(/^[A-Za-z_][\w.-]{0,63}$/, "must be a parameter name");

  const http = z.strictObject({
    type: z.literal("http"),
    displayName,
    baseUrl: url,
    apiKey: secret.optional(),
    headers: z.record(z.string().regex(/^[\w-]{1,100}$/), z.string().max(2000)).optional(),
    timeout,
    backendType: z.string().max(100).optional(),
    endpoints: z
      .strictObject({
        search: path.optional(),
        create: path.optional(),
        list: path.optional(),
        get: path.optional(),
        update: path.optional(),
        delete: path.optional(),
        health: path.optional(),
      })
      .optional(),
    queryParams: z
      .strictObject({
        query: names.optional(),
        apiKeyId: names.optional(),
        limit: names.optional(),
        offset: names.optional(),
        strategy: names.optional(),
        maxTokens: names.optional(),
        type: names.optional(),
        sessionId: names.optional(),
        orderBy: names.optional(),
        orderDir: names.optional(),
        options: names.optional(),
      })
      .optional(),
    pathParams: z.strictObject({ id: names.optional(), memoryId: names.optional() }).optional(),
  });
  const obsidian = z.strictObject({
    type: z.literal("obsidian"),
    displayName,
    baseUrl: url.optional(),
    apiKey: secret,
    folder: z
      .string()
      .regex(/^(?!\.)[^/\\:*?"<>|#^[\]]{1,100}$/, "must be the name of one folder")
      .optional(),
    timeout,
  });
  const notion = z.strictObject({
    type: z.literal("notion"),
    displayName,
    databaseId: z
      .string()
      .regex(/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i, "must be a database id"),
    apiKey: secret,
    baseUrl: url.optional(),
    timeout,
  });
  const qdrant = z.strictObject({
    type: z.literal("qdrant"),
    displayName,
    baseUrl: url,
    apiKey: secret.optional(),
    collection: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,255}$/, "must be 1 to 255 of A-Z, a-z, 0-9, dash, underscore")
      .optional(),
    quantization: z.enum(["none", "int8", "binary"]).optional(),
  });
  return z.discriminatedUnion("type", [http, obsidian, notion, qdrant]);
}
let schema: ReturnType<typeof makeSchema> | undefined;
const backendConfig = (): ReturnType<typeof makeSchema> => (schema ??= makeSchema());
export type BackendConfig = z.infer<ReturnType<typeof makeSchema>>;

type Raw = Record<string, Record<string, unknown>>;

/** The type may be left out where the id says it. */
function withType(id: string, config: Record<string, unknown>): Record<string, unknown> {
  return "type" in config || !["obsidian", "notion", "qdrant"].includes(id)
    ? config
    : { type: id, ...config };
}

/** One backend's configuration; null when it is not valid (a newer version's, perhaps). */
export function readBackendConfig(id: string, config: Record<string, unknown>): BackendConfig | null {
  const parsed = backendConfig().safeParse(withType(id, config));
  return parsed.success ? parsed.data : null;
}

/** Everything that is wrong, each with its field (`backendConfigs.brain.baseUrl`). */
export function backendProblems(configs: Raw): { field: string; message: string }[] {
  return Object.entries(configs).flatMap(([id, config]) => {
    const field = `backendConfigs.${id}`;
    if (id === "sqlite") return [{ field, message: "sqlite is built in and takes no configuration" }];
    const problems: ErrorDetail[] = [];
    collect(backendConfig(), withType(id, config), problems);
    return problems.map((problem) => ({ ...problem, field: `${field}.${problem.field}` }));
  });
}
