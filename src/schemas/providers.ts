/** Providers as they are shown and changed. */
import { z } from "zod";
import { wires } from "../memory/conversation.ts";
import { text, time } from "./common.ts";

export const providerId = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    "must be 1 to 64 of a-z, 0-9, dot, dash, underscore, beginning with a letter or digit",
  );

export const systemRoles = ["auto", "system", "first-only", "none"] as const;

const ms = z.int().min(1).max(3_600_000);
const timeouts = z.strictObject({ connectMs: ms, firstByteMs: ms, idleMs: ms });
const perMillion = z.number().min(0).max(1_000_000);
/** By model name, `*` for every other model; for a million tokens. `cached` counts for cached prompt tokens, else `input`. */
export const prices = z.record(
  text({ max: 300 }),
  z.strictObject({ input: perMillion, output: perMillion, cached: perMillion.exactOptional() }),
);

const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;
/** Made by the connection itself, or by us. */
const RESERVED =
  /^(?:host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|accept-encoding|expect)$/i;
const headers = z
  .record(
    z.string(),
    z
      .string()
      .max(8192)
      .regex(/^[\x20-\x7e\t…•]*$/, "must be printable ASCII"),
  )
  .superRefine((value, context) => {
    for (const name of Object.keys(value)) {
      if (!HEADER.test(name))
        context.addIssue({ code: "custom", path: [name], message: "is not the name of a header" });
      else if (RESERVED.test(name))
        context.addIssue({ code: "custom", path: [name], message: "is a header that cannot be set" });
    }
  });

const fields = {
  apiKey: z
    .string()
    .max(8192)
    .regex(/^[\x21-\x7e…•]*$/, "must be printable ASCII without blanks")
    .nullable(),
  headers,
  wire: z.array(z.enum(wires)).min(1).max(3),
  systemRole: z.enum(systemRoles),
  models: z
    .array(text({ max: 300 }))
    .max(10_000)
    .nullable(),
  timeouts: timeouts.partial(),
  fallbacks: z.array(providerId).max(10),
  prices: prices.nullable(),
  passthroughAuth: z.boolean(),
  enabled: z.boolean(),
  default: z.boolean(),
};
const optional = {
  apiKey: fields.apiKey.exactOptional(),
  headers: fields.headers.exactOptional(),
  wire: fields.wire.exactOptional(),
  systemRole: fields.systemRole.exactOptional(),
  models: fields.models.exactOptional(),
  timeouts: fields.timeouts.exactOptional(),
  fallbacks: fields.fallbacks.exactOptional(),
  prices: fields.prices.exactOptional(),
  passthroughAuth: fields.passthroughAuth.exactOptional(),
  enabled: fields.enabled.exactOptional(),
  default: fields.default.exactOptional(),
};
const baseUrl = z.string().max(2000);

export const newProvider = z.strictObject({ id: providerId, baseUrl, ...optional });
export const providerChanges = z.strictObject({ baseUrl: baseUrl.exactOptional(), ...optional });

export const provider = z
  .strictObject({
    id: providerId,
    baseUrl: z.string(),
    /** What requests go to, before the endpoint. */
    resolvedUrl: z.string(),
    apiKeyMasked: z.string().nullable(),
    /** Values masked like the key. */
    headers: z.record(z.string(), z.string()),
    wire: fields.wire,
    systemRole: fields.systemRole,
    models: z.array(z.string()).nullable(),
    timeouts,
    fallbacks: z.array(z.string()),
    prices: prices.nullable(),
    passthroughAuth: z.boolean(),
    enabled: z.boolean(),
    default: z.boolean(),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: "Provider" });

export const providerTest = z.strictObject({
  ok: z.boolean(),
  latencyMs: z.number().min(0),
  model: z.string().exactOptional(),
  error: z.string().exactOptional(),
});
