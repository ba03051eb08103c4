/** API keys as they are shown and changed. */
import { z } from "zod";
import { text, time } from "./common.ts";

export const keyScopes = ["proxy", "read:memory", "write:memory"] as const;

/** Becomes part of owner names (`keyId:person`), so it holds no colon. */
export const keyId = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    "must be 1 to 64 of A-Z, a-z, 0-9, dot, dash, underscore, beginning with a letter or digit",
  )
  .refine((id) => id !== "shared", "is the name of the shared pool");

const scopes = z.array(z.enum(keyScopes)).max(3);
/** Credentials are no names: they would be stored as part of an owner's. */
const CREDENTIALS = /^(?:authorization|proxy-authorization|cookie|x-api-key|x-recollect-key)$/i;
const headerName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,100}$/, "must be the name of a header")
  .refine((name) => !CREDENTIALS.test(name), "is a header for credentials");
const fieldName = z.string().regex(/^[A-Za-z0-9_.-]{1,100}$/, "must be the name of a body field");

export const apiKey = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    prefix: z.string(),
    scopes: z.array(z.enum(keyScopes)),
    createdAt: time,
    lastUsedAt: time.nullable(),
    expiresAt: time.nullable(),
    revokedAt: time.nullable(),
    memory: z.enum(["inherit", "on", "off"]),
    maxTokens: z.int().nullable(),
    models: z.array(z.string()).nullable(),
    requestsPerMinute: z.int().nullable(),
    tokensPerDay: z.int().nullable(),
    sharedPool: z.boolean(),
    userHeader: z.string().nullable(),
    userField: z.string().nullable(),
  })
  .meta({ id: "ApiKey" });

const settings = {
  scopes: scopes.exactOptional(),
  expiresAt: time.nullable().exactOptional(),
  memory: z.enum(["inherit", "on", "off"]).exactOptional(),
  maxTokens: z.int().min(0).max(16_000).nullable().exactOptional(),
  models: z
    .array(text({ max: 300 }))
    .max(1000)
    .nullable()
    .exactOptional(),
  requestsPerMinute: z.int().min(1).max(1_000_000).nullable().exactOptional(),
  tokensPerDay: z.int().min(1).max(1_000_000_000_000).nullable().exactOptional(),
  sharedPool: z.boolean().exactOptional(),
  userHeader: headerName.nullable().exactOptional(),
  userField: fieldName.nullable().exactOptional(),
};

export const newKey = z.strictObject({ id: keyId.exactOptional(), name: text({ max: 200 }), ...settings });
export const keyChanges = z.strictObject({ name: text({ max: 200 }).exactOptional(), ...settings });
