/** The record of what was injected into one request, and why. */
import { z } from "zod";
import { kinds } from "../memory/types.ts";
import { count, ownerName, time } from "./common.ts";

const candidate = z.strictObject({
  kind: z.enum(kinds),
  id: z.string(),
  tier: z.string().nullable(),
  score: z.number().nullable(),
  ftsRank: z.int().nullable(),
  ftsScore: z.number().nullable(),
  vecRank: z.int().nullable(),
  vecScore: z.number().nullable(),
  tokens: count,
  injected: z.boolean(),
  reason: z.string().nullable().meta({ description: "Why it was left out." }),
});

export const receipt = z
  .strictObject({
    id: z.uuid(),
    createdAt: time,
    apiKeyId: ownerName.nullable(),
    sessionId: z.string().nullable(),
    provider: z.string().nullable(),
    model: z.string().nullable(),
    injected: count,
    tokens: count,
    placement: z.string().nullable(),
    reason: z.string().nullable(),
    latencyMs: z.number().min(0),
    fallbacks: z.array(z.string()),
    candidates: z.array(candidate),
  })
  .meta({ id: "Receipt" });

export const receiptDetail = receipt
  .extend({
    text: z
      .string()
      .nullable()
      .meta({ description: "What was injected; null once a part of it was deleted." }),
    redacted: count,
    learned: z.array(z.strictObject({ id: z.string(), action: z.string() })),
    episodeId: z.int().nullable(),
  })
  .meta({ id: "ReceiptDetail" });
